// The network on libtorch, for `nmrf bench --compare`, --train and --batch.
#include <torch/torch.h>

#include <limits>
#include <optional>

#include "cli/bench.h"
#include "core/stage_clock.h"
#include "train/losses.h"
#include "train/model/weights.h"
#include "train/ops/dispatch.h"
#include "train/ops/memory.h"
#include "train/optimizer.h"
#include "train/threads.h"

namespace nmrf::cli {
namespace {

// [B, 3, H, W], 0 to 255, H and W multiples of `alignment`.
torch::Tensor tensor_of(const Image& image, int64_t batch, int64_t alignment) {
  auto bytes = torch::from_blob(const_cast<std::uint8_t*>(image.data()),
                                {1, image.height(), image.width(), 3}, torch::kByte);
  auto planes = bytes.permute({0, 3, 1, 2}).to(torch::kFloat);
  return train::pad_images(planes, alignment).expand({batch, -1, -1, -1}).contiguous();
}

// One modal per cell, at its first pixel.
train::Truth truth_of(const FloatMap& map, int64_t batch, int64_t height, int64_t width) {
  using torch::indexing::Slice;
  auto values = torch::full({height, width}, std::numeric_limits<float>::infinity());
  auto given = torch::from_blob(const_cast<float*>(map.data()), {map.height(), map.width()});
  values.index_put_({Slice(0, map.height()), Slice(0, map.width())}, given);
  train::Truth truth;
  truth.disparity = values.expand({batch, height, width}).contiguous();
  truth.valid = truth.disparity.isfinite();
  auto first = truth.disparity.index({Slice(), Slice(0, height, 8), Slice(0, width, 8)});
  auto none =
      torch::full({batch, height / 8, width / 8, 3}, std::numeric_limits<float>::quiet_NaN());
  truth.modals = torch::cat({first.unsqueeze(-1), none}, -1);
  return truth;
}

class LibtorchSubject : public BenchSubject {
 public:
  LibtorchSubject(const BenchSettings& settings, int threads, bool fast)
      : settings_(settings),
        threads_(threads),
        fast_(fast),
        network_(train::load_model(settings.model, settings.set).network) {
    if (!settings_.train) {
      network_->eval();
      return;
    }
    network_->train();
    optimizer_.emplace(network_, train::AdamWOptions());
    for (const auto& item : network_->named_parameters())
      start_.push_back(item.value().detach().clone());
  }

  void prepare() override {
    ops::set_fast(fast_);
    train::set_threads(threads_);
    if (!settings_.train) return;
    torch::NoGradGuard no_grad;  // every step starts from the same weights
    std::size_t i = 0;
    for (auto& item : network_->named_parameters()) item.value().copy_(start_[i++]);
  }

  std::vector<float> run(const BenchScene& scene) override {
    const int64_t alignment = network_->options().alignment();
    const auto left = tensor_of(scene.left, settings_.batch, alignment);
    const auto right = tensor_of(scene.right, settings_.batch, alignment);
    if (settings_.train) return step(scene, left, right);
    torch::InferenceMode guard;
    auto map = network_->forward(left, right, {.lean = true}).disparity[0];
    map = map.narrow(0, 0, scene.left.height()).narrow(1, 0, scene.left.width()).contiguous();
    return {map.data_ptr<float>(), map.data_ptr<float>() + map.numel()};
  }

  void release() override { ops::release_idle(); }

 private:
  std::vector<float> step(const BenchScene& scene, const torch::Tensor& left,
                          const torch::Tensor& right) {
    const train::Truth truth = truth_of(scene.truth, settings_.batch, left.size(2), left.size(3));
    optimizer_->zero_grad();
    train::NetworkOutput out = network_->forward(left, right, {.every_layer = true});
    train::Losses losses;
    {
      StageScope stage("losses");
      train::LossOptions options;
      options.max_disp = network_->options().max_disp;
      losses = train::compute_losses(out, truth, options);
    }
    {
      StageScope stage("backward");
      losses.total.backward();
    }
    StageScope stage("update");
    const double norm = optimizer_->clip(1);
    optimizer_->step(1e-5);
    return {losses.total.item<float>(), static_cast<float>(norm)};
  }

  BenchSettings settings_;
  int threads_;
  bool fast_;
  train::Network network_;
  std::optional<train::AdamW> optimizer_;
  std::vector<torch::Tensor> start_;
};

}  // namespace

std::unique_ptr<BenchSubject> make_libtorch_subject(const BenchSettings& settings, int threads,
                                                    bool fast) {
  return std::make_unique<LibtorchSubject>(settings, threads, fast);
}

}  // namespace nmrf::cli
