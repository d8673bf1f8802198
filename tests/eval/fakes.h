// A small data set and methods whose errors are known, for the tests of the runner and the reports.
#pragma once

#include <string>
#include <utility>

#include "core/file.h"
#include "data/trees.h"
#include "eval/method.h"
#include "eval/protocol.h"

namespace nmrf::test {

// Predicts `value` everywhere; counts its calls.
class ConstantMethod : public Method {
 public:
  ConstantMethod(std::string name, float value) : name_(std::move(name)), value_(value) {}
  std::string name() const override { return name_; }
  std::string identity() const override { return name_ + std::to_string(value_); }
  Prediction predict(const cv::Mat& left, const cv::Mat&) const override {
    ++calls;
    Prediction p;
    p.disparity = cv::Mat(left.size(), CV_32FC1, cv::Scalar(value_));
    p.confidence = cv::Mat(left.size(), CV_32FC1, cv::Scalar(0.7));
    const int h = (left.rows + 7) / 8, w = (left.cols + 7) / 8;
    p.labels = cv::Mat(h, w, CV_32FC2, cv::Scalar(value_, value_ + 40));
    p.seeds = cv::Mat(h, w, CV_32FC2, cv::Scalar(value_ + 10, value_ + 60));
    p.seconds = 0.25;
    return p;
  }
  mutable int calls = 0;

 private:
  std::string name_;
  float value_;
};

// `count` pairs with truth 10, 11, 12, ... px in a list file.
inline EvalSet list_set(const fs::path& folder, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    put_image(folder / ("scene/left" + n + ".png"), 1 + i, 24, 16);
    put_image(folder / ("right" + n + ".png"), 50 + i, 24, 16);
    put_pfm(folder / ("truth" + n + ".pfm"), static_cast<float>(10 + i), 24, 16);
    lines += "scene/left" + n + ".png right" + n + ".png truth" + n + ".pfm pfm\n";
  }
  write_file(folder / "list.txt", lines);
  return open_eval_set("list:list=" + (folder / "list.txt").string(), "");
}

}  // namespace nmrf::test
