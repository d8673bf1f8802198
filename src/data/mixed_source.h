// Several sources as one, each gone through a given number of times an epoch.
#pragma once

#include <memory>
#include <vector>

#include "data/sample_source.h"

namespace nmrf {

class MixedSource : public SampleSource {
 public:
  struct Part {
    std::shared_ptr<const SampleSource> source;
    int repeat = 1;
  };
  // Throws Error(kUsage) when there are no parts, or an endless one among several.
  explicit MixedSource(std::vector<Part> parts);
  std::optional<std::int64_t> size() const override;
  Sample get(std::int64_t index, std::uint64_t draw_seed) const override;
  std::string describe(std::int64_t index) const override;

 private:
  // The part an index falls into, and the index in it.
  std::pair<const SampleSource*, std::int64_t> find(std::int64_t index) const;
  std::vector<Part> parts_;
};

}  // namespace nmrf
