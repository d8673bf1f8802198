#include "train/model/nmrf.h"

#include <mutex>

#include "core/check.h"
#include "core/stage_clock.h"
#include "train/ops/dispatch.h"
#include "train/ops/memory.h"
#include "train/ops/pixel_map.h"

namespace nmrf::train {
namespace {

constexpr double kScoreScale = 0.25;  // of the posterior's logits

std::string numbered(const char* name, std::size_t i) {
  return i == 0 ? name : name + std::to_string(i + 1);
}

}  // namespace

NetworkImpl::NetworkImpl(const ModelOptions& o)
    : options_((o.validate(), o)),
      dpn_(register_module("dpn", ProposalNetwork(o))),
      concatconv_(register_module(
          "concatconv", Projection(o.feature_channels, o.gamma1_hidden, o.gamma1_channels))),
      gw_(register_module("gw",
                          Projection(o.feature_channels, o.gamma2_hidden, o.gamma2_channels))),
      inference_(register_module("inference", make_inference(o))),
      infer_head_(register_module("infer_head", Head(o.inference_channels, 64))),
      infer_score_head_(
          register_module("infer_score_head", torch::nn::Linear(o.inference_channels, 64))) {
  if (o.backbone == BackboneKind::kSwinT)
    encoder_ = register_module("image_encoder", SwinEncoder(o.feature_channels));
  else
    backbone_ = register_module("backbone", Backbone(o));
  if (o.fill_seeds) infer_kinds_ = register_module("infer_kinds", SeedKinds(o.inference_channels));
  for (int i = 0; i < o.refinements; ++i) {
    if (o.refinement_search > 0)
      searches_.push_back(register_module(numbered("refine_search", i), FineSearch(o)));
    if (o.refinement_blend)
      blends_.push_back(register_module(numbered("refine_blend", i), CellBlend(o)));
    refinements_.push_back(register_module(numbered("refinement", i), make_refinement(o)));
    refine_heads_.push_back(
        register_module(numbered("refine_head", i), Head(o.refinement_channels, 16)));
  }
}

void NetworkImpl::set_max_disp(int max_disp) {
  ModelOptions changed = options_;
  changed.max_disp = max_disp;
  changed.validate();
  options_ = changed;
  dpn_->set_max_disp(max_disp);
}

std::pair<FeatureMaps, FeatureMaps> NetworkImpl::features(const torch::Tensor& left,
                                                          const torch::Tensor& right,
                                                          const ForwardOptions& how) {
  StageScope stage("backbone");
  const bool drops = encoder_ && is_training() && torch::GradMode::is_enabled();
  StochasticDepth depth(how.seed);
  Trace seen;
  auto encode = [&](const torch::Tensor& images) {
    if (encoder_)
      return encoder_->forward(images, drops ? &depth : nullptr, how.trace ? &seen : nullptr);
    return backbone_((images / 255.0f).mul_(2).sub_(1));
  };
  const int64_t batch = left.size(0);
  auto keep_traces = [&](int64_t first, const char* view) {
    for (const auto& [name, value] : seen)
      record(how.trace, name + view, value.narrow(0, first, batch));
  };
  // One view after the other where no graph holds both: the maps at half resolution are the
  // largest of all.
  if (!torch::GradMode::is_enabled() && ops::use_fast(left)) {
    auto first = encode(left);
    keep_traces(0, "");
    auto second = encode(right);
    keep_traces(0, "_right");
    return {first, second};
  }
  auto both = encode(torch::cat({left, right}, 0));
  keep_traces(0, "");
  keep_traces(batch, "_right");
  return {{both.fine.narrow(0, 0, batch), both.coarse.narrow(0, 0, batch)},
          {both.fine.narrow(0, batch, batch), both.coarse.narrow(0, batch, batch)}};
}

MatchingMaps NetworkImpl::matching_maps(const torch::Tensor& left, const torch::Tensor& right) {
  StageScope stage("gamma");
  auto project = [](Projection& projection, const torch::Tensor& map) {
    auto result = projection(map);
    // Label features read pixel by pixel; turned here, the map is not held in two orders.
    if (!torch::GradMode::is_enabled() && ops::use_fast(result))
      result = ops::as_map(ops::channels_last(result));
    return result;
  };
  return {project(concatconv_, left), project(concatconv_, right), project(gw_, left),
          project(gw_, right)};
}

Hypotheses NetworkImpl::decode(const torch::Tensor& embedding, const torch::Tensor& labels,
                               Trace* trace) {
  StageScope stage("heads");
  auto offset = infer_head_(embedding);
  auto score = ops::norm_linear(embedding, {}, {}, {weights_of(infer_score_head_)})[0];
  record(trace, "infer_delta", offset);
  record(trace, "infer_score_logits", score);
  if (!torch::GradMode::is_enabled() && !trace)
    return {offset.add_(labels.unsqueeze(-1)).relu_(), score.mul_(kScoreScale)};
  return {(labels.unsqueeze(-1) + offset).relu(), kScoreScale * score};
}

NetworkOutput NetworkImpl::forward(const torch::Tensor& left, const torch::Tensor& right,
                                   const ForwardOptions& how) {
  TORCH_CHECK(left.dim() == 4 && left.sizes() == right.sizes() && left.size(1) == 3,
              "two batches of RGB images of one size");
  TORCH_CHECK(left.size(2) % options_.alignment() == 0 && left.size(3) % options_.alignment() == 0,
              "sizes must be multiples of ", options_.alignment());
  ops::begin_pass();
  Trace* trace = how.trace;
  NetworkOutput out;
  auto [left_maps, right_maps] = features(left, right, how);
  record(trace, "fmap4", left_maps.fine);
  record(trace, "fmap8", left_maps.coarse);
  record(trace, "fmap4_right", right_maps.fine);
  record(trace, "fmap8_right", right_maps.coarse);

  if (how.scope == Scope::kSeeds) {
    out.proposals.seeds = dpn_->seeds(left_maps.coarse, right_maps.coarse);
    return out;
  }
  out.proposals = dpn_->forward(left_maps.coarse, right_maps.coarse, how.guide, trace);
  if (how.scope == Scope::kProposals) return out;
  if (how.lean) out.proposals.seeds.volume.reset();

  // Gradients stop at the candidate labels.
  auto labels = out.proposals.labels.detach();
  auto coarse = matching_maps(left_maps.coarse, right_maps.coarse);
  left_maps.coarse.reset();
  right_maps.coarse.reset();
  record(trace, "infer_fmap1", coarse.left1);
  record(trace, "infer_fmap2", coarse.right1);
  record(trace, "infer_gw1", coarse.left2);
  record(trace, "infer_gw2", coarse.right2);
  for (const auto& embedding : in_stage("inference", [&] {
         auto kinds = infer_kinds_ ? infer_kinds_(out.proposals.kinds) : torch::Tensor();
         return inference_->forward(coarse, labels, how.every_layer, trace, "infer", kinds);
       }))
    out.hypotheses.push_back(decode(embedding, labels, trace));
  coarse = {};
  Candidates candidates;
  {
    StageScope stage("heads");
    torch::NoGradGuard no_grad;
    const Hypotheses& last = out.hypotheses.back();
    out.winners = ops::take_winners(last.score, last.disparity);
    record(trace, "coarse_disp8", out.winners.disparity);
    record(trace, "wta_index", out.winners.index);
    if (!searches_.empty()) candidates = candidates_of(last);
    if (how.lean) out.hypotheses.clear();
  }
  out.disparity = 8 * out.winners.disparity;
  if (refinements_.empty()) return out;

  out.refinements = static_cast<int64_t>(refinements_.size());
  auto fine = matching_maps(left_maps.fine, right_maps.fine);
  if (searches_.empty()) left_maps = right_maps = {};
  record(trace, "refine_fmap1", fine.left1);
  record(trace, "refine_fmap2", fine.right1);
  record(trace, "refine_gw1", fine.left2);
  record(trace, "refine_gw2", fine.right2);
  for (std::size_t i = 0; i < refinements_.size(); ++i) {
    // ... and again at the map that refinement starts from.
    torch::Tensor start;
    if (searches_.empty() || i > 0) start = ops::median_reduce(out.disparity.detach() / 4);
    if (!searches_.empty()) {
      StageScope stage("refinement");
      if (i > 0) candidates = {start.unsqueeze(-1), torch::zeros_like(start).unsqueeze(-1)};
      out.searches.push_back(searches_[i]->forward(left_maps.fine, right_maps.fine, candidates));
      start = out.searches.back().found();
    }
    record(trace, "disp_curr", start);
    for (const auto& embedding : in_stage("refinement", [&] {
           return refinements_[i]->forward(fine, start.unsqueeze(-1), how.every_layer, trace,
                                           "refine");
         })) {
      StageScope stage("heads");
      auto offsets = refine_heads_[i](embedding.squeeze(3));
      record(trace, "refine_delta", offsets);
      if (!blends_.empty()) offsets = offsets + blends_[i](embedding.squeeze(3), start, left);
      out.refined.push_back(ops::refined_disparity(start, offsets));
    }
    out.disparity = out.refined.back();
  }
  return out;
}

namespace {

// Normal of the given deviation, truncated at +-2 (the constants of timm's trunc_normal_, whose
// bounds are absolute: with a deviation of 0.02 nothing is ever cut).
void initialise(torch::nn::Module& root) {
  torch::NoGradGuard no_grad;
  for (auto& item : root.named_modules("", false)) {
    const std::string& name = item.key();
    const bool keeps_defaults = name.rfind("refine", 0) == 0;
    if (auto* conv = item.value()->as<torch::nn::Conv2dImpl>()) {
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    } else if (auto* line = item.value()->as<torch::nn::Conv1dImpl>()) {
      torch::nn::init::kaiming_normal_(line->weight, 0, torch::kFanOut, torch::kReLU);
    } else if (auto* linear = item.value()->as<torch::nn::LinearImpl>();
               linear && !keeps_defaults) {
      torch::nn::init::normal_(linear->weight, 0.0, 0.02);
      if (linear->bias.defined()) torch::nn::init::zeros_(linear->bias);
    }
  }
}

}  // namespace

Network make_network(const ModelOptions& options, uint64_t seed) {
  static std::mutex generator;  // libtorch initialises from its one default generator
  std::lock_guard lock(generator);
  torch::manual_seed(seed);
  Network network(options);
  initialise(*network);
  torch::NoGradGuard no_grad;
  if (network->encoder()) network->encoder()->initialise();
  auto last = network->proposal_network()->prop_head()->last();
  torch::nn::init::zeros_(last->weight);
  torch::nn::init::zeros_(last->bias);
  return network;
}

torch::Tensor half_size_map(Network& network, const torch::Tensor& left,
                            const torch::Tensor& right) {
  const int64_t height = left.size(2), width = left.size(3);
  if (!network->options().guide || height < 64 || width < 64) return {};
  torch::NoGradGuard no_grad;
  auto halved = [&](const torch::Tensor& images) {
    return pad_images(torch::avg_pool2d(images, 2), network->options().alignment());
  };
  ForwardOptions how;
  how.lean = true;
  auto map = 2 * network->forward(halved(left), halved(right), how).disparity;
  map = map.repeat_interleave(2, 1).repeat_interleave(2, 2);
  return map.narrow(1, 0, height).narrow(2, 0, width).contiguous();
}

torch::Tensor pad_images(const torch::Tensor& images, int64_t alignment) {
  auto missing = [&](int64_t size) { return (alignment - size % alignment) % alignment; };
  const int64_t bottom = missing(images.size(2)), right = missing(images.size(3));
  if (bottom + right == 0) return images;
  return torch::replication_pad2d(images, {0, right, 0, bottom});
}

}  // namespace nmrf::train
