#include "network/context.h"

#include <algorithm>

namespace nmrf {

void Context::enter(const char* stage) {
  if (on_stage_) on_stage_(stage);
  if (!planning()) return;
  auto found = std::find_if(costs_.begin(), costs_.end(),
                            [&](const StageCost& cost) { return cost.name == stage; });
  stage_ = static_cast<std::size_t>(found - costs_.begin());
  if (found == costs_.end()) costs_.push_back({.name = stage});
}

}  // namespace nmrf
