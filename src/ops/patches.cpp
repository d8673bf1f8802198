#include "ops/patches.h"

#include "ops/dispatch.h"
#include "ops/kernels/patches.h"
#include "ops/memory.h"
#include "ops/parallel.h"

namespace nmrf::ops {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [B, h, w, k, 64] -> [B, 8h, 8w, k]
Tensor to_full_resolution(const Tensor& patches) {
  const int64_t batch = patches.size(0), h = patches.size(1), w = patches.size(2),
                k = patches.size(3);
  return patches.view({batch, h, w, k, 8, 8})
      .permute({0, 1, 4, 2, 5, 3})
      .reshape({batch, h * 8, w * 8, k});
}

Winners winners_plain(const Tensor& scores, const Tensor& disparities) {
  auto score = to_full_resolution(scores);
  auto disparity = to_full_resolution(disparities);
  Winners winners;
  winners.index = std::get<1>(score.max(-1));
  auto chosen = winners.index.unsqueeze(-1);
  winners.disparity = disparity.gather(-1, chosen).squeeze(-1);
  winners.confidence = score.softmax(-1).gather(-1, chosen).squeeze(-1);
  return winners;
}

Tensor median_plain(const Tensor& disparity) {
  const int64_t batch = disparity.size(0), h = disparity.size(1) / 4, w = disparity.size(2) / 4;
  auto blocks =
      disparity.view({batch, h, 4, w, 4}).permute({0, 1, 3, 2, 4}).reshape({batch, h, w, 16});
  return std::get<0>(blocks.median(-1));
}

constexpr int64_t kRowsAtLeast = 2;  // of a piece

Tensor run_refined(const Tensor& labels, const Tensor& offsets) {
  const int64_t batch = labels.size(0), h = labels.size(1), w = labels.size(2);
  auto out = empty_floats({batch, 4 * h, 4 * w});
  share(batch * h, kRowsAtLeast, [&](int64_t begin, int64_t end) {
    kernels::unfold_offsets(labels.data_ptr<float>(), offsets.data_ptr<float>(), w,
                            out.data_ptr<float>(), begin, end);
  });
  return out;
}

struct RefinedFunction : torch::autograd::Function<RefinedFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& labels, const Tensor& offsets) {
    context->save_for_backward({labels, offsets});
    return run_refined(labels, offsets);
  }
  static variable_list backward(AutogradContext* context, const variable_list& above) {
    refuse_second_derivative();
    const auto saved = context->get_saved_variables();
    const Tensor &labels = saved[0], &offsets = saved[1];
    const auto from = above[0].contiguous();
    auto gradient = empty_floats(offsets.sizes());
    share(labels.size(0) * labels.size(1), kRowsAtLeast, [&](int64_t begin, int64_t end) {
      kernels::unfold_offsets_backward(labels.data_ptr<float>(), offsets.data_ptr<float>(),
                                       from.data_ptr<float>(), labels.size(2),
                                       gradient.data_ptr<float>(), begin, end);
    });
    // A label moves all the offsets of its patch.
    auto d_labels = context->needs_input_grad(0) ? gradient.sum(-1) : Tensor();
    return {d_labels, gradient};
  }
};

}  // namespace

Tensor unfold_patches(const Tensor& patches, int64_t side) {
  const int64_t batch = patches.size(0), h = patches.size(1), w = patches.size(2);
  return patches.reshape({batch, h, w, side, side})
      .permute({0, 1, 3, 2, 4})
      .reshape({batch, h * side, w * side});
}

Winners take_winners(const Tensor& score, const Tensor& disparity) {
  TORCH_CHECK(score.dim() == 5 && score.size(4) == 64 && score.sizes() == disparity.sizes(),
              "scores and disparities [B, h, w, k, 64]");
  torch::NoGradGuard no_grad;
  if (!use_fast(score, disparity)) return winners_plain(score, disparity);
  const int64_t batch = score.size(0), h = score.size(1), w = score.size(2);
  const auto scores = score.contiguous(), disparities = disparity.contiguous();
  Winners winners;
  winners.disparity = empty_floats({batch, 8 * h, 8 * w});
  winners.confidence = empty_floats(winners.disparity.sizes());
  winners.index = torch::empty({batch, 8 * h, 8 * w}, torch::kLong);
  const kernels::WinnersIn in{h, w, score.size(3), scores.data_ptr<float>(),
                              disparities.data_ptr<float>()};
  const kernels::WinnersOut out{winners.disparity.data_ptr<float>(),
                                winners.confidence.data_ptr<float>(),
                                winners.index.data_ptr<int64_t>()};
  share(batch * h, 1,
        [&](int64_t begin, int64_t end) { kernels::pick_winners(in, out, begin, end); });
  return winners;
}

Tensor median_reduce(const Tensor& disparity) {
  TORCH_CHECK(disparity.dim() == 3 && disparity.size(1) % 4 == 0 && disparity.size(2) % 4 == 0,
              "a map [B, 4h, 4w]");
  torch::NoGradGuard no_grad;
  if (!use_fast(disparity)) return median_plain(disparity);
  const int64_t batch = disparity.size(0), h = disparity.size(1) / 4, w = disparity.size(2) / 4;
  const auto from = disparity.contiguous();
  auto out = empty_floats({batch, h, w});
  share(batch * h, kRowsAtLeast, [&](int64_t begin, int64_t end) {
    kernels::median_of_blocks(from.data_ptr<float>(), w, out.data_ptr<float>(), begin, end);
  });
  return out;
}

Tensor refined_disparity(const Tensor& labels, const Tensor& offsets) {
  TORCH_CHECK(offsets.dim() == 4 && offsets.size(3) == 16 && labels.dim() == 3 &&
                  labels.sizes() == offsets.sizes().slice(0, 3),
              "labels [B, h, w] and offsets [B, h, w, 16]");
  if (!use_fast(labels, offsets))
    return 4 * unfold_patches((labels.unsqueeze(-1) + offsets).relu(), 4);
  if (wants_gradient({labels, offsets}))
    return RefinedFunction::apply(labels.contiguous(), offsets.contiguous());
  return run_refined(labels.contiguous(), offsets.contiguous());
}

}  // namespace nmrf::ops
