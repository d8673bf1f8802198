// The whole network: two images to a disparity map.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "network/options.h"
#include "train/model/backbone.h"
#include "train/model/inference.h"
#include "train/model/layers.h"
#include "train/model/refinement.h"
#include "train/model/seed_propagation.h"
#include "train/model/swin_encoder.h"

namespace nmrf::train {

// How far a forward pass goes: training can teach the lower stages before the upper ones.
enum class Scope {
  kSeeds,      // features, cost volume and label seeds
  kProposals,  // and seed propagation
  kAll,
};

}  // namespace nmrf::train

namespace nmrf {

template <>
struct EnumNames<train::Scope> {
  static constexpr std::array<std::pair<train::Scope, const char*>, 3> values{
      {{train::Scope::kSeeds, "seeds"},
       {train::Scope::kProposals, "proposals"},
       {train::Scope::kAll, "all"}}};
};

}  // namespace nmrf

namespace nmrf::train {

struct ForwardOptions {
  Scope scope = Scope::kAll;
  bool every_layer = false;  // decode after each layer of inference and refinement (training)
  Trace* trace = nullptr;    // collects named intermediate tensors
  // A map of the pair found before at another size, [B, H, W] px of these images; see fill_seeds().
  torch::Tensor guide{};
  // Lets go of what only losses read once it has served: the volume and the hypotheses.
  bool lean = false;
  // Of the stochastic depth of a Swin-T backbone in training.
  uint64_t seed = 0;
};

// H, W: the padded size (multiples of ModelOptions::alignment). What lies beyond the scope is
// undefined or empty.
struct NetworkOutput {
  Proposals proposals;                 // seeds and candidate labels, coarse pixels
  std::vector<Hypotheses> hypotheses;  // one a decoded inference layer
  Winners winners;                     // of the last inference layer; detached from the graph
  std::vector<Search> searches;        // one a refinement module, or none
  std::vector<torch::Tensor> refined;  // [B, H, W] px, one a decoded refinement layer
  int64_t refinements = 0;             // modules that gave `refined`, equally many maps each
  torch::Tensor disparity;             // [B, H, W] px: the result
};

class NetworkImpl : public torch::nn::Module {
 public:
  explicit NetworkImpl(const ModelOptions& options);

  // left, right: [B, 3, H, W] RGB 0..255, H and W multiples of the alignment and at least 32.
  NetworkOutput forward(const torch::Tensor& left, const torch::Tensor& right,
                        const ForwardOptions& how = {});
  // Feature maps of both views, each [B, ...]; the images as above.
  std::pair<FeatureMaps, FeatureMaps> features(const torch::Tensor& left,
                                               const torch::Tensor& right,
                                               const ForwardOptions& how = {});

  const ModelOptions& options() const { return options_; }
  // max_disp is a run-time choice: no weight depends on it.
  void set_max_disp(int max_disp);
  ProposalNetwork proposal_network() const { return dpn_; }
  SwinEncoder encoder() const { return encoder_; }  // null: another backbone

 private:
  MatchingMaps matching_maps(const torch::Tensor& left, const torch::Tensor& right);
  Hypotheses decode(const torch::Tensor& embedding, const torch::Tensor& labels, Trace* trace);

  ModelOptions options_;
  Backbone backbone_{nullptr};  // one of the two
  SwinEncoder encoder_{nullptr};
  ProposalNetwork dpn_;
  Projection concatconv_, gw_;  // gamma1, gamma2
  MessagePassing inference_;
  Head infer_head_;
  torch::nn::Linear infer_score_head_;
  SeedKinds infer_kinds_{nullptr};
  std::vector<FineSearch> searches_;
  std::vector<CellBlend> blends_;
  std::vector<MessagePassing> refinements_;
  std::vector<Head> refine_heads_;
};
TORCH_MODULE(Network);

// A network with the published initialisation (see docs), repeatable by its seed.
Network make_network(const ModelOptions& options, uint64_t seed);

// The map of a pair matched at half its size, in the size and the pixels of the images: the guide
// of a pass at the whole size. Undefined where the network's options ask for none (match.guide) or
// half the images would be below 32 x 32. No gradient.
torch::Tensor half_size_map(Network& network, const torch::Tensor& left,
                            const torch::Tensor& right);

// Replicate-pads [B, 3, H, W] at the right and the bottom to multiples of `alignment`.
torch::Tensor pad_images(const torch::Tensor& images, int64_t alignment = 8);

}  // namespace nmrf::train
