// What is evaluated: anything that turns a pair into a disparity map.
#pragma once

#include <opencv2/core.hpp>
#include <string>

namespace nmrf {

struct Prediction {
  cv::Mat disparity;  // CV_32FC1, px of the left view, the images' size; non-finite = none
  // CV_32FC1 in [0, 1], the winning label's probability, NaN where none won; may be empty.
  cv::Mat confidence;
  // CV_32FC(k), ceil(H/8) x ceil(W/8), px: the candidate labels and the seeds they grew from. Empty
  // unless asked for, and for methods without such a thing.
  cv::Mat labels, seeds;
  double seconds = 0;  // of the matching alone
};

class Method {
 public:
  virtual ~Method() = default;
  // For tables: "nmrf-fast", "sgbm", "k=2".
  virtual std::string name() const = 0;
  // Everything a result depends on besides the images: the weights' digest, options, scale. Two
  // methods of the same identity give the same maps.
  virtual std::string identity() const = 0;
  // left, right: CV_8UC3 in BGR order, of one size.
  virtual Prediction predict(const cv::Mat& left, const cv::Mat& right) const = 0;
};

}  // namespace nmrf
