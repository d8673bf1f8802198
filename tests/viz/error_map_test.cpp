#include "viz/error_map.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "io/maps.h"
#include "nmrf/disparity.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

using Rgb = std::array<std::uint8_t, 3>;

Rgb color(const Image& image, int y, int x) {
  const std::uint8_t* from = image.row(y) + 3 * x;
  return {from[0], from[1], from[2]};
}

const Rgb kBlack{};

TEST(ErrorMap, MeasureAgreesWithD1) {
  // n > 1 exactly when the pixel is wrong by KITTI's rule.
  for (float truth : {0.5f, 1.0f, 10.0f, 59.0f, 60.0f, 61.0f, 100.0f, 200.0f})
    for (float error : {0.0f, 0.5f, 2.9f, 3.1f, 4.9f, 5.1f, 9.9f, 10.1f, 50.0f})
      for (float sign : {1.0f, -1.0f}) {
        const bool wrong = error > 3 && error / truth > 0.05f;
        EXPECT_EQ(kitti_error(truth + sign * error, truth) > 1, wrong) << truth << " " << error;
      }
  EXPECT_FLOAT_EQ(kitti_error(16, 10), 2);       // 6/3 = 2 against 20*6/10 = 12
  EXPECT_FLOAT_EQ(kitti_error(206, 200), 0.6f);  // 2 against 20*6/200
  EXPECT_FLOAT_EQ(kitti_error(6, 0), 2);
  EXPECT_EQ(kitti_error(kInvalidDisparity, 5), kInvalidDisparity);
  EXPECT_EQ(kitti_error(std::numeric_limits<float>::quiet_NaN(), 5), kInvalidDisparity);
}

TEST(ErrorMap, TenColours) {
  const std::vector<float> edges = {0.0625f, 0.125f, 0.25f, 0.5f, 1, 2, 4, 8, 16};
  std::vector<Rgb> colors = {kitti_error_color(0)};
  for (float edge : edges) {
    EXPECT_EQ(kitti_error_color(std::nextafter(edge, 0.0f)), colors.back()) << edge;
    EXPECT_NE(kitti_error_color(edge), colors.back()) << edge;
    colors.push_back(kitti_error_color(edge));
  }
  EXPECT_EQ(colors.front(), (Rgb{49, 54, 149}));  // dark blue
  EXPECT_EQ(colors.back(), (Rgb{165, 0, 38}));    // dark red
  EXPECT_EQ(kitti_error_color(kInvalidDisparity), colors.back());
  for (std::size_t i = 0; i < 5; ++i) EXPECT_LT(colors[i][0], colors[i][2]);   // right: more blue
  for (std::size_t i = 5; i < 10; ++i) EXPECT_GT(colors[i][0], colors[i][2]);  // wrong: more red
}

TEST(ErrorMap, PaintsWhereTruthIs) {
  FloatMap truth(4, 3, 10), predicted(4, 3, 10);
  truth.at(0, 0) = kInvalidDisparity;
  predicted.at(1, 1) = 16;
  predicted.at(2, 2) = kInvalidDisparity;
  ByteMap occluded(4, 3);
  occluded.at(1, 1) = 255;
  occluded.at(2, 3) = 1;
  const Image picture = error_map(predicted, truth, occluded);
  ASSERT_EQ(picture.channels(), 3);
  EXPECT_EQ(color(picture, 0, 0), kBlack);
  EXPECT_EQ(color(picture, 0, 1), kitti_error_color(0));
  const Rgb bright = kitti_error_color(2), half = color(picture, 1, 1);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(half[c], bright[c] / 2);
  EXPECT_EQ(color(picture, 2, 2), kitti_error_color(1000));
  EXPECT_EQ(color(picture, 2, 3)[0], kitti_error_color(0)[0] / 2);
  EXPECT_EQ(color(error_map(predicted, truth), 1, 1), bright);
}

TEST(ErrorMap, DilationFillsAroundSparseTruth) {
  FloatMap truth(7, 5, kInvalidDisparity);
  const FloatMap predicted(7, 5, 10);
  truth.at(0, 0) = 10;  // right
  truth.at(2, 3) = 16;  // n = 2
  truth.at(2, 5) = 28;  // n = 6
  const Image picture = error_map(predicted, truth, {}, {.dilate = true});
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 7; ++x) {
      // Independent of the code: the worst over the window, unless the pixel has truth itself.
      float worst = -1;
      for (int v = 0; v < 5; ++v)
        for (int u = 0; u < 7; ++u)
          if (std::abs(v - y) <= 1 && std::abs(u - x) <= 1 && std::isfinite(truth.at(v, u)))
            worst = std::max(worst, kitti_error(10, truth.at(v, u)));
      if (std::isfinite(truth.at(y, x))) worst = kitti_error(10, truth.at(y, x));
      EXPECT_EQ(color(picture, y, x), worst < 0 ? kBlack : kitti_error_color(worst))
          << x << "," << y;
    }
  // Without it only the three pixels with truth are painted, and no channel of theirs is 0.
  const Image sparse = error_map(predicted, truth);
  EXPECT_EQ(std::count(sparse.data(), sparse.data() + 3 * 7 * 5, 0), 3 * 7 * 5 - 9);
}

TEST(ErrorMap, Refuses) {
  const FloatMap map(3, 2, 1);
  error_of(ErrorKind::kUsage, [&] { error_map(map, FloatMap()); });
  error_of(ErrorKind::kUsage, [&] { error_map(FloatMap(), map); });
  const std::string message =
      error_of(ErrorKind::kUsage, [&] { error_map(FloatMap(2, 3, 1), map); });
  EXPECT_NE(message.find("2x3"), std::string::npos);
  EXPECT_NE(message.find("3x2"), std::string::npos);
  error_of(ErrorKind::kUsage, [&] { error_map(map, map, ByteMap(2, 2)); });
}

}  // namespace
}  // namespace nmrf
