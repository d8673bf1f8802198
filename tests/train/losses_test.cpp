// Every loss against plain loops over doubles, and its gradient against finite differences.
#include "train/losses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "train/loss_cases.h"

namespace nmrf::train {
namespace {

using namespace test;

double at(const Tensor& tensor, at::IntArrayRef place) {
  auto item = tensor;
  for (int64_t i : place) item = item[i];
  return item.item<double>();
}

double smooth(double difference) {
  double size = std::abs(difference);
  return size < 1 ? 0.5 * size * size : size - 0.5;
}

// The cell's pixels as (row, column).
template <class Visit>
void for_pixels(int64_t row, int64_t col, Visit&& visit) {
  for (int64_t y = 8 * row; y < 8 * row + 8; ++y)
    for (int64_t x = 8 * col; x < 8 * col + 8; ++x) visit(y, x);
}

template <class Visit>
void for_cells(Visit&& visit) {
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t col = 0; col < kCols; ++col) visit(b, row, col);
}

// Cross entropy of the logits at a cell with a distribution over the planes.
double cross_entropy(const Tensor& cost, int64_t b, int64_t row, int64_t col,
                     const std::vector<double>& target) {
  double sum = 0, loss = 0;
  for (int64_t z = 0; z < kPlanes; ++z) sum += std::exp(at(cost, {b, row, col, z}));
  for (int64_t z = 0; z < kPlanes; ++z)
    loss -= target[static_cast<std::size_t>(z)] * (at(cost, {b, row, col, z}) - std::log(sum));
  return loss;
}

// (1 - |z - d/8|) of the mass goes to each plane z, what lies beyond the last plane to that.
void split(std::vector<double>& target, double disparity, double mass) {
  const double plane = disparity / 8;
  for (int z = 0; z <= static_cast<int>(kPlanes); ++z) {
    const double share = 1 - std::abs(z - plane);
    if (share > 0) target[static_cast<std::size_t>(std::min(z, int(kPlanes) - 1))] += mass * share;
  }
}

// Compares the gradient with central differences at up to 150 elements.
void check_gradient(const std::function<Tensor(const Tensor&)>& loss, const Tensor& start,
                    double tolerance = 1e-7) {
  auto x = start.detach().clone().requires_grad_(true);
  loss(x).backward();
  auto gradient = x.grad().flatten();
  auto flat = start.detach().clone().contiguous();
  double* values = flat.data_ptr<double>();
  const int64_t stride = std::max<int64_t>(1, flat.numel() / 150);
  const double step = 1e-6;
  double largest = 0;
  torch::NoGradGuard no_grad;
  for (int64_t i = 0; i < flat.numel(); i += stride) {
    const double before = values[i];
    values[i] = before + step;
    const double above = loss(flat).item<double>();
    values[i] = before - step;
    const double below = loss(flat).item<double>();
    values[i] = before;
    const double wanted = (above - below) / (2 * step);
    EXPECT_NEAR(gradient[i].item<double>(), wanted, tolerance) << "element " << i;
    largest = std::max(largest, std::abs(wanted));
  }
  EXPECT_GT(largest, 10 * tolerance) << "nothing was tested";
}

TEST(InitLoss, ModalsAgainstLoops) {
  torch::manual_seed(1);
  auto truth = make_truth();
  // A cell whose largest surface is out of view, one at the last plane, one at the limit.
  auto cells = truth.modals.accessor<double, 4>();
  const double special[3][4] = {{30, 6, kNone, 2}, {39.5, kNone, kNone, kNone}, {40, 8, 41, 16}};
  for (int i = 0; i < 4; ++i) {
    cells[0][0][1][i] = special[0][i];
    cells[0][1][4][i] = special[1][i];
    cells[1][1][4][i] = special[2][i];
  }
  auto cost = uniform({kBatch, kRows, kCols, kPlanes}, -2, 2);
  const double weight[4] = {0.5, 0.3, 0.1, 0.1};
  for (double limit : {kCovered, 20.0}) {
    double sum = 0;
    int count = 0, out_of_view = 0;
    for_cells([&](int64_t b, int64_t row, int64_t col) {
      std::vector<double> target(kPlanes, 0.0);
      double whole = 0;
      for (int i = 0; i < 4; ++i) {
        const double modal = cells[b][row][col][i];
        if (!(modal > 0) || modal >= limit) continue;  // NaN too
        if (8.0 * static_cast<double>(col) + 3.5 < modal) {
          ++out_of_view;
          continue;
        }
        whole += weight[i];
        split(target, modal, weight[i]);
      }
      if (whole == 0) return;
      for (double& share : target) share /= whole;
      sum += cross_entropy(cost, b, row, col, target);
      ++count;
    });
    ASSERT_GT(count, 5);
    ASSERT_LT(count, 20);
    ASSERT_GT(out_of_view, 3);
    EXPECT_NEAR(init_loss_modals(cost, truth.modals, limit).item<double>(), sum / count, 1e-12);
  }
  check_gradient([&](const Tensor& x) { return init_loss_modals(x, truth.modals, kCovered); },
                 cost);
}

TEST(InitLoss, MassOfTheModalsByHand) {
  // One cell far from the left border; 12 px lies half way between planes 1 and 2.
  auto cost = torch::zeros({1, 1, 5, 5}, doubles());
  auto modals = torch::full({1, 1, 5, 4}, kNone, doubles());
  auto cells = modals.accessor<double, 4>();
  cells[0][0][4][0] = 12;
  cells[0][0][4][1] = 32;
  auto x = cost.clone().requires_grad_(true);
  init_loss_modals(x, modals, 40).backward();
  // The gradient is softmax - target: target = 5/16, 5/16, 3/8 at planes 1, 2, 4.
  auto target = 0.2 - x.grad()[0][0][4];
  const double wanted[5] = {0, 0.3125, 0.3125, 0, 0.375};
  for (int z = 0; z < 5; ++z) EXPECT_NEAR(target[z].item<double>(), wanted[z], 1e-12) << z;
  EXPECT_EQ(x.grad().slice(2, 0, 4).abs().sum().item<double>(), 0) << "cells without modals";
}

TEST(InitLoss, DenseAgainstLoops) {
  torch::manual_seed(2);
  auto truth = make_truth();
  auto cost = uniform({kBatch, kRows, kCols, kPlanes}, -2, 2);
  for (double limit : {kCovered, 17.0}) {
    double sum = 0;
    int count = 0;
    for_cells([&](int64_t b, int64_t row, int64_t col) {
      std::vector<double> target(kPlanes, 0.0);
      int pixels = 0;
      for_pixels(row, col, [&](int64_t y, int64_t x) {
        const double d = at(truth.disparity, {b, y, x});
        if (at(truth.valid, {b, y, x}) == 0 || !(d > 0) || d >= limit) return;
        if (static_cast<double>(x) - d < 0) return;
        ++pixels;
        split(target, d, 1);
      });
      if (pixels == 0) return;
      for (double& share : target) share /= pixels;
      sum += cross_entropy(cost, b, row, col, target);
      ++count;
    });
    ASSERT_GT(count, 10);
    EXPECT_NEAR(init_loss_dense(cost, truth, limit).item<double>(), sum / count, 1e-12);
  }
  check_gradient([&](const Tensor& x) { return init_loss_dense(x, truth, kCovered); }, cost);
}

// The best pairs of one cell by trying all of them, after suppression: (sum, pairs).
std::pair<double, int> naive_cell(const std::vector<double>& proposals,
                                  std::vector<double> modals) {
  auto proximity = [&](double modal) {
    double closest = kInf;
    for (double proposal : proposals) closest = std::min(closest, std::abs(proposal - modal));
    return closest;
  };
  std::stable_sort(modals.begin(), modals.end(),
                   [&](double a, double b) { return proximity(a) < proximity(b); });
  std::vector<double> kept;
  for (double modal : modals) {
    bool close = false;
    for (double other : kept) close |= std::abs(other - modal) < 8;
    if (!close) kept.push_back(modal);
  }
  // Places for modals and nulls; every order of them is tried.
  const std::size_t pairs = std::min(kept.size(), proposals.size());
  std::vector<std::size_t> order(std::max(kept.size(), proposals.size()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  double best = kInf;
  do {
    double sum = 0;
    std::size_t paired = 0;
    for (std::size_t j = 0; j < proposals.size(); ++j)
      if (order[j] < kept.size()) {
        sum += smooth(proposals[j] - kept[order[j]]);
        ++paired;
      }
    if (paired == pairs) best = std::min(best, sum);
  } while (std::next_permutation(order.begin(), order.end()));
  return {best, static_cast<int>(pairs)};
}

TEST(ProposalLoss, ModalsAgainstEveryPermutation) {
  for (int64_t k = 1; k <= 6; ++k) {
    torch::manual_seed(10 + static_cast<uint64_t>(k));
    auto truth = make_truth();
    auto labels = uniform({kBatch, kRows, kCols, k}, 0, 6);
    if (k > 1) labels.select(0, 0).select(-1, 1).copy_(labels.select(0, 0).select(-1, 0));  // ties
    const double limit = 36;
    double sum = 0;
    int count = 0;
    for_cells([&](int64_t b, int64_t row, int64_t col) {
      std::vector<double> proposals, modals;
      for (int64_t j = 0; j < k; ++j) proposals.push_back(8 * at(labels, {b, row, col, j}));
      for (int64_t j = 0; j < 4; ++j)
        if (double modal = at(truth.modals, {b, row, col, j}); modal > 0 && modal < limit)
          modals.push_back(modal);
      auto [cost, pairs] = naive_cell(proposals, modals);
      sum += pairs ? cost : 0;
      count += pairs;
    });
    EXPECT_NEAR(proposal_loss_modals(labels, truth.modals, limit).item<double>(), sum / count,
                1e-12)
        << "k = " << k;
    // Without ties, where the loss has no gradient.
    check_gradient([&](const Tensor& x) { return proposal_loss_modals(x, truth.modals, limit); },
                   uniform({kBatch, kRows, kCols, k}, 0, 6));
  }
}

TEST(ProposalLoss, ExampleOfTheSupplement) {
  auto labels = (torch::tensor({1.4, 10.2, 10.8, 11.2}, doubles()) / 8).view({1, 1, 1, 4});
  auto modals = torch::tensor({1.1, 1.8, kNone, kNone}, doubles()).view({1, 1, 1, 4});
  auto pairs = matched_modals(labels, modals, 192).flatten();
  EXPECT_DOUBLE_EQ(pairs[0].item<double>(), 1.1);
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(pairs[i].item<double>()));
  labels.requires_grad_(true);
  auto loss = proposal_loss_modals(labels, modals, 192);
  EXPECT_NEAR(loss.item<double>(), 0.5 * 0.3 * 0.3, 1e-12);
  loss.backward();
  EXPECT_NEAR(labels.grad().flatten()[0].item<double>(), 8 * 0.3, 1e-9);
  EXPECT_EQ(labels.grad().flatten().slice(0, 1).abs().sum().item<double>(), 0);
}

TEST(ProposalLoss, FloatsAndManyCells) {
  torch::manual_seed(4);
  // More cells than one thread takes at once; every cell the same, so the mean is that of one cell.
  auto labels = torch::tensor({0.5f, 3.0f}).view({1, 1, 1, 2}).expand({3, 20, 30, 2});
  auto modals = torch::tensor({26.0f, 3.0f, NAN, NAN}).view({1, 1, 1, 4}).expand({3, 20, 30, 4});
  auto loss = proposal_loss_modals(labels, modals, 192);
  EXPECT_EQ(loss.scalar_type(), torch::kFloat);
  EXPECT_FLOAT_EQ(loss.item<float>(), (0.5f + 1.5f) / 2);
}

TEST(ProposalLoss, DenseAgainstLoops) {
  for (int64_t k : {1, 3, 6}) {
    torch::manual_seed(20 + static_cast<uint64_t>(k));
    auto truth = make_truth();
    auto labels = uniform({kBatch, kRows, kCols, k}, 0, 6);
    auto counted = counted_pixels(truth, 45);
    double sum = 0;
    int count = 0;
    for_cells([&](int64_t b, int64_t row, int64_t col) {
      for_pixels(row, col, [&](int64_t y, int64_t x) {
        const double d = at(truth.disparity, {b, y, x});
        if (at(truth.valid, {b, y, x}) == 0 || !(d > 0) || d >= kCovered) return;
        double closest = kInf;
        for (int64_t j = 0; j < k; ++j) {
          const double gap = 8 * at(labels, {b, row, col, j}) - d;
          if (std::abs(gap) < std::abs(closest)) closest = gap;
        }
        sum += smooth(closest);
        ++count;
      });
    });
    auto loss = [&](const Tensor& x) { return proposal_loss_dense(x, truth, counted, kCovered); };
    EXPECT_NEAR(loss(labels).item<double>(), sum / count, 1e-11);
    check_gradient(loss, labels);
  }
}

const ErrorForm kForms[] = {{false, 0}, {true, 0}, {false, 4}, {true, 1.5}};

double counts_as(const ErrorForm& form, double gap) {
  const double error = form.smooth_l1 ? smooth(gap) : std::abs(gap);
  return form.robust > 0 ? form.robust * std::log1p(error / form.robust) : error;
}

TEST(CoarseLoss, AgainstLoops) {
  for (const ErrorForm& form : kForms)
    for (int64_t k : {1, 4}) {
      torch::manual_seed(30 + static_cast<uint64_t>(k));
      auto truth = make_truth();
      Hypotheses given{uniform({kBatch, kRows, kCols, k, 64}, 0, 6),
                       uniform({kBatch, kRows, kCols, k, 64}, -2, 2)};
      auto counted = counted_pixels(truth, 30);
      double sum = 0;
      int count = 0;
      for_cells([&](int64_t b, int64_t row, int64_t col) {
        int64_t pixel = 0;
        for_pixels(row, col, [&](int64_t y, int64_t x) {
          const int64_t place = pixel++;
          const double d = at(truth.disparity, {b, y, x});
          if (at(truth.valid, {b, y, x}) == 0 || !(d > 0) || d >= 30) return;
          double whole = 0, expected = 0;
          for (int64_t j = 0; j < k; ++j) {
            const double p = std::exp(at(given.score, {b, row, col, j, place}));
            const double gap = 8 * at(given.disparity, {b, row, col, j, place}) - d;
            whole += p;
            expected += p * counts_as(form, gap);
          }
          sum += expected / whole;
          ++count;
        });
      });
      EXPECT_NEAR(coarse_loss(given, truth, counted, form).item<double>(), sum / count, 1e-11);
      check_gradient(
          [&](const Tensor& x) {
            return coarse_loss({x, given.score}, truth, counted, form);
          },
          given.disparity);
      if (k > 1)
        check_gradient(
            [&](const Tensor& x) {
              return coarse_loss({given.disparity, x}, truth, counted, form);
            },
            given.score);
    }
}

TEST(SearchLoss, AgainstLoops) {
  torch::manual_seed(35);
  auto truth = make_truth();
  const int64_t radius = 2, places = 2 * radius + 1, labels = 2;
  Search search{uniform({kBatch, 2 * kRows, 2 * kCols, labels}, 0, 8),
                uniform({kBatch, 2 * kRows, 2 * kCols, labels, places}, -2, 2)};
  auto counted = counted_pixels(truth, 30);
  double place = 0, choice = 0;
  int cells = 0, pixels = 0, out_of_view = 0, out_of_reach = 0;
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t row = 0; row < 2 * kRows; ++row)
      for (int64_t col = 0; col < 2 * kCols; ++col) {
        auto mass_of = [&](int64_t j) {
          double mass = 0;
          for (int64_t z = 0; z < places; ++z)
            mass += std::exp(at(search.logits, {b, row, col, j, z}));
          return mass;
        };
        const double whole = mass_of(0) + mass_of(1);
        std::vector<double> target(static_cast<std::size_t>(labels * places), 0.0);
        double held[labels] = {0, 0};
        for (int64_t y = 4 * row; y < 4 * row + 4; ++y)
          for (int64_t x = 4 * col; x < 4 * col + 4; ++x) {
            if (at(counted, {b, y, x}) == 0) continue;
            const double d = at(truth.disparity, {b, y, x});
            if (static_cast<double>(x) - d < 0) {
              ++out_of_view;
              continue;
            }
            double reached = 0;
            for (int64_t j = 0; j < labels; ++j) {
              const double offset = d / 4 - at(search.labels, {b, row, col, j});
              if (std::abs(offset) > radius) continue;
              reached += mass_of(j);
              held[j] += 1;
              // The first place is the largest disparity.
              for (int64_t z = 0; z < places; ++z)
                target[static_cast<std::size_t>(j * places + z)] +=
                    std::max(0.0, 1 - std::abs(static_cast<double>(radius - z) - offset));
            }
            if (reached > 0) {
              choice -= std::log(reached / whole);
              ++pixels;
            } else {
              ++out_of_reach;
            }
          }
        for (int64_t j = 0; j < labels; ++j) {
          if (held[j] == 0) continue;
          for (int64_t z = 0; z < places; ++z)
            place -= target[static_cast<std::size_t>(j * places + z)] / held[j] *
                     (at(search.logits, {b, row, col, j, z}) - std::log(mass_of(j)));
          ++cells;
        }
      }
  EXPECT_GT(cells, 0);
  EXPECT_GT(out_of_view, 0);
  EXPECT_GT(out_of_reach, 0);
  EXPECT_NEAR(search_loss(search, truth, counted).item<double>(), place / cells + choice / pixels,
              1e-11);
  check_gradient(
      [&](const Tensor& x) {
        return search_loss({search.labels, x}, truth, counted);
      },
      search.logits);
}

TEST(SearchLoss, LogitsOfTheTruthFindIt) {
  auto truth = make_truth();
  truth.disparity.fill_(10);  // 2.5 fine pixels
  truth.valid.fill_(true);
  Search search{torch::full({kBatch, 2 * kRows, 2 * kCols, 2}, 1.75, torch::kDouble),
                torch::full({kBatch, 2 * kRows, 2 * kCols, 2, 5}, -50, torch::kDouble)};
  search.labels.select(3, 0).fill_(7);  // another surface
  auto second = search.logits.select(3, 1);
  second.select(3, 1).fill_(std::log(0.75));  // + 1
  second.select(3, 2).fill_(std::log(0.25));  // + 0
  EXPECT_TRUE(torch::allclose(search.found(),
                              torch::full({kBatch, 2 * kRows, 2 * kCols}, 2.5, torch::kDouble)));
  // Nothing is left to choose: the other label has no mass.
  const double entropy = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  EXPECT_NEAR(search_loss(search, truth, counted_pixels(truth, 30)).item<double>(), entropy, 1e-9);
}

TEST(FineLoss, AgainstLoops) {
  for (const ErrorForm& form : kForms) {
    torch::manual_seed(40);
    auto truth = make_truth();
    auto map = torch::where(truth.valid, truth.disparity, torch::zeros_like(truth.disparity)) +
               uniform(truth.disparity.sizes(), -3, 3);
    auto counted = counted_pixels(truth, 30);
    double sum = 0;
    int count = 0;
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t y = 0; y < 8 * kRows; ++y)
        for (int64_t x = 0; x < 8 * kCols; ++x) {
          const double d = at(truth.disparity, {b, y, x});
          if (at(truth.valid, {b, y, x}) == 0 || !(d > 0) || d >= 30) continue;
          const double gap = at(map, {b, y, x}) - d;
          sum += counts_as(form, gap);
          ++count;
        }
    EXPECT_NEAR(fine_loss(map, truth, counted, form).item<double>(), sum / count, 1e-12);
    check_gradient([&](const Tensor& x) { return fine_loss(x, truth, counted, form); }, map);
  }
}

}  // namespace
}  // namespace nmrf::train
