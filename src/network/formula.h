// Weights made by a formula: untrained, but the same on every machine. They let tests and the
// pipeline run the whole network without a weight file, and compare it with numbers computed
// elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "network/parameters.h"

namespace nmrf {

// Every parameter from its name and element index. For element i of `name`:
//   u = (mix(fnv(name) + (i + 1) * 0x9E3779B97F4A7C15) >> 40) / 2^24,  r = 2u - 1
//   *.bias: 0.05 r; position tables: 0.25 r; other vectors: 1 + 0.1 r;
//   dpn.mlp.*: 0.1 r, plus 0.3 at the centre tap; else g sqrt(3 / fan_in) r, g = 4 for the score
//   head.
class FormulaParameters : public Parameters {
 public:
  std::vector<float> take(const std::string& name, std::vector<std::int64_t> shape) override;
};

// 64-bit finaliser and string hash the formula is built on.
std::uint64_t formula_mix(std::uint64_t z);
std::uint64_t formula_hash(const std::string& text);

}  // namespace nmrf
