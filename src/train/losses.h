// The losses of the paper: initialisation, proposals, disparity (Eq. 7 and 8, supplement section
// 1).
#pragma once

#include <torch/torch.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/fields.h"
#include "train/model/nmrf.h"

namespace nmrf::train {

// What supervises seeds and proposals.
enum class ModalKind {
  kSuperpixel,  // the paper: a few modals a cell, found with superpixels, matched one to one
  kDense,       // the authors' 2025 variant: every pixel of the cell
};

}  // namespace nmrf::train

namespace nmrf {

template <>
struct EnumNames<train::ModalKind> {
  static constexpr std::array<std::pair<train::ModalKind, const char*>, 2> values{
      {{train::ModalKind::kSuperpixel, "superpixel"}, {train::ModalKind::kDense, "dense"}}};
};

}  // namespace nmrf

namespace nmrf::train {

// How the error of a pixel counts in the disparity terms.
struct ErrorForm {
  bool smooth_l1 = false;
  double robust = 0;  // c > 0: c log(1 + error / c), so that gross errors do not drown small ones
};

struct LossOptions {
  ModalKind modals = ModalKind::kSuperpixel;
  // Pixels and modals of at least this disparity do not count (384 for KITTI). The initialisation
  // loss counts all that the cost volume covers, the proposal loss those that are below both.
  double max_disp = 192;
  bool smooth_l1 = false;  // smooth L1 instead of L1 for the disparity terms (KITTI)
  double robust = 0;       // see ErrorForm; 0 as published
  double init_weight = 1;
  double proposal_weight = 1;
  double search_weight = 1;  // only where the network has refinement.search
  // One weight a layer, for each refinement module anew. Fewer layers use the last weights; with
  // more layers than weights the first weight serves the layers before.
  std::vector<double> coarse_weights = {1, 1, 1, 1.4, 1.4};
  std::vector<double> fine_weights = {1.4, 1.4, 1.6, 2, 2};

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("modals", self.modals, "superpixel (paper) or dense");
    visit("max_disp", self.max_disp, "ignore pixels from this disparity on");
    visit("smooth_l1", self.smooth_l1, "smooth L1 for the disparity terms");
    visit("robust", self.robust, "c px: disparity terms use c log(1 + error / c); 0 = off");
    visit("init_weight", self.init_weight, "weight of the initialisation loss");
    visit("proposal_weight", self.proposal_weight, "weight of the proposal loss");
    visit("search_weight", self.search_weight, "weight of the fine-search loss");
    visit("coarse_weights", self.coarse_weights, "weights of the inference layers");
    visit("fine_weights", self.fine_weights, "weights of the refinement layers");
  }
  ErrorForm error_form() const { return {smooth_l1, robust}; }
  // Throws Error(kUsage) naming the setting.
  void validate() const;
};

// Ground truth of a batch.
struct Truth {
  torch::Tensor disparity;  // [B, H, W] px; anything where not valid
  torch::Tensor valid;      // [B, H, W] bool
  torch::Tensor modals;     // [B, h, w, 4] px, NaN = null; only for ModalKind::kSuperpixel
};

// What the terms of a batch are means over.
struct LossCounts {
  double init = 0;           // cells with something to learn from
  double proposal = 0;       // matched pairs, or counted pixels of the dense variant
  double disparity = 0;      // counted pixels
  double search_place = 0;   // labels of fine cells with something in reach
  double search_choice = 0;  // pixels in reach of a label
};

// Several processes that share a batch divide by common counts: the hook gets the counts of this
// process and returns the divisors, usually the sum over all processes divided by their number
// (since their gradients are averaged afterwards). Called once by every compute_losses().
using CountHook = std::function<LossCounts(const LossCounts&)>;

struct Losses {
  torch::Tensor total;  // scalar with gradient
  // Unweighted, detached: init, proposal, coarse_0.., search_place, search_choice, fine_0.. (as far
  // as the network ran).
  std::vector<std::pair<std::string, torch::Tensor>> terms;
  LossCounts counts;  // of this batch, whatever the hook said
  // Mean |error| of the final map over the counted pixels; nothing when there is no map or no
  // pixel.
  std::optional<double> epe;
};

// All terms of what `out` holds. A network that ran only to the cost volume
// (out.proposals.seeds.cost alone) gives the initialisation loss, one that ran to the candidate
// labels the first two. The truth has the size of the images: up to 7 rows and columns that padding
// added to the network's maps do not count. A term without anything to count is zero, with zero
// gradient. Throws Error(kUsage) when shapes do not fit or the modals are missing.
Losses compute_losses(const NetworkOutput& out, const Truth& truth, const LossOptions& options,
                      const CountHook& hook = {});

// The single terms, each divided by its own count.

// Initialisation loss, paper: cross entropy between the softmax over the planes and the
// distribution 0.5, 0.3, 0.1, 0.1 of the modals. A modal's mass is split between the planes below
// and above it (both at most the last). Modals that are null, not below max_disp or out of view do
// not count: a cell sees a disparity d when its centre column x = 8 i + 3.5 has x - d >= 0. The
// mass of those that count keeps its proportions and is scaled to 1. Mean over the cells with a
// counted modal. cost: [B, h, w, planes] logits; modals: [B, h, w, 4] px.
torch::Tensor init_loss_modals(const torch::Tensor& cost, const torch::Tensor& modals,
                               double max_disp);

// Initialisation loss, dense variant: the cell's disparities as a histogram over the planes.
// cost: [B, h, w, planes] logits.
torch::Tensor init_loss_dense(const torch::Tensor& cost, const Truth& truth, double max_disp);

// Proposal loss, paper (Eq. 7): smooth L1 in full-resolution pixels over the optimal pairs of
// labels and modals below max_disp, after online suppression (see train/matching.h). Mean over the
// pairs of the batch, as DETR has it: a cell of two surfaces weighs twice one of a single surface.
// labels: [B, h, w, k] coarse pixels, any k; modals: [B, h, w, 4] px.
torch::Tensor proposal_loss_modals(const torch::Tensor& labels, const torch::Tensor& modals,
                                   double max_disp);

// The modal matched to each label, [B, h, w, k] px, NaN = none; no gradient.
torch::Tensor matched_modals(const torch::Tensor& labels, const torch::Tensor& modals,
                             double max_disp);

// Proposal loss, dense variant: every counted pixel pulls the closest label of its cell.
// labels: [B, h, w, k] coarse pixels.
torch::Tensor proposal_loss_dense(const torch::Tensor& labels, const Truth& truth,
                                  const torch::Tensor& counted, double max_disp);

// The search before refinement, the sum of two means. Of every label of a fine cell: cross entropy
// between the softmax over its places and where the counted pixels in its reach and in view lie,
// each split between the two places around it; over the labels with such a pixel. Of every such
// pixel: minus the logarithm of the mass of the labels that have it in reach.
torch::Tensor search_loss(const Search& search, const Truth& truth, const torch::Tensor& counted);

// Eq. 8: expected error of the hypotheses under the posterior over labels.
torch::Tensor coarse_loss(const Hypotheses& hypotheses, const Truth& truth,
                          const torch::Tensor& counted, const ErrorForm& form);

// Mean |disparity - truth|, in the given form, over the counted pixels.
torch::Tensor fine_loss(const torch::Tensor& disparity, const Truth& truth,
                        const torch::Tensor& counted, const ErrorForm& form);

// Pixels the disparity terms count: valid and 0 < d < max_disp.
torch::Tensor counted_pixels(const Truth& truth, double max_disp);

}  // namespace nmrf::train
