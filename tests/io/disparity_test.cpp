#include "nmrf/disparity.h"

#include <limits>
#include <opencv2/imgcodecs.hpp>

#include "io/maps.h"
#include "io/npy.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;
using test::sample_map;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Disparity, FloatFormatsKeepEveryBit) {
  test::TempFolder folder;
  for (const char* name : {"a.pfm", "a.npy", "a.tif", "a.tiff", "A.PFM", "A.TIFF"})
    for (cv::Size size : {cv::Size(1, 1), cv::Size(1, 5), cv::Size(7, 1), cv::Size(37, 23)}) {
      SCOPED_TRACE(name);
      const cv::Mat map = sample_map(size.height, size.width);
      write_disparity(folder / name, map);
      test::expect_same_bits(read_disparity(folder / name), map);
      const cv::Mat none(size, CV_32FC1, cv::Scalar(kInvalidDisparity));
      write_disparity(folder / name, none);
      test::expect_same_bits(read_disparity(folder / name), none);
    }
}

TEST(Disparity, WritesPartOfALargerMap) {
  test::TempFolder folder;
  const cv::Mat map = sample_map(11, 13);
  const cv::Mat part = map(cv::Rect(2, 3, 7, 5));
  for (const char* name : {"a.pfm", "a.npy", "a.tiff"}) {
    write_disparity(folder / name, part);
    test::expect_same_bits(read_disparity(folder / name), part);
  }
}

TEST(Disparity, EveryNonFiniteValueIsInvalid) {
  test::TempFolder folder;
  cv::Mat map(1, 4, CV_32FC1);
  map.at<float>(0, 0) = kNan;
  map.at<float>(0, 1) = -kInvalidDisparity;
  map.at<float>(0, 2) = kInvalidDisparity;
  map.at<float>(0, 3) = 4;
  for (const char* name : {"a.pfm", "a.npy", "a.tiff", "a.png"}) {
    SCOPED_TRACE(name);
    write_disparity(folder / name, map);
    const cv::Mat back = read_disparity(folder / name);
    for (int x = 0; x < 3; ++x) EXPECT_EQ(back.at<float>(0, x), kInvalidDisparity);
    EXPECT_EQ(back.at<float>(0, 3), 4.0f);
  }
  EXPECT_TRUE(std::isnan(map.at<float>(0, 0)));  // the caller's map is left alone
  // The same when another program wrote them.
  write_npy(folder / "b.npy", {1, 4}, map.ptr<float>());
  EXPECT_EQ(read_disparity(folder / "b.npy").at<float>(0, 0), kInvalidDisparity);
  ASSERT_TRUE(cv::imwrite((folder / "b.tiff").string(), map));
  EXPECT_EQ(read_disparity(folder / "b.tiff").at<float>(0, 1), kInvalidDisparity);
}

TEST(Disparity, PngRoundsAndClampsAtBothEnds) {
  test::TempFolder folder;
  const std::vector<std::pair<float, int>> cases = {{0.0f, 1},
                                                    {1e-9f, 1},
                                                    {-3.0f, 1},
                                                    {-1e30f, 1},
                                                    {1 / 256.f, 1},
                                                    {1.4f / 256, 1},
                                                    {1.6f / 256, 2},
                                                    {10.0f, 2560},
                                                    {255.0f, 65280},
                                                    {255.996f, 65535},
                                                    {256.0f, 65535},
                                                    {1e30f, 65535},
                                                    {kNan, 0},
                                                    {kInvalidDisparity, 0},
                                                    {-kInvalidDisparity, 0}};
  cv::Mat map(1, static_cast<int>(cases.size()), CV_32FC1);
  for (std::size_t i = 0; i < cases.size(); ++i)
    map.at<float>(0, static_cast<int>(i)) = cases[i].first;
  write_disparity(folder / "a.png", map);
  const cv::Mat raw = cv::imread((folder / "a.png").string(), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(raw.type(), CV_16UC1);
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(raw.at<std::uint16_t>(0, static_cast<int>(i)), cases[i].second) << cases[i].first;
}

TEST(Disparity, PngComesBackWithinHalfAStep) {
  test::TempFolder folder;
  for (cv::Size size : {cv::Size(1, 1), cv::Size(3, 1), cv::Size(41, 17)}) {
    const cv::Mat map = sample_map(size.height, size.width);
    write_disparity(folder / "a.png", map);
    const cv::Mat back = read_disparity(folder / "a.png");
    ASSERT_EQ(back.size(), map.size());
    for (int y = 0; y < map.rows; ++y)
      for (int x = 0; x < map.cols; ++x) {
        const float wanted = map.at<float>(y, x);
        if (std::isinf(wanted))
          EXPECT_EQ(back.at<float>(y, x), wanted);
        else
          EXPECT_NEAR(back.at<float>(y, x), wanted, 0.5 / 256 + 1e-5);
      }
  }
}

TEST(Disparity, IntegerFilesByTheirScale) {
  test::TempFolder folder;
  cv::Mat words(1, 3, CV_16UC1), bytes(1, 3, CV_8UC1);
  words.at<std::uint16_t>(0, 0) = 0;
  words.at<std::uint16_t>(0, 1) = 320;
  words.at<std::uint16_t>(0, 2) = 65535;
  bytes.at<std::uint8_t>(0, 0) = 0;
  bytes.at<std::uint8_t>(0, 1) = 9;
  bytes.at<std::uint8_t>(0, 2) = 255;
  for (const char* name : {"w.png", "w.tiff"}) {
    ASSERT_TRUE(cv::imwrite((folder / name).string(), words));
    cv::Mat map = read_disparity(folder / name, {.divisor = 32});
    ASSERT_EQ(map.type(), CV_32FC1);
    EXPECT_EQ(map.at<float>(0, 0), kInvalidDisparity);
    EXPECT_EQ(map.at<float>(0, 1), 10.0f);
    EXPECT_EQ(map.at<float>(0, 2), 65535.0f / 32);
    map = read_disparity(folder / name, {.divisor = 256, .zero_is_invalid = false});
    EXPECT_EQ(map.at<float>(0, 0), 0.0f);
    EXPECT_EQ(map.at<float>(0, 1), 1.25f);
  }
  ASSERT_TRUE(cv::imwrite((folder / "b.png").string(), bytes));
  const cv::Mat map = read_disparity(folder / "b.png", {.divisor = 3});
  EXPECT_EQ(map.at<float>(0, 0), kInvalidDisparity);
  EXPECT_EQ(map.at<float>(0, 1), 3.0f);
  EXPECT_EQ(map.at<float>(0, 2), 85.0f);
  for (double divisor : {0.0, -1.0, static_cast<double>(kNan)})
    error_of(ErrorKind::kUsage, [&] { read_disparity(folder / "b.png", {.divisor = divisor}); });
}

TEST(Disparity, DoublesBecomeFloats) {
  test::TempFolder folder;
  const std::vector<double> values = {1.1, 1e300, -2.5};
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }\n";
  std::string file("\x93NUMPY\x01\0", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  file += header + std::string(reinterpret_cast<const char*>(values.data()), 24);
  test::put(folder / "a.npy", file);
  const cv::Mat map = read_disparity(folder / "a.npy");
  EXPECT_EQ(map.at<float>(0, 0), 1.1f);
  EXPECT_EQ(map.at<float>(0, 1), kInvalidDisparity);  // beyond a float's range
  EXPECT_EQ(map.at<float>(0, 2), -2.5f);
}

TEST(Disparity, RefusesWhatIsNoDisparity) {
  test::TempFolder folder;
  auto message_of = [&](const std::string& name) {
    const std::string message = error_of(ErrorKind::kInput, [&] { read_disparity(folder / name); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    return message;
  };
  cv::imwrite((folder / "colour.png").string(), cv::Mat(4, 4, CV_8UC3, cv::Scalar(1, 2, 3)));
  EXPECT_NE(message_of("colour.png").find("colour picture"), std::string::npos);
  cv::imwrite((folder / "colour.tiff").string(), cv::Mat(4, 4, CV_32FC3, cv::Scalar(1, 2, 3)));
  message_of("colour.tiff");
  cv::imwrite((folder / "wide.tiff").string(), cv::Mat(4, 4, CV_64FC1, cv::Scalar(1)));
  message_of("wide.tiff");
  test::put(folder / "map.jpg", "x");
  EXPECT_NE(message_of("map.jpg").find(".pfm"), std::string::npos);
  message_of("none.png");
  message_of("none.pfm");
  message_of("none.npy");
  test::put(folder / "text.png", "hello");
  EXPECT_NE(message_of("text.png").find("looks like text"), std::string::npos);
  const std::vector<float> values(8, 1.0f);
  write_npy(folder / "cube.npy", {2, 2, 2}, values.data());
  EXPECT_NE(message_of("cube.npy").find("(2, 2, 2)"), std::string::npos);
  write_npy(folder / "empty.npy", {0, 4}, values.data());
  message_of("empty.npy");
  const std::vector<std::int32_t> whole(4, 1);
  write_npy(folder / "int.npy", {2, 2}, whole.data());
  EXPECT_NE(message_of("int.npy").find("'<i4'"), std::string::npos);
}

TEST(Disparity, WriterRefusesAndLeavesNothing) {
  test::TempFolder folder;
  const cv::Mat map = sample_map(3, 3);
  const std::string message =
      error_of(ErrorKind::kUsage, [&] { write_disparity(folder / "a.jpg", map); });
  EXPECT_NE(message.find(".png (16-bit)"), std::string::npos);
  error_of(ErrorKind::kUsage, [&] { write_disparity(folder / "a", map); });
  error_of(ErrorKind::kUsage, [&] { write_disparity(folder / "a.pfm", cv::Mat()); });
  error_of(ErrorKind::kUsage, [&] { write_disparity(folder / "a.png", cv::Mat(2, 2, CV_8UC1)); });
  error_of(ErrorKind::kFailure, [&] { write_disparity(folder / "no/such/a.pfm", map); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Disparity, Extensions) {
  for (const char* yes : {".pfm", ".png", ".npy", ".tif", ".tiff", ".PNG", ".Tiff"})
    EXPECT_TRUE(is_disparity_extension(yes)) << yes;
  for (const char* no : {"", "png", ".jpg", ".ply", ".", ".png.bak", ".exr"})
    EXPECT_FALSE(is_disparity_extension(no)) << no;
}

TEST(Disparity, RealKittiAndMiddlebury) {
  NMRF_NEED_SHARED("data/KITTI/KITTI_2015/training/disp_noc_0/000001_10.png");
  const auto data = test::shared_folder() / "data";
  const auto kitti = data / "KITTI/KITTI_2015/training/disp_noc_0/000001_10.png";
  const cv::Mat map = read_disparity(kitti);
  const cv::Mat raw = cv::imread(kitti.string(), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(raw.type(), CV_16UC1);
  ASSERT_EQ(map.size(), raw.size());
  int valid = 0;
  for (int y = 0; y < map.rows; ++y)
    for (int x = 0; x < map.cols; ++x) {
      const auto value = raw.at<std::uint16_t>(y, x);
      ASSERT_EQ(map.at<float>(y, x), value == 0 ? kInvalidDisparity : value / 256.0f);
      valid += value != 0;
    }
  EXPECT_GT(valid, 10000);
  // What KITTI publishes survives being written by us without the change of a single value.
  test::TempFolder folder;
  write_disparity(folder / "a.png", map);
  test::expect_same_bits(cv::imread((folder / "a.png").string(), cv::IMREAD_UNCHANGED), raw);

  const cv::Mat third = read_disparity(data / "Middlebury/2006/ThirdSize/Baby1/disp1.png", {3.0});
  EXPECT_EQ(third.size(), cv::Size(413, 370));
  double high = 0;
  cv::minMaxIdx(third, nullptr, &high, nullptr, nullptr, third < 1e9f);
  EXPECT_LE(high, 85.0);
  EXPECT_GT(high, 20.0);
}

}  // namespace
}  // namespace nmrf
