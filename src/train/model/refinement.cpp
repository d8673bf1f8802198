#include "train/model/refinement.h"

#include "train/ops/patches.h"
#include "train/ops/warp.h"

namespace nmrf::train {
namespace {

// The rows of a result [B, height, ...] by compute(first, rows). What they are computed from is
// large: without a graph only some rows of it are there at a time.
template <class Compute>
torch::Tensor in_strips(int64_t height, Compute compute) {
  const int64_t strip = torch::GradMode::is_enabled() ? height : std::min<int64_t>(height, 32);
  std::vector<torch::Tensor> strips;
  for (int64_t row = 0; row < height; row += strip)
    strips.push_back(compute(row, std::min(strip, height - row)));
  return strips.size() == 1 ? strips[0] : torch::cat(strips, 1);
}

}  // namespace

MessagePassing make_refinement(const ModelOptions& o) {
  NeighbourOptions neighbour{
      .channels = o.refinement_channels,
      .encoding = o.encoding_channels(),
      .heads = o.refinement_heads,
      .window = o.refinement_window,
      .shift = 0,
      .mlp_ratio = o.mlp_ratio,
      .adaptive_bias = o.adaptive_bias,
      .position_aggregation = o.position_aggregation,
      .own_pixel = ops::OwnPixel::kAll,  // there is one label a pixel
  };
  return MessagePassing(o, o.refinement_channels, o.refinement_layers, neighbour,
                        /*own_self_edges=*/false, /*encoding_range=*/128);
}

Candidates candidates_of(const Hypotheses& hypotheses) {
  torch::NoGradGuard no_grad;
  const auto& patches = hypotheses.disparity;
  const int64_t batch = patches.size(0), h = patches.size(1), w = patches.size(2),
                k = patches.size(3);
  // [B, h, w, k, 64] -> [B, 2 h, 2 w, k]
  auto blocks = [&](const torch::Tensor& values) {
    return values.reshape({batch, h, w, k, 2, 4, 2, 4})
        .mean({5, 7})
        .permute({0, 1, 4, 2, 5, 3})
        .reshape({batch, 2 * h, 2 * w, k});
  };
  return {2 * blocks(patches), blocks(hypotheses.score.softmax(3)).clamp_min(1e-6).log()};
}

torch::Tensor Search::found() const {
  torch::NoGradGuard no_grad;
  const int64_t radius = logits.size(4) / 2;
  auto offsets = radius - torch::arange(2 * radius + 1, logits.options());
  auto places = labels + (logits.softmax(-1) * offsets).sum(-1);
  auto winner = logits.logsumexp(-1).argmax(-1, /*keepdim=*/true);
  return places.gather(-1, winner).squeeze(-1).relu();
}

FineSearchImpl::FineSearchImpl(const ModelOptions& o)
    : groups_(o.gamma2_groups),
      radius_(o.refinement_search),
      score_(register_module("score", Mlp((2 * radius_ + 1) * groups_,
                                          (o.refinement_channels + 1) / 2, 2 * radius_ + 1))),
      trust_(register_parameter("trust", torch::full({1}, 0.5))) {}

Search FineSearchImpl::forward(const torch::Tensor& left, const torch::Tensor& right,
                               const Candidates& candidates) {
  auto logits = in_strips(left.size(2), [&](int64_t first, int64_t rows) {
    auto matches = ops::correlate(left.narrow(2, first, rows), right.narrow(2, first, rows),
                                  candidates.labels.narrow(1, first, rows), groups_, radius_);
    return score_(matches);
  });
  return {candidates.labels, logits + trust_ * candidates.log_prior.unsqueeze(-1)};
}

CellBlendImpl::CellBlendImpl(const ModelOptions& o)
    : weigh_(register_module("weigh",
                             Mlp(o.refinement_channels, ModelOptions::blend_hidden, 16 * 9 + 1))) {
  torch::NoGradGuard no_grad;
  // At first nearly the cell's own start, and a neighbour's where the colour says so.
  auto last = weigh_->fc2();
  last.weight.zero_();
  last.bias.fill_(0);
  last.bias.narrow(0, 0, 16 * 9).view({16, 9}).select(1, 4).fill_(5);
  last.bias[16 * 9] = -1;
}

torch::Tensor CellBlendImpl::forward(const torch::Tensor& embedding, const torch::Tensor& start,
                                     const torch::Tensor& image) {
  const ops::BlendMaps maps{start, image, torch::avg_pool2d(image, 4)};
  return in_strips(start.size(1), [&](int64_t first, int64_t rows) {
    return ops::blend_starts(weigh_(embedding.narrow(1, first, rows).contiguous()), maps, first);
  });
}

}  // namespace nmrf::train
