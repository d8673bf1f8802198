#include "train/losses.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "train/matching.h"

namespace nmrf::train {
namespace {

constexpr int64_t kCell = 8;  // side of a coarse cell in pixels
constexpr int64_t kFineCell = 4;
constexpr int64_t kModalsOfCell = 4;   // as data/modals.h makes them
constexpr int64_t kCellsAtOnce = 256;  // matched by one thread in a row

// A term before its division.
struct Part {
  torch::Tensor sum;    // scalar with gradient
  torch::Tensor count;  // scalar
};

// Of nothing the mean is zero, and so is its gradient.
torch::Tensor mean(const Part& part, double divisor) {
  return part.sum / (divisor > 0 ? divisor : 1.0);
}
torch::Tensor mean(const Part& part) { return mean(part, part.count.item<double>()); }

Part masked_sum(const torch::Tensor& values, const torch::Tensor& mask) {
  return {torch::where(mask, values, torch::zeros_like(values)).sum(), mask.sum()};
}

// [B, H, W] -> [B, H / side, W / side, side * side]: the pixels of each cell.
torch::Tensor by_cell(const torch::Tensor& map, int64_t side = kCell) {
  const int64_t batch = map.size(0), h = map.size(1) / side, w = map.size(2) / side;
  return map.reshape({batch, h, side, w, side})
      .permute({0, 1, 3, 2, 4})
      .reshape({batch, h, w, side * side});
}

// The disparity with zero where it is not known: an infinity would come back from the backward pass
// as NaN even where its loss is masked out.
torch::Tensor known_disparity(const Truth& truth, const torch::Tensor& like) {
  auto known = truth.valid & truth.disparity.isfinite();
  return torch::where(known, truth.disparity, torch::zeros_like(truth.disparity))
      .to(like.options());
}

torch::Tensor smooth(const torch::Tensor& difference) {
  auto size = difference.abs();
  return torch::where(size < 1, 0.5 * size * size, size - 0.5);
}

torch::Tensor error_of(const torch::Tensor& difference, const ErrorForm& form) {
  auto error = form.smooth_l1 ? smooth(difference) : difference.abs();
  return form.robust > 0 ? form.robust * (error / form.robust).log1p() : error;
}

// Cross entropy with a histogram over the planes. plane: [B, h, w, n], finite, may lie between two;
// mass: the same shape, >= 0, split between the two planes around.
Part histogram_part(const torch::Tensor& cost, const torch::Tensor& plane,
                    const torch::Tensor& mass) {
  torch::Tensor target, seen;
  {
    torch::NoGradGuard no_grad;
    const int64_t last = cost.size(3) - 1;
    auto lower = plane.floor();
    auto fraction = plane - lower;
    auto low = lower.to(torch::kLong).clamp(0, last);
    auto high = (lower.to(torch::kLong) + 1).clamp(0, last);
    auto histogram = torch::zeros_like(cost);
    histogram.scatter_add_(3, low, mass * (1 - fraction));
    histogram.scatter_add_(3, high, mass * fraction);
    auto whole = histogram.sum(-1, true);
    seen = whole.squeeze(-1) > 0;
    target = histogram / whole.clamp_min(1e-12);
  }
  return masked_sum(-(target * cost.log_softmax(-1)).sum(-1), seen);
}

Part init_part_dense(const torch::Tensor& cost, const Truth& truth, double max_disp) {
  torch::Tensor disparity, mass;
  {
    torch::NoGradGuard no_grad;
    const int64_t width = truth.disparity.size(2);
    auto values = known_disparity(truth, cost);
    auto column = torch::arange(width, cost.options()).view({1, 1, width});
    auto counts = counted_pixels(truth, max_disp) & (column - values >= 0);
    disparity = by_cell(torch::where(counts, values, torch::zeros_like(values)));
    mass = by_cell(counts).to(cost.scalar_type());
  }
  return histogram_part(cost, disparity / static_cast<double>(kCell), mass);
}

Part init_part_modals(const torch::Tensor& cost, const torch::Tensor& modals, double max_disp) {
  torch::Tensor disparity, mass;
  {
    torch::NoGradGuard no_grad;
    auto values = modals.to(cost.options());
    auto centre = (torch::arange(cost.size(2), cost.options()) * kCell + 0.5 * (kCell - 1))
                      .view({1, 1, cost.size(2), 1});
    // Comparisons with NaN are false.
    auto counts = (values > 0) & (values < max_disp) & (centre - values >= 0);
    disparity = torch::where(counts, values, torch::zeros_like(values));
    mass = torch::tensor({0.5, 0.3, 0.1, 0.1}, cost.options()) * counts;
  }
  return histogram_part(cost, disparity / static_cast<double>(kCell), mass);
}

struct SearchParts {
  Part place, choice;
};

SearchParts operator+(const SearchParts& a, const SearchParts& b) {
  auto sum = [](const Part& x, const Part& y) { return Part{x.sum + y.sum, x.count + y.count}; };
  return {sum(a.place, b.place), sum(a.choice, b.choice)};
}

SearchParts search_parts(const Search& search, const Truth& truth, const torch::Tensor& counted) {
  torch::Tensor plane, within, reachable;
  {
    torch::NoGradGuard no_grad;
    const auto radius = static_cast<double>(search.logits.size(4) / 2);
    auto disparity = known_disparity(truth, search.logits);
    auto column = torch::arange(disparity.size(2), disparity.options());
    auto in_view = by_cell(counted & (column - disparity >= 0), kFineCell).unsqueeze(3);
    auto truths = by_cell(disparity, kFineCell) / static_cast<double>(kFineCell);
    auto offset = truths.unsqueeze(3) - search.labels.unsqueeze(4);  // [B, H/4, W/4, k, 16]
    plane = (radius - offset).clamp(0, 2 * radius);
    within = in_view & (offset.abs() <= radius);
    reachable = within.any(3);  // [B, H/4, W/4, 16]
  }
  // Every label in reach learns where the truth lies; which label does not matter to it ...
  Part place = histogram_part(search.logits.flatten(2, 3), plane.flatten(2, 3),
                              within.to(search.logits.scalar_type()).flatten(2, 3));
  // ... and one of those in reach is to be chosen.
  auto choice = search.logits.logsumexp(4).log_softmax(3).unsqueeze(4);
  auto chosen = torch::where(within, choice, torch::full_like(choice, -1e4)).logsumexp(3);
  return {place, masked_sum(-chosen, reachable)};
}

Part proposal_part_dense(const torch::Tensor& labels, const Truth& truth,
                         const torch::Tensor& counted, double max_disp) {
  auto disparity = known_disparity(truth, labels);
  auto truths = by_cell(disparity).unsqueeze(-1);                               // [B,h,w,64,1]
  auto mask = by_cell(counted & (disparity < max_disp));                        // [B,h,w,64]
  auto difference = static_cast<double>(kCell) * labels.unsqueeze(3) - truths;  // [B,h,w,64,k]
  auto closest = std::get<1>(difference.abs().min(-1, true));
  return masked_sum(smooth(difference.gather(-1, closest).squeeze(-1)), mask);
}

Part proposal_part_modals(const torch::Tensor& labels, const torch::Tensor& modals,
                          double max_disp) {
  auto targets = matched_modals(labels, modals, max_disp);
  auto paired = targets == targets;
  targets = torch::where(paired, targets, torch::zeros_like(targets));
  return masked_sum(smooth(static_cast<double>(kCell) * labels - targets), paired);
}

Part coarse_part(const Hypotheses& hypotheses, const Truth& truth, const torch::Tensor& counted,
                 const ErrorForm& form) {
  auto truths = by_cell(known_disparity(truth, hypotheses.disparity)).unsqueeze(3);  // [B,h,w,1,64]
  auto error = error_of(static_cast<double>(kCell) * hypotheses.disparity - truths, form);
  auto expected = (hypotheses.score.softmax(3) * error).sum(3);  // [B, h, w, 64]
  return masked_sum(expected, by_cell(counted));
}

Part fine_part(const torch::Tensor& disparity, const Truth& truth, const torch::Tensor& counted,
               const ErrorForm& form) {
  auto difference = disparity - known_disparity(truth, disparity);
  return masked_sum(error_of(difference, form), counted);
}

// The weight of each of `layers` layers.
std::vector<double> layer_weights(const std::vector<double>& weights, std::size_t layers) {
  std::vector<double> out(layers, weights.front());
  const std::size_t own = std::min(layers, weights.size());
  std::copy_n(weights.end() - static_cast<long>(own), own, out.end() - static_cast<long>(own));
  return out;
}

// [B, H, W] of the padded images.
std::vector<int64_t> grid_of(const NetworkOutput& out) {
  auto of_cells = [](const torch::Tensor& cells) {
    return std::vector<int64_t>{cells.size(0), kCell * cells.size(1), kCell * cells.size(2)};
  };
  if (out.proposals.seeds.cost.defined()) return of_cells(out.proposals.seeds.cost);
  if (out.proposals.labels.defined()) return of_cells(out.proposals.labels);
  if (!out.hypotheses.empty()) return of_cells(out.hypotheses.front().disparity);
  check(out.disparity.defined(), ErrorKind::kUsage, "losses: the network's output is empty");
  return out.disparity.sizes().vec();
}

std::string shape_text(at::IntArrayRef sizes) {
  return fmt::format("[{}]", fmt::join(sizes.begin(), sizes.end(), ", "));
}

// The truth with unknown rows and columns where the images were padded.
Truth fit_truth(const Truth& truth, const std::vector<int64_t>& grid, bool need_modals) {
  check(truth.disparity.defined() && truth.valid.defined(), ErrorKind::kUsage,
        "losses: the truth has no disparity or no mask of valid pixels");
  const auto sizes = truth.disparity.sizes();
  check(sizes == truth.valid.sizes() && truth.valid.scalar_type() == torch::kBool,
        ErrorKind::kUsage,
        "losses: the mask is {}, the disparity {}; expected booleans of one shape",
        shape_text(truth.valid.sizes()), shape_text(sizes));
  const bool fits = sizes.size() == 3 && sizes[0] == grid[0] && sizes[1] <= grid[1] &&
                    sizes[1] > grid[1] - kCell && sizes[2] <= grid[2] && sizes[2] > grid[2] - kCell;
  check(fits, ErrorKind::kUsage,
        "losses: the truth is {}, the network's map {}; expected the size of the images before "
        "padding to multiples of 8",
        shape_text(sizes), shape_text(grid));
  Truth fitted = truth;
  if (need_modals) {
    const std::vector<int64_t> wanted{grid[0], grid[1] / kCell, grid[2] / kCell, kModalsOfCell};
    check(
        truth.modals.defined(), ErrorKind::kUsage,
        "losses: the truth has no modals, which loss.modals = superpixel needs; compute them when "
        "loading, or set loss.modals = dense");
    check(truth.modals.sizes() == wanted, ErrorKind::kUsage,
          "losses: the modals are {}; expected {}", shape_text(truth.modals.sizes()),
          shape_text(wanted));
  }
  if (sizes[1] != grid[1] || sizes[2] != grid[2]) {
    const std::vector<int64_t> pad{0, grid[2] - sizes[2], 0, grid[1] - sizes[1]};
    fitted.disparity = torch::constant_pad_nd(truth.disparity, pad, 0);
    fitted.valid = torch::constant_pad_nd(truth.valid, pad, 0);
  }
  return fitted;
}

}  // namespace

void LossOptions::validate() const {
  auto need = [](bool ok, const char* setting, const char* expected) {
    check(ok, ErrorKind::kUsage, "setting '{}' of the loss: expected {}", setting, expected);
  };
  auto weight = [](double value) { return std::isfinite(value) && value >= 0; };
  need(std::isfinite(max_disp) && max_disp > 0, "max_disp", "a positive number of pixels");
  need(weight(robust), "robust", "0 or more pixels");
  need(weight(init_weight), "init_weight", "0 or more");
  need(weight(proposal_weight), "proposal_weight", "0 or more");
  need(weight(search_weight), "search_weight", "0 or more");
  for (const auto& [name, list] :
       {std::pair{"coarse_weights", &coarse_weights}, {"fine_weights", &fine_weights}})
    need(!list->empty() && std::all_of(list->begin(), list->end(), weight), name,
         "a list of at least one number, each 0 or more");
}

torch::Tensor counted_pixels(const Truth& truth, double max_disp) {
  return truth.valid & (truth.disparity > 0) & (truth.disparity < max_disp);
}

torch::Tensor matched_modals(const torch::Tensor& labels, const torch::Tensor& modals,
                             double max_disp) {
  torch::NoGradGuard no_grad;
  auto proposals =
      (static_cast<double>(kCell) * labels.detach()).to(torch::kCPU, torch::kDouble).contiguous();
  auto truths = modals.to(torch::kCPU, torch::kDouble).contiguous();
  auto targets = torch::empty_like(proposals);
  const auto k = static_cast<std::size_t>(proposals.size(-1));
  const auto most = static_cast<std::size_t>(truths.size(-1));
  const double* from = proposals.data_ptr<double>();
  const double* given = truths.data_ptr<double>();
  double* to = targets.data_ptr<double>();
  const int64_t cells = truths.numel() / static_cast<int64_t>(most);
  at::parallel_for(0, cells, kCellsAtOnce, [&](int64_t begin, int64_t end) {
    ModalMatcher matcher;
    std::vector<double> counted;
    for (auto cell = static_cast<std::size_t>(begin); cell < static_cast<std::size_t>(end);
         ++cell) {
      counted.clear();
      for (std::size_t i = 0; i < most; ++i)
        if (const double modal = given[cell * most + i]; modal > 0 && modal < max_disp)
          counted.push_back(modal);
      matcher.match({from + cell * k, k}, counted, {to + cell * k, k});
    }
  });
  return targets.to(labels.options());
}

torch::Tensor init_loss_modals(const torch::Tensor& cost, const torch::Tensor& modals,
                               double max_disp) {
  return mean(init_part_modals(cost, modals, max_disp));
}

torch::Tensor init_loss_dense(const torch::Tensor& cost, const Truth& truth, double max_disp) {
  return mean(init_part_dense(cost, truth, max_disp));
}

torch::Tensor proposal_loss_modals(const torch::Tensor& labels, const torch::Tensor& modals,
                                   double max_disp) {
  return mean(proposal_part_modals(labels, modals, max_disp));
}

torch::Tensor proposal_loss_dense(const torch::Tensor& labels, const Truth& truth,
                                  const torch::Tensor& counted, double max_disp) {
  return mean(proposal_part_dense(labels, truth, counted, max_disp));
}

torch::Tensor search_loss(const Search& search, const Truth& truth, const torch::Tensor& counted) {
  const SearchParts parts = search_parts(search, truth, counted);
  return mean(parts.place) + mean(parts.choice);
}

torch::Tensor coarse_loss(const Hypotheses& hypotheses, const Truth& truth,
                          const torch::Tensor& counted, const ErrorForm& form) {
  return mean(coarse_part(hypotheses, truth, counted, form));
}

torch::Tensor fine_loss(const torch::Tensor& disparity, const Truth& truth,
                        const torch::Tensor& counted, const ErrorForm& form) {
  return mean(fine_part(disparity, truth, counted, form));
}

Losses compute_losses(const NetworkOutput& out, const Truth& given, const LossOptions& options,
                      const CountHook& hook) {
  options.validate();
  const torch::Tensor& cost = out.proposals.seeds.cost;
  const torch::Tensor& labels = out.proposals.labels;
  const bool superpixel = options.modals == ModalKind::kSuperpixel;
  const Truth truth =
      fit_truth(given, grid_of(out), superpixel && (cost.defined() || labels.defined()));
  const auto counted = counted_pixels(truth, options.max_disp);
  // The planes cover this many pixels of disparity.
  const double covered = cost.defined() ? static_cast<double>(kCell * cost.size(3))
                                        : std::numeric_limits<double>::infinity();

  Losses losses;
  struct Term {
    std::string name;
    double weight;
    double LossCounts::*divisor;
    Part part;
  };
  std::vector<Term> terms;
  auto add = [&](std::string name, double weight, double LossCounts::*divisor, Part part) {
    losses.counts.*divisor = part.count.item<double>();
    terms.push_back({std::move(name), weight, divisor, std::move(part)});
  };
  if (cost.defined())
    add("init", options.init_weight, &LossCounts::init,
        superpixel ? init_part_modals(cost, truth.modals, covered)
                   : init_part_dense(cost, truth, covered));
  if (labels.defined()) {
    const double limit = std::min(covered, options.max_disp);
    add("proposal", options.proposal_weight, &LossCounts::proposal,
        superpixel ? proposal_part_modals(labels, truth.modals, limit)
                   : proposal_part_dense(labels, truth, counted, limit));
  }
  const auto coarse = layer_weights(options.coarse_weights, out.hypotheses.size());
  for (std::size_t i = 0; i < out.hypotheses.size(); ++i)
    add("coarse_" + std::to_string(i), coarse[i], &LossCounts::disparity,
        coarse_part(out.hypotheses[i], truth, counted, options.error_form()));
  if (!out.searches.empty()) {
    SearchParts all = search_parts(out.searches[0], truth, counted);
    for (std::size_t i = 1; i < out.searches.size(); ++i)
      all = all + search_parts(out.searches[i], truth, counted);
    add("search_place", options.search_weight, &LossCounts::search_place, all.place);
    add("search_choice", options.search_weight, &LossCounts::search_choice, all.choice);
  }
  const auto modules = static_cast<std::size_t>(std::max<int64_t>(1, out.refinements));
  const std::size_t layers = out.refined.size() / modules;
  const auto fine = layer_weights(options.fine_weights, layers);
  for (std::size_t i = 0; i < out.refined.size(); ++i)
    add("fine_" + std::to_string(i), fine[i % layers], &LossCounts::disparity,
        fine_part(out.refined[i], truth, counted, options.error_form()));
  check(!terms.empty(), ErrorKind::kUsage, "losses: the network's output has nothing to supervise");

  const LossCounts divisors = hook ? hook(losses.counts) : losses.counts;
  for (Term& term : terms) {
    auto value = mean(term.part, divisors.*term.divisor);
    losses.terms.emplace_back(std::move(term.name), value.detach());
    if (term.weight == 0 && losses.total.defined()) continue;
    value = term.weight * value;
    losses.total = losses.total.defined() ? losses.total + value : value;
  }
  if (out.disparity.defined()) {
    torch::NoGradGuard no_grad;
    const Part errors = fine_part(out.disparity.to(torch::kDouble), truth, counted, {});
    if (const double pixels = errors.count.item<double>(); pixels > 0)
      losses.epe = errors.sum.item<double>() / pixels;
  }
  return losses;
}

}  // namespace nmrf::train
