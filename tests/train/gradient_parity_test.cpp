// One training step against losses and gradients computed by the published PyTorch network.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "core/file.h"
#include "support/support.h"
#include "train/losses.h"
#include "train/model/golden.h"
#include "train/model/weights.h"
#include "weights/tensor_file.h"

namespace nmrf::train {
namespace {

TEST(GradientParity, DenseLossOfOneStep) {
  NMRF_NEED_SHARED("golden/train_96x192");
  auto golden = test::shared_folder() / "golden";
  auto folder = golden / "train_96x192";
  auto reference = nlohmann::json::parse(read_file(folder / "train.json"));
  TensorFile file = read_tensor_file(golden / "nmrf_random.pth");
  Network network = make_network(options_of(file, "nmrf_random.pth"), 0);
  ASSERT_TRUE(load_weights(network, file).complete());
  network->train();

  Truth truth;
  truth.disparity = test::load_npy(folder / "gt_disp.npy");
  truth.valid = test::load_npy(folder / "valid.npy") != 0;
  ForwardOptions how;
  how.every_layer = true;
  auto out = network->forward(test::to_images(test::load_npy(folder / "left.npy")),
                              test::to_images(test::load_npy(folder / "right.npy")), how);
  auto seeds = out.proposals.seeds.seeds;
  test::label_order(seeds, test::load_npy(folder / "label_seeds.npy").view(seeds.sizes()));

  const double limit = 320;
  auto counted = counted_pixels(truth, 192);
  std::map<std::string, torch::Tensor> losses;
  losses["init"] = init_loss_dense(out.proposals.seeds.cost, truth, limit);
  losses["loss_prop"] = proposal_loss_dense(out.proposals.labels, truth, counted, limit);
  ASSERT_EQ(out.hypotheses.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    losses["loss_coarse_disp_" + std::to_string(i)] =
        coarse_loss(out.hypotheses[i], truth, counted, {});
    losses[i < 4 ? "loss_disp_" + std::to_string(5 + i) : "loss_disp"] =
        fine_loss(out.refined[i], truth, counted, {});
  }
  torch::Tensor total = torch::zeros({});
  for (auto& [name, value] : losses) {
    const double theirs = reference["losses"][name];
    std::cout << "  " << name << ": " << value.item<double>() << ", published " << theirs << "\n";
    const bool fine = name.rfind("loss_disp", 0) == 0;
    EXPECT_NEAR(value.item<double>(), theirs, fine ? 3e-3 : 1e-5 * std::max(1.0, theirs)) << name;
    total = total + value * reference["weights"][name].get<double>();
  }
  EXPECT_NEAR(total.item<double>(), reference["total"].get<double>(), 0.03);
  LossOptions options;
  options.modals = ModalKind::kDense;
  auto together = compute_losses(out, truth, options);
  EXPECT_NEAR(together.total.item<double>(), total.item<double>(), 1e-4);
  together.total.backward();

  double worst = 0;
  std::string worst_name;
  for (auto& item : network->named_parameters()) {
    const auto& theirs = reference["grads"].at(item.key());
    auto gradient = item.value().grad().to(torch::kDouble);
    const double norm = theirs["norm"];
    auto first = gradient.flatten();
    if (norm < 1e-6) {
      EXPECT_LT(gradient.norm().item<double>(), 1e-4) << item.key();
      continue;
    }
    const double relative = std::abs(gradient.norm().item<double>() - norm) / norm;
    if (relative > worst) {
      worst = relative;
      worst_name = item.key();
    }
    EXPECT_LT(relative, 2e-3) << item.key();
    for (std::size_t i = 0; i < theirs["first8"].size(); ++i)
      EXPECT_NEAR(first[i].item<double>(), theirs["first8"][i].get<double>(), 5e-3 * norm)
          << item.key() << " element " << i;
  }
  std::cout << "  largest relative difference of a gradient norm: " << worst << " (" << worst_name
            << ")\n";
}

}  // namespace
}  // namespace nmrf::train
