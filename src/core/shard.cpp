#include "core/shard.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/check.h"

namespace nmrf {
namespace {

// The number in an environment variable, or `otherwise` when it is not set.
int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  int value = 0;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  check(error == std::errc() && end == view.data() + view.size(), ErrorKind::kUsage,
        "the environment variable {} is '{}'; expected a whole number", variable, text);
  return value;
}

}  // namespace

Shard Shard::from_environment() {
  Shard shard;
  shard.world = number_in("WORLD_SIZE", 1);
  shard.rank = number_in("RANK", 0);
  check(shard.world >= 1, ErrorKind::kUsage, "WORLD_SIZE is {}; expected at least 1", shard.world);
  check(shard.rank >= 0 && shard.rank < shard.world, ErrorKind::kUsage,
        "RANK is {} with WORLD_SIZE {}; expected 0 to {}", shard.rank, shard.world,
        shard.world - 1);
  return shard;
}

}  // namespace nmrf
