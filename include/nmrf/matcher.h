// Dense disparity from a rectified pair of photographs.
//
//   auto matcher = nmrf::Matcher::load("model.safetensors");
//   nmrf::Disparity d = matcher.match(cv::imread("left.png"), cv::imread("right.png"));
//   nmrf::write_disparity("disparity.pfm", d.map);
//
// Link with nmrf::nmrf after find_package(nmrf). Every failure is an nmrf::Error (nmrf/error.h).
#pragma once

#include <memory>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "nmrf/disparity.h"
#include "nmrf/error.h"

namespace nmrf {

struct MatcherOptions {
  // "auto" takes a GPU when this libtorch has one, else the CPU; or "cpu", "cuda", "cuda:1".
  std::string device = "auto";
  // Largest disparity looked for, in pixels of the images that are matched (after scaling); rounded
  // up to a multiple of 8. 0 takes the model's own.
  int max_disp = 0;
  // Changes of the model's own options, for experiments: "seeds.labels=2", "refinement.count=0".
  // Those that need other weights are refused.
  std::vector<std::string> set{};
};

enum class View { kLeft, kRight };

struct MatchOptions {
  View view = View::kLeft;  // kRight: the disparity of the right image, found by mirroring the pair
  // The factor that images are resized by before matching; 1: as they are. 0 leaves it to the
  // model: `nmrf-fast` matches images of small disparities a second time, enlarged up to twice,
  // which finds finer detail in about four times the time, and shrinks images above two megapixels
  // to that; the result has the size of the images. Others match them as they are.
  double scale = 0;
  // With a factor: resize the result back to the images' size (disparities grow along). Off, the
  // result has the size of the scaled images and its disparities are in their pixels.
  bool full_size = false;
  bool keep_labels = false;  // also Disparity::labels and seeds; left view only
};

// Safe to use from several threads at once after loading.
class Matcher {
 public:
  // Reads a model: .safetensors, or the authors' .pth. Throws Error(kModel), Error(kDevice).
  static Matcher load(const std::string& model, const MatcherOptions& options = {});
  ~Matcher();
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;

  // left, right: rectified images of one size, at least 32 x 32 after scaling; grey, BGR or BGRA, 8
  // or 16 bit. Throws Error(kInput) when they do not fit each other, Error(kDevice) when memory is
  // short.
  Disparity match(const cv::Mat& left, const cv::Mat& right, const MatchOptions& how = {}) const;

  // The factor that `scale = 0` chooses for images of these disparities (CV_32FC1, in pixels of the
  // images as they are; what is not finite does not count). For sequences: match the first frame
  // with 0 and each following one at the factor of the map before it (with full_size), which
  // saves the first of two passes and keeps the factor from changing with every frame. `current`
  // is kept as long as it is within a tenth of the choice.
  double best_scale(const cv::Mat& map, double current = 0) const;

  int max_disp() const;               // in pixels of the matched images
  const std::string& device() const;  // "cpu" or "cuda:0"

 private:
  struct State;
  explicit Matcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Left-right check: CV_8UC1, 255 where the disparity `own` of one view and `other` of the opposite
// view disagree by more than `threshold` pixels, or where the match lies outside the other image.
cv::Mat occlusion_mask(const cv::Mat& own, const cv::Mat& other, View own_view,
                       float threshold = 1.0f);

// Threads used by all matchers of the process; 0, and what Matcher::load() takes when nobody chose,
// = $OMP_NUM_THREADS, else one a core.
void set_threads(int count);
int threads();

}  // namespace nmrf
