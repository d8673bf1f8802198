// The runtime against the training modules, on their fast kernels and on plain ATen operators,
// stage by stage, and against the tensors of the published PyTorch network.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "network/formula.h"
#include "network/formula_images.h"
#include "network/golden.h"
#include "network/model_file.h"
#include "network/network_run.h"
#include "support/support.h"
#include "train/model/golden.h"
#include "train/model/switches.h"
#include "train/model/weights.h"
#include "train/ops/dispatch.h"
#include "weights/safetensors.h"

namespace nmrf::train {
namespace {

namespace fs = std::filesystem;
using Tensor = torch::Tensor;
using nmrf::test::KeptTrace;
using nmrf::test::NetworkRun;

fs::path golden() { return test::shared_folder() / "golden"; }

Tensor to_tensor(const Image& image) {
  return torch::from_blob(const_cast<std::uint8_t*>(image.data()),
                          {1, image.height(), image.width(), 3}, torch::kByte)
      .permute({0, 3, 1, 2})
      .to(torch::kFloat)
      .contiguous();
}

struct Comparison {
  KeptTrace trace;
  NetworkRun runtime;
  train::Trace module_trace;
  NetworkOutput module;
};

Comparison compare(const ModelOptions& options, int width, int height, bool fast, bool guided) {
  torch::NoGradGuard no_grad;
  ops::FastGuard guard(fast);
  Comparison result;
  FormulaParameters formula;
  const nmrf::Network runtime(formula, options);
  Network modules = make_network(options, 0);
  fill_by_formula(modules);
  modules->eval();
  const auto [left, right] = nmrf::test::formula_images(width, height);
  ForwardOptions how;
  how.trace = &result.module_trace;
  const auto a = pad_images(to_tensor(left), options.alignment()),
             b = pad_images(to_tensor(right), options.alignment());
  FloatMap guide;
  if (guided) {
    guide = FloatMap(static_cast<int>(a.size(3)), static_cast<int>(a.size(2)));
    for (int y = 0; y < guide.height(); ++y)
      for (int x = 0; x < guide.width(); ++x)
        guide.at(y, x) = static_cast<float>(8 + (3 * x + 5 * y) % 24);
    how.guide = torch::from_blob(guide.data(), {1, guide.height(), guide.width()}).clone();
  }
  result.module = modules->forward(a, b, how);
  result.runtime = nmrf::test::run_network(runtime, left, right, 2, &result.trace, guide);
  return result;
}

// Stages before the winners are compared value by value; a winner may flip only where its lead is
// below 1e-4, and the map behind it is compared where none did.
void expect_equal(const Comparison& c, const std::string& what) {
  SCOPED_TRACE(what);
  auto seeds = torch::from_blob(const_cast<int64_t*>(c.runtime.seeds.data()),
                                c.module.proposals.seeds.seeds.sizes(), torch::kLong);
  ASSERT_TRUE(torch::equal(seeds, c.module.proposals.seeds.seeds)) << "seeds differ";
  int compared = 0;
  double largest = 0;
  for (const auto& [name, entry] : c.trace.entries) {
    if (name.starts_with("refine_layer") || name == "refine_tgt" || name == "refine_delta" ||
        name == "refine_embed0" || name == "disp_curr" || name == "coarse_disp8")
      continue;
    auto found = c.module_trace.find(name);
    ASSERT_NE(found, c.module_trace.end()) << name;
    const double difference =
        (test::as_module(name, entry, found->second) - found->second).abs().max().item<double>();
    EXPECT_LT(difference, name.starts_with("infer_score") ? 1e-3 : 5e-4) << name;
    largest = std::max(largest, difference);
    ++compared;
  }
  EXPECT_GE(compared, 20);
  const auto& score = c.module.hypotheses.back().score;
  auto close = torch::zeros({c.module.disparity.size(1), c.module.disparity.size(2)}, torch::kBool);
  if (score.size(3) > 1) {
    auto lead = std::get<0>(score.topk(2, 3));
    close = (lead.select(3, 0) - lead.select(3, 1))
                .squeeze(0)
                .lt(1e-4)
                .view({score.size(1), score.size(2), 8, 8})
                .permute({0, 2, 1, 3})
                .reshape(close.sizes());
  }
  const auto& winners = c.trace.entries.at("coarse_disp8");
  auto ours = torch::from_blob(const_cast<float*>(winners.values.data()), close.sizes());
  auto flipped = (ours - c.module.winners.disparity[0]).abs() > 1e-3;
  EXPECT_EQ((flipped & ~close).sum().item<int64_t>(), 0) << "winners that flipped without a tie";
  if (flipped.any().item<bool>()) return;  // refinement spreads a flip by pixels
  auto map = torch::from_blob(const_cast<float*>(c.runtime.disparity.data()), close.sizes());
  const auto difference = (map - c.module.disparity[0]).abs();
  EXPECT_LT(difference.max().item<double>(), 5e-3);
  EXPECT_LT(difference.median().item<double>(), 2e-4);
}

// A module's result in the layout of the runtime's record.
Tensor as_record(const std::string& name, const KeptTrace::Entry& entry, const Tensor& module) {
  const auto& s = entry.shape;
  if (name == "cost_volume") return module.squeeze(0).permute({2, 3, 1, 0}).contiguous();
  const bool map = s.count == 0 && module.dim() == 4 && module.size(1) == s.channels &&
                   module.size(2) == s.height && module.size(3) == s.width;
  return map ? module.squeeze(0).permute({1, 2, 0}).contiguous() : module.contiguous();
}

// The golden tensors of tests/network are what the modules on plain operators compute today.
TEST(Golden, AreThoseOfTheModules) {
  const bool record = std::getenv("NMRF_RECORD") != nullptr;
  for (const auto& one : nmrf::test::golden_cases()) {
    SCOPED_TRACE(one.name);
    const Comparison c = compare(one.options, one.width, one.height, /*fast=*/false, false);
    std::map<std::string, std::vector<float>> golden;
    const auto keep = [&](const std::string& name, const Tensor& values) {
      const auto flat = values.to(torch::kFloat).contiguous();
      golden[name] = nmrf::test::golden_values(name, flat.data_ptr<float>(),
                                               static_cast<std::size_t>(flat.numel()));
    };
    for (const auto& [name, entry] : c.trace.entries)
      if (auto found = c.module_trace.find(name); found != c.module_trace.end())
        keep(name, as_record(name, entry, found->second));
    keep("disparity", c.module.disparity);
    keep("seeds", c.module.proposals.seeds.seeds);
    if (record) {
      std::vector<StoredTensor> tensors;
      for (const auto& [name, values] : golden)
        tensors.push_back({name,
                           DType::kF32,
                           {static_cast<std::int64_t>(values.size())},
                           {reinterpret_cast<const std::uint8_t*>(values.data()),
                            values.size() * sizeof(float)}});
      write_safetensors(golden_file(one), tensors,
                        {{"about", "modules on plain operators, weights and images by formula"}});
    }
    const TensorFile file = read_tensor_file(golden_file(one));
    EXPECT_EQ(file.tensors.size(), golden.size());
    for (const StoredTensor& stored : file.tensors) {
      ASSERT_TRUE(golden.contains(stored.name)) << stored.name;
      const auto then = to_floats(stored), now = golden[stored.name];
      ASSERT_EQ(then.size(), now.size()) << stored.name;
      double difference = 0;
      for (std::size_t i = 0; i < now.size(); ++i)
        difference = std::max(difference, static_cast<double>(std::abs(then[i] - now[i])));
      EXPECT_LT(difference, nmrf::test::golden_tolerance(one, stored.name)) << stored.name;
    }
  }
}

class RuntimeParity : public testing::TestWithParam<bool> {};

TEST_P(RuntimeParity, Presets) {
  for (const auto& [width, height] : std::vector<std::pair<int, int>>{{96, 64}, {131, 50}})
    for (const char* preset : {"paper", "swin"})
      expect_equal(compare(preset_options(preset), width, height, GetParam(), false), preset);
}

// With few frequencies: the 15th turns a rounding of a label into 400 times as much.
TEST_P(RuntimeParity, EverySwitch) {
  for (auto [name, options] : every_switch()) {
    options.encoding_frequencies = 4;
    expect_equal(compare(options, 75, 50, GetParam(), false), name);
  }
}

TEST_P(RuntimeParity, Guided) {
  ModelOptions options = preset_options("paper");
  options.fill_seeds = options.subpixel_seeds = true;
  options.encoding_frequencies = 4;
  expect_equal(compare(options, 96, 64, GetParam(), true), "guided");
}

INSTANTIATE_TEST_SUITE_P(PlainAndFast, RuntimeParity, testing::Bool(),
                         [](const auto& info) { return info.param ? "fast" : "plain"; });

// Every parameter of the modules and of the runtime, by name and shape.
TEST(RuntimeParity, Parameters) {
  auto switches = every_switch();
  switches.emplace_back("paper", preset_options("paper"));
  switches.emplace_back("swin", preset_options("swin"));
  switches.emplace_back("fast", preset_options("fast"));
  for (const auto& [name, options] : switches) {
    SCOPED_TRACE(name);
    std::map<std::string, std::vector<int64_t>> ours, theirs;
    for (const auto& spec : parameters_of(options)) ours[spec.name] = spec.shape;
    for (const auto& item : make_network(options, 0)->named_parameters())
      theirs[item.key()] = item.value().sizes().vec();
    EXPECT_EQ(ours, theirs);
  }
}

TEST(RuntimeParity, PublishedTensors) {
  NMRF_NEED_SHARED("golden/96x160");
  const nmrf::LoadedModel model = nmrf::load_model(golden() / "nmrf_random.pth");
  auto load = [&](const std::string& name) {
    return test::load_npy(golden() / "96x160" / (name + ".npy"));
  };
  KeptTrace trace;
  const auto run = nmrf::test::run_network(*model.network, test::to_image(load("left")[0]),
                                           test::to_image(load("right")[0]), 2, &trace);
  auto seeds =
      torch::from_blob(const_cast<int64_t*>(run.seeds.data()), {1, 12, 20, 4}, torch::kLong);
  const auto order = test::label_order(seeds, load("label_seeds"));
  int compared = 0;
  for (const auto& [name, entry] : trace.entries) {
    const auto theirs = load(name);
    auto ours = test::as_module(name, entry, theirs);
    if (entry.shape.count == 4 && ours.size(2) == 20) ours = test::reorder_labels(ours, order);
    if (entry.shape.count == 4 && ours.size(2) != 20) {  // the inner cells of the padded grid
      WindowPadding padding(12, 20, 6);
      auto inner = padding.crop(ours);
      inner.copy_(test::reorder_labels(inner.clone(), order));
    }
    if (name == "labels" || name == "prop_head") ours = test::reorder_labels(ours, order);
    // The logits are embeddings times weights four times as large.
    const double tolerance = name.starts_with("refine_")    ? 5e-4
                             : name == "infer_score_logits" ? 2e-4
                                                            : 1e-4;
    EXPECT_LT(test::report_difference(name, ours, theirs), tolerance) << name;
    ++compared;
  }
  EXPECT_GE(compared, 45);
  auto map = torch::from_blob(const_cast<float*>(run.disparity.data()), {1, 96, 160});
  const auto difference = (map - load("disp")).abs();
  EXPECT_LT(difference.max().item<double>(), 5e-3);
  EXPECT_LT(difference.median().item<double>(), 2e-4);
}

TEST(RuntimeParity, PublishedMaps) {
  NMRF_NEED_SHARED("golden/192x320");
  const nmrf::LoadedModel model = nmrf::load_model(golden() / "nmrf_random.pth");
  for (const char* name : {"192x320", "b2_128x192", "375x621"}) {
    SCOPED_TRACE(name);
    auto load = [&](const std::string& file) {
      return test::load_npy(golden() / name / (file + ".npy"));
    };
    const auto left = load("left"), right = load("right"), theirs = load("disp");
    for (int64_t i = 0; i < left.size(0); ++i) {
      KeptTrace trace;
      const auto run = nmrf::test::run_network(*model.network, test::to_image(left[i]),
                                               test::to_image(right[i]), 2, &trace);
      auto map = torch::from_blob(const_cast<float*>(run.disparity.data()),
                                  {1, run.disparity.height(), run.disparity.width()})
                     .narrow(1, 0, left.size(1))
                     .narrow(2, 0, left.size(2));
      const auto& logits = trace.entries.at("infer_score_logits");
      auto score = torch::from_blob(const_cast<float*>(logits.values.data()),
                                    {1, logits.shape.height, logits.shape.width, logits.shape.count,
                                     logits.shape.channels}) /
                   4;
      const auto& start = trace.entries.at("disp_curr");
      const auto their_start = load("disp_curr")[i].unsqueeze(0);
      auto our_start =
          torch::from_blob(const_cast<float*>(start.values.data()), their_start.sizes());
      test::expect_equal_but_for_ties(name, {map, our_start}, {theirs[i].unsqueeze(0), their_start},
                                      test::winner_lead(score));
    }
  }
}

}  // namespace
}  // namespace nmrf::train
