#include "stereo_matcher_adapter.h"

#include <nmrf/opencv.h>

cv::Ptr<NmrfStereoMatcher> NmrfStereoMatcher::create(const std::string& model, int minDisparity,
                                                     int numDisparities, Output output) {
  cv::Ptr<NmrfStereoMatcher> made(new NmrfStereoMatcher);
  made->model_ = model;
  made->output_ = output;
  made->num_disparities_ = numDisparities;
  made->setMinDisparity(minDisparity);
  made->load();
  return made;
}

void NmrfStereoMatcher::load() {
  nmrf::MatcherOptions options;
  if (num_disparities_ > 0) options.max_disp = min_disparity_ + num_disparities_;
  matcher_ = nmrf::Matcher::load(model_, options);
}

void NmrfStereoMatcher::setMinDisparity(int value) {
  CV_Assert(value >= 0);
  if (value != min_disparity_ && num_disparities_ > 0) matcher_.reset();
  min_disparity_ = value;
}

int NmrfStereoMatcher::getNumDisparities() const {
  if (num_disparities_ > 0 || !matcher_) return num_disparities_;
  return matcher_->max_disp() - min_disparity_;
}

void NmrfStereoMatcher::setNumDisparities(int value) {
  CV_Assert(value >= 0);
  if (value != num_disparities_) matcher_.reset();
  num_disparities_ = value;
}

void NmrfStereoMatcher::compute(cv::InputArray left_array, cv::InputArray right_array,
                                cv::OutputArray result) {
  if (!matcher_) load();
  const cv::Mat left = left_array.getMat(), right = right_array.getMat();
  nmrf::Disparity found = matcher_->match(nmrf::view(left), nmrf::view(right));
  const auto least = static_cast<float>(min_disparity_);
  cv::Mat floats = nmrf::mat(found.map);
  cv::Mat bad = floats < least;
  if (disp12_max_diff_ >= 0) {
    nmrf::MatchOptions right_view;
    right_view.view = nmrf::View::kRight;
    const nmrf::Disparity other = matcher_->match(nmrf::view(left), nmrf::view(right), right_view);
    nmrf::check_consistency(found, other, nmrf::View::kLeft, static_cast<float>(disp12_max_diff_));
    const cv::Mat hidden = nmrf::mat(found.mask) & (nmrf::kOccluded | nmrf::kOutOfView);
    bad |= hidden != 0;
  }
  floats.setTo(least - 1, bad);
  if (speckle_window_ > 0 || output_ == Output::kFixedPoint) {
    // In 1/16 pixels, as OpenCV's matchers deliver. 16 bits end at 2047.9 pixels.
    cv::Mat fixed;
    floats.convertTo(fixed, CV_16S, 16);
    const int invalid = (min_disparity_ - 1) * 16;
    if (speckle_window_ > 0)
      cv::filterSpeckles(fixed, invalid, speckle_window_, speckle_range_ * 16);
    if (output_ == Output::kFixedPoint) {
      fixed.copyTo(result);
      return;
    }
    floats.setTo(least - 1, fixed == invalid);
  }
  floats.copyTo(result);
}
