// Image and disparity files as cv::Mat: images are CV_8UC3 in BGR order, maps CV_32FC1.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>
#include <utility>

#include "nmrf/files.h"
#include "nmrf/opencv.h"

namespace nmrf {

// Any image as CV_8UC3 in BGR order.
inline cv::Mat bgr_of(const ImageView& image, const std::string& name = "the image") {
  Image rgb = to_rgb8(image, name);
  cv::Mat bgr(rgb.height(), rgb.width(), CV_8UC3);
  constexpr int kSwap[] = {0, 2, 1, 1, 2, 0};
  const cv::Mat from = mat(rgb);
  cv::mixChannels(&from, 1, &bgr, 1, kSwap, 3);
  return bgr;
}

// As nmrf::read_image, converted to CV_8UC3 in BGR order.
inline cv::Mat read_bgr(const std::filesystem::path& path) {
  return bgr_of(read_image(path), path.string());
}

// As nmrf::write_image, of CV_8U or CV_16U with 1, 3 or 4 channels in BGR order.
inline void write_mat(const std::filesystem::path& path, const cv::Mat& image) {
  write_image(path, view(image));
}

// As nmrf::read_disparity and write_disparity, of CV_32FC1.
inline cv::Mat read_disparity_mat(const std::filesystem::path& path, DisparityScale scale = {}) {
  const FloatMap map = read_disparity(path, scale);
  return mat(map).clone();
}
inline void write_disparity_mat(const std::filesystem::path& path, const cv::Mat& map) {
  write_disparity(path, float_map(map));
}

}  // namespace nmrf
