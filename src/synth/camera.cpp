#include "synth/camera.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "data/mats.h"
#include "io/formats.h"

namespace nmrf::synth {

namespace {

// Offset, rotation and scale in random parts, the largest displacement in the window being `most`
// pixels.
Misalignment draw_misalignment(const SynthOptions& options, Dice& d, float cx, float cy,
                               float most) {
  auto width = static_cast<float>(options.width), height = static_cast<float>(options.height);
  Misalignment off{d.real(-1, 1), d.real(-0.5, 0.5) / width, d.real(-0.5, 0.5) / height};
  float largest = 1e-6f;
  for (float x : {0.f, width - 1})
    for (float y : {0.f, height - 1})
      largest =
          std::max(largest, std::abs(off.shift + off.turn * (x - cx) + off.stretch * (y - cy)));
  float scale = most / largest;
  return {off.shift * scale, off.turn * scale, off.stretch * scale};
}

}  // namespace

CameraModel::CameraModel(const SynthOptions& options, Dice& dice, float cx, float cy)
    : options_(options), dice_(dice.fork()) {
  Dice d = dice.fork();
  bright_ = d.real(0.55, 1.12);
  quantile_ = d.real(0.84, 0.99);
  float gamma = d.real(1.9, 2.5);
  curve_ = d.chance(0.5) ? d.real(0, 0.7) : 0;
  black_ = d.chance(0.25) ? d.real(0, 0.06) : 0;
  saturation_ = d.chance(0.4) ? d.real(0.4, 1.3) : 1;
  float cast = d.chance(0.5) ? 0.12f : 0.03f;  // colour cast of the light, common to both eyes
  Vec3 common{std::exp(d.normal(cast)), 1, std::exp(d.normal(cast))};
  bool differ = d.chance(0.6);
  float blur = d.chance(0.7) ? d.real(0.25, 0.8) : 0.2f;
  if (d.chance(0.06)) blur = d.real(0.8, 1.6);
  for (auto& eye : eyes_) {
    float e = static_cast<float>(options.exposure) * (differ ? 0.07f : 0.01f);
    float w = static_cast<float>(options.white_balance) * (differ ? 0.025f : 0.005f);
    eye.exposure = std::exp(d.normal(e));
    eye.balance =
        common * Vec3{std::exp(d.normal(w)), std::exp(d.normal(0.3 * w)), std::exp(d.normal(w))};
    eye.gamma = gamma * std::exp(d.normal(0.15 * e));
    eye.blur = static_cast<float>(options.blur) * blur * std::exp(d.normal(0.1));
  }
  float level = static_cast<float>(options.noise) *
                (d.chance(0.75) ? d.log_real(0.002, 0.012) : d.log_real(0.012, 0.035));
  read_ = level * d.real(0.2, 1), shot_ = level * d.real(0.3, 1);
  coarse_noise_ = d.chance(0.25);
  vignette_ = static_cast<float>(options.vignette) * (d.chance(0.5) ? d.real(0.05, 0.45) : 0);
  if (options.blur > 0 && d.chance(0.05)) motion_ = d.real(1.5, 5), motion_angle_ = d.real(0, kPi);
  if (d.chance(options.jpeg)) jpeg_ = d.count(55, 95);
  grey_ = d.chance(options.grey);
  if (options.rectification > 0 && d.chance(0.4)) {
    // Mostly a tenth of a pixel, sometimes close to one.
    float strength = static_cast<float>(options.rectification) * d.log_real(0.03, 0.6);
    right_off_ = {d.real(-1, 1) * strength,
                  d.real(-1, 1) * strength / static_cast<float>(options.width),
                  d.real(-1, 1) * strength / static_cast<float>(2 * options.height)};
  }
  // Settings that came later draw last.
  if (options.vertical > 0 && d.chance(0.5))
    right_off_ = draw_misalignment(options, d, cx, cy, d.real(0, options.vertical));
  if (options.asymmetric > 0 && d.chance(options.asymmetric))
    eyes_[d.chance(0.5) ? 1 : 0].exposure *= d.log_real(0.5, 2);
  if (options.row_noise > 0)
    row_noise_ = static_cast<float>(options.row_noise) * d.log_real(0.001, 0.01);
}

namespace {

// Brightness below which the given share of the pixels lies.
float brightness_quantile(const cv::Mat& linear, float share) {
  std::vector<float> values;
  for (int y = 0; y < linear.rows; y += 4) {
    const auto* row = linear.ptr<Vec3>(y);
    for (int x = 0; x < linear.cols; x += 4) values.push_back(luminance(row[x]));
  }
  auto at =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<float>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

cv::Mat motion_kernel(float size, float angle) {
  int half = static_cast<int>(std::ceil(size / 2)) + 1, side = 2 * half + 1;
  cv::Mat kernel(side, side, CV_32FC1, cv::Scalar(0));
  for (int i = 0; i <= 64; ++i) {
    float at = (static_cast<float>(i) / 64 - 0.5f) * size;
    float x = static_cast<float>(half) + at * std::cos(angle),
          y = static_cast<float>(half) + at * std::sin(angle);
    int ix = static_cast<int>(x), iy = static_cast<int>(y);
    float fx = x - static_cast<float>(ix), fy = y - static_cast<float>(iy);
    kernel.at<float>(iy, ix) += (1 - fx) * (1 - fy), kernel.at<float>(iy, ix + 1) += fx * (1 - fy);
    kernel.at<float>(iy + 1, ix) += (1 - fx) * fy, kernel.at<float>(iy + 1, ix + 1) += fx * fy;
  }
  return kernel / cv::sum(kernel)[0];
}

}  // namespace

void CameraModel::develop(const cv::Mat& left, const cv::Mat& right, float cx, float cy,
                          float sensor, cv::Mat& left_out, cv::Mat& right_out) {
  float level = std::max(brightness_quantile(left, quantile_), 1e-4f);
  float gain = std::pow(bright_, eyes_[0].gamma) / level;
  left_out = develop_one(left, false, gain, cx, cy, sensor);
  right_out = develop_one(right, true, gain, cx, cy, sensor);
}

cv::Mat CameraModel::develop_one(const cv::Mat& linear, bool right, float gain, float cx, float cy,
                                 float sensor) {
  const Eye& eye = eyes_[right ? 1 : 0];
  cv::Mat image;
  // What is much brighter than white stays so on the sensor; without a limit a lamp would bloom.
  cv::min(linear, cv::Scalar::all(4 / std::max(gain, 1e-6f)), image);
  if (motion_ > 0)
    cv::filter2D(image, image, -1, motion_kernel(motion_, motion_angle_), {-1, -1}, 0,
                 cv::BORDER_REPLICATE);
  if (eye.blur > 0.1f) cv::GaussianBlur(image, image, {}, eye.blur, eye.blur, cv::BORDER_REPLICATE);
  cv::Mat noise;
  if (read_ > 0) {
    // Four sums of two bytes are close enough to a bell, and ten times faster than a logarithm.
    noise.create(image.size(), CV_32FC3);
    for (int y = 0; y < noise.rows; ++y) {
      auto* row = noise.ptr<float>(y);
      for (int x = 0; x < 3 * noise.cols; ++x) {
        std::uint64_t bits = dice_.next();
        int sum = 0;
        for (int k = 0; k < 8; ++k) sum += static_cast<int>((bits >> (8 * k)) & 255);
        row[x] = (static_cast<float>(sum) - 1020) * (1 / 209.f);
      }
    }
    if (coarse_noise_) {  // demosaicing smears noise over neighbours
      cv::GaussianBlur(noise, noise, {}, 0.7);
      noise *= 1.8;
    }
  }
  std::vector<float> bands(row_noise_ > 0 ? static_cast<std::size_t>(image.rows) : 0);
  for (auto& band : bands) band = dice_.normal(row_noise_);
  Vec3 balance = eye.balance * (gain * eye.exposure);
  float inverse_gamma = 1 / eye.gamma;
  // The power as a table over the square root of the level: fast, and fine near black.
  constexpr int kSteps = 4096;
  std::vector<float> table(kSteps + 1);
  for (int i = 0; i <= kSteps; ++i) {
    float t = static_cast<float>(i) / kSteps * 1.1f;
    float v = std::min(std::pow(t * t, inverse_gamma), 1.f);
    v = mix(v, v * v * (3 - 2 * v), curve_);
    table[static_cast<std::size_t>(i)] = black_ + (1 - black_) * v;
  }
  cv::Mat out(image.size(), CV_8UC3);
  for (int y = 0; y < image.rows; ++y) {
    const auto* row = image.ptr<Vec3>(y);
    const auto* grain = read_ > 0 ? noise.ptr<Vec3>(y) : nullptr;
    auto* bytes = out.ptr<cv::Vec3b>(y);
    for (int x = 0; x < image.cols; ++x) {
      Vec3 c = row[x] * balance;
      if (vignette_ > 0) {
        float dx = (static_cast<float>(x) - cx) / sensor,
              dy = (static_cast<float>(y) - cy) / sensor;
        c = c * (1 - vignette_ * (dx * dx + dy * dy));
      }
      if (saturation_ != 1) {
        float g = luminance(c);
        c = mix(Vec3{g, g, g}, c, saturation_);
      }
      auto level = [&](float v) {
        float at = std::min(std::sqrt(std::max(v, 0.f)) / 1.1f, 1.f) * kSteps;
        return table[static_cast<std::size_t>(at + 0.5f)];
      };
      Vec3 v{level(c.x), level(c.y), level(c.z)};
      if (grey_) {
        float g = 0.299f * v.x + 0.587f * v.y + 0.114f * v.z;
        v = {g, g, g};
      }
      if (grain) {
        Vec3 n = grain[x];
        if (grey_) n = {n.x, n.x, n.x};
        v.x += n.x * (read_ + shot_ * std::sqrt(v.x));
        v.y += n.y * (read_ + shot_ * std::sqrt(v.y));
        v.z += n.z * (read_ + shot_ * std::sqrt(v.z));
      }
      if (!bands.empty()) {
        float band = bands[static_cast<std::size_t>(y)];
        v = v + Vec3{band, band, band};
      }
      auto byte = [](float f) { return static_cast<std::uint8_t>(clamp01(f) * 255 + 0.5f); };
      bytes[x] = {byte(v.z), byte(v.y), byte(v.x)};
    }
  }
  if (jpeg_ > 0) {
    const std::string file = formats::encode_jpeg(nmrf::view(out), "a rendered image", jpeg_);
    out = bgr_of(formats::decode_jpeg(file, "a rendered image").image);
    if (grey_) {
      cv::Mat grey;
      cv::cvtColor(out, grey, cv::COLOR_BGR2GRAY);
      cv::cvtColor(grey, out, cv::COLOR_GRAY2BGR);
    }
  }
  return out;
}

}  // namespace nmrf::synth
