#include "nmrf/matcher.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <opencv2/imgproc.hpp>
#include <thread>

#include "core/check.h"
#include "core/log.h"
#include "core/quantile.h"
#include "train/model/device.h"
#include "matching/finish.h"
#include "matching/too_near.h"
#include "train/model/weights.h"
#include "nmrf/image.h"
#include "train/ops/memory.h"

namespace nmrf {

struct Matcher::State {
  mutable Network network{nullptr};
  torch::Device device{torch::kCPU};
  std::string device_name;

  // left, right: CV_8UC3, the size to match. guide: a map of another size, in its own pixels;
  // empty: one is made where the model asks for it.
  Disparity match(const cv::Mat& left, const cv::Mat& right, const cv::Mat& guide,
                  bool keep_labels) const;
};

namespace {

std::atomic<bool> g_threads_chosen{false};

// The file of the BLAS that libtorch really calls, or empty.
std::string blas_file() {
  void* symbol = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (!symbol || dladdr(symbol, &info) == 0 || !info.dli_fname) return "";
  std::error_code ignored;
  return std::filesystem::canonical(info.dli_fname, ignored).string();
}

// BGR CV_8UC3 -> float RGB [1, 3, H, W], 0..255.
torch::Tensor to_tensor(const cv::Mat& image) {
  cv::Mat rgb;
  cv::cvtColor(image, rgb, cv::COLOR_BGR2RGB);
  return torch::from_blob(rgb.data, {1, rgb.rows, rgb.cols, 3}, torch::kByte)
      .permute({0, 3, 1, 2})
      .to(torch::kFloat)
      .contiguous();
}

// A map, resized to `size` with its disparities -> [1, 1, H, W].
torch::Tensor grown_guide(const cv::Mat& map, cv::Size size) {
  cv::Mat grown;
  cv::resize(map, grown, size, 0, 0, cv::INTER_NEAREST);
  grown *= static_cast<double>(size.width) / map.cols;
  return torch::from_blob(grown.data, {1, 1, grown.rows, grown.cols}).clone();
}

// The first height x width of [1, H, W] as an image of its own.
cv::Mat to_mat(const torch::Tensor& map, int height, int width) {
  auto cropped = map[0].narrow(0, 0, height).narrow(1, 0, width).to(torch::kCPU).contiguous();
  return cv::Mat(height, width, CV_32FC1, cropped.data_ptr()).clone();
}

// [1, h, w, k] as an image of k channels.
cv::Mat to_cells(const torch::Tensor& values) {
  auto cells = values[0].to(torch::kCPU).contiguous();
  return cv::Mat(static_cast<int>(cells.size(0)), static_cast<int>(cells.size(1)),
                 CV_32FC(static_cast<int>(cells.size(2))), cells.data_ptr())
      .clone();
}

cv::Mat mirrored(const cv::Mat& image) {
  cv::Mat result;
  cv::flip(image, result, 1);
  return result;
}

cv::Mat resized(const cv::Mat& image, double scale) {
  const cv::Size size(static_cast<int>(std::lround(image.cols * scale)),
                      static_cast<int>(std::lround(image.rows * scale)));
  check(size.width > 0 && size.height > 0, ErrorKind::kInput,
        "a scale of {} leaves nothing of the {}x{} images", scale, image.cols, image.rows);
  cv::Mat result;
  cv::resize(image, result, size, 0, 0, scale < 1 ? cv::INTER_AREA : cv::INTER_CUBIC);
  return result;
}

// Of images whose scale is left to the model: bounds time and memory.
constexpr double kMostPixels = 2e6;

double within_most_pixels(cv::Size size) {
  return std::sqrt(kMostPixels / (static_cast<double>(size.width) * size.height));
}

void warn_of_limit(const cv::Mat& disparity, int max_disp) {
  // The last plane stands for max_disp - 8; beyond it nothing can be found.
  const int near_limit = cv::countNonZero(disparity > static_cast<float>(max_disp - 12));
  const double share = static_cast<double>(near_limit) / static_cast<double>(disparity.total());
  if (share > 0.02)
    log_warning(
        "{:.0f} % of the disparities lie at the limit of {} px: nearer surfaces are missed. "
        "Raise --max-disp, or lower --scale.",
        100 * share, max_disp);
}

}  // namespace

Disparity Matcher::State::match(const cv::Mat& left, const cv::Mat& right, const cv::Mat& guide,
                                bool keep_labels) const {
  Disparity result;
  try {
    torch::NoGradGuard no_grad;
    auto left_tensor = pad_images(to_tensor(left)).to(device);
    auto right_tensor = pad_images(to_tensor(right)).to(device);
    ForwardOptions how;
    how.guide = guide.empty() ? half_size_map(network, left_tensor, right_tensor)
                              : pad_images(grown_guide(guide, left.size())).squeeze(1).to(device);
    how.lean = true;
    auto out = network->forward(left_tensor, right_tensor, how);
    result.map = to_mat(out.disparity, left.rows, left.cols);
    result.confidence = to_mat(out.winners.confidence, left.rows, left.cols);
    if (keep_labels) {
      result.labels = to_cells(8 * out.proposals.labels);
      result.seeds = to_cells(8 * out.proposals.seeds.seeds.to(torch::kFloat));
    }
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    check(text.find("memory") == std::string::npos, ErrorKind::kDevice,
          "not enough memory on {} for a {}x{} pair. Try --scale 0.5 or a smaller --max-disp "
          "(now {}).",
          device_name, left.cols, left.rows, network->options().max_disp);
    fail(ErrorKind::kFailure, "matching failed inside libtorch: {}", text);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kDevice, "not enough memory for a {}x{} pair. Try --scale 0.5.", left.cols,
         left.rows);
  }
  return result;
}

Matcher::Matcher(std::unique_ptr<State> state) : state_(std::move(state)) {}
Matcher::~Matcher() {
  if (state_) ops::release_idle();
}
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;

// To what the model is made for: see ModelOptions::enlarge.
double Matcher::best_scale(const cv::Mat& map, double current) const {
  constexpr double kMost = 2, kLeast = 1.2;  // less is not worth another pass
  constexpr double kCovered = 0.6;           // of max_disp: the rest is for what is nearer still
  constexpr double kNearShare = 0.98;
  check(map.type() == CV_32FC1 && !map.empty(), ErrorKind::kUsage,
        "the choice of a scale needs a disparity map (32-bit float, one channel)");
  const ModelOptions& options = state_->network->options();
  if (options.enlarge == 0) return 1;
  std::vector<float> known;
  known.reserve(map.total());
  for (int y = 0; y < map.rows; ++y)
    std::copy_if(map.ptr<float>(y), map.ptr<float>(y) + map.cols, std::back_inserter(known),
                 [](float value) { return std::isfinite(value); });
  const double limit = std::min<double>(options.enlarge, kCovered * options.max_disp);
  const double room = limit / std::max(quantile(known, kNearShare), 1.0f);
  const double most = within_most_pixels(map.size());
  double scale = std::min({kMost, room, most});
  if (scale < kLeast) scale = std::min(1.0, most);
  return current > 0.9 * scale && current < 1.1 * scale ? current : scale;
}

int Matcher::max_disp() const { return state_->network->options().max_disp; }
const std::string& Matcher::device() const { return state_->device_name; }

Matcher Matcher::load(const std::string& model, const MatcherOptions& options) {
  check(options.max_disp >= 0 && options.max_disp <= 16384, ErrorKind::kUsage,
        "max_disp is {}; expected 0 (the model's own) to 16384", options.max_disp);
  // Some builds of libtorch use one thread unless they are told.
  if (!g_threads_chosen.exchange(true)) set_threads(0);
  auto state = std::make_unique<State>();
  state->device = choose_device(options.device);
  state->device_name = state->device.str();
  if (state->device.is_cpu() && blas_file().find("/blas/libblas.so") != std::string::npos)
    log_warning(
        "the BLAS under libtorch is the reference one ({}), about 25 times slower than it "
        "need be. Install libopenblas0-pthread.",
        blas_file());
  LoadedModel loaded = load_model(model, options.set);
  state->network = loaded.network;
  if (!loaded.trained)
    log_warning("{}: untrained weights; the maps are well-formed but mean nothing", model);
  if (options.max_disp > 0) {
    const int planes = (options.max_disp + 7) / 8;
    const int labels = state->network->options().labels;
    check(planes >= labels, ErrorKind::kUsage,
          "max_disp is {}; {} with {} labels a pixel needs at least {}", options.max_disp, model,
          labels, 8 * labels);
    state->network->set_max_disp(8 * planes);
  }
  try {
    state->network->to(state->device);
  } catch (const c10::Error& error) {
    fail(ErrorKind::kDevice, "{}: cannot be moved to {}: {}", model, state->device_name,
         error.what_without_backtrace());
  }
  return Matcher(std::move(state));
}

Disparity Matcher::match(const cv::Mat& left_image, const cv::Mat& right_image,
                         const MatchOptions& how) const {
  cv::Mat left = to_bgr8(left_image, "the left image");
  cv::Mat right = to_bgr8(right_image, "the right image");
  check(left.size() == right.size(), ErrorKind::kInput,
        "the left image is {}x{} and the right one {}x{}; a rectified pair has one size", left.cols,
        left.rows, right.cols, right.rows);
  check(how.scale == 0 || (how.scale > 0.01 && how.scale < 100), ErrorKind::kUsage,
        "scale is {}; expected a factor such as 0.5, or 0 (the model's choice)", how.scale);
  check(how.view == View::kLeft || !how.keep_labels, ErrorKind::kUsage,
        "candidate labels are kept for the left view only");
  if (how.view == View::kRight) {
    cv::Mat swapped = mirrored(left);
    left = mirrored(right);
    right = swapped;
  }
  const cv::Mat whole = left, whole_right = right;
  const cv::Size original = left.size();
  const ModelOptions& options = state_->network->options();
  double first_scale = how.scale;
  // Labels are given in pixels of the images as they are.
  if (how.scale == 0)
    first_scale =
        options.enlarge > 0 && !how.keep_labels ? std::min(1.0, within_most_pixels(original)) : 1;
  if (first_scale != 1) {
    left = resized(left, first_scale);
    right = resized(right, first_scale);
  }
  check(left.cols >= 32 && left.rows >= 32, ErrorKind::kInput,
        "the images to match are {}x{}; at least 32x32 are needed (a larger scale enlarges them)",
        left.cols, left.rows);

  Disparity result = state_->match(left, right, {}, how.keep_labels);
  warn_of_limit(result.map, options.max_disp);
  if (how.scale == 0) {
    const double scale = best_scale(result.map);
    if (scale > 1) {
      log_debug("matched again at {:.2f} times the size", scale);
      Disparity finer = state_->match(resized(left, scale), resized(right, scale),
                                      options.guide ? result.map : cv::Mat(), false);
      result.map = finer.map;
      result.confidence = finer.confidence;
    }
  }
  if ((how.full_size || how.scale == 0) && result.map.size() != original) {
    const double grown = static_cast<double>(original.width) / result.map.cols;
    cv::resize(result.map, result.map, original, 0, 0, cv::INTER_NEAREST);
    result.map *= grown;
    cv::resize(result.confidence, result.confidence, original, 0, 0, cv::INTER_NEAREST);
  }
  const bool full = result.map.size() == original;
  const cv::Mat& seen = full ? whole : left;
  if (options.border) result.map = put_out_of_view(result.map, seen, full ? whole_right : right);
  result.map = fill_unseen(result.map, seen, options.fill);
  result.map = median_at_jumps(result.map, seen, options.median);
  if (how.view == View::kRight) {
    result.map = mirrored(result.map);
    result.confidence = mirrored(result.confidence);
  }
  return result;
}

cv::Mat occlusion_mask(const cv::Mat& own, const cv::Mat& other, View own_view, float threshold) {
  check(own.type() == CV_32FC1 && other.type() == CV_32FC1 && own.size() == other.size(),
        ErrorKind::kUsage, "the left-right check needs two disparity maps of one size");
  cv::Mat mask(own.size(), CV_8UC1, cv::Scalar(255));
  const float direction = own_view == View::kLeft ? -1.0f : 1.0f;
  for (int y = 0; y < own.rows; ++y) {
    const float* mine = own.ptr<float>(y);
    const float* theirs = other.ptr<float>(y);
    for (int x = 0; x < own.cols; ++x) {
      const float at = static_cast<float>(x) + direction * mine[x];
      if (!(at >= 0 && at <= static_cast<float>(own.cols - 1))) continue;  // false for inf, NaN
      const float seen = theirs[static_cast<int>(std::lround(at))];
      if (std::abs(seen - mine[x]) <= threshold) mask.at<uchar>(y, x) = 0;
    }
  }
  return mask;
}

void set_threads(int count) {
  g_threads_chosen = true;
  if (count <= 0) {
    const char* wanted = std::getenv("OMP_NUM_THREADS");
    count = wanted ? std::atoi(wanted) : 0;
  }
  if (count <= 0) count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  at::set_num_threads(count);
  // OpenBLAS keeps threads of its own, which libtorch does not know of.
  using Setter = void (*)(int);
  if (auto setter = reinterpret_cast<Setter>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads")))
    setter(count);
}

int threads() { return at::get_num_threads(); }

}  // namespace nmrf
