#include "data/sample.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "data/mats.h"
#include "nmrf/disparity.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

void check_size(const cv::Mat& map, const fs::path& path, const cv::Mat& left,
                const fs::path& left_path) {
  check(map.size() == left.size(), ErrorKind::kInput,
        "{}: is {} x {} pixels, but {} is {} x {}; all files of a pair must have one size",
        path.string(), map.cols, map.rows, left_path.string(), left.cols, left.rows);
}

// 8-bit colour as Sintel codes it; computed in float, 8 bits would overflow.
cv::Mat decode_sintel(const fs::path& path) {
  cv::Mat coded = read_bgr(path);
  cv::Mat map(coded.size(), CV_32FC1);
  for (int row = 0; row < coded.rows; ++row) {
    const auto* from = coded.ptr<cv::Vec3b>(row);
    auto* to = map.ptr<float>(row);
    for (int col = 0; col < coded.cols; ++col)
      to[col] = from[col][2] * 4.0f + from[col][1] / 64.0f + from[col][0] / 16384.0f;
  }
  return map;
}

// True when some known value is below zero and none is above.
bool is_negated(const cv::Mat& map) {
  bool below = false;
  for (int row = 0; row < map.rows; ++row) {
    const auto* values = map.ptr<float>(row);
    for (int col = 0; col < map.cols; ++col) {
      if (!std::isfinite(values[col])) continue;
      if (values[col] > 0) return false;
      below |= values[col] < 0;
    }
  }
  return below;
}

// CV_32FC1: finite and >= 0 where the truth is known, +infinity elsewhere.
cv::Mat read_truth(const fs::path& path, const TruthCoding& coding) {
  cv::Mat map;
  switch (coding.kind) {
    case TruthKind::kDisparity:
      map = read_disparity_mat(path, {.divisor = coding.divisor, .zero_is_invalid = true});
      break;
    case TruthKind::kSintel:
      map = decode_sintel(path);
      break;
    case TruthKind::kDepth:
      map = read_disparity_mat(path, {.divisor = 1, .zero_is_invalid = true});
      break;
  }
  const bool depth = coding.kind == TruthKind::kDepth;
  const float sign = coding.either_sign && is_negated(map) ? -1.0f : 1.0f;
  const double limit = coding.max_disparity;
  for (int row = 0; row < map.rows; ++row) {
    auto* values = map.ptr<float>(row);
    for (int col = 0; col < map.cols; ++col) {
      double value = sign * values[col];
      if (depth) {
        bool far = coding.unknown_from > 0 && value >= coding.unknown_from;
        value = value > 0 && !far && std::isfinite(value) ? coding.depth_numerator / value
                                                          : kInvalidDisparity;
      }
      // The comparison is false for NaN too.
      bool known = value >= 0 && std::isfinite(value) && (limit <= 0 || value < limit);
      values[col] = known ? static_cast<float>(value) : kInvalidDisparity;
    }
  }
  return map;
}

// CV_8UC1, 255 where `map` is known.
cv::Mat known_mask(const cv::Mat& map) {
  cv::Mat mask;
  cv::compare(map, kInvalidDisparity, mask, cv::CMP_LT);
  return mask;
}

// CV_8UC1, 255 where any channel is not zero.
cv::Mat nonzero_mask(const fs::path& path) {
  Image image = read_image(path);
  std::vector<cv::Mat> channels;
  cv::split(mat(image), channels);
  if (channels.size() % 2 == 0) channels.pop_back();  // alpha says nothing
  cv::Mat mask(image.height(), image.width(), CV_8UC1, cv::Scalar(0));
  for (const auto& channel : channels) mask |= channel != 0;
  return mask;
}

// `known` receives the truth of the visible pixels where it lies in a file of its own.
cv::Mat read_noc(const SampleRef& ref, const cv::Mat& disparity, cv::Mat& known) {
  if (ref.noc_coding == NocCoding::kSameAsTruth) return known_mask(disparity);
  cv::Mat all(disparity.size(), CV_8UC1, cv::Scalar(255));
  for (const auto& path : ref.noc) {
    cv::Mat one;
    if (ref.noc_coding == NocCoding::kKnown) {
      known = read_truth(path, ref.coding);
      one = known_mask(known);
    } else if (ref.noc_coding == NocCoding::kZeroVisible) {
      one = ~nonzero_mask(path);
    } else {
      cv::extractChannel(read_bgr(path), one, 0);
      one = one == 255;
    }
    check_size(one, path, disparity, ref.disparity);
    all &= one;
  }
  return all;
}

// CV_32SC1 from an integer picture or a float map of whole numbers.
cv::Mat read_objects(const fs::path& path) {
  cv::Mat values = read_disparity_mat(path, {.divisor = 1, .zero_is_invalid = false}), ids;
  values.setTo(0, values == kInvalidDisparity);
  values.convertTo(ids, CV_32S);
  return ids;
}

}  // namespace

Sample load_sample(const SampleRef& ref) {
  Sample sample;
  sample.name = ref.name;
  sample.sparse = ref.sparse;
  sample.left = read_bgr(ref.left);
  sample.right = read_bgr(ref.right);
  check_size(sample.right, ref.right, sample.left, ref.left);
  if (!ref.disparity.empty()) {
    sample.disparity = read_truth(ref.disparity, ref.coding);
    check_size(sample.disparity, ref.disparity, sample.left, ref.left);
    if (!ref.valid_mask.empty()) {
      cv::Mat mask = nonzero_mask(ref.valid_mask);
      check_size(mask, ref.valid_mask, sample.left, ref.left);
      sample.disparity.setTo(kInvalidDisparity, mask == 0);
    }
    if (!ref.noc.empty() || ref.noc_coding == NocCoding::kSameAsTruth)
      sample.noc_mask = read_noc(ref, sample.disparity, sample.noc_disparity);
  }
  if (!ref.right_disparity.empty()) {
    sample.right_disparity = read_truth(ref.right_disparity, ref.coding);
    check_size(sample.right_disparity, ref.right_disparity, sample.left, ref.left);
  }
  if (!ref.reflective.empty()) {
    sample.reflective_mask = known_mask(read_disparity_mat(ref.reflective));
    check_size(sample.reflective_mask, ref.reflective, sample.left, ref.left);
  }
  if (!ref.objects.empty()) {
    sample.objects = read_objects(ref.objects);
    sample.objects_everywhere = ref.objects_everywhere;
    check_size(sample.objects, ref.objects, sample.left, ref.left);
  }
  if (!ref.right_objects.empty()) {
    sample.right_objects = read_objects(ref.right_objects);
    check_size(sample.right_objects, ref.right_objects, sample.left, ref.left);
  }
  if (!ref.surfaces.empty()) {
    read_objects(ref.surfaces).convertTo(sample.surfaces, CV_8U);
    check_size(sample.surfaces, ref.surfaces, sample.left, ref.left);
  }
  return sample;
}

}  // namespace nmrf
