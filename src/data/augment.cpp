#include "data/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "core/check.h"
#include "core/quantile.h"
#include "nmrf/disparity.h"

namespace nmrf {
namespace augment_parts {
namespace {

// Applies value -> table[value] to every channel.
template <class Function>
void map_values(cv::Mat& image, Function function) {
  cv::Mat table(1, 256, CV_8UC1);
  for (int i = 0; i < 256; ++i)
    table.at<std::uint8_t>(i) = cv::saturate_cast<std::uint8_t>(function(i));
  cv::LUT(image, table, image);
}

void adjust_brightness(const std::vector<cv::Mat*>& images, double factor) {
  for (cv::Mat* image : images) map_values(*image, [&](int value) { return value * factor; });
}

// Around the mean grey of all images together.
void adjust_contrast(const std::vector<cv::Mat*>& images, double factor) {
  double sum = 0, count = 0;
  for (const cv::Mat* image : images) {
    cv::Mat grey;
    cv::cvtColor(*image, grey, cv::COLOR_BGR2GRAY);
    sum += cv::sum(grey)[0];
    count += static_cast<double>(grey.total());
  }
  double mean = std::round(sum / std::max(count, 1.0));
  for (cv::Mat* image : images)
    map_values(*image, [&](int value) { return mean + (value - mean) * factor; });
}

void adjust_saturation(const std::vector<cv::Mat*>& images, double factor) {
  for (cv::Mat* image : images) {
    cv::Mat grey;
    cv::cvtColor(*image, grey, cv::COLOR_BGR2GRAY);
    cv::cvtColor(grey, grey, cv::COLOR_GRAY2BGR);
    cv::addWeighted(*image, factor, grey, 1 - factor, 0, *image);
  }
}

// `turn` = 1 goes once around the colour circle.
void adjust_hue(const std::vector<cv::Mat*>& images, double turn) {
  const int shift = static_cast<int>(std::lround(turn * 256)) & 255;
  if (shift == 0) return;
  for (cv::Mat* image : images) {
    cv::cvtColor(*image, *image, cv::COLOR_BGR2HSV_FULL);
    for (int row = 0; row < image->rows; ++row) {
      auto* pixels = image->ptr<cv::Vec3b>(row);
      for (int col = 0; col < image->cols; ++col)
        pixels[col][0] = static_cast<std::uint8_t>(pixels[col][0] + shift);
    }
    cv::cvtColor(*image, *image, cv::COLOR_HSV2BGR_FULL);
  }
}

// Calls `act(image)` for both images, and for those kept clean.
template <class Act>
void for_images(Sample& sample, Act&& act) {
  for (cv::Mat* image : {&sample.left, &sample.right, &sample.clean_left, &sample.clean_right})
    if (!image->empty()) act(*image);
}

// Calls `act(map, is_disparity)` for every map that is not empty, the images left out.
template <class Act>
void for_truth(Sample& sample, Act&& act) {
  for (cv::Mat* map : {&sample.disparity, &sample.right_disparity})
    if (!map->empty()) act(*map, true);
  for (cv::Mat* map : {&sample.noc_mask, &sample.reflective_mask, &sample.objects,
                       &sample.right_objects, &sample.segments, &sample.right_segments})
    if (!map->empty()) act(*map, false);
}

// Not in place: copies of a cv::Mat share their pixels.
cv::Mat flipped(const cv::Mat& map, int code) {
  cv::Mat out;
  cv::flip(map, out, code);
  return out;
}

// Moves every known pixel to its place in the new grid.
cv::Mat move_known(const cv::Mat& disparity, cv::Size size) {
  const double rx = static_cast<double>(size.width) / disparity.cols;
  const double ry = static_cast<double>(size.height) / disparity.rows;
  cv::Mat out(size, CV_32FC1, cv::Scalar(kInvalidDisparity));
  cv::Mat distance(size, CV_32FC1, cv::Scalar(kInvalidDisparity));
  for (int row = 0; row < disparity.rows; ++row) {
    const auto* values = disparity.ptr<float>(row);
    // Pixel centres are at half numbers, as cv::resize has them.
    const double y = (row + 0.5) * ry - 0.5;
    const int to_row = std::clamp(cvRound(y), 0, size.height - 1);
    auto* out_row = out.ptr<float>(to_row);
    auto* distance_row = distance.ptr<float>(to_row);
    for (int col = 0; col < disparity.cols; ++col) {
      if (!std::isfinite(values[col])) continue;
      const double x = (col + 0.5) * rx - 0.5;
      const int to = std::clamp(cvRound(x), 0, size.width - 1);
      const auto away = static_cast<float>((x - to) * (x - to) + (y - to_row) * (y - to_row));
      const auto value = static_cast<float>(values[col] * rx);
      // Equally close: the nearer surface, which hides the other.
      if (away > distance_row[to] || (away == distance_row[to] && value <= out_row[to])) continue;
      distance_row[to] = away;
      out_row[to] = value;
    }
  }
  return out;
}

}  // namespace

void jitter_colours(std::vector<cv::Mat*> images, const AugmentRanges& ranges, Rng& rng) {
  const double brightness = rng.uniform(1 - ranges.brightness, 1 + ranges.brightness);
  const double contrast = rng.uniform(1 - ranges.contrast, 1 + ranges.contrast);
  const double saturation = rng.uniform(ranges.saturation_low, ranges.saturation_high);
  const double hue = rng.uniform(-ranges.hue, ranges.hue);
  std::vector<int> order{0, 1, 2, 3};
  rng.shuffle(order);
  for (int step : order) {
    if (step == 0) adjust_brightness(images, std::max(brightness, 0.0));
    if (step == 1) adjust_contrast(images, std::max(contrast, 0.0));
    if (step == 2) adjust_saturation(images, saturation);
    if (step == 3) adjust_hue(images, hue);
  }
}

void erase_patches(cv::Mat& image, const AugmentOptions& options, Rng& rng) {
  const cv::Scalar mean = cv::mean(image);
  const auto count = rng.integer(1, options.eraser_count);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<int>(rng.integer(0, image.cols - 1));
    const auto y = static_cast<int>(rng.integer(0, image.rows - 1));
    const auto width = static_cast<int>(rng.integer(options.eraser_low, options.eraser_high));
    const auto height = static_cast<int>(rng.integer(options.eraser_low, options.eraser_high));
    const cv::Rect patch = cv::Rect(x, y, width, height) & cv::Rect({0, 0}, image.size());
    image(patch).setTo(mean);
  }
}

void mirror_and_swap(Sample& sample) {
  check(!sample.right_disparity.empty(), ErrorKind::kUsage,
        "sample {}: cannot be mirrored, the disparity of its right view is not known", sample.name);
  std::swap(sample.left, sample.right);
  std::swap(sample.clean_left, sample.clean_right);
  std::swap(sample.disparity, sample.right_disparity);
  std::swap(sample.segments, sample.right_segments);
  std::swap(sample.objects, sample.right_objects);
  for_images(sample, [](cv::Mat& image) { image = flipped(image, 1); });
  for (cv::Mat* map : {&sample.disparity, &sample.right_disparity, &sample.segments,
                       &sample.right_segments, &sample.objects, &sample.right_objects})
    if (!map->empty()) *map = flipped(*map, 1);
  sample.noc_mask.release();
  sample.reflective_mask.release();
}

void flip_vertically(Sample& sample) {
  for_images(sample, [](cv::Mat& image) { image = flipped(image, 0); });
  for_truth(sample, [](cv::Mat& map, bool) { map = flipped(map, 0); });
}

void resize(Sample& sample, cv::Size size) {
  const double ratio = static_cast<double>(size.width) / sample.left.cols;
  for_images(sample, [&](cv::Mat& image) {
    cv::Mat out;
    cv::resize(image, out, size, 0, 0, cv::INTER_LINEAR);
    image = out;
  });
  for_truth(sample, [&](cv::Mat& map, bool is_disparity) {
    cv::Mat out;
    if (is_disparity && sample.sparse) {
      out = move_known(map, size);
    } else {
      // INTER_NEAREST_EXACT refuses 32-bit integers; a float holds the same 32 bits.
      cv::Mat same =
          map.depth() == CV_32S ? cv::Mat(map.size(), CV_32FC1, map.data, map.step) : map;
      cv::resize(same, out, size, 0, 0, cv::INTER_NEAREST_EXACT);
      if (map.depth() == CV_32S) out = cv::Mat(out.size(), CV_32SC1, out.data, out.step).clone();
      if (is_disparity) out *= ratio;  // infinity stays
    }
    map = out;
  });
}

void crop(Sample& sample, cv::Rect window) {
  const cv::Rect inside = window & cv::Rect({0, 0}, sample.left.size());
  const int right = window.width - inside.width, bottom = window.height - inside.height;
  auto cut = [&](cv::Mat& map, int border, const cv::Scalar& value) {
    cv::Mat out;  // a copy, so that the whole image is freed
    cv::copyMakeBorder(map(inside), out, 0, bottom, 0, right, border | cv::BORDER_ISOLATED, value);
    map = out;
  };
  for_images(sample, [&](cv::Mat& image) { cut(image, cv::BORDER_REPLICATE, {}); });
  for_truth(sample, [&](cv::Mat& map, bool is_disparity) {
    cut(map, cv::BORDER_CONSTANT,
        is_disparity ? cv::Scalar(kInvalidDisparity) : cv::Scalar::all(0));
  });
}

}  // namespace augment_parts

namespace {

// The largest scale, as a power of two, that keeps the near disparities below `limit` pixels; an
// image that has larger ones is not enlarged.
double largest_scale(const cv::Mat& disparity, double limit) {
  constexpr double kNearShare = 0.98;
  std::vector<float> known;
  for (int row = 0; row < disparity.rows; ++row)
    for (int col = 0; col < disparity.cols; ++col)
      if (float value = disparity.at<float>(row, col); std::isfinite(value)) known.push_back(value);
  return std::max(0.0, std::log2(limit / std::max(quantile(known, kNearShare), 1.0f)));
}

}  // namespace

void AugmentOptions::validate() const {
  auto need = [](bool ok, const char* setting, const char* expected) {
    check(ok, ErrorKind::kUsage, "setting '{}' of the augmentation: expected {}", setting,
          expected);
  };
  auto share = [](double value) { return value >= 0 && value <= 1; };
  constexpr int kMaxSide = 1 << 15;
  need(crop_height >= 0 && crop_height <= kMaxSide, "crop_height", "0 to 32768 pixels");
  need(crop_width >= 0 && crop_width <= kMaxSide, "crop_width", "0 to 32768 pixels");
  for (const auto& [ranges, keys] : {std::pair{&dense, &kDenseKeys}, {&sparse, &kSparseKeys}}) {
    need(share(ranges->brightness), (*keys)[0], "0 to 1");
    need(share(ranges->contrast), (*keys)[1], "0 to 1");
    need(ranges->saturation_low >= 0 && ranges->saturation_low <= ranges->saturation_high,
         (*keys)[2], "0 or more, and no more than saturation_high");
    need(ranges->saturation_high <= 10, (*keys)[3], "10 or less");
    need(ranges->hue >= 0 && ranges->hue <= 0.5, (*keys)[4], "0 to 0.5");
    need(ranges->scale_low >= -3 && ranges->scale_low <= ranges->scale_high, (*keys)[5],
         "-3 or more, and no more than scale_high");
    need(ranges->scale_high <= 3, (*keys)[6], "3 or less");
  }
  need(share(asymmetric), "asymmetric", "a probability, 0 to 1");
  need(share(eraser), "eraser", "a probability, 0 to 1");
  need(eraser_low >= 1 && eraser_low <= eraser_high, "eraser_low",
       "1 or more, and no more than eraser_high");
  need(eraser_high <= kMaxSide, "eraser_high", "32768 or less");
  need(eraser_count >= 1 && eraser_count <= 100, "eraser_count", "1 to 100");
  need(share(mirror), "mirror", "a probability, 0 to 1");
  need(share(flip), "flip", "a probability, 0 to 1");
  need(scale_disp >= 0, "scale_disp", "0 or more pixels");
}

Sample augment(Sample sample, const AugmentOptions& options, Rng& rng) {
  sample.noc_disparity.release();
  sample.surfaces.release();
  namespace parts = augment_parts;
  const AugmentRanges& ranges = sample.sparse ? options.sparse : options.dense;
  if (options.keep_clean) {
    sample.clean_left = sample.left;
    sample.clean_right = sample.right;
  }
  if (options.enabled) {
    // The caller's pixels may be shared: cv::Mat copies are shallow.
    sample.left = sample.left.clone();
    sample.right = sample.right.clone();
    if (rng.chance(options.asymmetric)) {
      parts::jitter_colours({&sample.left}, ranges, rng);
      parts::jitter_colours({&sample.right}, ranges, rng);
    } else {
      parts::jitter_colours({&sample.left, &sample.right}, ranges, rng);
    }
  }
  const bool mirror = options.enabled && rng.chance(options.mirror);
  const bool flip = options.enabled && rng.chance(options.flip);
  if (mirror && !sample.right_disparity.empty()) parts::mirror_and_swap(sample);
  if (flip) parts::flip_vertically(sample);
  // After the views changed sides: what is erased in the right one is as if hidden.
  if (options.enabled && rng.chance(options.eraser))
    parts::erase_patches(sample.right, options, rng);

  auto crop_of = [&](cv::Size image) {
    return cv::Size(options.crop_width > 0 ? options.crop_width : image.width,
                    options.crop_height > 0 ? options.crop_height : image.height);
  };
  if (options.enabled && (ranges.scale_low != 0 || ranges.scale_high != 0)) {
    double high = ranges.scale_high;
    if (options.scale_disp > 0)
      high =
          std::clamp(largest_scale(sample.disparity, options.scale_disp), ranges.scale_low, high);
    const double scale = std::exp2(rng.uniform(ranges.scale_low, high));
    // Never so small that an image which holds the crop has to be padded.
    const cv::Size old = sample.left.size();
    auto least = [](int crop, int side) {
      return crop > 0 ? static_cast<double>(std::min(crop, side)) / side : 0.0;
    };
    const double used = std::max(
        {scale, least(options.crop_width, old.width), least(options.crop_height, old.height)});
    const cv::Size size(std::max(1, cvRound(old.width * used)),
                        std::max(1, cvRound(old.height * used)));
    if (size != old) parts::resize(sample, size);
  }

  const cv::Size now = sample.left.size(), crop = crop_of(now);
  const cv::Size room(std::max(0, now.width - crop.width), std::max(0, now.height - crop.height));
  cv::Rect window({room.width / 2, room.height / 2}, crop);
  if (options.enabled) {
    window.x = static_cast<int>(rng.integer(0, room.width));
    window.y = static_cast<int>(rng.integer(0, room.height));
  }
  if (window != cv::Rect({0, 0}, now)) parts::crop(sample, window);
  return sample;
}

}  // namespace nmrf
