// Small files of data sets, made for the tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/log.h"
#include "core/rng.h"
#include "data/dataset.h"
#include "data/mats.h"

namespace nmrf::test {

namespace fs = std::filesystem;

constexpr int kWidth = 13, kHeight = 7;  // of the small pictures

inline cv::Mat noise_image(int width, int height, std::uint64_t seed) {
  Rng rng(seed);
  cv::Mat image(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        image.at<cv::Vec3b>(y, x)[c] = static_cast<std::uint8_t>(rng.integer(0, 255));
  return image;
}

inline void put_image(const fs::path& path, std::uint64_t seed = 1, int width = kWidth,
                      int height = kHeight) {
  fs::create_directories(path.parent_path());
  write_mat(path, noise_image(width, height, seed));
}

// An integer picture, every pixel `value` but for a zero at the top left.
inline void put_integers(const fs::path& path, int value, int type = CV_16UC1, int width = kWidth,
                         int height = kHeight) {
  fs::create_directories(path.parent_path());
  cv::Mat image(height, width, type, cv::Scalar::all(value));
  image(cv::Rect(0, 0, 1, 1)).setTo(cv::Scalar::all(0));
  write_mat(path, image);
}

// A float map, every pixel `value` but for an infinity at the top left.
inline void put_pfm(const fs::path& path, float value, int width = kWidth, int height = kHeight) {
  fs::create_directories(path.parent_path());
  cv::Mat map(height, width, CV_32FC1, cv::Scalar(value));
  map.at<float>(0, 0) = std::numeric_limits<float>::infinity();
  write_disparity_mat(path, map);
}

inline std::vector<std::string> names_of(const Dataset& dataset) {
  std::vector<std::string> names;
  for (const auto& ref : dataset.refs()) names.push_back(ref.name);
  return names;
}

inline DatasetOptions options_of(const std::string& name, const fs::path& root,
                                 const std::string& split = "") {
  DatasetOptions options;
  options.name = name;
  options.root = root.string();
  options.split = split;
  return options;
}

// Loads sample `index` and expects its truth to be `disparity` everywhere but at the top left,
// where it must be unknown.
inline Sample expect_disparity(const Dataset& dataset, std::size_t index, double disparity) {
  Sample sample = dataset.load(index);
  EXPECT_EQ(sample.left.type(), CV_8UC3);
  EXPECT_EQ(sample.right.type(), CV_8UC3);
  EXPECT_EQ(sample.disparity.type(), CV_32FC1);
  EXPECT_EQ(sample.disparity.size(), sample.left.size());
  EXPECT_TRUE(std::isinf(sample.disparity.at<float>(0, 0)));
  for (int y = 0; y < sample.disparity.rows; ++y)
    for (int x = 0; x < sample.disparity.cols; ++x)
      if (x + y > 0) {
        EXPECT_NEAR(sample.disparity.at<float>(y, x), disparity, 1e-4 * disparity);
      }
  return sample;
}

// Collects the warnings that are logged while it lives.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel level, const std::string& text) {
      std::lock_guard lock(mutex_);
      if (level == LogLevel::kWarning) texts_.push_back(text);
    });
  }
  ~Warnings() { set_log_sink({}); }
  std::vector<std::string> texts() const {
    std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

}  // namespace nmrf::test
