// The weighted sum of all losses: which terms, which weights, which divisors.
#include <gtest/gtest.h>

#include <cmath>

#include "support/support.h"
#include "train/loss_cases.h"

namespace nmrf::train {
namespace {

using namespace test;

// What a network with those layers would give.
NetworkOutput make_output(std::size_t coarse, int64_t modules, std::size_t fine) {
  NetworkOutput out;
  auto leaf = [](at::IntArrayRef sizes, double low, double high) {
    return uniform(sizes, low, high).requires_grad_(true);
  };
  out.proposals.seeds.cost = leaf({kBatch, kRows, kCols, kPlanes}, -2, 2);
  out.proposals.labels = leaf({kBatch, kRows, kCols, 4}, 0, 5);
  for (std::size_t i = 0; i < coarse; ++i)
    out.hypotheses.push_back(
        {leaf({kBatch, kRows, kCols, 4, 64}, 0, 5), leaf({kBatch, kRows, kCols, 4, 64}, -1, 1)});
  out.refinements = modules;
  for (std::size_t i = 0; i < static_cast<std::size_t>(modules) * fine; ++i)
    out.refined.push_back(leaf({kBatch, 8 * kRows, 8 * kCols}, 0, 40));
  out.disparity =
      out.refined.empty() ? uniform({kBatch, 8 * kRows, 8 * kCols}, 0, 40) : out.refined.back();
  return out;
}

std::vector<Tensor> leaves(const NetworkOutput& out) {
  std::vector<Tensor> list{out.proposals.seeds.cost, out.proposals.labels};
  for (const auto& layer : out.hypotheses) {
    list.push_back(layer.disparity);
    list.push_back(layer.score);
  }
  for (const auto& map : out.refined) list.push_back(map);
  std::erase_if(list, [](const Tensor& leaf) { return !leaf.defined(); });
  return list;
}

std::vector<std::string> names_of(const Losses& losses) {
  std::vector<std::string> names;
  for (const auto& [name, value] : losses.terms) names.push_back(name);
  return names;
}

TEST(ComputeLosses, WeightsOfTheLastLayers) {
  torch::manual_seed(50);
  auto truth = make_truth();
  for (ModalKind kind : {ModalKind::kSuperpixel, ModalKind::kDense})
    for (bool smooth_l1 : {false, true})
      for (int64_t modules : {0, 1, 2}) {
        auto out = make_output(3, modules, 2);
        LossOptions options;
        options.modals = kind;
        options.smooth_l1 = smooth_l1;
        options.max_disp = 33;
        options.init_weight = 0.7;
        options.proposal_weight = 1.3;
        options.search_weight = 0.6;
        for (int64_t i = 0; i < modules; ++i)
          out.searches.push_back({uniform({kBatch, 2 * kRows, 2 * kCols, 2}, 0, 8),
                                  uniform({kBatch, 2 * kRows, 2 * kCols, 2, 7}, -1, 1)});
        if (modules == 2) out.searches[1].labels = out.searches[0].labels;  // equally many count
        auto losses = compute_losses(out, truth, options);
        auto counted = counted_pixels(truth, 33);
        const bool paper = kind == ModalKind::kSuperpixel;
        const auto& cost = out.proposals.seeds.cost;
        const auto& labels = out.proposals.labels;
        // The initialisation counts all that the planes cover, proposals only what is below
        // max_disp.
        double total = 0.7 * (paper ? init_loss_modals(cost, truth.modals, kCovered)
                                    : init_loss_dense(cost, truth, kCovered))
                                 .item<double>() +
                       1.3 * (paper ? proposal_loss_modals(labels, truth.modals, 33)
                                    : proposal_loss_dense(labels, truth, counted, 33))
                                 .item<double>();
        const double coarse[3] = {1, 1.4, 1.4}, fine[2] = {2, 2};
        std::vector<std::string> names{"init", "proposal", "coarse_0", "coarse_1", "coarse_2"};
        for (std::size_t i = 0; i < 3; ++i)
          total += coarse[i] *
                   coarse_loss(out.hypotheses[i], truth, counted, {smooth_l1}).item<double>();
        double searches = 0;
        for (const auto& search : out.searches)
          searches += search_loss(search, truth, counted).item<double>();
        if (modules > 0) {
          total += 0.6 * searches / static_cast<double>(modules);
          names.insert(names.end(), {"search_place", "search_choice"});
        }
        for (std::size_t i = 0; i < out.refined.size(); ++i) {
          total +=
              fine[i % 2] * fine_loss(out.refined[i], truth, counted, {smooth_l1}).item<double>();
          names.push_back("fine_" + std::to_string(i));
        }
        EXPECT_NEAR(losses.total.item<double>(), total, 1e-9);
        EXPECT_EQ(names_of(losses), names);
        EXPECT_EQ(losses.counts.disparity, counted.sum().item<double>());
        ASSERT_TRUE(losses.epe);
        EXPECT_NEAR(*losses.epe, fine_loss(out.disparity, truth, counted, {}).item<double>(),
                    1e-12);
        EXPECT_FALSE(losses.terms[0].second.requires_grad());
        losses.total.backward();
        for (const auto& leaf : leaves(out)) EXPECT_GT(leaf.grad().abs().sum().item<double>(), 0);
      }
}

TEST(ComputeLosses, MoreLayersThanWeights) {
  torch::manual_seed(51);
  auto truth = make_truth();
  auto out = make_output(3, 2, 3);
  LossOptions options;
  options.init_weight = options.proposal_weight = 0;
  options.coarse_weights = {5, 7};
  options.fine_weights = {2, 3};
  auto losses = compute_losses(out, truth, options);
  const double weights[] = {0, 0, 5, 5, 7, 2, 2, 3, 2, 2, 3};
  ASSERT_EQ(losses.terms.size(), 11u);
  double total = 0;
  for (std::size_t i = 0; i < 11; ++i) total += weights[i] * losses.terms[i].second.item<double>();
  EXPECT_NEAR(losses.total.item<double>(), total, 1e-9);
}

TEST(ComputeLosses, PartsOfANetwork) {
  torch::manual_seed(52);
  auto truth = make_truth();
  LossOptions options;
  auto whole = make_output(2, 1, 1);
  NetworkOutput costs;
  costs.proposals.seeds.cost = whole.proposals.seeds.cost;
  auto only = compute_losses(costs, truth, options);
  EXPECT_EQ(names_of(only), (std::vector<std::string>{"init"}));
  EXPECT_EQ(only.total.item<double>(),
            init_loss_modals(costs.proposals.seeds.cost, truth.modals, kCovered).item<double>());
  EXPECT_FALSE(only.epe);
  costs.proposals.labels = whole.proposals.labels;
  EXPECT_EQ(names_of(compute_losses(costs, truth, options)),
            (std::vector<std::string>{"init", "proposal"}));
  // Frozen proposals: only what follows.
  NetworkOutput late = whole;
  late.proposals = {};
  Truth without = truth;
  without.modals = torch::Tensor();
  EXPECT_EQ(names_of(compute_losses(late, without, options)),
            (std::vector<std::string>{"coarse_0", "coarse_1", "fine_0"}));
  test::error_of(ErrorKind::kUsage, [&] { compute_losses({}, truth, options); });
}

TEST(ComputeLosses, NothingToCount) {
  for (ModalKind kind : {ModalKind::kSuperpixel, ModalKind::kDense})
    for (bool smooth_l1 : {false, true}) {
      auto out = make_output(2, 1, 2);
      Truth truth;
      truth.disparity = torch::full({kBatch, 8 * kRows, 8 * kCols}, kInf, doubles());
      truth.disparity.slice(1, 0, 4).fill_(kNone);
      truth.valid = torch::zeros({kBatch, 8 * kRows, 8 * kCols}, torch::kBool);
      truth.modals = torch::full({kBatch, kRows, kCols, 4}, kNone, doubles());
      LossOptions options;
      options.modals = kind;
      options.smooth_l1 = smooth_l1;
      for (bool beyond : {false, true}) {
        if (beyond) {  // known, but all of it outside of what counts
          truth.valid.fill_(true);
          truth.disparity.fill_(500);
          truth.modals.fill_(500);
        }
        auto losses = compute_losses(out, truth, options);
        EXPECT_EQ(losses.total.item<double>(), 0);
        EXPECT_FALSE(losses.epe);
        EXPECT_EQ(losses.counts.init + losses.counts.proposal + losses.counts.disparity, 0);
        losses.total.backward();
        for (const auto& leaf : leaves(out))
          EXPECT_EQ(leaf.grad().abs().sum().item<double>(), 0) << "NaN or a gradient from nothing";
      }
    }
}

// Images of 13 x 37 pixels in maps of 16 x 40.
TEST(ComputeLosses, PaddingDoesNotCount) {
  torch::manual_seed(53);
  auto truth = make_truth(13, 37);
  auto out = make_output(1, 1, 1);
  Truth padded = truth;
  padded.disparity = torch::full({kBatch, 16, 40}, 4.0, doubles());
  padded.valid = torch::zeros({kBatch, 16, 40}, torch::kBool);
  padded.disparity.slice(1, 0, 13).slice(2, 0, 37).copy_(truth.disparity);
  padded.valid.slice(1, 0, 13).slice(2, 0, 37).copy_(truth.valid);
  for (ModalKind kind : {ModalKind::kSuperpixel, ModalKind::kDense}) {
    LossOptions options;
    options.modals = kind;
    EXPECT_EQ(compute_losses(out, truth, options).total.item<double>(),
              compute_losses(out, padded, options).total.item<double>());
  }
}

// Two processes with half a batch each, dividing by common counts, against one with all of it.
TEST(ComputeLosses, CommonCountsMakeHalvesAWhole) {
  torch::manual_seed(54);
  auto truth = make_truth();
  truth.valid.select(0, 1).slice(1, 4, 32).fill_(false);  // unequal halves
  truth.modals.select(0, 1).slice(1, 1, 4).fill_(kNone);
  auto out = make_output(1, 1, 1);
  for (ModalKind kind : {ModalKind::kSuperpixel, ModalKind::kDense}) {
    LossOptions options;
    options.modals = kind;
    auto whole = compute_losses(out, truth, options);
    ASSERT_NE(whole.counts.init, whole.counts.disparity);
    CountHook common = [&](const LossCounts&) {
      return LossCounts{whole.counts.init / 2, whole.counts.proposal / 2,
                        whole.counts.disparity / 2};
    };
    double mean = 0, plain = 0, pairs = 0;
    for (int64_t b = 0; b < 2; ++b) {
      auto part = [&](const Tensor& t) { return t.narrow(0, b, 1); };
      NetworkOutput half;
      half.proposals.seeds.cost = part(out.proposals.seeds.cost);
      half.proposals.labels = part(out.proposals.labels);
      half.hypotheses = {{part(out.hypotheses[0].disparity), part(out.hypotheses[0].score)}};
      half.refined = {part(out.refined[0])};
      half.refinements = 1;
      half.disparity = part(out.disparity);
      Truth own{part(truth.disparity), part(truth.valid), part(truth.modals)};
      auto losses = compute_losses(half, own, options, common);
      mean += losses.total.item<double>() / 2;
      pairs += losses.counts.proposal;
      plain += compute_losses(half, own, options).total.item<double>() / 2;
    }
    EXPECT_NEAR(mean, whole.total.item<double>(), 1e-10);
    EXPECT_EQ(pairs, whole.counts.proposal);
    EXPECT_GT(std::abs(plain - whole.total.item<double>()), 1e-3) << "the hook is needed";
  }
}

TEST(ComputeLosses, RefusesWhatDoesNotFit) {
  torch::manual_seed(55);
  auto truth = make_truth();
  auto out = make_output(1, 1, 1);
  LossOptions options;
  auto refused = [&](const Truth& bad, const std::string& part) {
    auto text = test::error_of(ErrorKind::kUsage, [&] { compute_losses(out, bad, options); });
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Truth bad = truth;
  bad.modals = torch::Tensor();
  refused(bad, "loss.modals = dense");
  bad.modals = truth.modals.slice(3, 0, 3);
  refused(bad, "[2, 2, 5, 4]");
  refused(make_truth(24, 40), "[2, 24, 40]");
  refused(make_truth(8, 40), "[2, 8, 40]");
  bad = truth;
  bad.valid = truth.valid.to(torch::kFloat);
  refused(bad, "booleans");
  refused({}, "no disparity");
}

TEST(LossOptions, NamesTheBadSetting) {
  auto refused = [](auto change, const std::string& name) {
    LossOptions options;
    change(options);
    auto text = test::error_of(ErrorKind::kUsage, [&] { options.validate(); });
    EXPECT_NE(text.find(name), std::string::npos) << text;
  };
  LossOptions().validate();
  refused([](LossOptions& o) { o.max_disp = 0; }, "max_disp");
  refused([](LossOptions& o) { o.init_weight = -1; }, "init_weight");
  refused([](LossOptions& o) { o.proposal_weight = kNone; }, "proposal_weight");
  refused([](LossOptions& o) { o.coarse_weights.clear(); }, "coarse_weights");
  refused([](LossOptions& o) { o.fine_weights = {1, kInf}; }, "fine_weights");
}

}  // namespace
}  // namespace nmrf::train
