// Rendered sequences: the truth from frame to frame.
#include <gtest/gtest.h>

#include <cmath>

#include "core/quantile.h"
#include "support/mats.h"
#include "support/support.h"
#include "synth/synth.h"
#include "synth/tree.h"

namespace nmrf {
namespace {

SynthOptions small() {
  SynthOptions options;
  options.width = 160, options.height = 112;
  options.max_disp = 64;
  options.movers = 3;
  return options;
}

float grey(const cv::Mat& image, int y, int x) {
  const auto& c = image.at<cv::Vec3b>(y, x);
  return 0.114f * c[0] + 0.587f * c[1] + 0.299f * c[2];
}

// Points look alike where they were, and their disparity there is that of the frame before.
TEST(SynthSequence, PointsAreFoundWhereTheyWere) {
  const SynthOptions options = small().ideal();
  for (std::int64_t index : {0, 1}) {
    std::vector<SynthPair> frames;
    render_sequence(options, 7, index, 3, [&](int frame, const SynthPair& pair) {
      EXPECT_EQ(frame, static_cast<int>(frames.size()));
      frames.push_back(pair);
    });
    ASSERT_EQ(frames.size(), 3u);
    EXPECT_TRUE(frames[0].left_past.empty());
    for (std::size_t f = 1; f < frames.size(); ++f) {
      const SynthPair &now = frames[f], &before = frames[f - 1];
      EXPECT_EQ(now.calibration.baseline, before.calibration.baseline);
      std::vector<float> differences;
      std::int64_t known = 0, still = 0;
      for (int y = 0; y < now.left.rows; ++y)
        for (int x = 0; x < now.left.cols; ++x) {
          const auto& place = now.left_past.at<cv::Vec2f>(y, x);
          if (!std::isfinite(place[0])) continue;
          ++known;
          still += std::hypot(place[0] - static_cast<float>(x), place[1] - static_cast<float>(y)) <
                   0.01f;
          const int u = static_cast<int>(std::lround(place[0])),
                    v = static_cast<int>(std::lround(place[1]));
          // Objects keep their ids.
          if (now.left_objects.at<int>(y, x) == before.left_objects.at<int>(v, u))
            differences.push_back(std::abs(grey(now.left, y, x) - grey(before.left, v, u)));
        }
      EXPECT_GT(known, now.left.total() * 0.6);
      EXPECT_LT(still, known / 2) << "nothing moves";
      EXPECT_GT(differences.size(), 0.8 * static_cast<double>(known));
      EXPECT_LT(quantile(differences, 0.5), 8);
    }
  }
}

TEST(SynthSequence, RepeatsAndFillsATree) {
  const SynthOptions options = small();
  test::TempFolder folder;
  SynthTree tree;
  tree.folder = folder.path();
  tree.pairs = 2;
  tree.frames = 2;
  tree.split = "TEST";
  tree.threads = 2;
  EXPECT_EQ(write_synth_tree(options, tree).written, 2);
  const auto base = folder.path() / "FlyingThings3D";
  for (const char* sequence : {"0000", "0001"}) {
    EXPECT_TRUE(
        std::filesystem::exists(base / "frames_finalpass/TEST/A" / sequence / "left/0007.png"));
    EXPECT_TRUE(std::filesystem::exists(base / "optical_flow/TEST/A" / sequence /
                                        "into_past/left/0007.flo"));
    EXPECT_FALSE(std::filesystem::exists(base / "optical_flow/TEST/A" / sequence /
                                         "into_past/left/0006.flo"));
  }
  EXPECT_EQ(write_synth_tree(options, tree).skipped, 2);
  std::vector<cv::Mat> first;
  for (int run = 0; run < 2; ++run)
    render_sequence(options, 3, 0, 2, [&](int frame, const SynthPair& pair) {
      if (run == 0)
        first.push_back(pair.left.clone());
      else
        EXPECT_TRUE(test::same(pair.left, first[static_cast<std::size_t>(frame)]));
    });
  test::error_of(ErrorKind::kUsage,
                 [&] { render_sequence(options, 3, 0, 0, [](int, const SynthPair&) {}); });
}

}  // namespace
}  // namespace nmrf
