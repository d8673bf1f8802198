// Tiles: what they cover, what they need, and that the map is the one of the whole.
#include "matching/tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/quantile.h"
#include "matching/pictures.h"
#include "support/support.h"

namespace nmrf {
namespace {

// Gives back the red channel of the left view, or the guide where there is one. 100 bytes per
// pixel.
class Echo : public EnginePass {
 public:
  void run(const PassInput& input, Disparity& result) override {
    const int width = input.left->width(), height = input.left->height();
    result.map.resize(width, height);
    result.posterior.resize(width, height);
    if (input.evidence)
      for (FloatMap* map :
           {&input.evidence->spread, &input.evidence->refined, &input.evidence->guided})
        map->resize(width, height);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const float red = input.left->row(y)[3 * x];
        result.map.at(y, x) = input.guide ? input.guide->at(y, x) : red;
        result.posterior.at(y, x) = red;
        if (input.evidence) input.evidence->refined.at(y, x) = red;
        right_moved += input.right->row(y)[3 * x] != red;
      }
    ++runs;
    if (input.on_stage) input.on_stage(0.5, "echo");
  }
  std::size_t memory(int width, int height, bool) override {
    return 100 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  }
  int runs = 0;
  std::int64_t right_moved = 0;
};

TEST(Tiles, GiveEveryPixelOnceAndKeepTheLimit) {
  Echo pass;
  for (const auto& [width, height, room] :
       {std::array{1000, 700, 20'000'000}, {641, 479, 9'000'000}, {4000, 300, 30'000'000}}) {
    const Tiling tiling =
        choose_tiling(pass, width, height, true, 90, static_cast<std::size_t>(room));
    ASSERT_GT(tiling.tiles.size(), 1u);
    EXPECT_LE(pass.memory(tiling.width, tiling.height, true), static_cast<std::size_t>(room));
    ByteMap given(width, height);
    for (const Tile& tile : tiling.tiles) {
      EXPECT_TRUE(tile.x >= 0 && tile.x + tiling.width <= width);
      EXPECT_TRUE(tile.y >= 0 && tile.y + tiling.height <= height);
      // What a tile gives lies inside of it, away from its edges but for those of the image.
      EXPECT_TRUE(tile.left - tile.x >= 64 + 90 || tile.x == 0);
      EXPECT_TRUE(tile.x + tiling.width - tile.right >= 64 || tile.x + tiling.width == width);
      EXPECT_TRUE(tile.top - tile.y >= 64 || tile.y == 0);
      EXPECT_TRUE(tile.y + tiling.height - tile.bottom >= 64 || tile.y + tiling.height == height);
      for (int y = tile.top; y < tile.bottom; ++y)
        for (int x = tile.left; x < tile.right; ++x) ++given.at(y, x);
    }
    EXPECT_TRUE(std::all_of(given.begin(), given.end(), [](int count) { return count == 1; }));
  }
  EXPECT_TRUE(choose_tiling(pass, 640, 480, true, 90, 640 * 480 * 100).tiles.empty());
  test::error_of(ErrorKind::kDevice, [&] { choose_tiling(pass, 640, 480, true, 90, 100'000); });
}

TEST(Tiles, PutTheMapTogether) {
  const Image left = test::noise_image(500, 400, 1);
  Echo pass;
  TiledPass tiled;
  Disparity result;
  PassEvidence evidence;
  PassInput input;
  input.left = input.right = &left;
  input.evidence = &evidence;
  double done = 0;
  input.on_stage = [&](double share, const char*) {
    EXPECT_GT(share, done);
    done = share;
  };
  const Tiling tiling = choose_tiling(pass, 500, 400, false, 32, 8'000'000);
  tiled.run(pass, input, tiling, 192, result);
  EXPECT_EQ(pass.runs, static_cast<int>(tiling.tiles.size()));
  EXPECT_LT(done, 1);
  EXPECT_EQ(pass.right_moved, 0);
  for (int y = 0; y < 400; ++y)
    for (int x = 0; x < 500; ++x) {
      const float red = left.row(y)[3 * x];
      ASSERT_EQ(result.map.at(y, x), red);
      ASSERT_EQ(result.posterior.at(y, x), red);
      ASSERT_EQ(evidence.refined.at(y, x), red);
    }
}

// Disparities beyond those the network searches: the tile's right view moves, and the map knows.
TEST(Tiles, ReachBeyondTheLargestDisparity) {
  const Image left = test::noise_image(500, 400, 1);
  FloatMap guide(500, 400);
  for (int y = 0; y < 400; ++y)
    for (int x = 0; x < 500; ++x) guide.at(y, x) = 100.0f + 0.25f * static_cast<float>(y);
  Echo pass;
  TiledPass tiled;
  Disparity result;
  PassInput input;
  input.left = input.right = &left;
  input.guide = &guide;
  tiled.run(pass, input, choose_tiling(pass, 500, 400, true, 32, 8'000'000), 128, result);
  EXPECT_GT(pass.right_moved, 0);
  for (std::size_t i = 0; i < guide.size(); ++i)
    ASSERT_NEAR(result.map.data()[i], guide.data()[i], 1e-4);
}

TEST(Tiles, AMatchWithinALimitGivesNearlyTheSameMap) {
  const Matcher matcher = Matcher::load(NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors");
  const Image wide = test::noise_image(420, 256, 3, 40, 200);
  auto columns = [&](int begin) {
    return ImageView{wide.row(0) + 3 * begin, 400, 256,
                     static_cast<std::ptrdiff_t>(wide.row_bytes())};
  };
  const ImageView left = columns(0), right = columns(12);
  MatchOptions how;
  how.scale = 1;
  const FloatMap whole = matcher.match(left, right, how).map;
  const std::size_t needed = matcher.memory(400, 256, how);
  how.memory = needed + (std::size_t{1} << 20);
  EXPECT_TRUE(test::same(matcher.match(left, right, how).map, whole)) << "fits";
  how.memory = needed * 3 / 4;
  EXPECT_EQ(matcher.memory(400, 256, how), *how.memory);
  const FloatMap tiles = matcher.match(left, right, how).map;
  std::vector<float> differences;
  for (std::size_t i = 0; i < whole.size(); ++i)
    differences.push_back(std::abs(whole.data()[i] - tiles.data()[i]));
  EXPECT_GT(*std::max_element(differences.begin(), differences.end()), 0) << "matched as a whole";
  EXPECT_LT(quantile(differences, 0.5), 0.05);
  EXPECT_LT(quantile(differences, 0.95), 0.5);
  how.memory = 1'000'000;
  const std::string message =
      test::error_of(ErrorKind::kDevice, [&] { matcher.match(left, right, how); });
  EXPECT_NE(message.find("400x256"), std::string::npos) << message;
}

}  // namespace
}  // namespace nmrf
