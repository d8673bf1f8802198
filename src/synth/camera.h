// From light to bytes: exposure, blur, noise and the other faults of two cameras.
#pragma once

#include <opencv2/core.hpp>

#include "synth/dice.h"
#include "synth/options.h"
#include "synth/view.h"

namespace nmrf::synth {

// The faults of one pair of cameras, drawn once per pair.
class CameraModel {
 public:
  // `cx`, `cy`: principal point in the window, pixels.
  CameraModel(const SynthOptions& options, Dice& dice, float cx, float cy);
  // Of the colour of the left (false) or right (true) camera.
  Misalignment misalignment(bool right) const { return right ? right_off_ : left_off_; }
  // Two linear images (CV_32FC3, red first) to two photographs (CV_8UC3, BGR). `cx`, `cy`: centre
  // of vignetting; `sensor`: half the diagonal of the whole sensor, pixels.
  void develop(const cv::Mat& left, const cv::Mat& right, float cx, float cy, float sensor,
               cv::Mat& left_out, cv::Mat& right_out);

 private:
  cv::Mat develop_one(const cv::Mat& linear, bool right, float gain, float cx, float cy,
                      float sensor);

  struct Eye {
    float exposure = 1;
    Vec3 balance{1, 1, 1};
    float gamma = 2.2f;
    float blur = 0;  // sigma, pixels
  };
  const SynthOptions& options_;
  Dice dice_;
  Eye eyes_[2];
  Misalignment left_off_, right_off_;
  float bright_ = 0.9f;  // the level that the bright quantile is exposed to
  float quantile_ = 0.95f;
  float curve_ = 0;  // strength of the S-shaped tone curve
  float black_ = 0;  // offset of black
  float saturation_ = 1;
  float shot_ = 0, read_ = 0;  // noise
  float row_noise_ = 0;        // of whole rows
  bool coarse_noise_ = false;
  float vignette_ = 0;
  float motion_ = 0, motion_angle_ = 0;
  int jpeg_ = 0;  // quality; 0 = none
  bool grey_ = false;
};

}  // namespace nmrf::synth
