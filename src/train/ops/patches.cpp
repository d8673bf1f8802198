#include "train/ops/patches.h"

#include "kernels/patches.h"
#include "train/ops/dispatch.h"
#include "train/ops/memory.h"
#include "train/ops/parallel.h"

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

using kernels::kAround;
using kernels::kPixels;

// Rows first..first + rows of [B, c, h, w], each cell with those around it: [B, rows, w, 9, c].
Tensor around(const Tensor& cells, int64_t first, int64_t rows) {
  auto padded = torch::replication_pad2d(cells, {1, 1, 1, 1}).permute({0, 2, 3, 1});
  std::vector<Tensor> result;
  for (int64_t y = 0; y < 3; ++y)
    for (int64_t x = 0; x < 3; ++x)
      result.push_back(padded.narrow(1, first + y, rows).narrow(2, x, cells.size(3)));
  return torch::stack(result, 3);
}

Tensor blend_plain(const Tensor& head, const BlendMaps& maps, int64_t first) {
  const int64_t batch = head.size(0), rows = head.size(1), width = head.size(2);
  auto pixels = maps.image.narrow(2, 4 * first, 4 * rows)
                    .reshape({batch, 3, rows, 4, width, 4})
                    .permute({0, 2, 4, 3, 5, 1})
                    .reshape({batch, rows, width, 16, 1, 3});
  auto colours = around(maps.colours, first, rows).unsqueeze(3);  // [B, rows, w, 1, 9, 3]
  auto distance = (pixels - colours).abs().sum(-1) / kernels::kColourUnit;
  auto logits =
      head.narrow(-1, 0, kPixels * kAround).reshape({batch, rows, width, kPixels, kAround}) +
      head.narrow(-1, kPixels * kAround, 1).unsqueeze(-1) * distance;
  auto beside = around(maps.start.unsqueeze(1), first, rows).squeeze(-1) -
                maps.start.narrow(1, first, rows).unsqueeze(-1);  // [B, rows, w, 9]
  return (logits.softmax(-1) * beside.unsqueeze(3)).sum(-1);
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

kernels::BlendIn blend_in(const Tensor& head, const BlendMaps& maps, int64_t first) {
  return {maps.start.size(1),
          maps.start.size(2),
          first,
          head.size(1),
          head.data_ptr<float>(),
          maps.start.data_ptr<float>(),
          maps.image.data_ptr<float>(),
          maps.colours.data_ptr<float>()};
}

Tensor run_blend(const Tensor& head, const BlendMaps& maps, int64_t first) {
  auto out = empty_floats({head.size(0), head.size(1), head.size(2), 16});
  const auto in = blend_in(head, maps, first);
  share(head.size(0) * head.size(1), 1, [&](int64_t begin, int64_t end) {
    kernels::blend_cells(in, out.data_ptr<float>(), begin, end);
  });
  return out;
}

struct BlendFunction : torch::autograd::Function<BlendFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& head, const Tensor& start,
                        const Tensor& image, const Tensor& colours, int64_t first) {
    context->save_for_backward({head, start, image, colours});
    context->saved_data["first"] = first;
    return run_blend(head, {start, image, colours}, first);
  }
  static variable_list backward(AutogradContext* context, const variable_list& above) {
    refuse_second_derivative();
    const auto saved = context->get_saved_variables();
    const Tensor& head = saved[0];
    const BlendMaps maps{saved[1], saved[2], saved[3]};
    const auto in = blend_in(head, maps, context->saved_data["first"].toInt());
    const auto from = above[0].contiguous();
    auto gradient = empty_floats(head.sizes());
    share(head.size(0) * head.size(1), 1, [&](int64_t begin, int64_t end) {
      kernels::blend_cells_backward(in, from.data_ptr<float>(), gradient.data_ptr<float>(), begin,
                                    end);
    });
    return {gradient, Tensor(), Tensor(), Tensor(), Tensor()};
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

Tensor blend_starts(const Tensor& head, const BlendMaps& maps, int64_t first) {
  const Tensor& start = maps.start;
  TORCH_CHECK(head.dim() == 4 && head.size(3) == kernels::kHead && start.dim() == 3 &&
                  head.size(0) == start.size(0) && head.size(2) == start.size(2) && first >= 0 &&
                  first + head.size(1) <= start.size(1),
              "starts [B, h, w] and rows of [B, h, w, 145]");
  TORCH_CHECK(
      maps.image.sizes() ==
              at::IntArrayRef({start.size(0), 3, 4 * start.size(1), 4 * start.size(2)}) &&
          maps.colours.sizes() == at::IntArrayRef({start.size(0), 3, start.size(1), start.size(2)}),
      "an image [B, 3, 4h, 4w] and colours [B, 3, h, w]");
  TORCH_CHECK(!wants_gradient({start, maps.image, maps.colours}),
              "only the head receives a gradient");
  if (!use_fast(head, start)) return blend_plain(head, maps, first);
  const BlendMaps all{start.contiguous(), maps.image.contiguous(), maps.colours.contiguous()};
  if (wants_gradient({head}))
    return BlendFunction::apply(head.contiguous(), all.start, all.image, all.colours, first);
  return run_blend(head.contiguous(), all, first);
}

}  // namespace nmrf::ops
