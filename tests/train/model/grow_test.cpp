// A grown network computes the map of the one it was grown from, and can learn with what is new.
#include "train/model/grow.h"

#include <gtest/gtest.h>

#include "network/formula_images.h"
#include "network/network_run.h"
#include "support/support.h"
#include "train/model/weights.h"

namespace nmrf::train {
namespace {

using nmrf::test::formula_images;
using nmrf::test::run_network;

const std::string kFast = NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors";

Network grown(const ModelOptions& to, std::uint64_t seed = 1) {
  const TensorFile file = read_tensor_file(kFast);
  return grow(file, kFast, options_of(file, kFast), to, seed);
}

TEST(Grow, TheLargerNetworkComputesTheSameMap) {
  test::TempFolder folder;
  const ModelOptions base = preset_options("base");
  save_model(folder / "base.safetensors", grown(base));
  const auto before = nmrf::load_model(kFast);
  const auto after = nmrf::load_model(folder / "base.safetensors");
  ASSERT_GT(parameters_of(base).size(), parameters_of(before.network->options()).size());
  const auto [left, right] = formula_images(168, 96);
  const FloatMap a = run_network(*before.network, left, right).disparity;
  const FloatMap b = run_network(*after.network, left, right).disparity;
  float most = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x) most = std::max(most, std::abs(a.at(y, x) - b.at(y, x)));
  EXPECT_LT(most, 5e-3f);  // sums of another order, amplified by the disparity encoding
}

TEST(Grow, EveryNewWeightGetsAGradientWithinTwoUpdates) {
  Network network = grown(preset_options("base"));
  const auto images = torch::rand({1, 3, 64, 96}) * 255;
  // New channels are read by zero weights and empty messages come from zero maps: what stands
  // before those learns once they have moved.
  for (int update = 0; update < 2; ++update) {
    network->zero_grad();
    ForwardOptions how;
    how.every_layer = true;
    const auto out = network->forward(images, images.roll(-4, 3), how);
    auto loss = out.disparity.square().mean() * 0;
    for (const auto& map : out.refined) loss = loss + map.square().mean();
    for (const auto& hypotheses : out.hypotheses)
      loss = loss + hypotheses.disparity.square().mean() + hypotheses.score.square().mean();
    loss.backward();
    torch::NoGradGuard no_grad;
    for (auto& item : network->named_parameters())
      if (item.value().grad().defined()) item.value().sub_(item.value().grad().sign() * 1e-3);
  }
  for (const char* name :
       {"inference.layers.5.nmp.qkv.weight", "inference.layers.5.nmp.mlp.fc1.weight",
        "refinement.layers.3.nmp.mlp.fc2.weight", "backbone.layer3.1.conv2.weight"}) {
    const auto gradient = network->named_parameters()[name].grad();
    ASSERT_TRUE(gradient.defined()) << name;
    EXPECT_GT(gradient[-1].abs().max().item<float>(), 0) << name;
  }
}

TEST(Grow, SeedsRepeatAndWhatCannotGrowIsNamed) {
  const ModelOptions base = preset_options("base");
  const auto a = grown(base, 3)->named_parameters(), b = grown(base, 3)->named_parameters(),
             c = grown(base, 4)->named_parameters();
  EXPECT_TRUE(a["backbone.conv1.weight"].equal(b["backbone.conv1.weight"]));
  EXPECT_FALSE(a["backbone.conv1.weight"].equal(c["backbone.conv1.weight"]));

  ModelOptions wider = base;
  wider.inference_channels = 128;
  EXPECT_NE(test::error_of(ErrorKind::kUsage, [&] { grown(wider); }).find("inference.channels"),
            std::string::npos);
  ModelOptions shallower = base;
  shallower.inference_layers = 2;
  EXPECT_NE(test::error_of(ErrorKind::kUsage, [&] { grown(shallower); }).find("inference.layers"),
            std::string::npos);
}

}  // namespace
}  // namespace nmrf::train
