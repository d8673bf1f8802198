// Conversion between OpenCV and nmrf, without copies. Header only: the library does not use OpenCV.
//
//   cv::Mat left = cv::imread("left.png"), right = cv::imread("right.png");
//   nmrf::Disparity d = matcher.match(nmrf::view(left), nmrf::view(right));
//   cv::Mat map = nmrf::mat(d.map);   // CV_32FC1, shares the memory of d.map
#pragma once

#include <opencv2/core.hpp>

#include "nmrf/error.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

// View of an 8- or 16-bit image of 1 to 4 channels in BGR order. Valid as long as the image.
inline ImageView view(const cv::Mat& image) {
  if (image.empty() || image.dims != 2 || (image.depth() != CV_8U && image.depth() != CV_16U))
    throw Error(ErrorKind::kInput, "an image of 8 or 16 bits without sign is expected");
  return {image.data,        image.cols,
          image.rows,        static_cast<std::ptrdiff_t>(image.step[0]),
          image.channels(),  image.depth() == CV_8U ? 8 : 16,
          ChannelOrder::kBgr};
}

// Headers that share the memory of the map or image, valid as long as it is.
inline cv::Mat mat(FloatMap& map) {
  return map.empty() ? cv::Mat() : cv::Mat(map.height(), map.width(), CV_32FC1, map.data());
}
inline cv::Mat mat(ByteMap& map) {
  return map.empty() ? cv::Mat() : cv::Mat(map.height(), map.width(), CV_8UC1, map.data());
}
inline const cv::Mat mat(const FloatMap& map) { return mat(const_cast<FloatMap&>(map)); }
inline const cv::Mat mat(const ByteMap& map) { return mat(const_cast<ByteMap&>(map)); }
inline cv::Mat mat(Image& image) {
  if (image.empty()) return {};
  return {image.height(), image.width(),
          CV_MAKETYPE(image.bits() == 8 ? CV_8U : CV_16U, image.channels()), image.data()};
}

// A copy of a CV_32FC1 or CV_8UC1 image.
inline FloatMap float_map(const cv::Mat& image) {
  if (image.type() != CV_32FC1) throw Error(ErrorKind::kUsage, "a CV_32FC1 image is expected");
  FloatMap map(image.cols, image.rows);
  image.copyTo(mat(map));
  return map;
}
inline ByteMap byte_map(const cv::Mat& image) {
  if (image.type() != CV_8UC1) throw Error(ErrorKind::kUsage, "a CV_8UC1 image is expected");
  ByteMap map(image.cols, image.rows);
  image.copyTo(mat(map));
  return map;
}

}  // namespace nmrf
