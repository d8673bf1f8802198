// nmrf behind OpenCV's interface, for code that was written for StereoSGBM or StereoBM.
//
//   cv::Ptr<cv::StereoMatcher> matcher = NmrfStereoMatcher::create("model.safetensors", 0, 128);
//   matcher->compute(left, right, disparity);  // CV_16S, 16 times the disparity, as StereoSGBM
#pragma once

#include <nmrf/matcher.h>

#include <opencv2/calib3d.hpp>
#include <optional>
#include <string>

// One instance serves one thread at a time, as OpenCV's own matchers do.
class NmrfStereoMatcher : public cv::StereoMatcher {
 public:
  enum class Output {
    kFixedPoint,  // CV_16S, disparity x 16; invalid pixels hold (minDisparity - 1) x 16
    kFloat,       // CV_32F, pixels; invalid pixels hold minDisparity - 1
  };

  // Searches disparities in [minDisparity, minDisparity + numDisparities); numDisparities = 0
  // uses the model's own limit. Throws nmrf::Error if the model cannot be loaded.
  static cv::Ptr<NmrfStereoMatcher> create(const std::string& model, int minDisparity = 0,
                                           int numDisparities = 0,
                                           Output output = Output::kFixedPoint);

  // left, right: rectified, one size, 8 or 16 bit, grey or BGR. Throws nmrf::Error for others.
  void compute(cv::InputArray left, cv::InputArray right, cv::OutputArray disparity) override;

  int getMinDisparity() const override { return min_disparity_; }
  void setMinDisparity(int value) override;  // 0 or more
  int getNumDisparities() const override;
  void setNumDisparities(int value) override;
  // A left-right check when 0 or more, which takes twice the time; -1 switches it off (default).
  int getDisp12MaxDiff() const override { return disp12_max_diff_; }
  void setDisp12MaxDiff(int value) override { disp12_max_diff_ = value; }
  // Small regions of this many pixels or fewer become invalid; 0 keeps them (default).
  int getSpeckleWindowSize() const override { return speckle_window_; }
  void setSpeckleWindowSize(int value) override { speckle_window_ = value; }
  int getSpeckleRange() const override { return speckle_range_; }
  void setSpeckleRange(int value) override { speckle_range_ = value; }
  // Kept for callers that set it; the network has no block.
  int getBlockSize() const override { return block_size_; }
  void setBlockSize(int value) override { block_size_ = value; }

 private:
  NmrfStereoMatcher() = default;
  void load();

  std::string model_;
  Output output_ = Output::kFixedPoint;
  std::optional<nmrf::Matcher> matcher_;  // loaded again when the range of disparities changes
  int min_disparity_ = 0;
  int num_disparities_ = 0;
  int disp12_max_diff_ = -1;
  int speckle_window_ = 0;
  int speckle_range_ = 1;
  int block_size_ = 1;
};
