#include "train/model/swin_backbone.h"

#include <numeric>

#include "train/ops/attention.h"

namespace nmrf::train {
namespace {

using torch::Tensor;
constexpr int64_t kWindow = SwinSizes::window;

torch::nn::LayerNorm layer_norm(int64_t channels) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels}));
}

int64_t missing(int64_t size) { return (kWindow - size % kWindow) % kWindow; }

}  // namespace

StochasticDepth::StochasticDepth(uint64_t seed)
    : generator_(at::detail::createCPUGenerator(seed)) {}

Tensor StochasticDepth::thin(const Tensor& branch, double rate) {
  if (rate <= 0) return branch;
  auto draws = torch::rand({branch.size(0), 1, 1, 1}, generator_);
  auto kept = (draws >= rate).to(branch.options()) / (1 - rate);
  return branch * kept;
}

SwinAttentionImpl::SwinAttentionImpl(int64_t channels, int64_t heads)
    : qkv(register_module("qkv", torch::nn::Linear(channels, 3 * channels))),
      proj(register_module("proj", torch::nn::Linear(channels, channels))),
      bias(register_parameter("relative_position_bias_table",
                              torch::zeros({(2 * kWindow - 1) * (2 * kWindow - 1), heads}))) {}

SwinBlockImpl::SwinBlockImpl(int64_t channels, int64_t heads, int64_t shift, double drop)
    : heads_(heads),
      shift_(shift),
      drop_(drop),
      norm1_(register_module("norm1", layer_norm(channels))),
      norm2_(register_module("norm2", layer_norm(channels))),
      attn_(register_module("attn", SwinAttention(channels, heads))),
      mlp_(register_module("mlp", Mlp(channels, SwinSizes::mlp_ratio * channels, channels))) {}

Tensor SwinBlockImpl::forward(const Tensor& x, StochasticDepth* depth) {
  // Zeros are added behind the norm: their q, k and v are the biases, and nothing masks them.
  auto padded =
      torch::constant_pad_nd(norm1_(x), {0, 0, 0, missing(x.size(2)), 0, missing(x.size(1))});
  auto qkv = ops::norm_linear(padded.unsqueeze(3), {}, {}, {weights_of(attn_->qkv)})[0];
  padded.reset();
  ops::RelativePosition position;
  position.bias = attn_->bias;
  auto message = ops::window_attention(qkv, heads_, kWindow, shift_, position, ops::OwnPixel::kAll)
                     .squeeze(3)
                     .narrow(1, 0, x.size(1))
                     .narrow(2, 0, x.size(2))
                     .contiguous();
  qkv.reset();
  if (!depth)
    return ops::message_mlp_residual(x, message, weights_of(attn_->proj), weights_of(norm2_),
                                     mlp_->fc1(), mlp_->fc2());
  auto branch = ops::norm_linear(message, {}, {}, {weights_of(attn_->proj)})[0];
  auto u = x + depth->thin(branch, drop_);
  return u + depth->thin(mlp_(norm2_(u)), drop_);
}

PatchMergingImpl::PatchMergingImpl(int64_t channels)
    : reduction_(register_module(
          "reduction",
          torch::nn::Linear(torch::nn::LinearOptions(4 * channels, 2 * channels).bias(false)))),
      norm_(register_module("norm", layer_norm(4 * channels))) {}

Tensor PatchMergingImpl::forward(const Tensor& x) {
  auto every_second = [&](int64_t row, int64_t column) {
    return x.slice(1, row, x.size(1), 2).slice(2, column, x.size(2), 2);
  };
  auto cells = torch::cat(
      {every_second(0, 0), every_second(1, 0), every_second(0, 1), every_second(1, 1)}, -1);
  return ops::norm_linear(cells, weights_of(norm_), {}, {weights_of(reduction_)})[0];
}

SwinBackboneImpl::SwinBackboneImpl()
    : patches_(torch::nn::Conv2dOptions(3, SwinSizes::channels(0), SwinSizes::patch)
                   .stride(SwinSizes::patch)),
      patch_norm_(layer_norm(SwinSizes::channels(0))) {
  auto embed = std::make_shared<torch::nn::Module>("patch_embed");
  embed->register_module("proj", patches_);
  embed->register_module("norm", patch_norm_);
  register_module("patch_embed", embed);
  const double last =
      std::accumulate(std::begin(SwinSizes::blocks), std::end(SwinSizes::blocks), 0.0) - 1;
  double block = 0;
  torch::nn::ModuleList layers;
  for (int64_t s = 0; s < SwinSizes::stages; ++s) {
    auto layer = std::make_shared<torch::nn::Module>("layer");
    torch::nn::ModuleList blocks;
    stages_.emplace_back();
    for (int64_t b = 0; b < SwinSizes::blocks[s]; ++b) {
      stages_.back().emplace_back(SwinSizes::channels(s), SwinSizes::heads(s),
                                  b % 2 == 0 ? 0 : kWindow / 2, kMostDrop * block++ / last);
      blocks->push_back(stages_.back().back());
    }
    layer->register_module("blocks", blocks);
    if (s + 1 < SwinSizes::stages) {
      mergings_.emplace_back(SwinSizes::channels(s));
      layer->register_module("downsample", mergings_.back());
    }
    layers->push_back(layer);
  }
  register_module("layers", layers);
}

std::vector<Tensor> SwinBackboneImpl::forward(const Tensor& images, StochasticDepth* depth,
                                              Trace* trace) {
  auto x = patch_norm_(patches_(images).permute({0, 2, 3, 1}).contiguous());
  record(trace, "swin_patch", x);
  std::vector<Tensor> stages;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const std::string stage = std::to_string(s);
    for (std::size_t b = 0; b < stages_[s].size(); ++b) {
      x = stages_[s][b]->forward(x, depth);
      record(trace, "swin_stage" + stage + "_block" + std::to_string(b), x);
    }
    stages.push_back(x);
    if (s == mergings_.size()) break;
    x = mergings_[s](x);
    record(trace, "swin_merge" + stage, x);
  }
  return stages;
}

void SwinBackboneImpl::initialise() {
  patches_->reset_parameters();
  for (auto& stage : stages_)
    for (auto& block : stage)
      for (auto& item : block->named_parameters())
        if (item.key().ends_with("relative_position_bias_table"))
          torch::nn::init::normal_(item.value(), 0.0, 0.02);
}

}  // namespace nmrf::train
