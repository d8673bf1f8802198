#include "network/formula.h"

#include <cmath>

namespace nmrf {

std::uint64_t formula_mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

std::uint64_t formula_hash(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

std::vector<float> FormulaParameters::take(const std::string& name,
                                           std::vector<std::int64_t> shape) {
  const ParameterSpec spec{name, shape};
  const std::uint64_t start = formula_hash(name);
  const bool bias = name.ends_with(".bias");
  const bool table = name.ends_with("relative_position_enc_table");
  const bool vector = shape.size() == 1;
  const bool cost_mlp = name.starts_with("dpn.mlp.");
  const double fan_in = static_cast<double>(spec.elements()) / static_cast<double>(shape[0]);
  const double gain = (name == "infer_score_head.weight" ? 4.0 : 1.0) * std::sqrt(3.0 / fan_in);
  std::vector<float> values(static_cast<std::size_t>(spec.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t bits = formula_mix(start + (i + 1) * 0x9E3779B97F4A7C15ull) >> 40;
    const double r = 2.0 * (static_cast<double>(bits) / 16777216.0) - 1.0;
    double value = gain * r;
    if (bias)
      value = 0.05 * r;
    else if (table)
      value = 0.25 * r;
    else if (vector)
      value = 1.0 + 0.1 * r;
    else if (cost_mlp)
      value = 0.1 * r + (i % 5 == 2 ? 0.3 : 0.0);
    values[i] = static_cast<float>(value);
  }
  return values;
}

}  // namespace nmrf
