#include "network/flops.h"

namespace nmrf {
namespace {

double round_up(double size, int multiple) {
  const auto whole = static_cast<long long>(size);
  return static_cast<double>((whole + multiple - 1) / multiple * multiple);
}

double conv(double pixels, double in, double out, double kernel) {
  return 2 * pixels * in * out * kernel * kernel;
}

double residual_block(double pixels, double in, double out, bool changes) {
  return conv(pixels, in, out, 3) + conv(pixels, out, out, 3) +
         (changes ? conv(pixels, in, out, 1) : 0);
}

double linear(double tokens, double in, double out) { return 2 * tokens * in * out; }

double projection(double pixels, double in, double hidden, double out) {
  return conv(pixels, in, hidden, 3) + conv(pixels, hidden, out, 1);
}

// Window attention over `pixels` with k labels: scores and messages, and the position terms,
// counted for every pair of labels as the published operators compute them.
double window_attention(double pixels, double k, double channels, double window, bool adaptive,
                        bool aggregate) {
  const double pairs = pixels * k * window * window * k;
  return 2 * pairs * channels * (2 + (adaptive ? 2 : 0) + (aggregate ? 1 : 0));
}

}  // namespace

std::vector<StageCost> count_flops(const ModelOptions& o, int width, int height) {
  const double H = round_up(height, 8), W = round_up(width, 8);
  const double half = H * W / 4, quarter = H * W / 16, coarse = H * W / 64, k = o.labels;
  std::vector<StageCost> stages;

  StageCost backbone{.name = "backbone"};
  double image = conv(half, 3, o.backbone_stem, 7);
  image += residual_block(half, o.backbone_stem, o.backbone_stage1,
                          o.backbone_stem != o.backbone_stage1) +
           residual_block(half, o.backbone_stage1, o.backbone_stage1, false);
  image += residual_block(quarter, o.backbone_stage1, o.backbone_stage2, true) +
           residual_block(quarter, o.backbone_stage2, o.backbone_stage2, false);
  image += residual_block(quarter, o.backbone_stage2, o.backbone_stage3,
                          o.backbone_stage2 != o.backbone_stage3) +
           residual_block(quarter, o.backbone_stage3, o.backbone_stage3, false);
  image += conv(quarter, o.backbone_stage3, o.feature_channels, 1);
  backbone.convolution = 2 * image;
  stages.push_back(backbone);

  StageCost gamma{.name = "gamma"};
  const double mapped = coarse + (o.refinements > 0 ? quarter : 0);
  gamma.convolution =
      2 * (projection(mapped, o.feature_channels, o.gamma1_hidden, o.gamma1_channels) +
           projection(mapped, o.feature_channels, o.gamma2_hidden, o.gamma2_channels));
  stages.push_back(gamma);

  StageCost volume{.name = "cost volume"};
  volume.convolution =
      2 * coarse * o.planes() * 5 *
      (o.cost_groups * o.cost_hidden1 + o.cost_hidden1 * o.cost_hidden2 + o.cost_hidden2);
  volume.other = 2 * coarse * o.planes() * o.feature_channels;
  stages.push_back(volume);

  StageCost propagation{.name = "propagation"};
  const double cp = o.propagation_channels, tokens = coarse * k;
  propagation.convolution =
      projection(coarse, o.feature_channels, o.context_hidden, o.context_channels);
  propagation.linear = linear(tokens, o.cost_groups * (2 * o.cost_radius + 1), cp) +
                       linear(tokens, cp, cp) + linear(tokens, cp + o.encoding_channels(), cp);
  propagation.linear += o.propagation_layers *
                        (2 * linear(tokens, cp + o.context_channels, cp) +
                         2 * linear(tokens, cp, cp) + 2 * linear(tokens, cp, o.mlp_ratio * cp));
  if (o.seed_neighbourhood == SeedNeighbourhood::kCross) {
    propagation.attention = o.propagation_layers * 2 * 2 * tokens * k * (H / 8 + W / 8) * (cp / 2);
  } else {
    const double padded =
        round_up(H / 8, o.propagation_window) * round_up(W / 8, o.propagation_window);
    propagation.attention =
        o.propagation_layers * window_attention(padded, k, cp, o.propagation_window, false, false);
  }
  stages.push_back(propagation);

  auto message_passing = [&](const char* name, double pixels, double padded, double labels,
                             double channels, int modules, int layers, int window, bool own) {
    StageCost stage{.name = name};
    const double observed = o.observed_channels();
    stage.other = modules * pixels * labels * 2 *
                  (o.gamma1_channels + (2 * o.gamma2_radius + 1) * 2 * o.gamma2_channels);
    stage.linear = modules * (linear(pixels * labels, observed, channels) +
                              linear(pixels * labels, channels, channels));
    const double t = padded * labels;
    layers *= modules;
    stage.linear +=
        layers * (linear(t, channels + o.encoding_channels(), 3 * channels) +
                  linear(t, channels, channels) + 2 * linear(t, channels, o.mlp_ratio * channels));
    stage.attention = layers * window_attention(padded, labels, channels, window, o.adaptive_bias,
                                                o.position_aggregation);
    if (own) {
      stage.linear += layers * (2 * linear(t, channels + o.encoding_channels(), channels) +
                                2 * linear(t, channels, channels));
      stage.attention += layers * 2 * 2 * t * labels * channels;
    }
    return stage;
  };
  stages.push_back(
      message_passing("inference", coarse,
                      round_up(H / 8, o.inference_window) * round_up(W / 8, o.inference_window), k,
                      o.inference_channels, 1, o.inference_layers, o.inference_window,
                      o.self_edges == SelfEdges::kOwn));
  if (o.refinements > 0) {
    auto refinement = message_passing(
        "refinement", quarter,
        round_up(H / 4, o.refinement_window) * round_up(W / 4, o.refinement_window), 1,
        o.refinement_channels, o.refinements, o.refinement_layers, o.refinement_window, false);
    if (o.refinement_search > 0) {
      // All labels before the first module, one before another.
      const double around = 2 * o.refinement_search + 1, hidden = (o.refinement_channels + 1) / 2,
                   searched = quarter * (k + o.refinements - 1);
      refinement.linear +=
          linear(searched, around * o.gamma2_groups, hidden) + linear(searched, hidden, around);
      refinement.other += searched * around * 4 * o.feature_channels;
    }
    if (o.refinement_blend) {
      refinement.linear +=
          o.refinements * (linear(quarter, o.refinement_channels, ModelOptions::blend_hidden) +
                           linear(quarter, ModelOptions::blend_hidden, 16 * 9 + 1));
      refinement.other += o.refinements * H * W * 9 * 10;  // colours, weights, mean
    }
    stages.push_back(refinement);
  }

  StageCost heads{.name = "heads"};
  heads.linear = tokens * 2 * (2 * cp * cp + cp);
  const double ci = o.inference_channels, cf = o.refinement_channels;
  heads.linear += tokens * 2 * (2 * ci * ci + 2 * 64 * ci);
  heads.linear += o.refinements * quarter * 2 * (2 * cf * cf + 16 * cf);
  stages.push_back(heads);
  return stages;
}

double total_flops(const std::vector<StageCost>& stages) {
  double sum = 0;
  for (const auto& stage : stages) sum += stage.total();
  return sum;
}

}  // namespace nmrf
