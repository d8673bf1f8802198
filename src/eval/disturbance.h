// What cameras and files do to the right image, to measure what a method makes of it.
#pragma once

#include <memory>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "eval/method.h"

namespace nmrf {

// Several steps may be joined by '+', in this order of effect: "rotate=0.3+dy=1".
//   dy=PX        moved down          rotate=DEG   turned clockwise about the middle
//   scale=F      enlarged about it   brightness=F values times F
//   blur=PX      Gaussian of sigma   noise=LEVELS normal, of this deviation, the same in every run
//   jpeg=Q       compressed with quality 1 to 100
class Disturbance {
 public:
  // Throws Error(kUsage) for a step or a value that does not exist.
  explicit Disturbance(const std::string& text);
  const std::string& name() const { return name_; }
  // image: CV_8UC3. Geometry is resampled once, bicubic, borders replicated.
  cv::Mat apply(const cv::Mat& image) const;

 private:
  std::string name_;
  double dy_ = 0, degrees_ = 0, scale_ = 1, brightness_ = 1, blur_ = 0, noise_ = 0;
  int jpeg_ = 0;
};

// A method that is given the right images after a disturbance. The method must outlive it.
class DisturbedMethod : public Method {
 public:
  DisturbedMethod(const Method& method, const Disturbance& disturbance)
      : method_(method), disturbance_(disturbance) {}
  std::string name() const override { return method_.name() + " " + disturbance_.name(); }
  std::string identity() const override { return method_.identity() + disturbance_.name(); }
  Prediction predict(const cv::Mat& left, const cv::Mat& right) const override {
    return method_.predict(left, disturbance_.apply(right));
  }

 private:
  const Method& method_;
  Disturbance disturbance_;
};

}  // namespace nmrf
