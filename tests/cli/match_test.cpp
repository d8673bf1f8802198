// nmrf match on single pairs: inputs of every kind, outputs of every kind.
#include <gtest/gtest.h>

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "cli/run.h"
#include "core/file.h"
#include "io/npy.h"
#include "nmrf/calibration.h"
#include "nmrf/disparity.h"
#include "nmrf/image.h"

namespace nmrf::test {
namespace {

using Names = std::vector<std::string>;

class Match : public testing::Test {
 protected:
  void SetUp() override { put_pair(left(), right()); }
  std::string left() const { return folder_ / "left.png"; }
  std::string right() const { return folder_ / "right.png"; }
  std::string out() const { return (folder_ / "out/").string(); }
  cv::Mat map(const std::string& name) const { return read_disparity(folder_ / name); }
  TempFolder folder_;
  const cv::Size size_{kWidth, kHeight};
};

TEST_F(Match, PairToFolder) {
  const Outcome run = match({left(), right(), "-o", out()});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(names_in(out()), (Names{"left_disparity.pfm", "left_vis.png"}));
  expect_good_map(map("out/left_disparity.pfm"), size_);
  const cv::Mat picture = read_image(folder_ / "out/left_vis.png");
  EXPECT_EQ(picture.size(), size_);
  EXPECT_TRUE(contains(run.out, "left: 96x64")) << run.out;
  EXPECT_TRUE(contains(run.out, "left_disparity.pfm")) << run.out;
  // A warning about untrained weights, and the device with the reason.
  EXPECT_TRUE(contains(run.err, "untrained")) << run.err;
  EXPECT_TRUE(contains(run.err, "device: cpu, as")) << run.err;
}

TEST_F(Match, EveryFileFormatHoldsTheSameMap) {
  ASSERT_EQ(match({left(), right(), "-o", folder_ / "d.pfm"}).code, 0);
  const cv::Mat reference = map("d.pfm");
  expect_good_map(reference, size_);
  for (const std::string name : {"d.npy", "d.tiff", "d.tif"}) {
    ASSERT_EQ(match({left(), right(), "--no-picture", "-o", folder_ / name}).code, 0);
    EXPECT_EQ(cv::norm(map(name), reference, cv::NORM_INF), 0) << name;
  }
  ASSERT_EQ(match({left(), right(), "--no-picture", "-o", folder_ / "d.png"}).code, 0);
  const cv::Mat stored = cv::imread(folder_ / "d.png", cv::IMREAD_UNCHANGED);
  ASSERT_EQ(stored.type(), CV_16UC1);
  for (int y = 0; y < stored.rows; ++y)
    for (int x = 0; x < stored.cols; ++x) {
      const double wanted = std::clamp(256.0 * reference.at<float>(y, x), 1.0, 65535.0);
      ASSERT_NEAR(stored.at<std::uint16_t>(y, x), wanted, 0.51);
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
  expect_good_map(map("b.pfm"), size_);
  EXPECT_GT(cv::norm(map("a.pfm"), map("b.pfm"), cv::NORM_INF), 0);
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
  const cv::Mat left_map = map("out/left_disparity.pfm");
  const cv::Mat right_map = map("out/left_right_disparity.pfm");
  expect_good_map(right_map, size_);
  // The mask by its definition.
  const cv::Mat mask = cv::imread(folder_ / "out/left_occluded.png", cv::IMREAD_UNCHANGED);
  ASSERT_EQ(mask.type(), CV_8UC1);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const float d = left_map.at<float>(y, x);
      const auto at = static_cast<int>(std::lround(static_cast<float>(x) - d));
      const bool seen = x - d >= 0 && std::abs(right_map.at<float>(y, std::max(at, 0)) - d) <= 2;
      ASSERT_EQ(mask.at<uchar>(y, x), seen ? 0 : 255) << x << ", " << y;
    }
  const cv::Mat confidence = map("out/left_confidence.npy");
  double lo = 0, hi = 0;
  cv::minMaxLoc(confidence, &lo, &hi);
  EXPECT_GE(lo, 0);
  EXPECT_LE(hi, 1);
  EXPECT_GT(hi, lo);
  const cv::Mat picture = cv::imread(folder_ / "out/left_confidence_vis.png", cv::IMREAD_UNCHANGED);
  ASSERT_EQ(picture.type(), CV_8UC1);
  EXPECT_NEAR(picture.at<uchar>(10, 10), 255 * confidence.at<float>(10, 10), 0.51);
}

TEST_F(Match, RightViewAlone) {
  ASSERT_EQ(match({left(), right(), "-o", out(), "--view", "both", "--no-picture"}).code, 0);
  ASSERT_EQ(match({left(), right(), "-o", folder_ / "r.pfm", "--view", "right"}).code, 0);
  EXPECT_EQ(cv::norm(map("r.pfm"), map("out/left_right_disparity.pfm"), cv::NORM_INF), 0);
  EXPECT_EQ(names_in(folder_.path()),
            (Names{"left.png", "out", "r.pfm", "r_right_vis.png", "right.png"}));
  // By mirroring: the right view is the left view of the flipped and swapped pair.
  cv::Mat left_flipped, right_flipped, mirrored;
  cv::flip(read_image(left()), right_flipped, 1);
  cv::flip(read_image(right()), left_flipped, 1);
  write_image(folder_ / "lf.png", left_flipped);
  write_image(folder_ / "rf.png", right_flipped);
  ASSERT_EQ(match({folder_ / "lf.png", folder_ / "rf.png", "-o", folder_ / "m.pfm"}).code, 0);
  cv::flip(map("m.pfm"), mirrored, 1);
  EXPECT_EQ(cv::norm(map("r.pfm"), mirrored, cv::NORM_INF), 0);
}

TEST_F(Match, PicturesOfEveryKind) {
  ASSERT_EQ(match({left(), right(), "-o", folder_ / "a.pfm"}).code, 0);
  const cv::Mat reference = map("a.pfm");
  const cv::Mat l = read_image(left()), r = read_image(right());
  cv::Mat deep, deep_right, alpha, alpha_right;
  l.convertTo(deep, CV_16U, 257);
  r.convertTo(deep_right, CV_16U, 257);
  cv::cvtColor(l, alpha, cv::COLOR_BGR2BGRA);
  cv::cvtColor(r, alpha_right, cv::COLOR_BGR2BGRA);
  auto same_from = [&](const std::string& extension, const cv::Mat& a, const cv::Mat& b,
                       const std::vector<int>& how = {}) {
    SCOPED_TRACE(extension);
    const std::string first = folder_ / ("x" + extension), second = folder_ / ("y" + extension);
    ASSERT_TRUE(cv::imwrite(first, a, how) && cv::imwrite(second, b, how));
    const Outcome run = match({first, second, "--no-picture", "-o", folder_ / "b.pfm"});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(cv::norm(map("b.pfm"), reference, cv::NORM_INF), 0);
  };
  same_from(".tiff", deep, deep_right);
  same_from(".png", deep, deep_right);
  same_from(".png", alpha, alpha_right);
  same_from(".ppm", l, r);
  same_from(".webp", l, r, {cv::IMWRITE_WEBP_QUALITY, 101});  // above 100: lossless
  // Grey and JPEG lose something; they need only work.
  cv::Mat grey, grey_right;
  cv::cvtColor(l, grey, cv::COLOR_BGR2GRAY);
  cv::cvtColor(r, grey_right, cv::COLOR_BGR2GRAY);
  for (const std::string extension : {".jpg", ".pgm"}) {
    const std::string first = folder_ / ("g" + extension), second = folder_ / ("h" + extension);
    ASSERT_TRUE(cv::imwrite(first, grey) && cv::imwrite(second, grey_right));
    ASSERT_EQ(match({first, second, "-o", folder_ / "g.pfm"}).code, 0);
    expect_good_map(map("g.pfm"), size_);
  }
}

TEST_F(Match, OddSizesAndTheSmallest) {
  for (const cv::Size size : {cv::Size(32, 32), cv::Size(61, 37), cv::Size(33, 50)}) {
    put_pair(folder_ / "l.png", folder_ / "r.png", 3, size.width, size.height);
    // 64 px of disparity are wider than the narrowest of these images.
    const Outcome run = match({folder_ / "l.png", folder_ / "r.png", "-o", folder_ / "s.pfm"});
    ASSERT_EQ(run.code, 0) << run.err;
    expect_good_map(map("s.pfm"), size);
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
  const cv::Mat narrow = picture({"--range", "0,1"}), wide = picture({"--range", "0,4000"});
  // Everything lies beyond [0, 1] or near the start of [0, 4000]: one colour each, not the same.
  EXPECT_GT(cv::norm(narrow, wide, cv::NORM_INF), 50);
  const cv::Mat turbo = picture({}), inferno = picture({"--colormap", "inferno"});
  EXPECT_GT(cv::norm(turbo, inferno, cv::NORM_INF), 50);
  for (const std::string map : {"jet", "kitti"})
    EXPECT_GT(cv::norm(turbo, picture({"--colormap", map}), cv::NORM_INF), 50) << map;
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
  double lo = 0, hi = 0;
  cv::minMaxLoc(map("out/left_disparity.pfm"), &lo, &hi);
  EXPECT_FLOAT_EQ(line["disparity"]["min"].get<float>(), static_cast<float>(lo));
  EXPECT_FLOAT_EQ(line["disparity"]["max"].get<float>(), static_cast<float>(hi));
  const double median = line["disparity"]["median"];
  EXPECT_TRUE(lo <= median && median <= hi);
  const cv::Mat mask = cv::imread(folder_ / "out/left_occluded.png", cv::IMREAD_UNCHANGED);
  EXPECT_NEAR(line["occluded"].get<double>(), cv::countNonZero(mask) / double(mask.total()), 1e-9);
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
  const cv::Mat l = read_image(NMRF_SOURCE_DIR "/examples/pair/left.png");
  const cv::Mat r = read_image(NMRF_SOURCE_DIR "/examples/pair/right.png");
  const cv::Rect part(100, 90, 256, 192);
  write_image(left(), l(part));
  write_image(right(), r(part));
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
  const cv::Mat left = read_image(pair / "left.png"), right = read_image(pair / "right.png");
  const cv::Mat truth = read_disparity(pair / "disparity.png");
  const Calibration calibration = read_calibration(pair / "calib.txt");
  ASSERT_EQ(left.size(), right.size());
  ASSERT_EQ(left.size(), truth.size());
  EXPECT_EQ(left.size(), cv::Size(calibration.width, calibration.height));
  cv::Mat columns(truth.size(), CV_32F), rows(truth.size(), CV_32F), warped, difference;
  for (int y = 0; y < truth.rows; ++y)
    for (int x = 0; x < truth.cols; ++x) {
      columns.at<float>(y, x) = static_cast<float>(x) - truth.at<float>(y, x);
      rows.at<float>(y, x) = static_cast<float>(y);
    }
  cv::remap(right, warped, columns, rows, cv::INTER_LINEAR, cv::BORDER_REPLICATE);
  cv::absdiff(left, warped, difference);
  cv::cvtColor(difference, difference, cv::COLOR_BGR2GRAY);
  const double agree = cv::countNonZero(difference <= 12) / static_cast<double>(truth.total());
  EXPECT_GT(agree, 0.85) << "the rest may be hidden in the right view";
}

}  // namespace
}  // namespace nmrf::test
