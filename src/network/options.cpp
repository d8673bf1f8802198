#include "network/options.h"

namespace nmrf {
namespace {

ModelOptions fast_options() {
  ModelOptions o;
  o.backbone_stem = 24;
  o.backbone_stage1 = 24;
  o.backbone_stage2 = 48;
  o.backbone_stage3 = 64;
  o.feature_channels = 96;
  o.propagation_layers = 2;
  o.propagation_channels = 64;
  o.propagation_heads = 4;
  o.context_hidden = 48;
  o.context_channels = 32;
  o.gamma1_hidden = 40;
  o.gamma1_channels = 32;
  o.gamma2_hidden = 48;
  o.gamma2_channels = 96;
  o.gamma2_groups = 16;
  o.subpixel_seeds = true;
  o.fill_seeds = true;
  o.gamma2_radius = 2;
  o.encoding_frequencies = 9;
  o.inference_layers = 3;
  o.inference_channels = 64;
  o.inference_heads = 4;
  o.refinement_layers = 2;
  o.refinement_channels = 64;
  o.refinement_heads = 4;
  o.refinement_search = 2;
  o.refinement_blend = true;
  o.mlp_ratio = 3;
  o.enlarge = 160;
  o.guide = true;
  o.fill = 5;
  o.median = 5;
  return o;
}

ModelOptions swin_options() {
  ModelOptions o;
  o.backbone = BackboneKind::kSwinT;
  o.feature_channels = ModelOptions::swin_features;
  return o;
}

// `fast` with room to learn more: nmrf convert --grow base makes one from a trained `fast`.
ModelOptions base_options() {
  ModelOptions o = fast_options();
  o.backbone_stem = 32;
  o.backbone_stage1 = 32;
  o.backbone_stage2 = 64;
  o.backbone_stage3 = 96;
  o.propagation_layers = 4;
  o.context_hidden = 64;
  o.gamma1_hidden = 64;
  o.gamma2_hidden = 96;
  o.inference_layers = 6;
  o.refinement_layers = 4;
  o.mlp_ratio = 5;
  return o;
}

void require(bool ok, const char* field, int value, const char* rule) {
  check(ok, ErrorKind::kModel, "model option {} is {}; it must be {}", field, value, rule);
}

}  // namespace

void ModelOptions::validate() const {
  auto positive = [](const char* field, int value, int most = 4096) {
    require(value >= 1 && value <= most, field, value,
            most == 4096 ? "between 1 and 4096" : "small and positive");
  };
  positive("backbone.stem", backbone_stem);
  positive("backbone.stage1", backbone_stage1);
  positive("backbone.stage2", backbone_stage2);
  positive("backbone.stage3", backbone_stage3);
  positive("backbone.features", feature_channels);
  require(backbone != BackboneKind::kSwinT || feature_channels == swin_features,
          "backbone.features", feature_channels, "128 where backbone.kind is swin-t");
  positive("seeds.groups", cost_groups);
  positive("seeds.hidden1", cost_hidden1);
  positive("seeds.hidden2", cost_hidden2);
  require(cost_radius >= 0 && cost_radius <= 32, "seeds.radius", cost_radius, "0 to 32");
  require(max_disp >= 8 && max_disp <= 16384 && max_disp % 8 == 0, "seeds.max_disp", max_disp,
          "a multiple of 8 from 8 to 16384");
  require(labels >= 1 && labels <= 6, "seeds.labels", labels, "1 to 6");
  require(labels <= planes(), "seeds.labels", labels, "at most max_disp / 8");
  require(feature_channels % cost_groups == 0, "seeds.groups", cost_groups,
          "a divisor of backbone.features");
  positive("propagation.layers", propagation_layers, 64);
  positive("propagation.channels", propagation_channels);
  positive("propagation.heads", propagation_heads);
  positive("propagation.context_hidden", context_hidden);
  positive("propagation.context", context_channels);
  require(propagation_channels % propagation_heads == 0, "propagation.heads", propagation_heads,
          "a divisor of propagation.channels");
  require(propagation_channels / propagation_heads <= most_depth, "propagation.heads",
          propagation_heads, "so many that a head has at most 32 channels");
  require(seed_neighbourhood == SeedNeighbourhood::kLocal || propagation_heads % 2 == 0,
          "propagation.heads", propagation_heads, "even: half for the column, half for the row");
  require(propagation_window >= 2 && propagation_window <= 32, "propagation.window",
          propagation_window, "2 to 32");
  positive("gamma1.hidden", gamma1_hidden);
  positive("gamma1.channels", gamma1_channels);
  positive("gamma2.hidden", gamma2_hidden);
  positive("gamma2.channels", gamma2_channels);
  positive("gamma2.groups", gamma2_groups);
  require(gamma2_channels % gamma2_groups == 0, "gamma2.groups", gamma2_groups,
          "a divisor of gamma2.channels");
  require(gamma2_radius >= 0 && gamma2_radius <= 16, "gamma2.radius", gamma2_radius, "0 to 16");
  require(encoding_frequencies >= 1 && encoding_frequencies <= 15, "encoding.frequencies",
          encoding_frequencies, "1 to 15");
  positive("inference.layers", inference_layers, 64);
  positive("inference.channels", inference_channels);
  positive("inference.heads", inference_heads);
  require(inference_channels % inference_heads == 0, "inference.heads", inference_heads,
          "a divisor of inference.channels");
  require(inference_channels / inference_heads <= most_depth, "inference.heads", inference_heads,
          "so many that a head has at most 32 channels");
  require(inference_window >= 2 && inference_window <= 32, "inference.window", inference_window,
          "2 to 32");
  require(refinements >= 0 && refinements <= 2, "refinement.count", refinements, "0, 1 or 2");
  positive("refinement.layers", refinement_layers, 64);
  positive("refinement.channels", refinement_channels);
  positive("refinement.heads", refinement_heads);
  require(refinement_channels % refinement_heads == 0, "refinement.heads", refinement_heads,
          "a divisor of refinement.channels");
  require(refinement_channels / refinement_heads <= most_depth, "refinement.heads",
          refinement_heads, "so many that a head has at most 32 channels");
  require(refinement_window >= 2 && refinement_window <= 32, "refinement.window", refinement_window,
          "2 to 32");
  require(refinement_search >= 0 && refinement_search <= 16, "refinement.search", refinement_search,
          "0 to 16");
  require(refinement_search == 0 || feature_channels % gamma2_groups == 0, "gamma2.groups",
          gamma2_groups, "a divisor of backbone.features where refinement.search is on");
  positive("mlp_ratio", mlp_ratio, 16);
  check(!guide || fill_seeds, ErrorKind::kModel,
        "model option match.guide needs seeds.fill, which is off");
  require(enlarge >= 0 && enlarge <= 16384, "match.enlarge", enlarge, "0 to 16384");
  require(fill >= 0 && fill <= most_radius, "match.fill", fill, "0 to 16");
  require(median >= 0 && median <= most_radius, "match.median", median, "0 to 16");
}

std::vector<std::string> preset_names() { return {"paper", "swin", "fast", "base"}; }

ModelOptions preset_options(const std::string& name) {
  if (name == "paper") return ModelOptions{};
  if (name == "fast") return fast_options();
  if (name == "swin") return swin_options();
  if (name == "base") return base_options();
  fail(ErrorKind::kUsage, "there is no preset '{}'; the presets are paper, swin, fast and base",
       name);
}

}  // namespace nmrf
