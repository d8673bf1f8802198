// Whole pairs: truth against images, repetition, statistics, the tree on disk.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <opencv2/imgproc.hpp>
#include <set>
#include <thread>

#include "core/file.h"
#include "core/quantile.h"
#include "data/mats.h"
#include "data/surfaces.h"
#include "nmrf/disparity.h"
#include "nmrf/geometry.h"
#include "support/mats.h"
#include "support/support.h"
#include "synth/synth.h"
#include "synth/tree.h"

namespace nmrf {
namespace {

using test::same;

namespace fs = std::filesystem;

SynthOptions small(int width = 160, int height = 112) {
  SynthOptions options;
  options.width = width, options.height = height;
  options.max_disp = 64;
  return options;
}

// Only the one kind.
SynthOptions only(SynthOptions options, const std::string& kind) {
  nlohmann::json object = to_json_object(options);
  for (auto& [name, weight] : object["mix"].items()) weight = name == kind ? 1.0 : 0.0;
  from_json_object(options, object, "test");
  return options;
}

bool same(const SynthPair& a, const SynthPair& b) {
  return same(a.left, b.left) && same(a.right, b.right) &&
         same(a.left_disparity, b.left_disparity) && same(a.right_disparity, b.right_disparity) &&
         same(a.left_occluded, b.left_occluded) && same(a.right_occluded, b.right_occluded) &&
         same(a.left_surfaces, b.left_surfaces) && same(a.left_objects, b.left_objects) &&
         same(a.right_objects, b.right_objects) && a.kind == b.kind &&
         a.calibration.fx == b.calibration.fx;
}

class SynthKind : public testing::TestWithParam<const char*> {};

TEST_P(SynthKind, TruthExplainsTheImages) {
  SynthOptions options = only(small(209, 130), GetParam()).ideal();
  std::vector<double> medians;
  for (int i = 0; i < 4; ++i) {
    SynthPair pair = render_pair(options, 7, i);
    ASSERT_EQ(pair.kind, GetParam());
    SynthCheck check = check_pair(pair);
    EXPECT_EQ(check.not_finite, 0);
    EXPECT_GE(check.min_disparity, 0);
    EXPECT_LE(check.max_disparity, options.max_disp);
    EXPECT_LT(check.inconsistent, 0.02) << i;
    EXPECT_LT(check.occluded, 0.8) << i;
    EXPECT_LT(check.photo_median, 6) << i;
    // The check must be able to fail: a disparity that is two pixels off does not explain them.
    SynthPair wrong = pair;
    wrong.left_disparity = pair.left_disparity + 2;
    EXPECT_GT(check_pair(wrong).inconsistent, 0.5) << i;
    medians.push_back(check.photo_median);
  }
  std::sort(medians.begin(), medians.end());
  EXPECT_LT(medians[1], 2.5);
}

// The sky is 0 in both; reflecting and transparent surfaces exist only where the settings allow
// them.
TEST(SynthSurfaces, FollowTheSettings) {
  SynthOptions options = only(small(), "street");
  options.gloss = 1;
  std::array<int, kSurfaceNames.size()> count{};
  auto look = [&](std::int64_t index) {
    const SynthPair pair = render_pair(options, 3, index);
    for (int y = 0; y < options.height; ++y)
      for (int x = 0; x < options.width; ++x) {
        const auto kind = pair.left_surfaces.at<std::uint8_t>(y, x);
        ASSERT_LT(kind, count.size());
        ASSERT_EQ(kind == 0, pair.left_objects.at<int>(y, x) == 0);
        ++count[kind];
      }
  };
  for (std::int64_t i = 0; i < 4; ++i) look(i);
  const auto of = [&](Surface surface) { return count[static_cast<std::size_t>(surface)]; };
  EXPECT_GT(of(Surface::kReflecting), 0);
  EXPECT_GT(of(Surface::kMatte), 0);
  count = {};
  options = options.ideal();
  for (std::int64_t i = 0; i < 4; ++i) look(i);
  EXPECT_EQ(of(Surface::kReflecting) + of(Surface::kGlossy) + of(Surface::kGlass), 0);
}

TEST_P(SynthKind, ObjectsOfBothViewsAgree) {
  SynthOptions options = only(small(), GetParam()).ideal();
  SynthPair pair = render_pair(options, 8, 1);
  int shown = 0, agree = 0;
  std::set<int> objects;
  for (int y = 0; y < options.height; ++y)
    for (int x = 0; x < options.width; ++x) {
      int id = pair.left_objects.at<int>(y, x);
      EXPECT_GE(id, 0);
      objects.insert(id);
      if (pair.left_occluded.at<std::uint8_t>(y, x)) continue;
      float at = static_cast<float>(x) - pair.left_disparity.at<float>(y, x);
      int x0 = std::clamp(static_cast<int>(std::floor(at)), 0, options.width - 1),
          x1 = std::min(x0 + 1, options.width - 1);
      ++shown;
      agree += pair.right_objects.at<int>(y, x0) == id || pair.right_objects.at<int>(y, x1) == id;
    }
  EXPECT_GT(agree, 0.97 * shown);
  EXPECT_GE(objects.size(), 3u);
}

// The same scene from the same place, with objects in front of it: no pixel gets farther, a good
// many nearer, and the truth still explains the images.
TEST_P(SynthKind, FloatersHideWhatIsBehindThem) {
  SynthOptions options = only(small(), GetParam()).ideal();
  options.baseline = 0.1, options.focal = 150;  // otherwise near things set the scale
  options.edge_samples = 1;
  SynthOptions with = options;
  with.floaters = 1;
  double nearer = 0;
  for (int i = 0; i < 3; ++i) {
    SynthPair before = render_pair(options, 9, i), after = render_pair(with, 9, i);
    int farther = 0;
    for (int y = 0; y < options.height; ++y)
      for (int x = 0; x < options.width; ++x) {
        float change = after.left_disparity.at<float>(y, x) - before.left_disparity.at<float>(y, x);
        farther += change < -1e-3f;
        nearer += change > 1e-3f;
      }
    EXPECT_EQ(farther, 0) << i;
    SynthCheck check = check_pair(after);
    EXPECT_LT(check.inconsistent, 0.02) << i;
    EXPECT_LT(check.photo_median, 6) << i;
  }
  nearer /= 3.0 * options.width * options.height;
  if (std::string(GetParam()) == "flying") {
    EXPECT_EQ(nearer, 0);  // they float already
  } else {
    EXPECT_GT(nearer, 0.05);
    EXPECT_LT(nearer, 0.8);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SynthKind,
                         testing::Values("room", "street", "park", "still", "flying", "layers"),
                         [](const auto& info) { return std::string(info.param); });

TEST(SynthPair, RepeatsWhateverTheThreads) {
  SynthOptions options = small(96, 64);
  constexpr int kPairs = 6;
  std::vector<SynthPair> alone, together(kPairs);
  for (int i = 0; i < kPairs; ++i) alone.push_back(render_pair(options, 5, i));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = kPairs - 1 - t; i >= 0; i -= 3)
        together[static_cast<std::size_t>(i)] = render_pair(options, 5, i);
    });
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < kPairs; ++i) EXPECT_TRUE(same(alone[i], together[i])) << i;
  EXPECT_FALSE(same(alone[0], alone[1]));
  EXPECT_FALSE(same(alone[0].left, render_pair(options, 6, 0).left));
}

TEST(SynthPair, FaultsOfTheCameraLeaveTheTruthAlone) {
  SynthOptions options = small(), perfect = options;
  perfect.blur = perfect.noise = perfect.vignette = perfect.exposure = perfect.white_balance = 0;
  perfect.rectification = perfect.jpeg = perfect.grey = 0;
  for (int i = 0; i < 3; ++i) {
    SynthPair a = render_pair(options, 3, i), b = render_pair(perfect, 3, i);
    EXPECT_TRUE(same(a.left_disparity, b.left_disparity));
    EXPECT_TRUE(same(a.right_occluded, b.right_occluded));
    EXPECT_FALSE(same(a.left, b.left));
  }
}

TEST(SynthPair, DetailLeavesTheSceneAlone) {
  SynthOptions rich = small().ideal(), poor = rich;
  rich.detail = 1, poor.detail = 0;
  double rich_slope = 0, poor_slope = 0;
  auto slope = [](const cv::Mat& image) {
    cv::Mat grey, x;
    cv::cvtColor(image, grey, cv::COLOR_BGR2GRAY);
    cv::Sobel(grey, x, CV_32F, 1, 0);
    std::vector<float> sizes;
    for (float value : cv::Mat_<float>(x)) sizes.push_back(std::abs(value));
    return quantile(sizes, 0.5);  // of surfaces, not of edges
  };
  for (int i = 0; i < 3; ++i) {
    SynthPair a = render_pair(rich, 3, i), b = render_pair(poor, 3, i);
    EXPECT_TRUE(same(a.left_disparity, b.left_disparity));
    EXPECT_TRUE(same(a.left_objects, b.left_objects));
    rich_slope += slope(a.left), poor_slope += slope(b.left);
  }
  EXPECT_GT(rich_slope, 1.2 * poor_slope);
}

// Near things at the sides: more objects lie wholly out of the other view.
TEST(SynthPair, BorderPutsNearThingsWhereOneEyeSeesThem) {
  auto only_left = [](double border) {
    SynthOptions options = only(small(128, 96), "flying");
    options.border = border;
    options.edge_samples = 1;
    options.baseline = 0.3, options.focal = 150;  // otherwise near things set the scale
    int pixels = 0;
    for (int i = 0; i < 50; ++i) {
      SynthPair pair = render_pair(options, 5, i);
      std::set<int> in_right(pair.right_objects.begin<int>(), pair.right_objects.end<int>());
      for (int y = 0; y < pair.left.rows; ++y)
        for (int x = 0; x < pair.left.cols; ++x)
          pixels += pair.left_disparity.at<float>(y, x) > static_cast<float>(x) &&
                    in_right.count(pair.left_objects.at<int>(y, x)) == 0;
    }
    return pixels;
  };
  EXPECT_GT(only_left(1), 1.15 * only_left(0));
}

// Floaters draw from a stream of their own: a scene that gets none of them is the scene of before.
TEST(SynthPair, FloatersLeaveTheRestOfTheSceneAlone) {
  SynthOptions options = small(96, 64), none = options, some = options;
  options.edge_samples = none.edge_samples = some.edge_samples = 1;
  none.floaters = 1, none.floaters_min = none.floaters_max = 0;
  some.floaters = 1;
  int changed = 0;
  for (int i = 0; i < 6; ++i) {
    SynthPair pair = render_pair(options, 12, i);
    EXPECT_TRUE(same(pair, render_pair(none, 12, i))) << i;
    changed += !same(pair.left, render_pair(some, 12, i).left);
  }
  EXPECT_GE(changed, 3);
}

TEST(SynthPair, DenseFlyingScenesShowManyMoreObjects) {
  auto objects = [](double dense) {
    SynthOptions options = only(small(192, 128), "flying");
    options.edge_samples = 1, options.dense = dense;
    options.clutter = 0.3;
    std::size_t count = 0;
    for (int i = 0; i < 6; ++i) {
      SynthPair pair = render_pair(options, 5, i);
      count += std::set<int>(pair.left_objects.begin<int>(), pair.left_objects.end<int>()).size();
    }
    return static_cast<double>(count);
  };
  EXPECT_GT(objects(1), 1.5 * objects(0));
}

TEST(SynthPair, GreyPairsHaveNoColour) {
  SynthOptions options = small(96, 64);
  options.grey = 1, options.jpeg = 1;
  SynthPair pair = render_pair(options, 1, 0);
  std::vector<cv::Mat> channels;
  cv::split(pair.right, channels);
  EXPECT_TRUE(same(channels[0], channels[1]));
  EXPECT_TRUE(same(channels[0], channels[2]));
}

TEST(SynthPair, DisparitiesSpreadAsAskedFor) {
  SynthOptions options = small(128, 96);
  options.max_disp = 40;
  options.edge_samples = 1;
  options.sensor_max = 1;
  options.near_min = options.near_max = 0.12;  // of 128 pixels
  std::map<std::string, int> kinds;
  std::vector<float> nears;
  for (int i = 0; i < 36; ++i) {
    SynthPair pair = render_pair(options, 21, i);
    ++kinds[pair.kind];
    std::vector<float> d(pair.left_disparity.begin<float>(), pair.left_disparity.end<float>());
    std::sort(d.begin(), d.end());
    ASSERT_LE(d.back(), 40);
    ASSERT_GE(d.front(), 0);
    nears.push_back(d[static_cast<std::size_t>(0.96 * static_cast<double>(d.size()))]);
    EXPECT_EQ(pair.calibration.width, 128);
    EXPECT_NO_THROW(pair.calibration.validate());
  }
  EXPECT_GE(kinds.size(), 5u);
  std::sort(nears.begin(), nears.end());
  EXPECT_NEAR(nears[18], 0.12 * 128, 2);
  EXPECT_GT(nears.front(), 8);
  EXPECT_LT(nears.back(), 25);
}

TEST(SynthPair, TakesABaselineAndAFocalLength) {
  SynthOptions options = only(small(), "street");
  options.baseline = 0.54, options.focal = 300;
  SynthPair pair = render_pair(options, 2, 0);
  EXPECT_NEAR(pair.calibration.baseline, 0.54, 1e-6);
  EXPECT_NEAR(pair.calibration.fx, 300, 1e-4);
  const FloatMap depth = depth_from_disparity(float_map(pair.left_disparity), pair.calibration);
  EXPECT_GT(*std::min_element(depth.begin(), depth.end()), 300 * 0.54 / 64 * 0.999);
}

TEST(SynthPair, RefusesBadOptionsAndTextures) {
  SynthOptions options = small();
  options.height = 7;
  test::error_of(ErrorKind::kUsage, [&] { render_pair(options, 1, 0); });
  options = small();
  options.textures = "/nonexistent/photos";
  EXPECT_NE(test::error_of(ErrorKind::kInput, [&] { render_pair(options, 1, 0); })
                .find("/nonexistent/photos"),
            std::string::npos);
}

TEST(SynthPair, MixesInPhotographs) {
  test::TempFolder folder;
  cv::Mat image(256, 320, CV_8UC3);
  for (int y = 0; y < image.rows; ++y)
    for (int x = 0; x < image.cols; ++x) image.at<cv::Vec3b>(y, x) = cv::Vec3b(20, 230, 20);
  write_mat(folder / "green.png", image);
  SynthOptions options = only(small(), "layers").ideal();
  options.plain = 0, options.low_contrast = 0;
  auto greens = [&](const SynthOptions& o) {
    int count = 0;
    for (int i = 0; i < 3; ++i) {
      cv::Mat left = render_pair(o, 4, i).left;
      for (const auto& p : cv::Mat_<cv::Vec3b>(left)) count += p[1] > 2 * p[0] && p[1] > 2 * p[2];
    }
    return count;
  };
  int without = greens(options);
  options.textures = folder.path().string(), options.photo = 1;
  EXPECT_GT(greens(options), 2 * without + 2000);
}

TEST(SynthCheck, RefusesMapsOfDifferentSize) {
  SynthPair pair = render_pair(small(64, 48), 1, 0);
  pair.right_disparity = pair.right_disparity(cv::Rect(0, 0, 10, 10));
  test::error_of(ErrorKind::kInput, [&] { check_pair(pair); });
  test::error_of(ErrorKind::kInput, [&] { check_pair(SynthPair{}); });
}

TEST(SynthTree, PlacesFollowFlyingThings) {
  EXPECT_EQ(synth_place("TRAIN", 0).sequence, fs::path("TRAIN/A/0000"));
  EXPECT_EQ(synth_place("TRAIN", 0).frame, "0006");
  EXPECT_EQ(synth_place("TEST", 19).sequence, fs::path("TEST/A/0001"));
  EXPECT_EQ(synth_place("TEST", 19).frame, "0015");
  EXPECT_EQ(synth_place("TRAIN", 100000).sequence, fs::path("TRAIN/B/0000"));
  test::error_of(ErrorKind::kUsage, [] { synth_place("TRAIN", 2600000); });
}

TEST(SynthTree, WritesResumesAndExtends) {
  test::TempFolder folder;
  SynthOptions options = small(64, 48);
  options.edge_samples = 1;
  SynthTree tree;
  tree.folder = folder.path();
  tree.pairs = 3, tree.threads = 2;
  std::vector<std::int64_t> steps;
  tree.progress = [&](std::int64_t done, std::int64_t) { steps.push_back(done); };
  SynthTreeResult first = write_synth_tree(options, tree);
  EXPECT_EQ(first.written, 3);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3}));

  // What lies there is what is rendered.
  fs::path base = folder / "FlyingThings3D";
  SynthPair pair = render_pair(options, static_cast<std::uint64_t>(options.seed), 1);
  EXPECT_TRUE(same(read_bgr(base / "frames_finalpass/TRAIN/A/0000/left/0007.png"), pair.left));
  EXPECT_TRUE(same(read_bgr(base / "frames_finalpass/TRAIN/A/0000/right/0007.png"), pair.right));
  EXPECT_TRUE(
      same(read_disparity_mat(base / "disparity/TRAIN/A/0000/left/0007.pfm"), pair.left_disparity));
  EXPECT_TRUE(same(read_disparity_mat(base / "disparity/TRAIN/A/0000/right/0007.pfm"),
                   pair.right_disparity));
  cv::Mat ids;
  read_disparity_mat(base / "object_index/TRAIN/A/0000/left/0007.pfm").convertTo(ids, CV_32S);
  EXPECT_TRUE(same(ids, pair.left_objects));
  cv::Mat mask;
  cv::extractChannel(read_bgr(base / "occlusion/TRAIN/A/0000/right/0007.png"), mask, 0);
  EXPECT_TRUE(same(mask, pair.right_occluded));
  Calibration c = read_calibration(base / "calib/TRAIN/A/0000/0007.txt");
  EXPECT_NEAR(c.fx, pair.calibration.fx, 1e-4);
  EXPECT_NEAR(c.baseline, pair.calibration.baseline, 1e-6);
  EXPECT_NEAR(c.cx, pair.calibration.cx, 1e-4);

  // A pair that lacks a file is made again; complete ones stay; more may follow.
  fs::remove(base / "disparity/TRAIN/A/0000/right/0007.pfm");
  auto before = fs::last_write_time(base / "disparity/TRAIN/A/0000/left/0006.pfm");
  tree.pairs = 4;
  SynthTreeResult second = write_synth_tree(options, tree);
  EXPECT_EQ(second.written, 2);
  EXPECT_EQ(second.skipped, 2);
  EXPECT_TRUE(fs::exists(base / "disparity/TRAIN/A/0000/right/0007.pfm"));
  EXPECT_EQ(fs::last_write_time(base / "disparity/TRAIN/A/0000/left/0006.pfm"), before);

  // Other settings need another folder, but may be the other split.
  SynthOptions other = options;
  other.max_disp = 32;
  std::string message = test::error_of(ErrorKind::kUsage, [&] { write_synth_tree(other, tree); });
  EXPECT_NE(message.find("max_disp"), std::string::npos);
  tree.split = "TEST", tree.pairs = 1;
  EXPECT_EQ(write_synth_tree(other, tree).written, 1);
  EXPECT_TRUE(fs::exists(base / "frames_finalpass/TEST/A/0000/left/0006.png"));
}

TEST(SynthTree, SplitsShareNoScene) {
  test::TempFolder folder;
  SynthOptions options = small(64, 48);
  options.edge_samples = 1;
  SynthTree tree;
  tree.folder = folder.path();
  tree.pairs = 6;
  std::set<std::string> maps;
  for (const char* split : {"TRAIN", "TEST"}) {
    tree.split = split;
    write_synth_tree(options, tree);
    for (int frame = 6; frame < 12; ++frame)
      maps.insert(
          read_file(folder.path() / fmt::format("FlyingThings3D/disparity/{}/A/0000/left/{:04}.pfm",
                                                split, frame)));
  }
  EXPECT_EQ(maps.size(), 12u);
}

TEST(SynthTree, StopsWhenAsked) {
  test::TempFolder folder;
  SynthOptions options = small(64, 48);
  options.edge_samples = 1;
  SynthTree tree;
  tree.folder = folder.path();
  tree.pairs = 50, tree.threads = 1;
  int asked = 0;
  tree.stop = [&] { return ++asked > 2; };
  EXPECT_EQ(write_synth_tree(options, tree).written, 2);
}

TEST(SynthTree, RefusesBadRequests) {
  test::TempFolder folder;
  SynthTree tree;
  tree.folder = folder.path();
  test::error_of(ErrorKind::kUsage, [&] { write_synth_tree(small(), tree); });
  tree.pairs = 1, tree.split = "VAL";
  EXPECT_NE(test::error_of(ErrorKind::kUsage, [&] { write_synth_tree(small(), tree); }).find("VAL"),
            std::string::npos);
  tree.split = "TRAIN";
  SynthOptions options = small();
  options.textures = (folder / "missing").string();
  test::error_of(ErrorKind::kInput, [&] { write_synth_tree(options, tree); });
}

}  // namespace
}  // namespace nmrf
