// nmrf match on single pairs: inputs of every kind, outputs of every kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cli/run.h"
#include "core/file.h"
#include "nmrf/disparity.h"
#include "nmrf/geometry.h"

namespace nmrf::test {
namespace {

using Names = std::vector<std::string>;

class Match : public testing::Test {
 protected:
  void SetUp() override { put_pair(left(), right()); }
  std::string left() const { return folder_ / "left.png"; }
  std::string right() const { return folder_ / "right.png"; }
  std::string out() const { return (folder_ / "out/").string(); }
  FloatMap map(const std::string& name) const { return read_disparity(folder_ / name); }
  TempFolder folder_;
};

// The value of a pixel of one channel, 8 or 16 bits.
int grey_at(const Image& image, int y, int x) {
  if (image.bits() == 8) return image.row(y)[x];
  return reinterpret_cast<const std::uint16_t*>(image.row(y))[x];
}

// As 16-bit values, 255 becomes 65535.
Image deep(const Image& image) {
  Image result(image.width(), image.height(), image.channels(), 16);
  auto* values = reinterpret_cast<std::uint16_t*>(result.data());
  for (std::size_t i = 0; i < image.row_bytes() * static_cast<std::size_t>(image.height()); ++i)
    values[i] = static_cast<std::uint16_t>(257 * image.data()[i]);
  return result;
}

// With an alpha channel, or the first channel alone.
Image with_channels(const Image& image, int channels) {
  Image result(image.width(), image.height(), channels);
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      for (int c = 0; c < channels; ++c)
        result.row(y)[x * channels + c] = c < 3 ? image.row(y)[3 * x + c] : 200;
  return result;
}

TEST_F(Match, PairToFolder) {
  const Outcome run = match({left(), right(), "-o", out()});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(names_in(out()), (Names{"left_disparity.pfm", "left_vis.png"}));
  expect_good_map(map("out/left_disparity.pfm"));
  const Image picture = read_image(folder_ / "out/left_vis.png");
  EXPECT_EQ(picture.width(), kWidth);
  EXPECT_EQ(picture.height(), kHeight);
  EXPECT_TRUE(contains(run.out, "left: 96x64")) << run.out;
  EXPECT_TRUE(contains(run.out, "left_disparity.pfm")) << run.out;
  EXPECT_TRUE(contains(run.err, "untrained")) << run.err;
}

TEST_F(Match, EveryFileFormatHoldsTheSameMap) {
  ASSERT_EQ(match({left(), right(), "-o", folder_ / "d.pfm"}).code, 0);
  const FloatMap reference = map("d.pfm");
  expect_good_map(reference);
  for (const std::string name : {"d.npy", "d.tiff", "d.tif"}) {
    ASSERT_EQ(match({left(), right(), "--no-picture", "-o", folder_ / name}).code, 0);
    EXPECT_EQ(map(name), reference) << name;
  }
  ASSERT_EQ(match({left(), right(), "--no-picture", "-o", folder_ / "d.png"}).code, 0);
  const Image stored = read_image(folder_ / "d.png");
  ASSERT_EQ(stored.bits(), 16);
  ASSERT_EQ(stored.channels(), 1);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const double wanted = std::clamp(256.0 * reference.at(y, x), 1.0, 65535.0);
      ASSERT_NEAR(grey_at(stored, y, x), wanted, 0.51);
    }
  EXPECT_EQ(names_in(folder_.path()), (Names{"d.npy", "d.pfm", "d.png", "d.tif", "d.tiff",
                                             "d_vis.png", "left.png", "right.png"}));
}

TEST_F(Match, FormatNamesTheFilesOfAFolder) {
  ASSERT_EQ(match({left(), right(), "-o", out(), "--format", "npy", "--no-picture"}).code, 0);
  EXPECT_EQ(names_in(out()), (Names{"left_disparity.npy"}));
}

TEST_F(Match, ModelOptionsCanBeChanged) {
  ASSERT_EQ(match({left(), right(), "-o", folder_ / "a.pfm"}).code, 0);
  const Outcome run = match({"--set", "match.median=0", "--set", "match.enlarge=0", left(), right(),
                             "-o", folder_ / "b.pfm"});
  ASSERT_EQ(run.code, 0) << run.err;
  expect_good_map(map("b.pfm"));
  EXPECT_GT(largest_difference(map("a.pfm"), map("b.pfm")), 0);
}

TEST_F(Match, RepeatsBitForBit) {
  ASSERT_EQ(match({left(), right(), "-o", folder_ / "a.pfm"}).code, 0);
  ASSERT_EQ(match({left(), right(), "-o", folder_ / "b.pfm"}).code, 0);
  EXPECT_EQ(read_file(folder_ / "a.pfm"), read_file(folder_ / "b.pfm"));
}

TEST_F(Match, ViewsConfidenceAndOcclusion) {
  ASSERT_EQ(match({left(), right(), "-o", out(), "--view", "both", "--confidence", "--lr-check",
                   "--lr-threshold", "2"})
                .code,
            0);
  EXPECT_EQ(names_in(out()),
            (Names{"left_confidence.npy", "left_confidence_vis.png", "left_disparity.pfm",
                   "left_occluded.png", "left_right_confidence.npy",
                   "left_right_confidence_vis.png", "left_right_disparity.pfm",
                   "left_right_occluded.png", "left_right_vis.png", "left_vis.png"}));
  const FloatMap left_map = map("out/left_disparity.pfm");
  const FloatMap right_map = map("out/left_right_disparity.pfm");
  expect_good_map(right_map);
  // The mask by its definition.
  const Image mask = read_image(folder_ / "out/left_occluded.png");
  ASSERT_EQ(mask.channels(), 1);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const float d = left_map.at(y, x);
      const auto at = static_cast<int>(std::lround(static_cast<float>(x) - d));
      const bool seen = x - d >= 0 && std::abs(right_map.at(y, std::max(at, 0)) - d) <= 2;
      ASSERT_EQ(grey_at(mask, y, x), seen ? 0 : 255) << x << ", " << y;
    }
  const FloatMap confidence = map("out/left_confidence.npy");
  const auto [lo, hi] = std::minmax_element(confidence.begin(), confidence.end());
  EXPECT_GE(*lo, 0);
  EXPECT_LE(*hi, 1);
  EXPECT_GT(*hi, *lo);
  const Image picture = read_image(folder_ / "out/left_confidence_vis.png");
  ASSERT_EQ(picture.channels(), 1);
  EXPECT_NEAR(grey_at(picture, 10, 10), 255 * confidence.at(10, 10), 0.51);
}

// What was filled in is told: bit 4 of the mask, no confidence, and no depth unless asked.
TEST_F(Match, FilledPixelsAreMarked) {
  const std::vector<std::string> line{
      left(),   right(),       "-o", folder_ / "d.pfm", "--mask", "--no-picture",   "--confidence",
      "--json", "--focal",     "80", "--baseline",      "0.1",    "--depth-format", "npy",
      "--set",  "match.fill=8"};
  const Outcome run = match(line);
  ASSERT_EQ(run.code, 0) << run.err;
  const Image mask = read_image(folder_ / "d_mask.png");
  ASSERT_EQ(mask.channels(), 1);
  const FloatMap confidence = map("d_confidence.npy"), depth = map("d_depth.npy");
  const FloatMap disparity = map("d.pfm");
  int filled = 0, with_depth = 0;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const int state = grey_at(mask, y, x);
      ASSERT_LE(state, kOccluded | kOutOfView | kFilled);
      if (!(state & kFilled)) continue;
      ++filled;
      with_depth += disparity.at(y, x) > 0;
      ASSERT_EQ(confidence.at(y, x), 0);
      ASSERT_TRUE(std::isinf(depth.at(y, x)));
    }
  EXPECT_NEAR(json_lines(run.out).at(0)["filled"].get<double>(),
              filled / static_cast<double>(kWidth * kHeight), 1e-9);
  auto keep = line;
  keep.push_back("--keep-filled");
  const Outcome kept = match(keep);
  ASSERT_EQ(kept.code, 0) << kept.err;
  EXPECT_EQ(json_lines(kept.out).at(0)["points"].get<int>() -
                json_lines(run.out).at(0)["points"].get<int>(),
            with_depth);
}

TEST_F(Match, RightViewAlone) {
  ASSERT_EQ(match({left(), right(), "-o", out(), "--view", "both", "--no-picture"}).code, 0);
  ASSERT_EQ(match({left(), right(), "-o", folder_ / "r.pfm", "--view", "right"}).code, 0);
  EXPECT_EQ(map("r.pfm"), map("out/left_right_disparity.pfm"));
  EXPECT_EQ(names_in(folder_.path()),
            (Names{"left.png", "out", "r.pfm", "r_right_vis.png", "right.png"}));
  // By mirroring: the right view is the left view of the flipped and swapped pair.
  write_image(folder_ / "lf.png", mirrored(read_image(right())));
  write_image(folder_ / "rf.png", mirrored(read_image(left())));
  ASSERT_EQ(match({folder_ / "lf.png", folder_ / "rf.png", "-o", folder_ / "m.pfm"}).code, 0);
  EXPECT_EQ(map("r.pfm"), mirrored(map("m.pfm")));
}

TEST_F(Match, ImagesOfEveryKind) {
  ASSERT_EQ(match({left(), right(), "-o", folder_ / "a.pfm"}).code, 0);
  const FloatMap reference = map("a.pfm");
  const Image l = read_image(left()), r = read_image(right());
  auto same_from = [&](const std::string& extension, const Image& a, const Image& b) {
    SCOPED_TRACE(extension);
    const std::string first = folder_ / ("x" + extension), second = folder_ / ("y" + extension);
    write_image(first, a);
    write_image(second, b);
    const Outcome run = match({first, second, "--no-picture", "-o", folder_ / "b.pfm"});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(map("b.pfm"), reference);
  };
  same_from(".tiff", deep(l), deep(r));
  same_from(".png", deep(l), deep(r));
  same_from(".png", with_channels(l, 4), with_channels(r, 4));
  same_from(".ppm", l, r);
  same_from(".bmp", l, r);
  // Grey images and lossy formats need only work.
  for (const std::string extension : {".jpg", ".pgm", ".webp"}) {
    const int channels = extension == ".webp" ? 3 : 1;
    const std::string first = folder_ / ("g" + extension), second = folder_ / ("h" + extension);
    write_image(first, with_channels(l, channels));
    write_image(second, with_channels(r, channels));
    ASSERT_EQ(match({first, second, "-o", folder_ / "g.pfm"}).code, 0);
    expect_good_map(map("g.pfm"));
  }
}

TEST_F(Match, OddSizesAndTheSmallest) {
  for (const auto& [width, height] : {std::pair{32, 32}, {61, 37}, {33, 50}}) {
    put_pair(folder_ / "l.png", folder_ / "r.png", 3, width, height);
    // 64 px of disparity are wider than the narrowest of these images.
    const Outcome run = match({folder_ / "l.png", folder_ / "r.png", "-o", folder_ / "s.pfm"});
    ASSERT_EQ(run.code, 0) << run.err;
    expect_good_map(map("s.pfm"), width, height);
  }
}

TEST_F(Match, ColoursFollowTheRange) {
  auto picture = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{left(), right(), "-o", folder_ / "c.pfm"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome run = match(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return read_image(folder_ / "c_vis.png");
  };
  const Image narrow = picture({"--range", "0,1"}), wide = picture({"--range", "0,4000"});
  // Everything lies beyond [0, 1] or near the start of [0, 4000]: one colour each, not the same.
  EXPECT_GT(largest_difference(narrow, wide), 50);
  const Image turbo = picture({}), inferno = picture({"--colormap", "inferno"});
  EXPECT_GT(largest_difference(turbo, inferno), 50);
  for (const std::string map : {"jet", "kitti"})
    EXPECT_GT(largest_difference(turbo, picture({"--colormap", map})), 50) << map;
}

TEST_F(Match, JsonLine) {
  const Outcome run = match({left(), right(), "-o", out(), "--json", "--lr-check"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 1u);
  const auto& line = lines[0];
  EXPECT_EQ(line["left"], left());
  EXPECT_EQ(line["right"], right());
  EXPECT_EQ(line["size"], (nlohmann::json{kWidth, kHeight}));
  EXPECT_GT(line["seconds"].get<double>(), 0);
  const FloatMap written = map("out/left_disparity.pfm");
  const auto [lo, hi] = std::minmax_element(written.begin(), written.end());
  EXPECT_FLOAT_EQ(line["disparity"]["min"].get<float>(), *lo);
  EXPECT_FLOAT_EQ(line["disparity"]["max"].get<float>(), *hi);
  const float median = line["disparity"]["median"];
  EXPECT_TRUE(*lo <= median && median <= *hi);
  const Image mask = read_image(folder_ / "out/left_occluded.png");
  const auto hidden = std::count(mask.data(), mask.data() + kWidth * kHeight, 255);
  EXPECT_NEAR(line["occluded"].get<double>(), static_cast<double>(hidden) / (kWidth * kHeight),
              1e-9);
  ASSERT_EQ(line["files"].size(), 3u);
  for (const auto& file : line["files"]) EXPECT_TRUE(fs::exists(file.get<std::string>())) << file;
}

TEST_F(Match, JsonSurvivesNamesThatAreNotUtf8) {
  const std::string odd = folder_ / "caf\xe9.png";
  fs::copy_file(left(), odd);
  const Outcome run = match({odd, right(), "-o", out(), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(json_lines(run.out).size(), 1u);
}

TEST_F(Match, QuietSaysNothing) {
  const Outcome run = match({left(), right(), "-o", out(), "--quiet"});
  ASSERT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
}

TEST_F(Match, DefaultOutputFolder) {
  ASSERT_EQ(match({left(), right()}, {.folder = folder_.path()}).code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "nmrf-out/left_disparity.pfm"));
}

TEST_F(Match, WarnsOfSwappedImages) {
  const Image l = read_image(NMRF_SOURCE_DIR "/examples/pair/left.png");
  const Image r = read_image(NMRF_SOURCE_DIR "/examples/pair/right.png");
  write_image(left(), cut(l, 100, 90, 256, 192));
  write_image(right(), cut(r, 100, 90, 256, 192));
  const Outcome good = match({left(), right(), "-o", out(), "--json"});
  ASSERT_EQ(good.code, 0) << good.err;
  EXPECT_FALSE(json_lines(good.out).at(0).contains("warnings")) << good.out;
  const Outcome swapped = match({right(), left(), "-o", out(), "--json"});
  ASSERT_EQ(swapped.code, 0);
  EXPECT_TRUE(contains(swapped.err, "swapped")) << swapped.err;
  EXPECT_EQ(json_lines(swapped.out).at(0)["warnings"].size(), 1u);
  EXPECT_FALSE(contains(match({right(), left(), "-o", out(), "--no-checks"}).err, "swapped"));
}

// The pair that the demo and the documentation use: images, truth and calibration fit each other.
TEST(BundledPair, TruthExplainsTheImages) {
  const fs::path pair = fs::path(NMRF_SOURCE_DIR) / "examples/pair";
  const Image left = read_image(pair / "left.png"), right = read_image(pair / "right.png");
  const FloatMap truth = read_disparity(pair / "disparity.png");
  const Calibration calibration = read_calibration(pair / "calib.txt");
  const int width = left.width(), height = left.height();
  ASSERT_EQ(right.width(), width);
  ASSERT_EQ(right.height(), height);
  ASSERT_EQ(truth.width(), width);
  ASSERT_EQ(truth.height(), height);
  EXPECT_EQ(calibration.width, width);
  EXPECT_EQ(calibration.height, height);
  int agree = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const float at = std::max(0.f, static_cast<float>(x) - truth.at(y, x));
      const int x0 = static_cast<int>(at), x1 = std::min(x0 + 1, width - 1);
      const float share = at - static_cast<float>(x0);
      constexpr float kGrey[3] = {0.299f, 0.587f, 0.114f};
      float difference = 0;
      for (int c = 0; c < 3; ++c) {
        const auto* row = right.row(y);
        const float seen = row[3 * x0 + c] * (1 - share) + row[3 * x1 + c] * share;
        difference += kGrey[c] * std::abs(left.row(y)[3 * x + c] - seen);
      }
      agree += difference < 12.5f;
    }
  EXPECT_GT(agree, 0.85 * width * height) << "the rest may be hidden in the right view";
}

}  // namespace
}  // namespace nmrf::test
