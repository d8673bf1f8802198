// The network with a Swin-T backbone against tensors that the authors' code computed in PyTorch for
// the same weights and images: the modules, plain and fast, and the runtime. Needs the reference
// data (see tests/support/support.h).
#include <gtest/gtest.h>

#include <iostream>

#include "network/formula.h"
#include "network/network_run.h"
#include "support/support.h"
#include "train/model/golden.h"
#include "train/model/weights.h"
#include "train/ops/dispatch.h"

namespace nmrf::train {
namespace {

namespace fs = std::filesystem;
using Tensor = torch::Tensor;

const char* const kCases[] = {"swin_96x160", "swin_100x180"};

fs::path golden() { return test::shared_folder() / "golden"; }

Tensor load(const std::string& folder, const std::string& name) {
  return test::load_npy(golden() / folder / (name + ".npy"));
}

// A tensor of the encoder or of what follows from it before the labels.
bool of_encoder(const std::string& name) {
  return name.starts_with("swin_") || name.starts_with("neck_") || name.starts_with("fmap") ||
         name == "image_norm";
}

// How close a stage must come, and its median.
struct Closeness {
  double largest, median;
};
Closeness closeness(const std::string& name) {
  if (of_encoder(name)) return {3e-5, 3e-6};
  if (name == "labels") return {1e-5, 1e-5};
  if (name.starts_with("refine_")) return {5e-4, 2e-4};
  if (name == "infer_score_logits") return {3e-4, 1e-4};
  return {1e-4, 1e-4};
}

void expect_close(const std::string& name, const Tensor& ours, const Tensor& theirs) {
  const Closeness most = closeness(name);
  EXPECT_LE(test::report_difference(name, ours, theirs), most.largest) << name;
  if (ours.sizes() == theirs.sizes()) {
    EXPECT_LE((ours - theirs).abs().median().item<double>(), most.median) << name;
  }
}

// map: padded, theirs: of the images.
void expect_disparity(const Tensor& map, const Tensor& theirs) {
  const auto ours = map.narrow(1, 0, theirs.size(1)).narrow(2, 0, theirs.size(2));
  EXPECT_LT(test::report_difference("disp", ours, theirs), 5e-3);
  const double median = (ours - theirs).abs().median().item<double>();
  std::cout << "  disp: median difference " << median << "\n";
  EXPECT_LT(median, 3e-4);
}

// A tensor with the order of the labels of a cell as the reference has it. Grids that are padded
// for windows are no part of the reference.
Tensor ordered(const std::string& name, const Tensor& ours, const Tensor& order) {
  const bool labelled = name == "labels" || name == "prop_head" || ours.dim() == 5;
  if (!labelled || ours.size(3) != order.size(3) || name == "cost_volume") return ours;
  return test::reorder_labels(ours, order);
}

class SwinParity : public testing::TestWithParam<bool> {};

TEST_P(SwinParity, Modules) {
  NMRF_NEED_SHARED("golden/swin_96x160");
  torch::NoGradGuard no_grad;
  ops::FastGuard guard(GetParam());
  Network network = make_network(preset_options("swin"), 0);
  fill_by_formula(network);
  network->eval();
  for (const std::string folder : kCases) {
    SCOPED_TRACE(folder);
    std::cout << " " << folder << "\n";
    Trace trace;
    ForwardOptions how;
    how.trace = &trace;
    const auto out = network->forward(pad_images(test::to_images(load(folder, "left")), 32),
                                      pad_images(test::to_images(load(folder, "right")), 32), how);
    const auto order = test::label_order(trace.at("label_seeds"), load(folder, "label_seeds"));
    int compared = 0;
    for (const auto& [name, tensor] : trace) {
      if (name == "wta_index" || name == "label_seeds" ||
          !fs::exists(golden() / folder / (name + ".npy")))
        continue;
      auto ours = ordered(name, tensor, order);
      const auto theirs = load(folder, name);
      if (name.starts_with("refine_") && ours.dim() == theirs.dim() + 1) ours = ours.squeeze(3);
      expect_close(name, ours, theirs);
      ++compared;
    }
    EXPECT_GE(compared, folder == kCases[0] ? 60 : 13);
    expect_disparity(out.disparity, load(folder, "disp"));
  }
}

INSTANTIATE_TEST_SUITE_P(PlainAndFast, SwinParity, testing::Bool(),
                         [](const auto& info) { return info.param ? "fast" : "plain"; });

TEST(SwinParity, Runtime) {
  NMRF_NEED_SHARED("golden/swin_96x160");
  FormulaParameters formula;
  const nmrf::Network network(formula, preset_options("swin"));
  for (const std::string folder : kCases) {
    SCOPED_TRACE(folder);
    std::cout << " " << folder << "\n";
    nmrf::test::KeptTrace trace;
    const auto run = nmrf::test::run_network(network, test::to_image(load(folder, "left")[0]),
                                             test::to_image(load(folder, "right")[0]), 2, &trace);
    const auto their_seeds = load(folder, "label_seeds");
    const auto seeds =
        torch::from_blob(const_cast<int64_t*>(run.seeds.data()), their_seeds.sizes(), torch::kLong);
    const auto order = test::label_order(seeds, their_seeds);
    int compared = 0;
    for (const auto& [name, entry] : trace.entries) {
      if (!fs::exists(golden() / folder / (name + ".npy"))) continue;
      const auto theirs = load(folder, name);
      expect_close(name, ordered(name, test::as_module(name, entry, theirs), order), theirs);
      ++compared;
    }
    EXPECT_GE(compared, folder == kCases[0] ? 55 : 12);
    expect_disparity(torch::from_blob(const_cast<float*>(run.disparity.data()),
                                      {1, run.disparity.height(), run.disparity.width()}),
                     load(folder, "disp"));
  }
}

}  // namespace
}  // namespace nmrf::train
