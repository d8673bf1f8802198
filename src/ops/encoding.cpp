#include "ops/encoding.h"

namespace nmrf::ops {

torch::Tensor encode_disparity(const torch::Tensor& labels, int64_t range) {
  constexpr int64_t kFrequencies = (kEncodingChannels - 1) / 2;
  auto t = labels.detach().unsqueeze(-1) * 3.14f / static_cast<float>(range);
  auto scaled = t * torch::pow(2.0f, torch::arange(kFrequencies, labels.options()));
  return torch::cat({scaled.sin(), scaled.cos(), t}, -1);
}

}  // namespace nmrf::ops
