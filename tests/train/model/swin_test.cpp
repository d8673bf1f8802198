// The Swin-T encoder as modules: gradients, stochastic depth, initialisation, pretrained weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "network/formula.h"
#include "support/support.h"
#include "train/model/weights.h"
#include "train/ops/deformable.h"
#include "train/ops/dispatch.h"

namespace nmrf::train {
namespace {

using Tensor = torch::Tensor;

SwinEncoder encoder_by_formula() {
  SwinEncoder encoder(ModelOptions::swin_features);
  FormulaParameters formula;
  torch::NoGradGuard no_grad;
  for (auto& item : encoder->named_parameters()) {
    auto values = formula.take("image_encoder." + item.key(), item.value().sizes().vec());
    item.value().copy_(torch::from_blob(values.data(), item.value().sizes()));
  }
  return encoder;
}

// The gradient of sum(f(inputs) * direction) against differences, along a random direction of every
// input.
void expect_gradients(std::vector<Tensor> inputs,
                      const std::function<Tensor(const std::vector<Tensor>&)>& f) {
  for (auto& input : inputs) input = input.to(torch::kDouble).detach().requires_grad_();
  const Tensor weights = torch::randn_like(f(inputs)).detach();
  auto loss = [&] { return (f(inputs) * weights).sum(); };
  loss().backward();
  torch::NoGradGuard no_grad;
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto direction = torch::randn_like(inputs[i]);
    const double slope = (inputs[i].grad() * direction).sum().item<double>();
    inputs[i].add_(direction, kStep);
    const double above = loss().item<double>();
    inputs[i].add_(direction, -2 * kStep);
    const double below = loss().item<double>();
    inputs[i].add_(direction, kStep);
    const double measured = (above - below) / (2 * kStep);
    EXPECT_NEAR(slope, measured, 1e-5 * std::max(1.0, std::abs(measured))) << "input " << i;
    EXPECT_GT(std::abs(measured), 1e-3) << "input " << i << " has no effect";
  }
}

TEST(DeformableAttention, Gradients) {
  torch::manual_seed(1);
  // Offsets that stay away from whole pixels, where the derivative jumps.
  expect_gradients(
      {torch::randn({2, 3, 4, 3 * 5}), 0.3 * torch::randn({2, 5, 6, 3 * 2 * 2}),
       torch::randn({2, 5, 6, 3 * 2})},
      [](const std::vector<Tensor>& x) { return ops::deformable_attention(x[0], x[1], x[2], 3); });
}

TEST(DeformableAttention, FastEqualsPlain) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(2);
  for (const auto& [height, width, depth] : {std::tuple{3, 4, 8}, {1, 1, 3}, {7, 5, 19}}) {
    const auto value = torch::randn({2, height, width, 8 * depth}),
               offsets = 3 * torch::randn({2, 9, 11, 8 * 4 * 2}),
               weights = torch::randn({2, 9, 11, 8 * 4});
    const auto fast = ops::deformable_attention(value, offsets, weights, 8);
    ops::FastGuard plain(false);
    const auto slow = ops::deformable_attention(
        value.to(torch::kDouble), offsets.to(torch::kDouble), weights.to(torch::kDouble), 8);
    EXPECT_LT((fast - slow).abs().max().item<double>(), 2e-5);
  }
}

// Every kind of parameter, in double precision; sizes that pad the windows of every stage.
TEST(SwinEncoder, GradientsByDifferences) {
  SwinEncoder encoder = encoder_by_formula();
  encoder->to(torch::kDouble);
  torch::manual_seed(3);
  const auto image = (255 * torch::rand({1, 3, 32, 64})).to(torch::kDouble);
  const auto weights = torch::randn({1, 128, 8, 16}, torch::kDouble);
  auto loss = [&] { return (encoder->forward(image).fine * weights).sum(); };
  loss().backward();
  torch::NoGradGuard no_grad;
  std::set<std::string> seen;
  for (const std::string kind :
       {"patch_embed.", "norm1", "attn.qkv.", "relative_position_bias_table", "attn.proj.", "norm2",
        "mlp.", "downsample.", "stem.", "query_norm", "feat_norm", "sampling_offsets",
        "attention_weights", "value_proj", "output_proj", "ffn", "fcs."}) {
    std::vector<std::pair<Tensor, Tensor>> moved;  // parameter, direction
    double slope = 0;
    for (auto& item : encoder->named_parameters()) {
      if (item.key().find(kind) == std::string::npos) continue;
      seen.insert(item.key());
      moved.emplace_back(
          item.value(), torch::randn_like(item.value()) * item.value().abs().mean().item<double>());
      slope += (item.value().grad() * moved.back().second).sum().item<double>();
    }
    constexpr double kStep = 1e-7;
    auto move = [&](double by) {
      for (auto& [parameter, direction] : moved) parameter.add_(direction, by);
    };
    move(kStep);
    const double above = loss().item<double>();
    move(-2 * kStep);
    const double below = loss().item<double>();
    move(kStep);
    const double measured = (above - below) / (2 * kStep);
    EXPECT_NEAR(slope, measured, 1e-4 * std::max(1.0, std::abs(measured))) << kind;
    EXPECT_GT(std::abs(measured), 1e-3) << kind << " has no effect";
  }
  EXPECT_EQ(seen.size(), encoder->parameters().size());
}

// What training uses on CPUs: the fast kernels in float against the plain operators in double.
TEST(SwinEncoder, FastGradientsEqualPlainOnes) {
  torch::manual_seed(4);
  const auto image = 255 * torch::rand({2, 3, 32, 64});
  const auto weights = torch::randn({2, 128, 8, 16});
  auto gradients = [&](bool fast, torch::ScalarType type) {
    ops::FastGuard guard(fast);
    SwinEncoder encoder = encoder_by_formula();
    encoder->to(type);
    auto maps = encoder->forward(image.to(type));
    (maps.fine * weights.to(type)).sum().backward();
    std::map<std::string, Tensor> result{{"fine", maps.fine.detach().to(torch::kDouble)}};
    for (auto& item : encoder->named_parameters())
      result[item.key()] = item.value().grad().to(torch::kDouble);
    return result;
  };
  const auto fast = gradients(true, torch::kFloat), plain = gradients(false, torch::kDouble);
  double largest = 0;
  for (const auto& [name, expected] : plain) {
    const double scale = std::max(expected.norm().item<double>(), 1e-3),
                 difference = (fast.at(name) - expected).norm().item<double>() / scale;
    largest = std::max(largest, difference);
    EXPECT_LT(difference, name == "fine" ? 1e-5 : 2e-3) << name;
  }
  std::cout << "  largest relative difference of a gradient: " << largest << "\n";
}

TEST(StochasticDepth, DropsWholeBranchesPerImage) {
  StochasticDepth depth(5);
  const auto branch = torch::ones({4000, 2, 1, 1});
  const auto thinned = depth.thin(branch, 0.4);
  EXPECT_TRUE(torch::equal(thinned.select(1, 0), thinned.select(1, 1))) << "per image";
  const auto kept = thinned.select(1, 0).gt(0);
  EXPECT_NEAR(kept.to(torch::kDouble).mean().item<double>(), 0.6, 0.03);
  EXPECT_NEAR(thinned.max().item<double>(), 1 / 0.6, 1e-6);
  EXPECT_TRUE(torch::equal(depth.thin(branch, 0), branch));
}

TEST(StochasticDepth, FollowsFromTheSeedAndOnlyInTraining) {
  Network network = make_network(preset_options("swin"), 1);
  torch::manual_seed(6);
  const auto left = 255 * torch::rand({1, 3, 64, 64}), right = 255 * torch::rand({1, 3, 64, 64});
  auto map = [&](uint64_t seed) {
    return network->features(left, right, {.seed = seed}).first.fine.detach();
  };
  network->train();
  const auto first = map(1);
  EXPECT_TRUE(torch::equal(first, map(1)));
  EXPECT_FALSE(torch::equal(first, map(2)));
  network->eval();
  EXPECT_TRUE(torch::equal(map(1), map(2)));
}

TEST(SwinEncoder, PublishedInitialisation) {
  Network network = make_network(preset_options("swin"), 1);
  auto parameters = network->encoder()->named_parameters();
  const std::string attn = "neck.extractors.2.attn.";
  EXPECT_EQ(parameters[attn + "attention_weights.weight"].abs().max().item<float>(), 0);
  EXPECT_EQ(parameters[attn + "sampling_offsets.weight"].abs().max().item<float>(), 0);
  // Head 1 looks along the diagonal, head 4 to the left; point 2 three pixels away.
  const auto bias = parameters[attn + "sampling_offsets.bias"];
  auto at = [&](int64_t head, int64_t point, int64_t axis) {
    return bias[(head * 4 + point) * 2 + axis].item<float>();
  };
  EXPECT_NEAR(at(1, 2, 0), 3, 1e-5);
  EXPECT_NEAR(at(1, 2, 1), 3, 1e-5);
  EXPECT_NEAR(at(4, 2, 0), -3, 1e-5);
  EXPECT_NEAR(at(4, 2, 1), 0, 1e-5);
  auto deviation = [&](const std::string& name) { return parameters[name].std().item<double>(); };
  EXPECT_NEAR(deviation("backbone.layers.2.blocks.0.mlp.fc1.weight"), 0.02, 1e-3);
  EXPECT_NEAR(deviation("backbone.layers.3.blocks.0.attn.relative_position_bias_table"), 0.02,
              2e-3);
  EXPECT_NEAR(deviation("neck.extractors.0.ffn.dwconv.dwconv.weight"), std::sqrt(2.0 / 9), 0.1);
  EXPECT_NEAR(deviation("neck.stem.stem.3.weight"), std::sqrt(2.0 / (9 * 64)), 3e-3);
  EXPECT_NEAR(deviation(attn + "value_proj.weight"), std::sqrt(2.0 / (128 + 64)), 5e-3);
  EXPECT_EQ(parameters["neck.stem.fc.bias"].abs().max().item<float>(), 0);
}

// A classifier's file: names without the prefix, a head and masks that are dropped.
TEST(SwinEncoder, StartsFromPretrainedWeights) {
  Network network = make_network(preset_options("swin"), 1);
  FormulaParameters formula;
  std::vector<std::vector<float>> values;
  TensorFile file;
  auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                 const std::string& formula_name) {
    values.push_back(formula.take(formula_name, shape));
    file.tensors.push_back({name,
                            DType::kF32,
                            shape,
                            {reinterpret_cast<const std::uint8_t*>(values.back().data()),
                             values.back().size() * sizeof(float)}});
  };
  const std::string prefix = "image_encoder.backbone.";
  for (const auto& spec : parameters_of(preset_options("swin")))
    if (spec.name.starts_with(prefix)) add(spec.name.substr(prefix.size()), spec.shape, spec.name);
  for (const char* name : {"norm.weight", "norm.bias", "head.bias", "layers.0.blocks.1.attn_mask",
                           "layers.0.blocks.0.attn.relative_position_index"})
    add(name, {768}, name);
  const LoadReport report = load_initial_weights(network, file, "imagenet.pth");
  EXPECT_EQ(report.used.size(), 169u);
  EXPECT_TRUE(report.unexpected.empty()) << report.summary();
  const std::string name = prefix + "layers.1.blocks.0.attn.proj.weight";
  const auto expected = formula.take(name, {192, 192});
  const auto stored = network->named_parameters()[name].contiguous();
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), stored.data_ptr<float>()));
  // Another Swin does not fit.
  file.tensors[4].name = "layers.0.blocks.7.norm1.weight";
  const std::string message = test::error_of(
      ErrorKind::kModel, [&] { load_initial_weights(network, file, "imagenet.pth"); });
  EXPECT_NE(message.find("layers.0.blocks.7"), std::string::npos) << message;
}

}  // namespace
}  // namespace nmrf::train
