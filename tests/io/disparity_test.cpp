#include "nmrf/disparity.h"

#include <limits>
#include <vector>

#include "io/maps.h"
#include "io/npy.h"
#include "io/pictures.h"
#include "nmrf/files.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;
using test::sample_map;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Disparity, FloatFormatsKeepEveryBit) {
  test::TempFolder folder;
  for (const char* name : {"a.pfm", "a.npy", "a.tif", "a.tiff", "A.PFM", "A.TIFF"})
    for (auto [width, height] :
         {std::pair(1, 1), std::pair(1, 5), std::pair(7, 1), std::pair(37, 23)}) {
      SCOPED_TRACE(name);
      const FloatMap map = sample_map(height, width);
      write_disparity(folder / name, map);
      test::expect_same_bits(read_disparity(folder / name), map);
      const FloatMap none(width, height, kInvalidDisparity);
      write_disparity(folder / name, none);
      test::expect_same_bits(read_disparity(folder / name), none);
    }
}

TEST(Disparity, EveryNonFiniteValueIsInvalid) {
  test::TempFolder folder;
  const FloatMap map = test::row_map({kNan, -kInvalidDisparity, kInvalidDisparity, 4});
  for (const char* name : {"a.pfm", "a.npy", "a.tiff", "a.png"}) {
    SCOPED_TRACE(name);
    write_disparity(folder / name, map);
    const FloatMap back = read_disparity(folder / name);
    for (int x = 0; x < 3; ++x) EXPECT_EQ(back.at(0, x), kInvalidDisparity);
    EXPECT_EQ(back.at(0, 3), 4.0f);
  }
  EXPECT_TRUE(std::isnan(map.at(0, 0)));  // the caller's map is left alone
  // The same when another program wrote them.
  write_npy(folder / "b.npy", {1, 4}, map.data());
  EXPECT_EQ(read_disparity(folder / "b.npy").at(0, 0), kInvalidDisparity);
  const std::string bytes(reinterpret_cast<const char*>(map.data()), 16);
  test::put(folder / "b.tiff", test::tiff_file(4, 1, 1, 32, bytes, {.packing = 5, .format = 3}));
  EXPECT_EQ(read_disparity(folder / "b.tiff").at(0, 1), kInvalidDisparity);
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
  FloatMap map(static_cast<int>(cases.size()), 1);
  for (std::size_t i = 0; i < cases.size(); ++i) map.at(0, static_cast<int>(i)) = cases[i].first;
  write_disparity(folder / "a.png", map);
  const Image raw = read_image(folder / "a.png");
  ASSERT_EQ(raw.bits(), 16);
  ASSERT_EQ(raw.channels(), 1);
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(test::value(raw, 0, static_cast<int>(i)), cases[i].second) << cases[i].first;
}

TEST(Disparity, PngComesBackWithinHalfAStep) {
  test::TempFolder folder;
  for (auto [width, height] : {std::pair(1, 1), std::pair(3, 1), std::pair(41, 17)}) {
    const FloatMap map = sample_map(height, width);
    write_disparity(folder / "a.png", map);
    const FloatMap back = read_disparity(folder / "a.png");
    ASSERT_TRUE(back.same_size(map));
    for (int y = 0; y < map.height(); ++y)
      for (int x = 0; x < map.width(); ++x) {
        const float wanted = map.at(y, x);
        if (std::isinf(wanted))
          EXPECT_EQ(back.at(y, x), wanted);
        else
          EXPECT_NEAR(back.at(y, x), wanted, 0.5 / 256 + 1e-5);
      }
  }
}

TEST(Disparity, IntegerFilesByTheirScale) {
  test::TempFolder folder;
  Image words(3, 1, 1, 16), bytes(3, 1, 1);
  auto* word = reinterpret_cast<std::uint16_t*>(words.data());
  word[0] = 0;
  word[1] = 320;
  word[2] = 65535;
  bytes.data()[0] = 0;
  bytes.data()[1] = 9;
  bytes.data()[2] = 255;
  for (const char* name : {"w.png", "w.tiff", "w.pgm"}) {
    write_image(folder / name, words);
    FloatMap map = read_disparity(folder / name, {.divisor = 32});
    EXPECT_EQ(map.at(0, 0), kInvalidDisparity);
    EXPECT_EQ(map.at(0, 1), 10.0f);
    EXPECT_EQ(map.at(0, 2), 65535.0f / 32);
    map = read_disparity(folder / name, {.divisor = 256, .zero_is_invalid = false});
    EXPECT_EQ(map.at(0, 0), 0.0f);
    EXPECT_EQ(map.at(0, 1), 1.25f);
  }
  write_image(folder / "b.png", bytes);
  const FloatMap map = read_disparity(folder / "b.png", {.divisor = 3});
  EXPECT_EQ(map.at(0, 0), kInvalidDisparity);
  EXPECT_EQ(map.at(0, 1), 3.0f);
  EXPECT_EQ(map.at(0, 2), 85.0f);
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
  const FloatMap map = read_disparity(folder / "a.npy");
  EXPECT_EQ(map.at(0, 0), 1.1f);
  EXPECT_EQ(map.at(0, 1), kInvalidDisparity);  // beyond a float's range
  EXPECT_EQ(map.at(0, 2), -2.5f);
}

TEST(Disparity, RefusesWhatIsNoDisparity) {
  test::TempFolder folder;
  auto message_of = [&](const std::string& name) {
    const std::string message = error_of(ErrorKind::kInput, [&] { read_disparity(folder / name); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    return message;
  };
  write_image(folder / "colour.png", test::picture(4, 4, 3));
  EXPECT_NE(message_of("colour.png").find("colour picture"), std::string::npos);
  test::put(folder / "colour.tiff",
            test::tiff_file(4, 1, 3, 32, std::string(48, 'x'), {.format = 3}));
  message_of("colour.tiff");
  test::put(folder / "wide.tiff",
            test::tiff_file(4, 1, 1, 64, std::string(32, 'x'), {.format = 3}));
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
  const FloatMap map = sample_map(3, 3);
  const std::string message =
      error_of(ErrorKind::kUsage, [&] { write_disparity(folder / "a.jpg", map); });
  EXPECT_NE(message.find(".png (16-bit)"), std::string::npos);
  error_of(ErrorKind::kUsage, [&] { write_disparity(folder / "a", map); });
  error_of(ErrorKind::kUsage, [&] { write_disparity(folder / "a.pfm", FloatMap()); });
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
  const FloatMap map = read_disparity(kitti);
  const Image raw = read_image(kitti);
  ASSERT_EQ(raw.bits(), 16);
  ASSERT_EQ(std::pair(map.width(), map.height()), std::pair(raw.width(), raw.height()));
  int valid = 0;
  for (int y = 0; y < map.height(); ++y)
    for (int x = 0; x < map.width(); ++x) {
      const int number = test::value(raw, y, x);
      ASSERT_EQ(map.at(y, x), number == 0 ? kInvalidDisparity : static_cast<float>(number) / 256);
      valid += number != 0;
    }
  EXPECT_GT(valid, 10000);
  // What KITTI publishes survives being written by us without the change of a single value.
  test::TempFolder folder;
  write_disparity(folder / "a.png", map);
  test::expect_same_bits(read_image(folder / "a.png"), raw);

  const FloatMap third = read_disparity(data / "Middlebury/2006/ThirdSize/Baby1/disp1.png", {3.0});
  EXPECT_EQ(std::pair(third.width(), third.height()), std::pair(413, 370));
  float high = 0;
  for (float value : third)
    if (std::isfinite(value)) high = std::max(high, value);
  EXPECT_LE(high, 85.0f);
  EXPECT_GT(high, 20.0f);
}

}  // namespace
}  // namespace nmrf
