// Axes, smoothing, and sheets of charts on both kinds of paper.
#include "plot/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "io/formats.h"
#include "nmrf/opencv.h"
#include "support/support.h"

namespace nmrf {
namespace {

TEST(ChartAxis, LinearTicksAreRound) {
  struct Case {
    double lo, hi;
    int wanted;
    std::vector<std::string> texts;
  };
  for (const Case& c :
       std::vector<Case>{{0, 97, 5, {"0", "20", "40", "60", "80", "100"}},
                         {0.31, 0.74, 5, {"0.3", "0.4", "0.5", "0.6", "0.7", "0.8"}},
                         {-3, 4, 4, {"-4", "-2", "0", "2", "4"}},
                         {0, 300000, 6, {"0k", "50k", "100k", "150k", "200k", "250k", "300k"}},
                         {0, 2.5e6, 3, {"0M", "1M", "2M", "3M"}},
                         {0, 5e-4, 5, {"0", "1e-4", "2e-4", "3e-4", "4e-4", "5e-4"}}}) {
    Axis axis = make_axis(c.lo, c.hi, c.wanted, false, true);
    std::vector<std::string> expected = c.texts;
    if (expected[0] == "0k" || expected[0] == "0M") expected[0] = "0";
    EXPECT_EQ(axis.texts, expected) << c.lo << " to " << c.hi;
    EXPECT_LE(axis.lo, c.lo);
    EXPECT_GE(axis.hi, c.hi);
    EXPECT_EQ(axis.lo, axis.ticks.front());
    EXPECT_EQ(axis.hi, axis.ticks.back());
  }
}

TEST(ChartAxis, WithoutSnappingTheEndsStay) {
  Axis axis = make_axis(7, 1234, 5, false, false);
  EXPECT_EQ(axis.lo, 7);
  EXPECT_EQ(axis.hi, 1234);
  EXPECT_EQ(axis.texts, (std::vector<std::string>{"500", "1000"}));
  EXPECT_DOUBLE_EQ(axis.place(7), 0);
  EXPECT_DOUBLE_EQ(axis.place(1234), 1);
}

TEST(ChartAxis, ConstantsGetRoom) {
  for (double value : {0.0, 5.0, -2.0, 1e-7, 3e8}) {
    Axis axis = make_axis(value, value, 4, false, true);
    EXPECT_LT(axis.lo, value);
    EXPECT_GT(axis.hi, value);
    EXPECT_GE(axis.ticks.size(), 2u);
    EXPECT_LE(axis.ticks.size(), 8u);
  }
}

TEST(ChartAxis, LogarithmicTicks) {
  Axis few = make_axis(0.3, 4, 6, true, true);
  EXPECT_EQ(few.texts, (std::vector<std::string>{"0.2", "0.5", "1", "2", "5"}));
  Axis many = make_axis(2e-6, 30, 8, true, true);
  EXPECT_EQ(many.texts.front(), "1e-6");
  EXPECT_EQ(many.texts.back(), "100");
  EXPECT_DOUBLE_EQ(many.place(many.lo), 0);
  EXPECT_DOUBLE_EQ(many.place(many.hi), 1);
  EXPECT_NEAR(many.place(std::sqrt(many.lo * many.hi)), 0.5, 1e-12);
  Axis wide = make_axis(1e-12, 1e12, 5, true, true);
  EXPECT_LE(wide.ticks.size(), 8u);
  EXPECT_LE(wide.lo, 1e-12);
  EXPECT_GE(wide.hi, 1e12 * (1 - 1e-9));
  Axis constant = make_axis(1, 1, 4, true, true);
  EXPECT_LT(constant.lo, constant.hi);
  test::error_of(ErrorKind::kUsage, [] { make_axis(0, 1, 4, true, true); });
  test::error_of(ErrorKind::kUsage, [] { make_axis(0, NAN, 4, false, true); });
}

TEST(ChartSmoothing, IsADebiasedAverage) {
  std::vector<cv::Point2d> points;
  for (int i = 0; i < 20; ++i) points.emplace_back(i, std::sin(i) + 3);
  points[7].y = NAN;
  const double weight = 0.8;
  auto result = smoothed(points, weight);
  for (std::size_t n = 0; n < points.size(); ++n) {
    // Independently: weights 0.8^age over the finite values so far.
    double sum = 0, mass = 0, power = 1;
    for (std::size_t i = n + 1; i-- > 0;) {
      if (std::isnan(points[i].y)) continue;
      sum += power * points[i].y;
      mass += power;
      power *= weight;
    }
    if (n == 7)
      EXPECT_TRUE(std::isnan(result[n].y));
    else
      EXPECT_NEAR(result[n].y, sum / mass, 1e-12) << n;
  }
  EXPECT_EQ(smoothed(points, 0)[3], points[3]);
  test::error_of(ErrorKind::kUsage, [&] { smoothed(points, 1); });
}

ChartSheet sheet_of(std::vector<cv::Point2d> points) {
  ChartSheet sheet;
  sheet.title = "run <1> & more";
  sheet.x_title = "updates";
  sheet.legend.push_back({"training", {line_ink(0), 2}});
  ChartPanel panel;
  panel.title = "loss";
  panel.series.push_back({std::move(points), {line_ink(0), 2}});
  sheet.panels.push_back(panel);
  return sheet;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ChartSheet, SvgHoldsLinesMarksAndEscapedText) {
  ChartSheet sheet = sheet_of({{0, 1}, {10, 4}, {20, NAN}, {30, 2}, {40, 3}});
  sheet.marks.push_back({20, "stage 2", {90, 90, 90}});
  sheet.marks.push_back({400, "outside", {90, 90, 90}});
  const cv::Size size(480, 320);
  auto canvas = make_canvas("x.svg", size);
  draw_sheet(*canvas, size, sheet);
  const std::string svg = canvas->bytes();
  EXPECT_EQ(svg.rfind("<svg xmlns", 0), 0u);
  EXPECT_NE(svg.find("run &lt;1&gt; &amp; more"), std::string::npos);
  EXPECT_EQ(count_of(svg, ">stage 2<"), 1);
  EXPECT_EQ(count_of(svg, ">outside<"), 0);
  // The gap parts the curve in two; one more line of that colour is the legend's.
  EXPECT_EQ(count_of(svg, "stroke=\"#2563eb\""), 3);
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 1);
}

TEST(ChartSheet, SvgPointsLieWhereTheAxesSay) {
  ChartSheet sheet = sheet_of({{0, 0}, {50, 5}, {100, 10}});
  sheet.legend.clear();
  const cv::Size size(480, 320);
  auto canvas = make_canvas("x.svg", size);
  draw_sheet(*canvas, size, sheet);
  const std::string svg = canvas->bytes();
  std::smatch found;
  ASSERT_TRUE(std::regex_search(svg, found,
                                std::regex("stroke=\"#2563eb\"[^>]*points=\"([0-9.]+),([0-9.]+) "
                                           "([0-9.]+),([0-9.]+) ([0-9.]+),([0-9.]+)\"")));
  auto number = [&](int i) { return std::stod(found[i]); };
  EXPECT_NEAR(number(3), (number(1) + number(5)) / 2, 0.02);
  EXPECT_NEAR(number(4), (number(2) + number(6)) / 2, 0.02);
  EXPECT_LT(number(1), number(5));
  EXPECT_GT(number(2), number(6)) << "y grows upwards";
}

TEST(ChartSheet, ManyPointsBecomeFew) {
  std::vector<cv::Point2d> points;
  for (int i = 0; i < 200000; ++i) points.emplace_back(i, i % 7 + (i == 77777 ? 100 : 0));
  ChartSheet sheet = sheet_of(points);
  const cv::Size size(480, 320);
  auto canvas = make_canvas("x.svg", size);
  draw_sheet(*canvas, size, sheet);
  const std::string svg = canvas->bytes();
  EXPECT_LT(svg.size(), 60000u);
  // The lone peak is still there: it touches the top, where nothing else is.
  // (The longest polyline is the curve. No regex: the library's recurses at every character.)
  std::string curve;
  const std::string key = "points=\"";
  for (auto at = svg.find(key); at != std::string::npos; at = svg.find(key, at + 1)) {
    const auto begin = at + key.size();
    const std::string points_of = svg.substr(begin, svg.find('"', begin) - begin);
    if (points_of.size() > curve.size()) curve = points_of;
  }
  ASSERT_GT(curve.size(), 999u);
  std::istringstream stream(curve);
  double top = 1e9;
  for (std::string pair; stream >> pair;)
    top = std::min(top, std::stod(pair.substr(pair.find(',') + 1)));
  EXPECT_LT(top, 110);
}

TEST(ChartSheet, PngHasTheSizeAndTheInk) {
  ChartSheet sheet = sheet_of({{0, 1}, {10, 4}, {30, 2}, {40, 3}});
  ChartPanel lonely{"one point", {{{{20, 5}}, {{213, 94, 0}, 3}}}};
  sheet.panels.push_back(lonely);
  const cv::Size size(701, 333);
  auto canvas = make_canvas("x.png", size);
  draw_sheet(*canvas, size, sheet);
  const std::string png = canvas->bytes();
  Image decoded = formats::decode_png(png, "the chart").image;
  const cv::Mat picture = mat(decoded);  // RGB
  ASSERT_EQ(picture.size(), size);
  auto pixels_of = [&](Ink ink) {
    int count = 0;
    for (int y = 0; y < picture.rows; ++y)
      for (int x = 0; x < picture.cols; ++x)
        count += cv::norm(picture.at<cv::Vec3b>(y, x), cv::Vec3b(ink.r, ink.g, ink.b)) < 40;
    return count;
  };
  EXPECT_GT(pixels_of(line_ink(0)), 200);
  EXPECT_GT(pixels_of({213, 94, 0}), 10) << "a single point is drawn as a disc";
  EXPECT_EQ(picture.at<cv::Vec3b>(2, 2), cv::Vec3b(255, 255, 255));
}

TEST(ChartSheet, LogarithmicPanelsLeaveZeroOut) {
  ChartSheet sheet = sheet_of({{0, 0}, {1, -1}, {2, 1}, {3, 1000}});
  sheet.panels[0].log_y = true;
  const cv::Size size(480, 320);
  auto canvas = make_canvas("x.svg", size);
  draw_sheet(*canvas, size, sheet);
  EXPECT_EQ(canvas->bytes().find("nan"), std::string::npos);
  EXPECT_EQ(canvas->bytes().find("inf"), std::string::npos);
  EXPECT_NE(canvas->bytes().find(">1000<"), std::string::npos);
}

TEST(ChartSheet, NothingAndWrongPaperAreRefused) {
  const cv::Size size(480, 320);
  auto canvas = make_canvas("x.svg", size);
  test::error_of(ErrorKind::kInput, [&] { draw_sheet(*canvas, size, sheet_of({{1, NAN}})); });
  test::error_of(ErrorKind::kInput, [&] { draw_sheet(*canvas, size, ChartSheet{}); });
  EXPECT_NE(test::error_of(ErrorKind::kUsage, [&] { make_canvas("x.jpg", size); }).find(".svg"),
            std::string::npos);
  test::error_of(ErrorKind::kUsage, [] { make_canvas("x.png", {10, 10}); });
  test::error_of(ErrorKind::kUsage, [] { make_canvas("x.png", {100000, 100000}); });
}

TEST(Canvas, FadedInk) {
  EXPECT_EQ(faded({0, 100, 255}, 1), (Ink{0, 100, 255}));
  EXPECT_EQ(faded({0, 100, 255}, 0), (Ink{255, 255, 255}));
  EXPECT_EQ(faded({55, 55, 55}, 0.5), (Ink{155, 155, 155}));
}

}  // namespace
}  // namespace nmrf
