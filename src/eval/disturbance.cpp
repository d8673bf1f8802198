#include "eval/disturbance.h"

#include <charconv>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <string_view>

#include "core/check.h"
#include "io/formats.h"
#include "nmrf/opencv.h"

namespace nmrf {

Disturbance::Disturbance(const std::string& text) : name_(text) {
  struct Kind {
    std::string_view name;
    double* value;
    double least, most;
  };
  double quality = 0;
  const Kind kinds[] = {{"dy", &dy_, -1000, 1000},
                        {"rotate", &degrees_, -180, 180},
                        {"scale", &scale_, 0.1, 10},
                        {"blur", &blur_, 0, 100},
                        {"brightness", &brightness_, 0.01, 100},
                        {"noise", &noise_, 0, 255},
                        {"jpeg", &quality, 1, 100}};
  std::string_view rest = text;
  while (true) {
    const std::string_view step = rest.substr(0, rest.find('+'));
    const std::size_t equals = step.find('=');
    const Kind* kind = nullptr;
    for (const Kind& candidate : kinds)
      if (step.substr(0, equals) == candidate.name) kind = &candidate;
    check(kind && equals != std::string_view::npos, ErrorKind::kUsage,
          "disturbance '{}': expected dy, rotate, scale, brightness, blur, noise or jpeg and a "
          "value, such as dy=1, several joined by +",
          step);
    const std::string_view number = step.substr(equals + 1);
    auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), *kind->value);
    check(code == std::errc() && end == number.data() + number.size() &&
              *kind->value >= kind->least && *kind->value <= kind->most,
          ErrorKind::kUsage, "disturbance '{}': expected a number from {} to {}", step, kind->least,
          kind->most);
    if (step.size() == rest.size()) break;
    rest.remove_prefix(step.size() + 1);
  }
  jpeg_ = static_cast<int>(std::lround(quality));
}

cv::Mat Disturbance::apply(const cv::Mat& image) const {
  cv::Mat result = image.clone();
  if (dy_ != 0 || degrees_ != 0 || scale_ != 1) {
    // cv's angles are counter-clockwise.
    cv::Mat transform = cv::getRotationMatrix2D(
        cv::Point2f(static_cast<float>(image.cols - 1) / 2, static_cast<float>(image.rows - 1) / 2),
        -degrees_, scale_);
    transform.at<double>(1, 2) += dy_;
    cv::warpAffine(image, result, transform, image.size(), cv::INTER_CUBIC, cv::BORDER_REPLICATE);
  }
  if (brightness_ != 1) result.convertTo(result, -1, brightness_);
  if (blur_ > 0) cv::GaussianBlur(result, result, cv::Size(), blur_);
  if (noise_ > 0) {
    cv::Mat noise(result.size(), CV_16SC3), sum;
    cv::RNG rng(1);
    rng.fill(noise, cv::RNG::NORMAL, 0, noise_);
    result.convertTo(sum, CV_16SC3);
    sum += noise;
    sum.convertTo(result, CV_8UC3);
  }
  if (jpeg_ > 0) {
    const std::string file = formats::encode_jpeg(view(result), "the disturbed image", jpeg_);
    Image decoded = formats::decode_jpeg(file, "the disturbed image").image;
    cv::cvtColor(mat(decoded), result, cv::COLOR_RGB2BGR);
  }
  return result;
}

}  // namespace nmrf
