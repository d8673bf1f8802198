#include "train/ops/encoding.h"

#include "kernels/patches.h"
#include "train/ops/dispatch.h"
#include "train/ops/memory.h"
#include "train/ops/parallel.h"

namespace nmrf::ops {
namespace {

torch::Tensor encode_plain(const torch::Tensor& labels, int64_t range, int64_t frequencies) {
  auto t = labels.detach().unsqueeze(-1) * 3.14f / static_cast<float>(range);
  auto scaled = t * torch::pow(2.0f, torch::arange(frequencies, labels.options()));
  return torch::cat({scaled.sin(), scaled.cos(), t}, -1);
}

}  // namespace

torch::Tensor encode_disparity(const torch::Tensor& labels, int64_t range, int64_t frequencies) {
  TORCH_CHECK(frequencies >= 1 && frequencies <= kernels::kMaxFrequencies, "1 to 15 frequencies");
  if (!use_fast(labels)) return encode_plain(labels, range, frequencies);
  auto from = labels.detach().contiguous();
  auto shape = labels.sizes().vec();
  shape.push_back(2 * frequencies + 1);
  auto result = empty_floats(shape);
  share(from.numel(), 512, [&](int64_t begin, int64_t end) {
    kernels::encode_labels(from.data_ptr<float>(), static_cast<float>(range), frequencies,
                           result.data_ptr<float>(), begin, end);
  });
  return result;
}

}  // namespace nmrf::ops
