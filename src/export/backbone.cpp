#include "export/stages.h"

namespace nmrf::graph {
namespace {

Value residual_block(Graph& g, const Value& x, const std::string& name, std::int64_t in,
                     std::int64_t out, std::int64_t stride) {
  Value y = convolution(g, x, name + ".conv1", in, out, 3, stride, false);
  y = convolution(g, g.relu(instance_norm(g, y, out)), name + ".conv2", out, out, 3, 1, false);
  y = g.relu(instance_norm(g, y, out));
  Value past = x;
  if (stride != 1 || in != out)
    past =
        instance_norm(g, convolution(g, x, name + ".downsample.0", in, out, 1, stride, true), out);
  return g.relu(g.add(past, y));
}

}  // namespace

FeatureMaps backbone(Graph& g, const Value& images, const ModelOptions& o) {
  Graph::Scope scope(g, "backbone");
  const Value scaled = g.add(g.mul(images, 2.0f / 255.0f), -1.0f);
  Value x = convolution(g, scaled, "backbone.conv1", 3, o.backbone_stem, 7, 2, false);
  x = g.relu(instance_norm(g, x, o.backbone_stem));
  auto stage = [&](const std::string& name, std::int64_t in, std::int64_t out,
                   std::int64_t stride) {
    for (int i = 0; i < 2; ++i) {
      const std::string block = name + "." + std::to_string(i);
      Graph::Scope inner(g, block);
      x = residual_block(g, x, "backbone." + block, i == 0 ? in : out, out, i == 0 ? stride : 1);
    }
  };
  stage("layer1", o.backbone_stem, o.backbone_stage1, 1);
  stage("layer2", o.backbone_stage1, o.backbone_stage2, 2);
  stage("layer3", o.backbone_stage2, o.backbone_stage3, 1);
  FeatureMaps maps;
  maps.fine =
      convolution(g, x, "backbone.conv2", o.backbone_stage3, o.feature_channels, 1, 1, true);
  maps.coarse = half_map(g, maps.fine);
  return maps;
}

}  // namespace nmrf::graph
