// The network against tensors that the published PyTorch network computed for the same weights and
// images. Needs the reference data (see tests/support/support.h).
#include <gtest/gtest.h>

#include <algorithm>

#include "network/formula.h"
#include "support/support.h"
#include "train/model/golden.h"
#include "train/model/weights.h"
#include "train/ops/cost_volume.h"
#include "train/ops/dispatch.h"
#include "weights/tensor_file.h"

namespace nmrf::train {
namespace {

namespace fs = std::filesystem;

fs::path golden() { return test::shared_folder() / "golden"; }

Network& random_network() {
  static Network network = [] {
    TensorFile file = read_tensor_file(golden() / "nmrf_random.pth");
    Network loaded = make_network(options_of(file, "nmrf_random.pth"), 0);
    LoadReport report = load_weights(loaded, file);
    EXPECT_TRUE(report.complete()) << report.summary();
    EXPECT_TRUE(report.unexpected.empty()) << report.summary();
    EXPECT_EQ(report.used.size(), 340u);
    loaded->eval();
    return loaded;
  }();
  return network;
}

struct Case {
  torch::Tensor left, right;
  Trace trace;
  NetworkOutput out;
  torch::Tensor disparity;
};

Case run(const std::string& name, bool fast) {
  torch::NoGradGuard no_grad;
  ops::FastGuard guard(fast);
  Case result;
  result.left = test::to_images(test::load_npy(golden() / name / "left.npy"));
  result.right = test::to_images(test::load_npy(golden() / name / "right.npy"));
  ForwardOptions how;
  how.trace = &result.trace;
  result.out = random_network()->forward(pad_images(result.left), pad_images(result.right), how);
  result.disparity =
      result.out.disparity.narrow(1, 0, result.left.size(2)).narrow(2, 0, result.left.size(3));
  return result;
}

void expect_disparity(const torch::Tensor& ours, const torch::Tensor& theirs) {
  double largest = test::report_difference("disp", ours, theirs);
  double median = (ours - theirs).abs().median().item<double>();
  std::cout << "  disp: median difference " << median << "\n";
  EXPECT_LT(largest, 5e-3);
  EXPECT_LT(median, 2e-4);
}

// Winners that differ between two runs of one network. A flip counts as rounding only where the two
// best scores lie within 1e-5 of each other; one flipped pixel moves the refinement around it by
// pixels.
int64_t rounding_flips(const NetworkOutput& a, const NetworkOutput& b) {
  auto lead = std::get<0>(a.hypotheses.back().score.topk(2, 3));  // [B, h, w, 2, 64]
  auto margin = ops::unfold_patches(lead.select(3, 0) - lead.select(3, 1), 8);
  auto flipped = a.winners.index != b.winners.index;
  EXPECT_EQ((flipped & (margin > 1e-5)).sum().item<int64_t>(), 0) << "flips that are no rounding";
  return flipped.sum().item<int64_t>();
}

class StageParity : public testing::TestWithParam<bool> {};

TEST_P(StageParity, EveryStage) {
  NMRF_NEED_SHARED("golden/96x160");
  Case ours = run("96x160", GetParam());
  auto load = [&](const std::string& name) {
    return test::load_npy(golden() / "96x160" / (name + ".npy"));
  };
  auto order = test::label_order(ours.trace.at("label_seeds"), load("label_seeds"));
  // The window-padded grid of the inference layers: order the real cells, leave the padding.
  auto reordered = [&](const std::string& name) {
    auto tensor = ours.trace.at(name);
    if (tensor.dim() < 4 || tensor.size(3) != 4 || name == "cost_volume") return tensor;
    if (tensor.size(2) == order.size(2)) return test::reorder_labels(tensor, order);
    WindowPadding padding(order.size(1), order.size(2), 6);
    auto result = tensor.clone();
    padding.crop(result).copy_(test::reorder_labels(padding.crop(tensor), order));
    return result;
  };
  const std::vector<std::string> skip = {"wta_index", "label_seeds"};
  int compared = 0;
  for (const auto& [name, tensor] : ours.trace) {
    if (std::find(skip.begin(), skip.end(), name) != skip.end()) continue;
    ASSERT_TRUE(fs::exists(golden() / "96x160" / (name + ".npy"))) << name;
    auto mine = reordered(name), theirs = load(name);
    if (name.rfind("refine_", 0) == 0 && mine.dim() == 5) mine = mine.squeeze(3);
    // The logits are embeddings times weights four times as large.
    const double tolerance = name.rfind("refine_", 0) == 0  ? 5e-4
                             : name == "infer_score_logits" ? 2e-4
                                                            : 1e-4;
    EXPECT_LT(test::report_difference(name, mine, theirs), tolerance) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 50);
  expect_disparity(ours.disparity, load("disp"));
}

INSTANTIATE_TEST_SUITE_P(PlainAndFast, StageParity, testing::Bool(),
                         [](const auto& info) { return info.param ? "fast" : "plain"; });

// Seeds and disparity of a case, plain and fast.
void compare(const std::string& name) {
  auto load = [&](const std::string& file) {
    return test::load_npy(golden() / name / (file + ".npy"));
  };
  for (bool fast : {false, true}) {
    const Case ours = run(name, fast);
    test::label_order(ours.trace.at("label_seeds"), load("label_seeds"));
    const auto theirs = load("disp_curr");
    test::expect_equal_but_for_ties(
        name, {ours.disparity, ours.trace.at("disp_curr").view(theirs.sizes())},
        {load("disp"), theirs}, test::winner_lead(ours.out.hypotheses.back().score));
  }
}

TEST(Parity, BatchOfTwo) {
  NMRF_NEED_SHARED("golden/b2_128x192");
  compare("b2_128x192");
}

TEST(Parity, LargerImage) {
  NMRF_NEED_SHARED("golden/192x320");
  compare("192x320");
}

TEST(Parity, PaddedImage) {
  NMRF_NEED_SHARED("golden/375x621");
  compare("375x621");
}

TEST(Parity, TopModalsWithTies) {
  NMRF_NEED_SHARED("golden/unit_topk");
  auto folder = golden() / "unit_topk";
  auto suppressed = ops::suppress_non_modals(test::load_npy(folder / "prob.npy"));
  EXPECT_EQ((suppressed != test::load_npy(folder / "prob_nms.npy")).sum().item<int64_t>(), 0);
  auto seeds = ops::top_modals(suppressed, 4);
  EXPECT_EQ((seeds != test::load_npy(folder / "seeds_torch_cpu.npy")).sum().item<int64_t>(), 0);
}

TEST(Parity, FormulaWeights) {
  NMRF_NEED_SHARED("golden/formula");
  torch::NoGradGuard no_grad;
  Network network = make_network(preset_options("paper"), 0);
  fill_by_formula(network);
  network->eval();
  const std::vector<std::pair<int64_t, int64_t>> sizes = {
      {64, 96}, {50, 131}, {48, 96}, {40, 120}, {32, 64}};
  for (auto [height, width] : sizes) {
    SCOPED_TRACE(testing::Message() << height << "x" << width);
    auto stored = [&](const std::string& name) {
      return test::load_npy(golden() / "formula" /
                            fmt::format("{}_{}x{}.npy", name, height, width));
    };
    auto [left, right] = test::formula_pair(height, width);
    NetworkOutput plain;
    for (bool fast : {false, true}) {
      ops::FastGuard guard(fast);
      auto out = network->forward(pad_images(left), pad_images(right));
      auto seeds = out.proposals.seeds.seeds;
      test::label_order(seeds, stored("seeds").view(seeds.sizes()));
      auto ours = out.disparity.narrow(1, 0, height).narrow(2, 0, width).squeeze(0);
      if (!fast) plain = out;
      if (int64_t flips = rounding_flips(plain, out); flips == 0)
        expect_disparity(ours, stored("disp"));
      else
        EXPECT_LE(flips, 2) << "near-ties that fell the other way";
    }
  }
}

}  // namespace
}  // namespace nmrf::train
