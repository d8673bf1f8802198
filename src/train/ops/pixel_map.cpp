#include "train/ops/pixel_map.h"

#include "kernels/patches.h"
#include "train/ops/memory.h"
#include "train/ops/parallel.h"

namespace nmrf::ops {

torch::Tensor channels_last(const torch::Tensor& map) {
  auto pixels = map.detach().permute({0, 2, 3, 1});
  const int64_t batch = map.size(0), channels = map.size(1), h = map.size(2), w = map.size(3);
  if (channels == 1 || pixels.stride(3) == 1) return pixels;
  if (map.stride(3) != 1 || map.stride(2) != w) return pixels.contiguous();
  auto result = empty_floats({batch, h, w, channels});
  const float* from = map.data_ptr<float>();
  float* to = result.data_ptr<float>();
  share(batch * h, 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      kernels::transpose_map(from + row / h * map.stride(0) + row % h * w, map.stride(1), channels,
                             w, to + row * w * channels);
  });
  return result;
}

}  // namespace nmrf::ops
