#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "io/maps.h"
#include "io/npy.h"
#include "io/pfm.h"
#include "io/pictures.h"
#include "nmrf/files.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Depth, PngHoldsMillimetres) {
  test::TempFolder folder;
  const FloatMap metres =
      test::row_map({1.0f, 0.0004f, 1e-6f, 2.3456f, 65.535f, 65.6f, 1e9f, 0.0f, -1.0f, kInf, -kInf,
                     std::numeric_limits<float>::quiet_NaN()});
  const std::vector<int> wanted = {1000, 1, 1, 2346, 65535, 65535, 65535, 0, 0, 0, 0, 0};
  write_depth(folder / "a.png", metres);
  const Image raw = read_image(folder / "a.png");
  ASSERT_EQ(raw.bits(), 16);
  ASSERT_EQ(raw.channels(), 1);
  for (int i = 0; i < metres.width(); ++i)
    EXPECT_EQ(test::value(raw, 0, i), wanted[static_cast<std::size_t>(i)]) << metres.at(0, i);
}

TEST(Depth, FloatFormatsHoldMetres) {
  test::TempFolder folder;
  for (auto [width, height] : {std::pair(1, 1), std::pair(5, 3)}) {
    const FloatMap depth = test::sample_map(height, width);
    write_depth(folder / "a.pfm", depth);
    test::expect_same_bits(read_pfm(folder / "a.pfm"), depth);
    write_depth(folder / "a.TIFF", depth);
    test::expect_same_bits(read_disparity(folder / "a.TIFF"), depth);
    write_depth(folder / "a.npy", depth);
    const NpyArray array = read_npy(folder / "a.npy");
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{height, width}));
    EXPECT_EQ(0, std::memcmp(array.data<float>(), depth.data(), array.bytes.size()));
  }
  write_depth(folder / "b.pfm", test::row_map({-1.0f, 0.0f, -kInf, 2.0f}));
  const FloatMap back = read_pfm(folder / "b.pfm");
  for (int x = 0; x < 3; ++x) EXPECT_EQ(back.at(0, x), kInf);
  EXPECT_EQ(back.at(0, 3), 2.0f);
}

TEST(Depth, Refuses) {
  test::TempFolder folder;
  const FloatMap depth = test::sample_map(2, 2);
  EXPECT_NE(error_of(ErrorKind::kUsage, [&] { write_depth(folder / "a.jpg", depth); }).find(".npy"),
            std::string::npos);
  error_of(ErrorKind::kUsage, [&] { write_depth(folder / "a.png", FloatMap()); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(is_depth_extension(".PNG"));
  EXPECT_FALSE(is_depth_extension(".ply"));
}

}  // namespace
}  // namespace nmrf
