#include "io/pfm.h"

#include <limits>

#include "core/file.h"
#include "io/maps.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;
using test::float_bytes;

// The values 1..rows*cols of a map whose top left is 1, in the order of the file (bottom row
// first).
std::string values_of(int rows, int cols, bool big_endian = false, int channels = 1) {
  std::string bytes;
  for (int y = rows - 1; y >= 0; --y)
    for (int x = 0; x < cols; ++x)
      for (int c = 0; c < channels; ++c)
        bytes += float_bytes(static_cast<float>(y * cols + x + 1 + 100 * c), big_endian);
  return bytes;
}

void expect_counting(const FloatMap& map, int rows, int cols) {
  ASSERT_EQ(std::pair(map.width(), map.height()), std::pair(cols, rows));
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < cols; ++x)
      EXPECT_EQ(map.at(y, x), static_cast<float>(y * cols + x + 1)) << x << "," << y;
}

TEST(Pfm, HeadersOfManyTools) {
  test::TempFolder folder;
  const auto path = folder / "a.pfm";
  for (const char* header :
       {"Pf\n3 2\n-1\n", "Pf\n3 2\n-1.000000\n", "Pf \n3 2 \n-1.0\n", "Pf\r\n3 2\r\n-1\r\n",
        "Pf 3 2 -1 ", "Pf\n3\n2\n-0.003922\n", "Pf\n3 2\n-1 \n", "Pf\r\n3 2\r\n-1 \r\n",
        "Pf\n  3   2\n-1e0\n", "Pf\t3\t2\t-1\t", "Pf\n# by some tool\n3 2\n-1\n",
        "Pf\n#\n# two lines\n3 # width\n2\r\n#\r\n-1\n"}) {
    test::put(path, header + values_of(2, 3));
    SCOPED_TRACE(header);
    expect_counting(read_pfm(path), 2, 3);
  }
}

TEST(Pfm, BothByteOrders) {
  test::TempFolder folder;
  const auto path = folder / "a.pfm";
  for (const char* scale : {"1", "+1.0", "1.000000", "255"}) {
    test::put(path, std::string("Pf\n5 3\n") + scale + "\n" + values_of(3, 5, true));
    expect_counting(read_pfm(path), 3, 5);
  }
}

TEST(Pfm, FirstOfThreeChannels) {
  test::TempFolder folder;
  const auto path = folder / "a.pfm";
  for (bool big : {false, true}) {
    test::put(path, std::string("PF\n4 3\n") + (big ? "1" : "-1") + "\n" + values_of(3, 4, big, 3));
    expect_counting(read_pfm(path), 3, 4);
  }
}

// The first value of the file looks like white space: it must not be taken for the header's end.
TEST(Pfm, ValuesThatLookLikeWhiteSpace) {
  test::TempFolder folder;
  const auto path = folder / "a.pfm";
  for (const char* first : {"\n\n\n\n", "    ", "\r\n\r\n"})
    for (const char* end : {"\n", "\r\n", " "}) {
      test::put(path, std::string("Pf\n1 1\n-1") + end + first);
      const FloatMap map = read_pfm(path);
      EXPECT_EQ(0, std::memcmp(map.data(), first, 4));
    }
}

TEST(Pfm, RoundTripKeepsEveryBit) {
  test::TempFolder folder;
  for (auto [width, height] :
       {std::pair(1, 1), std::pair(1, 7), std::pair(9, 1), std::pair(13, 5)}) {
    FloatMap map = test::sample_map(height, width);
    map.at(0, 0) = -3.25f;
    write_pfm(folder / "a.pfm", map);
    test::expect_same_bits(read_pfm(folder / "a.pfm"), map);
  }
  FloatMap odd = test::sample_map(6, 8);
  odd.at(2, 2) = std::numeric_limits<float>::quiet_NaN();
  odd.at(3, 2) = -std::numeric_limits<float>::infinity();
  write_pfm(folder / "b.pfm", odd);
  test::expect_same_bits(read_pfm(folder / "b.pfm"), odd);
}

TEST(Pfm, FileIsWhatTheFormatSays) {
  test::TempFolder folder;
  FloatMap map(1, 2);
  map.at(0, 0) = 1;
  map.at(1, 0) = 2;
  write_pfm(folder / "a.pfm", map);
  EXPECT_EQ(read_file(folder / "a.pfm"), "Pf\n1 2\n-1\n" + float_bytes(2) + float_bytes(1));
}

TEST(Pfm, RefusesWrongLengths) {
  test::TempFolder folder;
  const auto path = folder / "bad.pfm";
  const std::string good = "Pf\n3 2\n-1\n" + values_of(2, 3);
  for (std::size_t cut = 11; cut < good.size(); ++cut) {
    test::put(path, good.substr(0, cut));
    const std::string message = error_of(ErrorKind::kInput, [&] { read_pfm(path); });
    EXPECT_NE(message.find("bad.pfm"), std::string::npos);
    EXPECT_NE(message.find("truncated"), std::string::npos) << message;
  }
  for (std::size_t cut = 0; cut < 11; ++cut) {
    test::put(path, good.substr(0, cut));
    error_of(ErrorKind::kInput, [&] { read_pfm(path); });
  }
  for (const char* more : {"x", "\n", "more than one"}) {
    test::put(path, good + more);
    EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_pfm(path); }).find("left over"),
              std::string::npos);
  }
  // A truncated file with Windows line ends must not pass by swallowing half of the line end.
  test::put(path, "Pf\r\n3 2\r\n-1\r\n" + values_of(2, 3).substr(0, 23));
  error_of(ErrorKind::kInput, [&] { read_pfm(path); });
}

TEST(Pfm, RefusesHostileHeaders) {
  test::TempFolder folder;
  const auto path = folder / "bad.pfm";
  for (const char* header : {"",
                             "P",
                             "Pf",
                             "P6\n3 2\n255\n",
                             "Pfx\n3 2\n-1\n",
                             "Pf\n-3 -2\n-1\n",
                             "Pf\n0 2\n-1\n",
                             "Pf\n3 0\n-1\n",
                             "Pf\n3.5 2\n-1\n",
                             "Pf\n3x 2\n-1\n",
                             "Pf\n3 2\n0\n",
                             "Pf\n3 2\nnan\n",
                             "Pf\n3 2\ninf\n",
                             "Pf\n3 2\nfoo\n",
                             "Pf\n3 2\n-1",
                             "Pf\n# only a comment",
                             "Pf\n3 2\n# no scale\n",
                             "Pf\n2147483647 2147483647\n-1\n",
                             "Pf\n99999999999999999999 1\n-1\n",
                             "Pf\n4294967297 4294967296\n-1\n",
                             "Pf\n16777216 16777216\n-1\n",
                             "PF\n1000000 1000000\n-1\n"}) {
    SCOPED_TRACE(header);
    test::put(path, header);
    EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_pfm(path); }).find("bad.pfm"),
              std::string::npos);
  }
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_pfm(folder / "none.pfm"); }).find("none.pfm"),
            std::string::npos);
  error_of(ErrorKind::kInput, [&] { read_pfm(folder.path()); });
}

TEST(Pfm, WriterRefusesAnEmptyMap) {
  test::TempFolder folder;
  error_of(ErrorKind::kUsage, [&] { write_pfm(folder / "a.pfm", FloatMap()); });
  EXPECT_FALSE(std::filesystem::exists(folder / "a.pfm"));
}

TEST(Pfm, RealFiles) {
  NMRF_NEED_SHARED("data/Middlebury/MiddEval3/trainingQ/Motorcycle/disp0GT.pfm");
  const auto data = test::shared_folder() / "data";
  const FloatMap motorcycle =
      read_pfm(data / "Middlebury/MiddEval3/trainingQ/Motorcycle/disp0GT.pfm");
  ASSERT_EQ(std::pair(motorcycle.width(), motorcycle.height()), std::pair(741, 497));
  // The bottom left pixel is the first of the file: 49 06 6e 42.
  EXPECT_EQ(motorcycle.at(496, 0), 59.50613784790039f);
  for (float value : motorcycle)
    if (std::isfinite(value)) {  // vmin and vmax of calib.txt are 7 and 65
      ASSERT_GT(value, 5.0f);
      ASSERT_LT(value, 67.0f);
    }

  const FloatMap things =
      read_pfm(data / "SceneFlow/FlyingThings3D/disparity/TEST/A/0000/left/0006.pfm");
  ASSERT_EQ(std::pair(things.width(), things.height()), std::pair(960, 540));
  for (float value : things) ASSERT_TRUE(value >= 0.0f && value < 512.0f);

  const FloatMap playground =
      read_pfm(data / "ETH3D/two_view_training_gt/playground_1l/disp0GT.pfm");
  ASSERT_EQ(std::pair(playground.width(), playground.height()), std::pair(941, 490));
  EXPECT_TRUE(std::isinf(playground.at(489, 0)));
}

}  // namespace
}  // namespace nmrf
