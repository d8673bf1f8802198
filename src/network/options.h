// Every size and every switch of the network, and the presets.
#pragma once

#include <string>
#include <vector>

#include "core/fields.h"

namespace nmrf {

// What makes the feature maps of an image.
enum class BackboneKind {
  kResnet,  // the local feature CNN of the paper
  kSwinT,   // Swin-T with a deformable-attention neck, the authors' later network
};

template <>
struct EnumNames<BackboneKind> {
  static constexpr std::array<std::pair<BackboneKind, const char*>, 2> values{
      {{BackboneKind::kResnet, "resnet"}, {BackboneKind::kSwinT, "swin-t"}}};
};

// Whether and how the labels of one pixel exchange messages (paper Table 5).
enum class SelfEdges {
  kNone,    // labels of one pixel do not see each other
  kShared,  // they do, as if they were neighbours: one attention, one set of weights
  kOwn,     // a message passing step of their own before the neighbour edges (published)
};

template <>
struct EnumNames<SelfEdges> {
  static constexpr std::array<std::pair<SelfEdges, const char*>, 3> values{
      {{SelfEdges::kNone, "none"}, {SelfEdges::kShared, "shared"}, {SelfEdges::kOwn, "own"}}};
};

// How label seeds exchange messages (supplement, Table 6).
enum class SeedNeighbourhood {
  kCross,  // the pixel's row and column
  kLocal,  // windows of propagation.window x propagation.window, shifted in odd layers
};

template <>
struct EnumNames<SeedNeighbourhood> {
  static constexpr std::array<std::pair<SeedNeighbourhood, const char*>, 2> values{
      {{SeedNeighbourhood::kCross, "cross"}, {SeedNeighbourhood::kLocal, "local"}}};
};

// The defaults are the published network, preset `paper`. A model file carries these in its
// metadata.
struct ModelOptions {
  BackboneKind backbone = BackboneKind::kResnet;
  // Local feature CNN: channels of the stem, of the three residual stages and of the feature maps.
  // Swin-T has fixed sizes and 128 feature channels.
  int backbone_stem = 64;
  int backbone_stage1 = 64;
  int backbone_stage2 = 96;
  int backbone_stage3 = 128;
  int feature_channels = 256;

  // Label seeds. max_disp is in full-resolution pixels and may be changed without new weights.
  int max_disp = 320;
  int labels = 4;  // k: candidate labels per pixel
  int cost_groups = 4;
  int cost_hidden1 = 8;
  int cost_hidden2 = 16;
  int cost_radius = 4;          // planes read on either side of a seed
  bool subpixel_seeds = false;  // labels start from the mean of the planes around a seed
  bool fill_seeds = false;      // cells without a match start from their neighbours' seeds too

  // Seed propagation: N_p layers.
  int propagation_layers = 5;
  int propagation_channels = 128;
  int propagation_heads = 4;
  int context_hidden = 128;
  int context_channels = 64;
  SeedNeighbourhood seed_neighbourhood = SeedNeighbourhood::kCross;
  int propagation_window = 8;  // for kLocal

  // Observed label features (supplement, Eq. 12): gamma1 (concat) and gamma2 (correlation).
  int gamma1_hidden = 128;
  int gamma1_channels = 64;
  int gamma2_hidden = 128;
  int gamma2_channels = 256;
  int gamma2_groups = 32;
  int gamma2_radius = 0;  // columns correlated on either side of the label too

  // Sines and cosines that encode a disparity; periods halve from one to the next.
  int encoding_frequencies = 15;

  // Neural MRF inference: N_i layers of (self edges, neighbour edges).
  int inference_layers = 5;
  int inference_channels = 128;
  int inference_heads = 4;
  int inference_window = 6;
  SelfEdges self_edges = SelfEdges::kOwn;
  bool adaptive_bias = true;         // off: a fixed 2-D relative bias per head
  bool position_aggregation = true;  // off: messages do not depend on the relative position

  // Refinement: `refinements` cascaded modules of N_f layers.
  int refinements = 1;
  int refinement_layers = 5;
  int refinement_channels = 128;
  int refinement_heads = 4;
  int refinement_window = 4;
  int refinement_search = 0;  // columns matched on either side of a start label before refinement
  bool refinement_blend = false;  // pixels take the start of a cell beside theirs where it suits

  int mlp_ratio = 4;  // hidden channels of every message passing MLP, times its width

  // How images are matched, a run-time choice: where their disparities allow it, a second time and
  // enlarged, at most twice and so far that 98 % of the disparities stay below this many pixels;
  // images of more than two megapixels are shrunk to that. 0: only as they are.
  int enlarge = 0;
  // Every pass is guided by a pass over the images at half their size (seed completion), an
  // enlarged one by the pass before it.
  bool guide = false;
  // Radii in pixels of hole filling and of the edge-aware weighted median; 0: none.
  int fill = 0;
  int median = 0;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("backbone.kind", self.backbone, "resnet or swin-t");
    visit("backbone.stem", self.backbone_stem, "channels of the stem");
    visit("backbone.stage1", self.backbone_stage1, "channels of residual stage 1 (1/2)");
    visit("backbone.stage2", self.backbone_stage2, "channels of residual stage 2 (1/4)");
    visit("backbone.stage3", self.backbone_stage3, "channels of residual stage 3 (1/4)");
    visit("backbone.features", self.feature_channels, "channels of the feature maps");
    visit("seeds.max_disp", self.max_disp,
          "largest disparity, full-resolution pixels, a multiple of 8");
    visit("seeds.labels", self.labels, "k, candidate labels per pixel");
    visit("seeds.groups", self.cost_groups, "groups of the cost volume");
    visit("seeds.hidden1", self.cost_hidden1, "channels of the cost-volume convolutions");
    visit("seeds.hidden2", self.cost_hidden2, "channels of the cost-volume convolutions");
    visit("seeds.radius", self.cost_radius, "planes sampled on either side of a seed");
    visit("seeds.subpixel", self.subpixel_seeds, "sub-pixel start labels");
    visit("seeds.fill", self.fill_seeds,
          "seed completion: cells without a match take their neighbours' seeds");
    visit("propagation.layers", self.propagation_layers, "N_p");
    visit("propagation.channels", self.propagation_channels, "embedding channels");
    visit("propagation.heads", self.propagation_heads, "attention heads");
    visit("propagation.context_hidden", self.context_hidden, "hidden channels of the context");
    visit("propagation.context", self.context_channels, "channels of the visual context");
    visit("propagation.neighbourhood", self.seed_neighbourhood, "cross or local");
    visit("propagation.window", self.propagation_window, "window side of the local neighbourhood");
    visit("gamma1.hidden", self.gamma1_hidden, "hidden channels of gamma1");
    visit("gamma1.channels", self.gamma1_channels, "channels of gamma1");
    visit("gamma2.hidden", self.gamma2_hidden, "hidden channels of gamma2");
    visit("gamma2.channels", self.gamma2_channels, "channels of gamma2");
    visit("gamma2.groups", self.gamma2_groups, "correlation groups");
    visit("gamma2.radius", self.gamma2_radius,
          "extra columns correlated on either side of a label");
    visit("encoding.frequencies", self.encoding_frequencies,
          "frequencies of the disparity encoding, 1..15");
    visit("inference.layers", self.inference_layers, "N_i, each with self and neighbour edges");
    visit("inference.channels", self.inference_channels, "embedding channels");
    visit("inference.heads", self.inference_heads, "attention heads");
    visit("inference.window", self.inference_window, "window side");
    visit("inference.self_edges", self.self_edges, "none, shared or own");
    visit("inference.adaptive_bias", self.adaptive_bias, "content-adaptive position bias");
    visit("inference.position_aggregation", self.position_aggregation, "position-dependent values");
    visit("refinement.count", self.refinements, "cascaded refinement modules, 0..2");
    visit("refinement.layers", self.refinement_layers, "N_f");
    visit("refinement.channels", self.refinement_channels, "embedding channels");
    visit("refinement.heads", self.refinement_heads, "attention heads");
    visit("refinement.window", self.refinement_window, "window side");
    visit("refinement.search", self.refinement_search,
          "fine search: columns on either side of a start label");
    visit("refinement.blend", self.refinement_blend, "edge-aware blending of start labels");
    visit("mlp_ratio", self.mlp_ratio,
          "hidden channels of the MLPs, relative to embedding channels");
    visit("match.enlarge", self.enlarge,
          "px: second, enlarged pass while disparities stay below this; 0 = off");
    visit("match.guide", self.guide, "guide each pass by one at half the size; needs seeds.fill");
    visit("match.fill", self.fill, "radius of hole filling, px; 0 = off");
    visit("match.median", self.median, "radius of the edge-aware weighted median, px; 0 = off");
  }

  static constexpr int most_radius = 16;     // of match.fill and match.median
  static constexpr int most_depth = 32;      // channels of an attention head
  static constexpr int blend_hidden = 12;    // channels of refinement.blend
  static constexpr int swin_features = 128;  // feature channels of Swin-T

  // Sides of an image are padded to a multiple of this.
  int alignment() const { return backbone == BackboneKind::kSwinT ? 32 : 8; }
  std::int64_t aligned(std::int64_t size) const {
    return (size + alignment() - 1) / alignment() * alignment();
  }

  // Planes of the cost volume: one per coarse pixel.
  int planes() const { return max_disp / 8; }
  // Channels of an encoded disparity, and of the observed label feature.
  int encoding_channels() const { return 2 * encoding_frequencies + 1; }
  int observed_channels() const {
    return 2 * gamma1_channels + (2 * gamma2_radius + 1) * gamma2_groups;
  }
  // Throws Error(kModel) naming the field and the rule it breaks.
  void validate() const;
};

// `paper` (the published sizes), `swin` (the published Swin-T variant), `fast` (for CPUs and small
// robots) or `base` (between `fast` and `paper`); throws Error(kUsage) naming the presets
// otherwise.
ModelOptions preset_options(const std::string& name);
std::vector<std::string> preset_names();

}  // namespace nmrf
