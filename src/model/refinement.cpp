#include "model/refinement.h"

#include "ops/warp.h"

namespace nmrf {
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

namespace {

constexpr int64_t kAround = 9;  // cells, the middle one in place 4

// Rows first..first + rows of [B, h, w, c], each cell with those around it: [B, rows, w, 9, c].
// `padded` has a border of one cell.
torch::Tensor around(const torch::Tensor& padded, int64_t first, int64_t rows) {
  const int64_t width = padded.size(2) - 2;
  std::vector<torch::Tensor> cells;
  for (int64_t y = 0; y < 3; ++y)
    for (int64_t x = 0; x < 3; ++x)
      cells.push_back(padded.narrow(1, first + y, rows).narrow(2, x, width));
  return torch::stack(cells, 3);
}

// [B, c, h, w] -> [B, h + 2, w + 2, c], the border repeated.
torch::Tensor with_border(const torch::Tensor& cells) {
  return torch::replication_pad2d(cells, {1, 1, 1, 1}).permute({0, 2, 3, 1});
}

}  // namespace

CellBlendImpl::CellBlendImpl(const ModelOptions& o)
    : weigh_(register_module(
          "weigh", Mlp(o.refinement_channels, ModelOptions::blend_hidden, 16 * kAround + 1))) {
  torch::NoGradGuard no_grad;
  // At first nearly the cell's own start, and a neighbour's where the colour says so.
  auto last = weigh_->fc2();
  last.weight.zero_();
  last.bias.fill_(0);
  last.bias.narrow(0, 0, 16 * kAround).view({16, kAround}).select(1, kAround / 2).fill_(5);
  last.bias[16 * kAround] = -1;
}

torch::Tensor CellBlendImpl::forward(const torch::Tensor& embedding, const torch::Tensor& start,
                                     const torch::Tensor& image) {
  const int64_t batch = start.size(0), width = start.size(2);
  const auto starts = with_border(start.unsqueeze(1));
  const auto colours = with_border(torch::avg_pool2d(image, 4));
  return in_strips(start.size(1), [&](int64_t first, int64_t rows) {
    auto said = weigh_(embedding.narrow(1, first, rows).contiguous());
    auto pixels = image.narrow(2, 4 * first, 4 * rows)
                      .reshape({batch, 3, rows, 4, width, 4})
                      .permute({0, 2, 4, 3, 5, 1})
                      .reshape({batch, rows, width, 16, 1, 3});
    auto cells = around(colours, first, rows).unsqueeze(3);  // [B, rows, w, 1, 9, 3]
    torch::Tensor distance;
    for (int64_t c = 0; c < 3; ++c) {
      auto one = (pixels.select(-1, c) - cells.select(-1, c)).abs_();
      distance = c == 0 ? one : distance.add_(one);
    }
    // In units of 16 grey values.
    distance = distance.mul_(1.0 / (3 * 16)).to(said.scalar_type());
    auto logits = said.narrow(-1, 0, 16 * kAround).reshape({batch, rows, width, 16, kAround}) +
                  said.narrow(-1, 16 * kAround, 1).unsqueeze(-1) * distance;
    auto beside = around(starts, first, rows).squeeze(-1) -
                  start.narrow(1, first, rows).unsqueeze(-1);  // [B, rows, w, 9]
    return (logits.softmax(-1) * beside.unsqueeze(3)).sum(-1);
  });
}

}  // namespace nmrf
