#include "train/model/swin_encoder.h"

#include <cmath>
#include <numbers>

#include "network/swin_encoder.h"
#include "train/ops/deformable.h"

namespace nmrf::train {
namespace {

using torch::Tensor;
constexpr double kNeckEps = 1e-6;
constexpr int64_t kStemChannels = 64;
constexpr int64_t kHeads = nmrf::SwinExtractor::kHeads, kPoints = nmrf::SwinExtractor::kPoints;

torch::nn::LayerNorm layer_norm(int64_t channels) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels}).eps(kNeckEps));
}

Tensor linear(const Tensor& x, const torch::nn::Linear& map) {
  return ops::norm_linear(x, {}, {}, {weights_of(map)})[0];
}

// [1, 3, 1, 1]
Tensor colours(const float (&values)[3], const Tensor& like) {
  return torch::tensor({values[0], values[1], values[2]}).to(like.options()).view({1, 3, 1, 1});
}

}  // namespace

SwinExtractorImpl::SwinExtractorImpl(int64_t channels)
    : query_norm_(register_module("query_norm", layer_norm(channels))),
      feat_norm_(register_module("feat_norm", layer_norm(channels))),
      ffn_norm_(register_module("ffn_norm", layer_norm(channels))),
      sampling_offsets_(channels, 2 * kHeads * kPoints),
      attention_weights_(channels, kHeads * kPoints),
      value_proj_(channels, channels / 2),
      output_proj_(channels / 2, channels),
      fc1_(channels, channels / 4),
      fc2_(channels / 4, channels),
      dwconv_(
          torch::nn::Conv2dOptions(channels / 4, channels / 4, 3).padding(1).groups(channels / 4)) {
  auto attn = std::make_shared<torch::nn::Module>("attn");
  attn->register_module("sampling_offsets", sampling_offsets_);
  attn->register_module("attention_weights", attention_weights_);
  attn->register_module("value_proj", value_proj_);
  attn->register_module("output_proj", output_proj_);
  register_module("attn", attn);
  auto inner = std::make_shared<torch::nn::Module>("dwconv");
  inner->register_module("dwconv", dwconv_);
  auto ffn = std::make_shared<torch::nn::Module>("ffn");
  ffn->register_module("fc1", fc1_);
  ffn->register_module("dwconv", inner);
  ffn->register_module("fc2", fc2_);
  register_module("ffn", ffn);
}

Tensor SwinExtractorImpl::forward(const Tensor& map, const Tensor& features,
                                  const std::string& step, Trace* trace) {
  auto value = linear(feat_norm_(features), value_proj_);
  auto chosen = ops::norm_linear(query_norm_(map), {}, {},
                                 {weights_of(sampling_offsets_), weights_of(attention_weights_)});
  record(trace, "neck_feat" + step, features);
  record(trace, "neck_value" + step, value);
  record(trace, "neck_offsets" + step, chosen[0]);
  record(trace, "neck_weights" + step, chosen[1]);
  auto sampled = ops::deformable_attention(value, chosen[0], chosen[1], kHeads);
  if (trace) record(trace, "neck_attn" + step, linear(sampled, output_proj_));
  auto result = ops::linear_residual(sampled, weights_of(output_proj_), map);
  auto hidden = linear(ffn_norm_(result), fc1_);
  hidden = dwconv_(hidden.permute({0, 3, 1, 2})).permute({0, 2, 3, 1}).contiguous();
  result = ops::linear_residual(torch::gelu(hidden), weights_of(fc2_), result);
  record(trace, "neck_layer" + step, result);
  return result;
}

void SwinExtractorImpl::initialise() {
  namespace init = torch::nn::init;
  init::normal_(dwconv_->weight, 0.0, std::sqrt(2.0 / 9));
  init::zeros_(dwconv_->bias);
  init::xavier_uniform_(value_proj_->weight);
  init::xavier_uniform_(output_proj_->weight);
  init::zeros_(attention_weights_->weight);
  init::zeros_(sampling_offsets_->weight);
  // Points one, two, ... pixels away, in another direction for each head.
  auto bias = sampling_offsets_->bias.accessor<float, 1>();
  for (int64_t head = 0; head < kHeads; ++head) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(head) / kHeads;
    const double x = std::cos(angle), y = std::sin(angle),
                 most = std::max(std::abs(x), std::abs(y));
    for (int64_t point = 0; point < kPoints; ++point) {
      const int64_t at = 2 * (head * kPoints + point);
      bias[at] = static_cast<float>(x / most * static_cast<double>(point + 1));
      bias[at + 1] = static_cast<float>(y / most * static_cast<double>(point + 1));
    }
  }
}

SwinEncoderImpl::SwinEncoderImpl(int64_t channels)
    : backbone_(register_module("backbone", SwinBackbone())),
      stem_out_(torch::nn::Conv2dOptions(kStemChannels, channels, 1)) {
  torch::nn::ModuleList steps, fcs;
  auto layers = std::make_shared<torch::nn::Module>("stem");
  for (int64_t i = 0; i < 3; ++i) {
    stem_.emplace_back(torch::nn::Conv2dOptions(i == 0 ? 3 : kStemChannels, kStemChannels, 3)
                           .stride(i == 0 ? 2 : 1)
                           .padding(1)
                           .bias(false));
    layers->register_module(std::to_string(3 * i), stem_.back());
  }
  auto stem = std::make_shared<torch::nn::Module>("stem");
  stem->register_module("stem", layers);
  stem->register_module("fc", stem_out_);
  for (int64_t s = 0; s < SwinSizes::stages; ++s) {
    extractors_.emplace_back(channels);
    steps->push_back(extractors_.back());
    norms_.push_back(layer_norm(SwinSizes::channels(s)));
    fcs_.emplace_back(SwinSizes::channels(s), channels);
    auto pair = std::make_shared<torch::nn::Module>("fc");
    pair->register_module("0", norms_.back());
    pair->register_module("1", fcs_.back());
    fcs->push_back(pair);
  }
  auto neck = std::make_shared<torch::nn::Module>("neck");
  neck->register_module("stem", stem);
  neck->register_module("extractors", steps);
  neck->register_module("fcs", fcs);
  register_module("neck", neck);
}

FeatureMaps SwinEncoderImpl::forward(const Tensor& images, StochasticDepth* depth, Trace* trace) {
  using Sizes = nmrf::SwinEncoder;
  auto scaled = (images - colours(Sizes::kMean, images)) / colours(Sizes::kDeviation, images);
  record(trace, "image_norm", scaled);
  auto map = scaled;
  for (auto& conv : stem_) map = ops::conv_norm_relu(map, weights_of(conv));
  map = ops::convolve(torch::max_pool2d(map, 3, 2, 1), weights_of(stem_out_))
            .permute({0, 2, 3, 1})
            .contiguous();
  record(trace, "neck_stem", map);
  const auto stages = backbone_->forward(scaled, depth, trace);
  for (std::size_t s = 0; s < stages.size(); ++s)
    map = extractors_[s]->forward(map, linear(norms_[s](stages[s]), fcs_[s]), std::to_string(s),
                                  trace);
  FeatureMaps maps;
  maps.fine = map.permute({0, 3, 1, 2});
  maps.coarse = torch::avg_pool2d(maps.fine, 2, 2);
  return maps;
}

void SwinEncoderImpl::initialise() {
  torch::NoGradGuard no_grad;
  backbone_->initialise();
  torch::nn::init::zeros_(stem_out_->bias);
  for (auto& extractor : extractors_) extractor->initialise();
}

}  // namespace nmrf::train
