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

// Arithmetic of message passing and of the convolutions, whose inputs are rounded to 256 levels
// with kInt8. Everything that carries a disparity is always 32-bit float.
enum class Precision {
  kAuto,     // kInt8 where that is faster (AVX2, VNNI), else kFloat32
  kFloat32,  // results agree on all CPUs up to rounding
  kInt8,     // weights have 8 bits on CPUs with VNNI and 7 bits on others
};

struct MatcherOptions {
  // Threads of this matcher, the calling one included. Default: one per core.
  std::optional<int> threads{};
  // Largest disparity searched, in pixels of the images that are matched (after scaling); rounded
  // up to a multiple of 8. Default: the model's own.
  std::optional<int> max_disp{};
  Precision precision = Precision::kAuto;
  // Changes to the model's own options, for experiments: "seeds.labels=2", "refinement.count=0".
  // Those that need other weights are refused.
  std::vector<std::string> set{};
  // "auto", "cpu", "cuda" or "cuda:1". Anything but the CPU needs the training component.
  std::string device = "auto";
};

struct LoadedModel;  // of the library's own

// How far a call has come.
struct Progress {
  double done = 0;         // 0 to 1
  const char* stage = "";  // "backbone", "inference", ...
};

struct MatchOptions {
  View view = View::kLeft;  // kRight: the disparity of the right image
  // The factor by which the images are resized before matching; 1: as they are. Default: the
  // model's choice. `nmrf-fast` matches images of small disparities a second time, enlarged up to
  // twice, which finds finer detail, and shrinks images above two megapixels; the result has the
  // size of the images.
  std::optional<double> scale{};
  // With a factor: resize the result back to the images' size (disparities grow along). Off, the
  // result has the size of the scaled images and its disparities are in their pixels.
  bool full_size = false;
  // Least disparity, in pixels of the images as they are; negative for toed-in cameras and views
  // that were moved against each other. What is searched is min_disp to min_disp + max_disp.
  int min_disp = 0;
  // Measures whether the right image lies a little too high or low, is turned or of another scale,
  // and corrects it where that is sure (see PairCheck::correctable): matching looks along rows
  // only, and a pixel of vertical offset doubles the errors. Pairs that fit stay as they are, bit
  // for bit. Takes a few hundredths of a second.
  bool align = false;
  // A correction that is known, instead of measuring one; Alignment() for none.
  std::optional<Alignment> alignment{};
  // A map that is likely near the wanted one, such as that of the frame before: of the images'
  // size, in their pixels, finite everywhere. Saves the pass at half the size by which models like
  // `nmrf-fast` guide themselves; others ignore it. Must live during the call.
  const FloatMap* guide = nullptr;
  bool keep_labels = false;  // also Disparity::labels and seeds; left view only
  // Bytes that the call may use for images, maps and buffers of its own; the model, the images
  // given and the result of an earlier call do not count. A pair that needs more is matched in
  // overlapping tiles, guided by a map of the whole at a lower resolution where the model takes a
  // guide. Default: no limit.
  std::optional<std::size_t> memory{};
  // Called between stages, on the calling thread. Returning false cancels the call, which then
  // throws Error(kCancelled).
  std::function<bool(const Progress&)> progress{};
};

// Safe to use from several threads at once after loading: each call works in buffers of its own.
class NMRF_API Matcher {
 public:
  // Reads a model: .safetensors, or the authors' .pth. Throws Error(kModel), Error(kDevice).
  static Matcher load(const std::filesystem::path& model, const MatcherOptions& options = {});
  // The same from the bytes of a file, which need not outlive the call.
  static Matcher load(std::span<const std::byte> model, const MatcherOptions& options = {});
  ~Matcher();
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;

  // left, right: rectified images of one size, at least 32 x 32 after scaling. Throws Error(kInput)
  // when they do not fit each other, Error(kDevice) when memory is short.
  Disparity match(const ImageView& left, const ImageView& right,
                  const MatchOptions& how = {}) const;
  // The same into a result that is reused: with images of a size seen before, nothing is allocated.
  void match(const ImageView& left, const ImageView& right, const MatchOptions& how,
             Disparity& result) const;

  // The factor that the model chooses for images of these disparities (in pixels of the images as
  // they are; what is not finite does not count). `current` is kept as long as it is within a tenth
  // of the choice.
  double best_scale(const FloatMap& map, std::optional<double> current = {}) const;

  // About how many bytes a call for images of this size needs at its peak, as counted by
  // MatchOptions::memory; images of a size chosen by the model count as the largest it may choose.
  std::size_t memory(int width, int height, const MatchOptions& how = {}) const;

  int max_disp() const;  // in pixels of the matched images
  int threads() const;
  Precision precision() const;        // kFloat32 or kInt8
  const std::string& device() const;  // "cpu" or "cuda:0"
  // Gives back the buffers that no call is using.
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
