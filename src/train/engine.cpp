#include "train/engine.h"

#include <algorithm>
#include <mutex>

#include "core/check.h"
#include "core/log.h"
#include "matching/engine.h"
#include "train/model/device.h"
#include "train/model/weights.h"
#include "train/ops/dispatch.h"

namespace nmrf::train {
namespace {

using torch::Tensor;

// 8-bit RGB -> float [1, 3, H, W], 0 to 255.
Tensor to_tensor(const Image& image) {
  return torch::from_blob(const_cast<std::uint8_t*>(image.data()),
                          {1, image.height(), image.width(), 3}, torch::kByte)
      .permute({0, 3, 1, 2})
      .to(torch::kFloat)
      .contiguous();
}

// The first rows and columns of [1, H, W].
void copy_map(const Tensor& map, const Image& image, FloatMap& result) {
  result.resize(image.width(), image.height());
  const auto values =
      map[0].narrow(0, 0, image.height()).narrow(1, 0, image.width()).to(torch::kCPU).contiguous();
  std::copy_n(values.data_ptr<float>(), result.size(), result.data());
}

// [1, h, w, k] coarse pixels, in pixels.
void copy_labels(const Tensor& labels, CellLabels& result) {
  const auto values = (8 * labels[0].to(torch::kFloat)).to(torch::kCPU).contiguous();
  result.height = static_cast<int>(values.size(0));
  result.width = static_cast<int>(values.size(1));
  result.count = static_cast<int>(values.size(2));
  result.values.assign(values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
}

class TorchPass : public EnginePass {
 public:
  TorchPass(Network network, torch::Device device)
      : network_(std::move(network)), device_(device) {}

  void run(const PassInput& input, Disparity& result) override {
    if (input.on_stage) input.on_stage(0, "network");
    const Image& image = *input.left;
    try {
      torch::NoGradGuard no_grad;
      const int64_t alignment = network_->options().alignment();
      const auto left = pad_images(to_tensor(*input.left), alignment).to(device_);
      const auto right = pad_images(to_tensor(*input.right), alignment).to(device_);
      ForwardOptions how;
      how.lean = true;
      if (input.guide) {
        auto map = torch::from_blob(const_cast<float*>(input.guide->data()),
                                    {1, 1, input.guide->height(), input.guide->width()});
        how.guide = pad_images(map, alignment).squeeze(1).to(device_);
      } else {
        how.guide = half_size_map(network_, left, right);
      }
      const auto out = network_->forward(left, right, how);
      copy_map(out.disparity, image, result.map);
      copy_map(out.winners.confidence, image, result.posterior);
      if (input.keep_labels) {
        copy_labels(out.proposals.labels, result.labels);
        copy_labels(out.proposals.seeds.seeds, result.seeds);
      }
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      check(text.find("memory") == std::string::npos, ErrorKind::kDevice,
            "not enough memory on {} for a {}x{} pair. Try a scale of 0.5 or a smaller max_disp.",
            device_.str(), image.width(), image.height());
      fail(ErrorKind::kFailure, "matching failed inside libtorch: {}", text);
    }
  }

 private:
  Network network_;
  torch::Device device_;
};

class TorchEngine : public Engine {
 public:
  TorchEngine(const std::filesystem::path& path, const MatcherOptions& options)
      : device_(choose_device(options.device)), name_(device_.str()) {
    LoadedModel model = load_model(path.string(), options.set);
    network_ = model.network;
    if (!model.trained)
      log_warning("{}: untrained weights; the maps are well-formed but mean nothing",
                  path.string());
    if (options.max_disp) network_->set_max_disp((*options.max_disp + 7) / 8 * 8);
    try {
      network_->to(device_);
    } catch (const c10::Error& error) {
      fail(ErrorKind::kDevice, "{}: cannot be moved to {}: {}", path.string(), name_,
           error.what_without_backtrace());
    }
  }
  std::unique_ptr<EnginePass> make_pass(MemoryBlock&) override {
    return std::make_unique<TorchPass>(network_, device_);
  }
  const ModelOptions& options() const override { return network_->options(); }
  const std::string& device() const override { return name_; }

 private:
  torch::Device device_;
  std::string name_;
  Network network_{nullptr};
};

std::unique_ptr<Engine> make_engine(const std::filesystem::path& model,
                                    const MatcherOptions& options) {
  const bool cpu =
      options.device == "cpu" || (options.device == "auto" && !torch::cuda::is_available());
  if (cpu && ops::fast_enabled()) return nullptr;
  return std::make_unique<TorchEngine>(model, options);
}

}  // namespace

void use_libtorch_engine() { set_engine_factory(make_engine); }

}  // namespace nmrf::train
