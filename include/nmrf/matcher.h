// Dense disparity from a rectified pair of images.
//
//   nmrf::Matcher matcher = nmrf::Matcher::load("nmrf-fast.safetensors");
//   nmrf::ImageView left{pixels_left, 640, 480}, right{pixels_right, 640, 480};  // 8-bit RGB
//   nmrf::Disparity d = matcher.match(left, right);
//   float first = d.map.at(0, 0);
//
// Link with nmrf::nmrf after find_package(nmrf). Every failure is an nmrf::Error (nmrf/error.h).
// With OpenCV, nmrf/opencv.h turns a cv::Mat into a view and a map into a cv::Mat, without a copy.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nmrf/alignment.h"
#include "nmrf/disparity.h"
#include "nmrf/error.h"
#include "nmrf/export.h"
#include "nmrf/image.h"

namespace nmrf {

// Arithmetic of convolutions and message passing. kInt8 rounds their inputs to 256 levels;
// everything that carries a disparity stays 32-bit float.
enum class Precision {
  kAuto,     // kInt8 for models marked for it, where it is faster (AVX2, VNNI), else kFloat32
  kFloat32,  // results agree on all CPUs up to rounding
  kInt8,     // weights have 8 bits on CPUs with VNNI and 7 bits on others
};

struct MatcherOptions {  // Options of a matcher, fixed when it is loaded.
  // Number of threads, including the calling one. Default: one per core.
  std::optional<int> threads{};
  // Largest disparity searched, in pixels of the matched images (after scaling); rounded up to a
  // multiple of 8. Default: the model's own.
  std::optional<int> max_disp{};
  Precision precision = Precision::kAuto;
  // Changes to the model options, for experiments: "seeds.labels=2", "refinement.count=0".
  // Changes that need other weights are refused.
  std::vector<std::string> set{};
  // "auto", "cpu", "cuda" or "cuda:1". Anything but the CPU needs the training component.
  std::string device = "auto";
};

struct LoadedModel;  // internal

// Progress of a call.
struct Progress {
  double done = 0;         // 0 to 1
  const char* stage = "";  // "backbone", "inference", ...
};

struct MatchOptions {       // Options of one call.
  View view = View::kLeft;  // kRight: the disparity of the right image
  // Factor by which the images are resized before matching; 1: as they are. Default: the model's
  // choice. `nmrf-fast` looks at the images at half their size first, enlarges those with small
  // disparities up to two times, which recovers finer detail, and shrinks images above two
  // megapixels; the result always has the size of the images.
  std::optional<double> scale{};
  // With a factor: resize the result, disparities included, back to the size of the images. If
  // off, the result has the size of the scaled images and disparities are in their pixels.
  bool full_size = false;
  // Smallest disparity searched, in pixels of the input images; negative for toed-in cameras and
  // shifted views. The search range is min_disp to min_disp + max_disp.
  int min_disp = 0;
  // Measures a small vertical offset, rotation or scale difference of the right image and corrects
  // it where the estimate is reliable (see PairCheck::correctable): matching only searches along
  // rows, and one pixel of vertical offset doubles the errors. Well-rectified pairs stay unchanged,
  // bit for bit. Takes a few hundredths of a second.
  bool align = false;
  // A known correction instead of a measured one; Alignment() for none.
  std::optional<Alignment> alignment{};
  // An approximate disparity map, such as that of the previous frame: size and pixels of the
  // images, finite everywhere. Replaces the half-size guide pass of models like `nmrf-fast`; other
  // models ignore it. Must stay valid during the call.
  const FloatMap* guide = nullptr;
  bool keep_labels = false;  // also Disparity::labels and seeds; left view only
  // Memory limit in bytes for images, maps and buffers of the call itself, not counting the model,
  // the input images and a reused result. A pair that needs more is matched in overlapping tiles,
  // guided by a low-resolution map of the whole pair where the model takes a guide. Default: no
  // limit.
  std::optional<std::size_t> memory{};
  // Called between stages, on the calling thread. Returning false cancels the call, which then
  // throws Error(kCancelled).
  std::function<bool(const Progress&)> progress{};
};

// Thread-safe once loaded: concurrent calls work in separate buffers.
class NMRF_API Matcher {
 public:
  // Loads a model: .safetensors, or the authors' .pth. Throws Error(kModel), Error(kDevice).
  static Matcher load(const std::filesystem::path& model, const MatcherOptions& options = {});
  // Same from the bytes of a file, which need not outlive the call.
  static Matcher load(std::span<const std::byte> model, const MatcherOptions& options = {});
  ~Matcher();
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;

  // left, right: rectified images of the same size, at least 32 x 32 after scaling. Throws
  // Error(kInput) if the images do not fit together, Error(kDevice) if memory runs out.
  Disparity match(const ImageView& left, const ImageView& right,
                  const MatchOptions& how = {}) const;
  // Same, reusing a result: for an image size seen before, nothing is allocated.
  void match(const ImageView& left, const ImageView& right, const MatchOptions& how,
             Disparity& result) const;

  // The scale that the model chooses for images with these disparities (in pixels of the input
  // images; non-finite values are ignored). `current` is kept as long as it is within 10 % of the
  // choice.
  double best_scale(const FloatMap& map, std::optional<double> current = {}) const;

  // Approximate peak memory in bytes of a call for images of this size, counted as for
  // MatchOptions::memory; if the model chooses the scale, for the largest it may choose.
  std::size_t memory(int width, int height, const MatchOptions& how = {}) const;

  int max_disp() const;  // in pixels of the matched images
  int threads() const;
  Precision precision() const;        // kFloat32 or kInt8
  const std::string& device() const;  // "cpu" or "cuda:0"
  // Frees the buffers that no call is using.
  void release_idle() const;

 private:
  friend Matcher make_matcher(LoadedModel model, const MatcherOptions& options);
  friend void match_with_features(const Matcher& matcher, const ImageView& left,
                                  const ImageView& right, const MatchOptions& how,
                                  Disparity& result, std::vector<float>& features);
  struct State;
  explicit Matcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace nmrf
