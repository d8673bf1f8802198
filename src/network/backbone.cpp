#include "network/backbone.h"

#include "kernels/instance_norm.h"
#include "kernels/patches.h"

namespace nmrf {
namespace {

conv::Pixels pixels_of(const FeatureMap& map) {
  return {1, static_cast<std::size_t>(map.pixels()), static_cast<std::size_t>(map.channels)};
}

}  // namespace

ResidualBlock::ResidualBlock(Parameters& parameters, const std::string& name, std::int64_t in,
                             std::int64_t out, std::int64_t stride)
    : conv1_(parameters, name + ".conv1", in, out, 3, stride, false),
      conv2_(parameters, name + ".conv2", out, out, 3, 1, false) {
  // The instance norm behind it takes the shortcut's bias away again; the parameter exists.
  if (stride != 1 || in != out)
    shortcut_.emplace(parameters, name + ".downsample.0", in, out, 1, stride, true);
}

FeatureMap ResidualBlock::forward(Context& context, FeatureMap x) const {
  const std::int64_t height = conv1_.out_size(x.height), width = conv1_.out_size(x.width),
                     channels = conv1_.out();
  FeatureMap result = context.map(height, width, channels);
  NormValues norm1 = take_norm(context, channels), norm2 = take_norm(context, channels),
             norm3 = take_norm(context, channels);
  FeatureMap past;
  conv::Source shortcut{x.values.data()};
  if (shortcut_) {
    past = context.map(height, width, channels);
    shortcut_->forward(context, {x.values.data()}, x.height, x.width, past.values.data(), &norm3);
    shortcut = {past.values.data(), norm3.norm()};
  }
  FeatureMap first = context.map(height, width, channels);
  conv1_.forward(context, {x.values.data()}, x.height, x.width, first.values.data(), &norm1);
  if (shortcut_) x = {};
  conv2_.forward(context, {first.values.data(), norm1.norm()}, height, width, result.values.data(),
                 &norm2);
  const conv::Pixels maps = pixels_of(result);
  context.share(static_cast<std::int64_t>(maps.units()), 1,
                [&](std::int64_t begin, std::int64_t end, int) {
                  conv::add_residual(maps, {result.values.data(), norm2.norm()}, shortcut,
                                     result.values.data(), static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(end));
                });
  return result;
}

Backbone::Backbone(Parameters& parameters, const ModelOptions& o)
    : conv1_(parameters, "backbone.conv1", 3, o.backbone_stem, 7, 2, false),
      blocks_([&] {
        std::vector<ResidualBlock> blocks;
        auto stage = [&](const std::string& name, std::int64_t in, std::int64_t out,
                         std::int64_t stride) {
          blocks.emplace_back(parameters, name + ".0", in, out, stride);
          blocks.emplace_back(parameters, name + ".1", out, out, 1);
        };
        stage("backbone.layer1", o.backbone_stem, o.backbone_stage1, 1);
        stage("backbone.layer2", o.backbone_stage1, o.backbone_stage2, 2);
        stage("backbone.layer3", o.backbone_stage2, o.backbone_stage3, 1);
        return blocks;
      }()),
      conv2_(parameters, "backbone.conv2", o.backbone_stage3, o.feature_channels, 1, 1, true) {}

FeatureMap half_map(Context& context, const FeatureMap& map) {
  FeatureMap half = context.map(map.height / 2, map.width / 2, map.channels);
  context.share(half.height, 1, [&](std::int64_t begin, std::int64_t end, int) {
    kernels::average_2x2(map.values.data(), map.width, map.channels, half.values.data(), begin,
                         end);
  });
  return half;
}

FeatureMaps Backbone::forward(Context& context, const FeatureMap& rgb) const {
  FeatureMap image =
      scaled_image(context, rgb, [](float value, std::int64_t) { return value / 255.0f * 2 - 1; });
  const std::int64_t height = conv1_.out_size(image.height), width = conv1_.out_size(image.width);
  FeatureMap x = context.map(height, width, conv1_.out());
  {
    NormValues norm = take_norm(context, conv1_.out());
    conv1_.forward(context, {image.values.data()}, image.height, image.width, x.values.data(),
                   &norm);
    image = {};
    const conv::Pixels maps = pixels_of(x);
    context.share(static_cast<std::int64_t>(maps.units()), 1,
                  [&](std::int64_t begin, std::int64_t end, int) {
                    conv::activate(maps, {x.values.data(), norm.norm()}, x.values.data(),
                                   static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
                  });
  }
  for (const auto& block : blocks_) x = block.forward(context, std::move(x));

  FeatureMaps maps;
  maps.fine = context.map(x.height, x.width, conv2_.out());
  conv2_.forward(context, {x.values.data()}, x.height, x.width, maps.fine.values.data());
  x = {};
  maps.coarse = half_map(context, maps.fine);
  return maps;
}

}  // namespace nmrf
