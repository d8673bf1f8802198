#include "train/model/formula.h"

#include <cmath>

namespace nmrf {
namespace {

bool ends_with(const std::string& text, const std::string& ending) {
  return text.size() >= ending.size() &&
         text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

}  // namespace

uint64_t formula_mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

uint64_t formula_hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

void fill_by_formula(Network& network) {
  torch::NoGradGuard no_grad;
  for (auto& item : network->named_parameters()) {
    const std::string& name = item.key();
    torch::Tensor& parameter = item.value();
    const uint64_t start = formula_hash(name);
    const bool bias = ends_with(name, ".bias");
    const bool table = ends_with(name, "relative_position_enc_table");
    const bool vector = parameter.dim() == 1;
    const bool cost_mlp = name.rfind("dpn.mlp.", 0) == 0;
    const double fan_in = static_cast<double>(parameter.numel()) / parameter.size(0);
    const double gain = (name == "infer_score_head.weight" ? 4.0 : 1.0) * std::sqrt(3.0 / fan_in);
    auto values = torch::empty(parameter.sizes(), torch::kFloat);
    float* out = values.data_ptr<float>();
    for (int64_t i = 0; i < values.numel(); ++i) {
      const uint64_t bits = formula_mix(start + (i + 1) * 0x9E3779B97F4A7C15ull) >> 40;
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
      out[i] = static_cast<float>(value);
    }
    parameter.copy_(values);
  }
}

}  // namespace nmrf
