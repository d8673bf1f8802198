#include "data/mixed_source.h"

#include "core/check.h"

namespace nmrf {

MixedSource::MixedSource(std::vector<Part> parts) : parts_(std::move(parts)) {
  check(!parts_.empty(), ErrorKind::kUsage, "a mixture of data sets needs at least one");
  for (const auto& part : parts_)
    check(parts_.size() == 1 || part.source->size().has_value(), ErrorKind::kUsage,
          "an endless source of scenes cannot be mixed with data sets: render a fixed number with "
          "`nmrf synth` instead");
}

std::optional<std::int64_t> MixedSource::size() const {
  std::int64_t sum = 0;
  for (const auto& part : parts_) {
    auto size = part.source->size();
    if (!size) return std::nullopt;
    sum += *size * part.repeat;
  }
  return sum;
}

std::pair<const SampleSource*, std::int64_t> MixedSource::find(std::int64_t index) const {
  for (const auto& part : parts_) {
    auto size = part.source->size();
    if (!size) return {part.source.get(), index};
    if (index < *size * part.repeat) return {part.source.get(), index % *size};
    index -= *size * part.repeat;
  }
  fail(ErrorKind::kFailure, "sample {} lies beyond the last data set", index);
}

Sample MixedSource::get(std::int64_t index, std::uint64_t draw_seed) const {
  auto [source, inner] = find(index);
  return source->get(inner, draw_seed);
}

std::string MixedSource::describe(std::int64_t index) const {
  auto [source, inner] = find(index);
  return source->describe(inner);
}

}  // namespace nmrf
