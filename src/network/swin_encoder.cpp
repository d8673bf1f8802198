#include "network/swin_encoder.h"

#include "kernels/deformable.h"
#include "kernels/map_steps.h"
#include "kernels/patches.h"

namespace nmrf {
namespace {

constexpr float kNeckEps = 1e-6f;
constexpr std::int64_t kStemChannels = 64;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

std::string numbered(const std::string& name, std::int64_t i) { return name + std::to_string(i); }

// Names are made only for a trace: a pass allocates nothing.
void record(Context& context, const char* name, std::int64_t i, const std::string& view,
            const FeatureMap& map) {
  if (context.tracing()) context.record(numbered(name, i) + view, map);
}
void record(Context& context, const char* name, const std::string& view, const FeatureMap& map) {
  if (context.tracing()) context.record(std::string(name) + view, map);
}

}  // namespace

SwinExtractor::SwinExtractor(Parameters& parameters, const std::string& neck, std::int64_t stage,
                             std::int64_t channels, std::int64_t from)
    : SwinExtractor(parameters, numbered(neck + ".extractors.", stage),
                    numbered(neck + ".fcs.", stage), stage, channels, from) {}

SwinExtractor::SwinExtractor(Parameters& parameters, const std::string& name,
                             const std::string& fcs, std::int64_t stage, std::int64_t channels,
                             std::int64_t from)
    : stage_(stage),
      channels_(channels),
      features_(parameters, {fcs + ".0", kNeckEps}, from, 0, 1, {{fcs + ".1", channels}}),
      value_(parameters, {name + ".feat_norm", kNeckEps}, channels, 0, 1,
             {{name + ".attn.value_proj", channels / 2}}),
      query_(parameters, {name + ".query_norm", kNeckEps}, channels, 0, 1,
             {{name + ".attn.sampling_offsets", 2 * kHeads * kPoints},
              {name + ".attn.attention_weights", kHeads * kPoints}}),
      output_(parameters, {}, channels / 2, 0, 1, {{name + ".attn.output_proj", channels}}),
      fc1_(parameters, {name + ".ffn_norm", kNeckEps}, channels, 0, 1,
           {{name + ".ffn.fc1", channels / 4}}),
      fc2_(parameters, {}, channels / 4, 0, 1, {{name + ".ffn.fc2", channels}}) {
  const std::int64_t hidden = channels / 4;
  const auto weight = parameters.take(name + ".ffn.dwconv.dwconv.weight", {hidden, 1, 3, 3});
  taps_bias_ = parameters.take(name + ".ffn.dwconv.dwconv.bias", {hidden});
  taps_.resize(weight.size());
  for (std::size_t i = 0; i < weight.size(); ++i) taps_[i % 9 * size(hidden) + i / 9] = weight[i];
}

void SwinExtractor::sample(Context& context, FeatureMap& map, const FeatureMap& x,
                           const std::string& view) const {
  kernels::Deformable op;
  op.query_height = map.height, op.query_width = map.width;
  op.height = x.height, op.width = x.width;
  op.heads = kHeads, op.points = kPoints, op.depth = channels_ / 2 / kHeads;

  FeatureMap value = context.map(x.height, x.width, op.channels());
  {
    FeatureMap features = context.map(x.height, x.width, channels_);
    const tokens::OutputRows to[1] = {rows_of(features)};
    features_.forward(context, x.pixels(), rows_of(x), {}, to);
    const tokens::OutputRows values[1] = {rows_of(value)};
    value_.forward(context, x.pixels(), rows_of(std::as_const(features)), {}, values);
    record(context, "neck_feat", stage_, view, features);
  }
  FeatureMap offsets = context.map(map.height, map.width, 2 * op.samples());
  FeatureMap weights = context.map(map.height, map.width, op.samples());
  const tokens::OutputRows chosen[2] = {rows_of(offsets), rows_of(weights)};
  query_.forward(context, map.pixels(), rows_of(std::as_const(map)), {}, chosen);
  record(context, "neck_value", stage_, view, value);
  record(context, "neck_offsets", stage_, view, offsets);
  record(context, "neck_weights", stage_, view, weights);

  FeatureMap sampled = context.map(map.height, map.width, op.channels());
  // Eight operations per sampled value: four products and their sum.
  context.count(&StageCost::attention,
                8.0 * static_cast<double>(map.pixels() * op.samples() * op.depth));
  context.share(map.height, 1, [&](std::int64_t begin, std::int64_t end, int) {
    kernels::deformable_forward(op, value.values.data(), offsets.values.data(),
                                weights.values.data(), sampled.values.data(), begin, end);
  });
  const tokens::OutputRows to[1] = {rows_of(map)};
  output_.forward(context, map.pixels(), rows_of(std::as_const(sampled)), {}, to,
                  rows_of(std::as_const(map)));
}

void SwinExtractor::forward(Context& context, FeatureMap& map, const FeatureMap& x,
                            const std::string& view) const {
  sample(context, map, x, view);
  FeatureMap before = context.map(map.height, map.width, channels_ / 4),
             hidden = context.map(map.height, map.width, channels_ / 4);
  const tokens::OutputRows in[1] = {rows_of(before)}, out[1] = {rows_of(map)};
  fc1_.forward(context, map.pixels(), rows_of(std::as_const(map)), {}, in);
  context.count(&StageCost::convolution, 18.0 * static_cast<double>(map.pixels() * channels_ / 4));
  context.share(map.height, 1, [&](std::int64_t begin, std::int64_t end, int) {
    conv::depthwise_3x3_gelu(before.values.data(), size(map.height), size(map.width),
                             size(before.channels), taps_.data(), taps_bias_.data(),
                             hidden.values.data(), size(begin), size(end));
  });
  fc2_.forward(context, map.pixels(), rows_of(std::as_const(hidden)), {}, out,
               rows_of(std::as_const(map)));
  record(context, "neck_layer", stage_, view, map);
}

SwinEncoder::SwinEncoder(Parameters& parameters, std::int64_t channels)
    : backbone_(parameters, "image_encoder.backbone"),
      stem_([&] {
        std::vector<Convolution> layers;
        for (std::int64_t i = 0; i < 3; ++i)
          layers.emplace_back(parameters, numbered("image_encoder.neck.stem.stem.", 3 * i),
                              i == 0 ? 3 : kStemChannels, kStemChannels, 3, i == 0 ? 2 : 1, false);
        return layers;
      }()),
      stem_out_(parameters, "image_encoder.neck.stem.fc", kStemChannels, channels, 1, 1, true) {
  for (std::int64_t s = 0; s < SwinSizes::stages; ++s)
    extractors_.emplace_back(parameters, "image_encoder.neck", s, channels, SwinSizes::channels(s));
}

FeatureMap SwinEncoder::stem(Context& context, const FeatureMap& image) const {
  const std::int64_t height = image.height / 2, width = image.width / 2;
  FeatureMap result = context.map(height / 2, width / 2, stem_out_.out());
  NormValues norm = take_norm(context, kStemChannels);
  FeatureMap x = context.map(height, width, kStemChannels);
  stem_[0].forward(context, {image.values.data()}, image.height, image.width, x.values.data(),
                   &norm);
  for (std::size_t i = 1; i < stem_.size(); ++i) {
    FeatureMap next = context.map(height, width, kStemChannels);
    NormValues next_norm = take_norm(context, kStemChannels);
    stem_[i].forward(context, {x.values.data(), norm.norm()}, height, width, next.values.data(),
                     &next_norm);
    x = std::move(next);
    norm = std::move(next_norm);
  }
  // Instance norm and ReLU keep the order of values: they are applied behind the maximum.
  FeatureMap most = context.map(height / 2, width / 2, kStemChannels);
  context.share(most.height, 1, [&](std::int64_t begin, std::int64_t end, int) {
    conv::max_pool_3x3(x.values.data(), size(height), size(width), size(kStemChannels),
                       most.values.data(), size(begin), size(end));
  });
  x = {};
  stem_out_.forward(context, {most.values.data(), norm.norm()}, most.height, most.width,
                    result.values.data());
  return result;
}

FeatureMaps SwinEncoder::forward(Context& context, const FeatureMap& image,
                                 const std::string& view) const {
  FeatureMaps maps;
  FeatureMap x;
  {
    const FeatureMap scaled = scaled_image(context, image, [](float value, std::int64_t channel) {
      return (value - kMean[channel]) / kDeviation[channel];
    });
    record(context, "image_norm", view, scaled);
    maps.fine = stem(context, scaled);
    x = backbone_.embed(context, scaled);
  }
  record(context, "neck_stem", view, maps.fine);
  record(context, "swin_patch", view, x);
  for (std::int64_t s = 0; s < SwinSizes::stages; ++s) {
    backbone_.run_stage(context, s, x, view);
    extractors_[size(s)].forward(context, maps.fine, x, view);
    if (s + 1 == SwinSizes::stages) break;
    x = backbone_.merge(context, s, std::move(x));
    record(context, "swin_merge", s, view, x);
  }
  x = {};
  maps.coarse = half_map(context, maps.fine);
  return maps;
}

}  // namespace nmrf
