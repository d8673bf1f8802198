// Resampling of images and maps against plain computations.
#include "kernels/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "matching/allocations.h"
#include "matching/pictures.h"

namespace nmrf::kernels {
namespace {

using test::noise_image;
using Sizes = std::array<int, 4>;  // width and height of the source, then of the result

// The weight that source pixel `at` (its place without the border) has for result pixel i.
using Weight = std::function<double(int i, int at, double scale)>;

double area_weight(int i, int at, double scale) {
  const double overlap = std::min((i + 1) * scale, at + 1.0) - std::max(i * scale, at + 0.0);
  return std::max(0.0, overlap) / scale;
}

double bicubic_weight(int i, int at, double scale) {
  const double a = -0.75, x = std::abs((i + 0.5) * scale - 0.5 - at);
  if (x >= 2) return 0;
  return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// Before rounding.
std::vector<double> filtered(const Image& image, int width, int height, const Weight& weight) {
  const double across = static_cast<double>(image.width()) / width;
  const double down = static_cast<double>(image.height()) / height;
  std::vector<double> result;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        for (int v = static_cast<int>(y * down) - 3; v <= (y + 1) * down + 3; ++v) {
          const double w = weight(y, v, down);
          if (w == 0) continue;
          const std::uint8_t* row = image.row(std::clamp(v, 0, image.height() - 1));
          for (int u = static_cast<int>(x * across) - 3; u <= (x + 1) * across + 3; ++u)
            sum += w * weight(x, u, across) * row[3 * std::clamp(u, 0, image.width() - 1) + c];
        }
        result.push_back(std::clamp(sum, 0.0, 255.0));
      }
  return result;
}

// In pieces of `piece` rows.
Image resampled(const Image& image, int width, int height, Resampling method, int piece) {
  Resampler resampler;
  resampler.prepare(method, image.width(), image.height(), width, height);
  std::vector<float> work(resampler.work_floats(), std::numeric_limits<float>::quiet_NaN());
  Image result(width, height);
  for (int y = 0; y < height; y += piece)
    resampler.rows(image.data(), static_cast<std::ptrdiff_t>(image.row_bytes()), result.data(),
                   static_cast<std::ptrdiff_t>(result.row_bytes()), y, std::min(height, y + piece),
                   work.data());
  return result;
}

void expect_near(const Image& image, const Sizes& s, Resampling method, const Weight& weight) {
  SCOPED_TRACE(::testing::Message() << s[0] << "x" << s[1] << " to " << s[2] << "x" << s[3]);
  const auto expected = filtered(image, s[2], s[3], weight);
  const Image found = resampled(image, s[2], s[3], method, s[3]);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(expected[i] - found.data()[i]));
  EXPECT_LT(worst, 0.7);  // half a grey level is rounding, the rest that of the weights
  for (int piece : {1, 3, 7}) {
    const Image pieces = resampled(image, s[2], s[3], method, piece);
    EXPECT_EQ(std::memcmp(pieces.data(), found.data(), expected.size()), 0) << piece;
  }
}

TEST(Resample, AreaMeans) {
  for (const Sizes& s : std::vector<Sizes>{{1, 1, 1, 1},
                                           {2, 2, 1, 1},
                                           {40, 30, 20, 15},
                                           {41, 31, 20, 15},
                                           {90, 61, 30, 20},
                                           {57, 43, 56, 43},
                                           {100, 80, 71, 57},
                                           {200, 3, 7, 1},
                                           {3, 90, 1, 31}})
    expect_near(noise_image(s[0], s[1], 3), s, Resampling::kArea, area_weight);
}

TEST(Resample, Bicubic) {
  for (const Sizes& s : std::vector<Sizes>{{1, 1, 2, 2},
                                           {1, 9, 3, 11},
                                           {2, 3, 5, 4},
                                           {20, 15, 40, 30},
                                           {31, 17, 47, 25},
                                           {33, 20, 33, 20},
                                           {64, 5, 101, 9}})
    expect_near(noise_image(s[0], s[1], 4), s, Resampling::kBicubic, bicubic_weight);
}

TEST(Resample, BlackAndWhiteStay) {
  for (int grey : {0, 255})
    for (auto method : {Resampling::kArea, Resampling::kBicubic}) {
      const Image image = noise_image(37, 21, 5, grey, grey + 1);
      const Image found = method == Resampling::kArea ? resampled(image, 17, 13, method, 5)
                                                      : resampled(image, 50, 31, method, 5);
      for (int y = 0; y < found.height(); ++y)
        for (std::size_t i = 0; i < found.row_bytes(); ++i) ASSERT_EQ(found.row(y)[i], grey);
    }
}

TEST(Resample, HalvingRoundsUp) {
  Image image(2, 2);
  for (int sum = 0; sum < 4 * 40; ++sum) {
    for (int i = 0; i < 4; ++i)
      for (int c = 0; c < 3; ++c)
        image.data()[3 * i + c] = static_cast<std::uint8_t>(sum / 4 + (i < sum % 4));
    EXPECT_EQ(resampled(image, 1, 1, Resampling::kArea, 1).data()[1], (sum + 2) / 4) << sum;
  }
}

TEST(Resample, TablesAreReused) {
  Resampler resampler;
  NearestResampler nearest;
  resampler.prepare(Resampling::kBicubic, 40, 30, 80, 60);
  nearest.prepare(80, 60, 40, 30);
  const auto before = test::allocations();
  resampler.prepare(Resampling::kBicubic, 40, 30, 80, 60);
  resampler.prepare(Resampling::kBicubic, 39, 29, 61, 47);  // smaller
  nearest.prepare(80, 60, 33, 30);
  EXPECT_EQ(test::allocations(), before);
}

TEST(Resample, Nearest) {
  for (const auto& [w, h, width, height] : std::vector<Sizes>{
           {1, 1, 1, 1}, {5, 3, 10, 6}, {10, 6, 5, 3}, {7, 9, 23, 4}, {64, 48, 41, 31}}) {
    FloatMap map = test::noise_map(w, h, 6, 0, 100), result(width, height);
    map.at(0, 0) = std::numeric_limits<float>::infinity();
    NearestResampler resampler;
    resampler.prepare(w, h, width, height);
    const int middle = height / 2;
    resampler.rows(map.data(), 0.37f, result.data(), middle, height);
    resampler.rows(map.data(), 0.37f, result.data(), 0, middle);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        ASSERT_EQ(result.at(y, x), 0.37f * map.at(y * h / height, x * w / width)) << y << " " << x;
  }
}

TEST(Resample, HalvesToFloat) {
  for (const auto& [w, h, width, height] : std::vector<Sizes>{
           {2, 2, 1, 1}, {1, 1, 1, 1}, {33, 7, 17, 4}, {130, 6, 65, 3}, {75, 9, 40, 8}}) {
    const Image image = noise_image(w, h, 7);
    std::vector<float> result(static_cast<std::size_t>(width * height * 3));
    const auto stride = static_cast<std::ptrdiff_t>(image.row_bytes());
    for (int y = 0; y < height; ++y)
      halve_to_float(image.data(), stride, w, h, result.data(), width, y, y + 1);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int c = 0; c < 3; ++c) {
          int sum = 0;
          for (int v : {2 * y, 2 * y + 1})
            for (int u : {2 * x, 2 * x + 1})
              sum += image.row(std::min(v, h - 1))[3 * std::min(u, w - 1) + c];
          ASSERT_EQ(result[static_cast<std::size_t>((y * width + x) * 3 + c)],
                    static_cast<float>(sum) / 4);
        }
  }
}

}  // namespace
}  // namespace nmrf::kernels
