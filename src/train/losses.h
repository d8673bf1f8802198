// The losses of the paper: initialisation, proposals, disparity (Eq. 7 and 8, supplement section 1).
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "core/fields.h"
#include "model/nmrf.h"

namespace nmrf {

// What supervises seeds and proposals.
enum class ModalKind {
  kSuperpixel,  // the paper: a few modals a cell, found with superpixels, matched one to one
  kDense,       // the authors' 2025 variant: every pixel of the cell
};

template <>
struct EnumNames<ModalKind> {
  static constexpr std::array<std::pair<ModalKind, const char*>, 2> values{
      {{ModalKind::kSuperpixel, "superpixel"}, {ModalKind::kDense, "dense"}}};
};

struct LossOptions {
  ModalKind modals = ModalKind::kSuperpixel;
  double max_disp = 192;   // pixels of at least this disparity do not count (384 for KITTI)
  bool smooth_l1 = false;  // smooth L1 instead of L1 for the disparity terms (KITTI)
  double init_weight = 1;
  double proposal_weight = 1;
  // One weight a layer; with fewer layers the last ones are used.
  std::vector<double> coarse_weights = {1, 1, 1, 1.4, 1.4};
  std::vector<double> fine_weights = {1.4, 1.4, 1.6, 2, 2};

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("modals", self.modals, "superpixel (paper) or dense");
    visit("max_disp", self.max_disp, "pixels of at least this disparity do not count");
    visit("smooth_l1", self.smooth_l1, "smooth L1 for the disparity terms");
    visit("init_weight", self.init_weight, "weight of the initialisation loss");
    visit("proposal_weight", self.proposal_weight, "weight of the proposal loss");
    visit("coarse_weights", self.coarse_weights, "weights of the inference layers");
    visit("fine_weights", self.fine_weights, "weights of the refinement layers");
  }
};

// Ground truth of a batch.
struct Truth {
  torch::Tensor disparity;  // [B, H, W] px; anything where not valid, but no NaN
  torch::Tensor valid;      // [B, H, W] bool
  torch::Tensor modals;     // [B, h, w, 4] px, NaN = null; only for ModalKind::kSuperpixel
};

struct Losses {
  torch::Tensor total;                                         // scalar with gradient
  std::vector<std::pair<std::string, torch::Tensor>> terms;  // unweighted, detached
  double epe = 0;                                              // of the final map, counted pixels
};

// Initialisation loss, dense variant: the cell's disparities as a histogram over the planes.
// cost: [B, h, w, planes] logits.
torch::Tensor init_loss_dense(const torch::Tensor& cost, const Truth& truth, double max_disp);

// Proposal loss, dense variant: every counted pixel pulls the closest label of its cell.
// labels: [B, h, w, k] coarse pixels.
torch::Tensor proposal_loss_dense(const torch::Tensor& labels, const Truth& truth,
                                  const torch::Tensor& counted, double max_disp);

// Eq. 8: expected error of the hypotheses under the posterior over labels.
torch::Tensor coarse_loss(const Hypotheses& hypotheses, const Truth& truth,
                          const torch::Tensor& counted, bool smooth_l1);

// Mean |disparity - truth| (or its smooth form) over the counted pixels.
torch::Tensor fine_loss(const torch::Tensor& disparity, const Truth& truth,
                        const torch::Tensor& counted, bool smooth_l1);

// Pixels the disparity terms count: valid and 0 < d < max_disp.
torch::Tensor counted_pixels(const Truth& truth, double max_disp);

}  // namespace nmrf
