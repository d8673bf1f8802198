#include "nmrf/image.h"

#include <gtest/gtest.h>

#include "support/support.h"

namespace nmrf {
namespace {

TEST(ToRgb8, EveryKindOfPixel) {
  const std::uint8_t grey[] = {10, 20};
  const std::uint8_t grey_alpha[] = {10, 0, 20, 255};
  const std::uint8_t rgb[] = {1, 2, 3, 4, 5, 6};
  const std::uint8_t rgba[] = {1, 2, 3, 0, 4, 5, 6, 255};
  const std::uint16_t deep[] = {0, 65535};
  auto values = [](const ImageView& view) {
    const Image image = to_rgb8(view);
    return std::vector<int>(image.data(), image.data() + 6);
  };
  EXPECT_EQ(values({grey, 2, 1, 0, 1}), (std::vector<int>{10, 10, 10, 20, 20, 20}));
  EXPECT_EQ(values({grey_alpha, 2, 1, 0, 2}), (std::vector<int>{10, 10, 10, 20, 20, 20}));
  EXPECT_EQ(values({rgb, 2, 1, 0, 3}), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values({rgba, 2, 1, 0, 4}), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values({rgb, 2, 1, 0, 3, 8, ChannelOrder::kBgr}), (std::vector<int>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(values({rgba, 2, 1, 0, 4, 8, ChannelOrder::kBgr}),
            (std::vector<int>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(values({deep, 2, 1, 0, 1, 16}), (std::vector<int>{0, 0, 0, 255, 255, 255}));
}

TEST(ToRgb8, RowsMayBeApartOrBottomUp) {
  const std::uint8_t rows[] = {1, 2, 99, 3, 4, 99};
  const Image down = to_rgb8({rows, 2, 2, 3, 1}), up = to_rgb8({rows + 3, 2, 2, -3, 1});
  EXPECT_EQ(down.row(1)[0], 3);
  EXPECT_EQ(down.row(1)[3], 4);
  EXPECT_EQ(up.row(0)[0], 3);
  EXPECT_EQ(up.row(1)[3], 2);
}

TEST(ToRgb8, RefusesOthers) {
  const std::uint8_t bytes[64] = {};
  EXPECT_NE(test::error_of(ErrorKind::kInput,
                           [&] {
                             to_rgb8({bytes, 2, 2, 0, 5}, "cat.png");
                           })
                .find("cat.png"),
            std::string::npos);
  test::error_of(ErrorKind::kInput, [&] { to_rgb8({bytes, 2, 2, 0, 1, 32}); });
  test::error_of(ErrorKind::kInput, [&] { to_rgb8({}); });
  test::error_of(ErrorKind::kInput, [&] { to_rgb8({bytes, 0, 2}); });
}

}  // namespace
}  // namespace nmrf
