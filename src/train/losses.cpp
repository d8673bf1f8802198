#include "train/losses.h"

namespace nmrf {
namespace {

constexpr int64_t kCell = 8;  // side of a coarse cell in pixels

// [B, H, W] -> [B, h, w, 64]: the pixels of each cell.
torch::Tensor by_cell(const torch::Tensor& map) {
  const int64_t batch = map.size(0), h = map.size(1) / kCell, w = map.size(2) / kCell;
  return map.view({batch, h, kCell, w, kCell})
      .permute({0, 1, 3, 2, 4})
      .reshape({batch, h, w, kCell * kCell});
}

torch::Tensor smooth(const torch::Tensor& difference) {
  auto size = difference.abs();
  return torch::where(size < 1, 0.5 * size * size, size - 0.5);
}

// Mean over the true elements of `mask`; zero (with gradient) when there are none.
torch::Tensor masked_mean(const torch::Tensor& values, const torch::Tensor& mask) {
  auto kept = torch::where(mask, values, torch::zeros_like(values));
  return kept.sum() / mask.sum().clamp_min(1);
}

}  // namespace

torch::Tensor counted_pixels(const Truth& truth, double max_disp) {
  return truth.valid & (truth.disparity > 0) & (truth.disparity < max_disp);
}

torch::Tensor init_loss_dense(const torch::Tensor& cost, const Truth& truth, double max_disp) {
  const int64_t planes = cost.size(3), width = truth.disparity.size(2);
  torch::Tensor target, seen;
  {
    torch::NoGradGuard no_grad;
    auto column = torch::arange(width, cost.options()).view({1, 1, width});
    auto counts = by_cell(counted_pixels(truth, max_disp) & (column - truth.disparity >= 0))
                      .to(cost.scalar_type());
    auto plane = by_cell(truth.disparity) / static_cast<double>(kCell);
    plane = torch::where(counts > 0, plane, torch::zeros_like(plane));
    auto lower = plane.floor();
    auto fraction = plane - lower;
    auto low = lower.to(torch::kLong).clamp(0, planes - 1);
    auto high = (lower.to(torch::kLong) + 1).clamp(0, planes - 1);
    auto histogram = torch::zeros_like(cost);
    histogram.scatter_add_(3, low, counts * (1 - fraction));
    histogram.scatter_add_(3, high, counts * fraction);
    auto mass = histogram.sum(-1, true);
    seen = mass.squeeze(-1) > 0;
    target = histogram / mass.clamp_min(1e-12);
  }
  return masked_mean(-(target * cost.log_softmax(-1)).sum(-1), seen);
}

torch::Tensor proposal_loss_dense(const torch::Tensor& labels, const Truth& truth,
                                  const torch::Tensor& counted, double max_disp) {
  auto truths = by_cell(truth.disparity).unsqueeze(-1);               // [B, h, w, 64, 1]
  auto mask = by_cell(counted & (truth.disparity < max_disp));        // [B, h, w, 64]
  auto difference = static_cast<double>(kCell) * labels.unsqueeze(3) - truths;  // [B,h,w,64,k]
  auto closest = std::get<1>(difference.abs().min(-1, true));
  return masked_mean(smooth(difference.gather(-1, closest).squeeze(-1)), mask);
}

torch::Tensor coarse_loss(const Hypotheses& hypotheses, const Truth& truth,
                          const torch::Tensor& counted, bool smooth_l1) {
  auto truths = by_cell(truth.disparity).unsqueeze(3);  // [B, h, w, 1, 64]
  auto difference = static_cast<double>(kCell) * hypotheses.disparity - truths;
  auto error = smooth_l1 ? smooth(difference) : difference.abs();
  auto expected = (hypotheses.score.softmax(3) * error).sum(3);  // [B, h, w, 64]
  return masked_mean(expected, by_cell(counted));
}

torch::Tensor fine_loss(const torch::Tensor& disparity, const Truth& truth,
                        const torch::Tensor& counted, bool smooth_l1) {
  auto difference = disparity - truth.disparity;
  return masked_mean(smooth_l1 ? smooth(difference) : difference.abs(), counted);
}

}  // namespace nmrf
