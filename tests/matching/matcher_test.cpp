// The library's front door.
#include "nmrf/matcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "matching/allocations.h"
#include "matching/pictures.h"
#include "network/model_file.h"
#include "nmrf/log.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::noise_image;
using test::same;

const char* const kBundled = NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors";

MatcherOptions options(std::vector<std::string> set, std::optional<int> max_disp = {},
                       std::optional<int> threads = {}) {
  MatcherOptions result;
  result.set = std::move(set);
  result.max_disp = max_disp;
  result.threads = threads;
  return result;
}

MatchOptions at_scale(double scale, bool full_size = false, View view = View::kLeft) {
  MatchOptions how;
  how.scale = scale;
  how.full_size = full_size;
  how.view = view;
  return how;
}

MatchOptions of_view(View view) {
  MatchOptions how;
  how.view = view;
  return how;
}

MatchOptions with_labels() {
  MatchOptions how;
  how.keep_labels = true;
  return how;
}

const Matcher& matcher() {
  static Matcher instance = Matcher::load(
      "formula:fast", options({"match.enlarge=0", "match.fill=0", "match.median=0"}, 64));
  return instance;
}

// Noise, each value of it spread over 4 x 4 pixels, linearly.
Image smooth_image(int width, int height, std::uint64_t seed) {
  const Image coarse = noise_image(width / 4 + 2, height / 4 + 2, seed);
  Image result(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < 3 * width; ++x) {
      const double u = x / 3 / 4.0, v = y / 4.0;
      const int i = static_cast<int>(u), j = static_cast<int>(v), c = x % 3;
      auto at = [&](int row, int column) { return coarse.row(row)[3 * column + c]; };
      const double above = at(j, i) + (u - i) * (at(j, i + 1) - at(j, i)),
                   below = at(j + 1, i) + (u - i) * (at(j + 1, i + 1) - at(j + 1, i));
      result.row(y)[x] = static_cast<std::uint8_t>(std::lround(above + (v - j) * (below - above)));
    }
  return result;
}

// Columns [begin, begin + width) of an image, without a copy.
ImageView columns(const Image& image, int begin, int width) {
  ImageView view = image;
  view.data = image.data() + 3 * begin;
  view.stride = static_cast<std::ptrdiff_t>(image.row_bytes());
  view.width = width;
  return view;
}

Image mirrored(const Image& image) {
  Image result = image;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      std::copy_n(image.row(y) + 3 * x, 3, result.row(y) + 3 * (image.width() - 1 - x));
  return result;
}

FloatMap mirrored(FloatMap map) {
  for (int y = 0; y < map.height(); ++y) std::reverse(map.row(y), map.row(y) + map.width());
  return map;
}

TEST(Matcher, MapsHaveTheSizeOfTheImages) {
  for (auto [h, w] : std::vector<std::pair<int, int>>{{32, 32}, {37, 61}, {64, 96}}) {
    const Disparity d = matcher().match(noise_image(w, h, 1), noise_image(w, h, 2));
    EXPECT_EQ(d.map.width(), w);
    EXPECT_EQ(d.map.height(), h);
    EXPECT_TRUE(d.map.same_size(d.confidence) && d.map.same_size(d.mask));
    for (float value : d.map) ASSERT_TRUE(value >= 0 && std::isfinite(value));
    for (float value : d.confidence)
      ASSERT_TRUE(value >= 0.25 - 1e-6 && value <= 1 + 1e-6) << "a quarter for the best of four";
  }
}

TEST(Matcher, AcceptsWhatCamerasDeliver) {
  Image grey(48, 32, 1), grey2(48, 32, 1), colour(48, 32), colour2(48, 32),
      bgra(48, 32, 4, 8, ChannelOrder::kBgr), deep(48, 32, 1, 16);
  Rng rng(5);
  for (int i = 0; i < 48 * 32; ++i) {
    const auto a = static_cast<std::uint8_t>(rng.integer(0, 255)),
               b = static_cast<std::uint8_t>(rng.integer(0, 255));
    grey.data()[i] = a;
    grey2.data()[i] = b;
    reinterpret_cast<std::uint16_t*>(deep.data())[i] = static_cast<std::uint16_t>(257 * a);
    for (int c = 0; c < 3; ++c) {
      colour.data()[3 * i + c] = bgra.data()[4 * i + c] = a;
      colour2.data()[3 * i + c] = b;
    }
    bgra.data()[4 * i + 3] = 7;
  }
  const FloatMap expected = matcher().match(colour, colour2).map;
  EXPECT_TRUE(same(matcher().match(grey, grey2).map, expected));
  EXPECT_TRUE(same(matcher().match(bgra, grey2).map, expected));
  EXPECT_TRUE(same(matcher().match(deep, grey2).map, expected));
  // Blue and red are told apart by the order.
  Image rgb = noise_image(48, 32, 9), bgr(48, 32, 3, 8, ChannelOrder::kBgr);
  for (int i = 0; i < 48 * 32; ++i)
    for (int c = 0; c < 3; ++c) bgr.data()[3 * i + c] = rgb.data()[3 * i + 2 - c];
  EXPECT_TRUE(same(matcher().match(bgr, grey2).map, matcher().match(rgb, grey2).map));
}

TEST(Matcher, RightViewIsTheMirroredProblem) {
  const Image left = noise_image(64, 32, 7), right = noise_image(64, 32, 8);
  const FloatMap expected = mirrored(matcher().match(mirrored(right), mirrored(left)).map);
  EXPECT_TRUE(same(matcher().match(left, right, of_view(View::kRight)).map, expected));
}

// Views that were moved against each other have the map of those that were not, less the shift.
TEST(Matcher, NegativeDisparities) {
  static const Matcher bundled = Matcher::load(kBundled, options({}, 64, 1));
  constexpr int kShift = 20, kW = 192, kH = 96;
  const Image wide = smooth_image(kW + 80, kH, 5);
  auto columns = [&](int begin) {
    ImageView view = wide;
    view.stride = static_cast<std::ptrdiff_t>(wide.row_bytes());
    view.data = wide.row(0) + 3 * begin;
    view.width = kW;
    return to_rgb8(view);
  };
  // 8 px of disparity, and 12 px less than nothing.
  const Image left = columns(40), right = columns(48), moved = columns(48 - kShift);
  for (View view : {View::kLeft, View::kRight})
    for (std::optional<double> scale : {std::optional<double>(1), std::optional<double>()}) {
      MatchOptions how = of_view(view);
      how.scale = scale;
      const Disparity plain = bundled.match(left, right, how);
      how.min_disp = -kShift;
      const Disparity negative = bundled.match(left, moved, how);
      SCOPED_TRACE(static_cast<int>(view) + (scale ? 0 : 10));
      ASSERT_TRUE(negative.map.same_size(plain.map));
      int alike = 0, right_value = 0, inside = 0;
      for (int y = 0; y < kH; ++y)
        for (int x = 0; x < kW; ++x) {
          const float d = negative.map.at(y, x);
          const float at = static_cast<float>(x) + (view == View::kLeft ? -d : d);
          if (!(at >= 0 && at <= kW - 1)) {
            EXPECT_EQ(negative.mask.at(y, x), kOutOfView | kFilled) << y << " " << x;
            continue;
          }
          if (x < kShift || x >= kW - kShift) continue;  // what only one of the pairs shows
          ++inside;
          alike += std::abs(d + kShift - plain.map.at(y, x)) < 0.3f;
          right_value += std::abs(d + 12) < 0.5f;
        }
      EXPECT_GT(alike, 0.97 * inside);
      EXPECT_GT(right_value, 0.95 * inside);
    }
  // A guide has the disparities of the map.
  MatchOptions how = at_scale(1);
  how.min_disp = -kShift;
  const Disparity first = bundled.match(left, moved, how);
  how.guide = &first.map;
  const Disparity second = bundled.match(left, moved, how);
  int alike = 0;
  for (std::size_t i = 0; i < first.map.size(); ++i)
    alike += std::abs(first.map.data()[i] - second.map.data()[i]) < 0.5f;
  EXPECT_GT(alike, 0.95 * static_cast<double>(first.map.size()));
  how.min_disp = kW;
  test::error_of(ErrorKind::kUsage, [&] { bundled.match(left, right, how); });
}

TEST(Matcher, ScaleScalesSizeAndDisparity) {
  const Image left = noise_image(128, 80, 9), right = noise_image(128, 80, 10);
  const Disparity half = matcher().match(left, right, at_scale(0.5));
  EXPECT_EQ(half.map.width(), 64);
  EXPECT_EQ(half.map.height(), 40);
  const Disparity full = matcher().match(left, right, at_scale(0.5, true));
  EXPECT_EQ(full.map.width(), 128);
  EXPECT_EQ(full.map.height(), 80);
  EXPECT_FLOAT_EQ(full.map.at(20, 20), 2 * half.map.at(10, 10));
}

// The model's choice: as the images are, and again enlarged as far as their disparities allow.
TEST(Matcher, EnlargesWhereDisparitiesAreSmall) {
  const Image wide = smooth_image(160, 96, 11);
  const int shift = 8;  // pixels of disparity
  const ImageView left = columns(wide, 0, 152), right = columns(wide, shift, 152);
  auto load = [](int enlarge) {
    return Matcher::load(kBundled,
                         options({fmt::format("match.enlarge={}", enlarge), "match.guide=false",
                                  "match.fill=0", "match.median=0"}));
  };
  const Matcher never = load(0);
  const Disparity plain = never.match(left, right, at_scale(1));
  EXPECT_TRUE(same(never.match(left, right).map, plain.map));
  std::vector<float> values(plain.map.begin(), plain.map.end());
  std::sort(values.begin(), values.end());
  const double near = values[static_cast<std::size_t>(0.98 * static_cast<double>(values.size()))];
  ASSERT_GT(near, 5);
  ASSERT_LT(near, 60);
  // Less than 1.2 times is not worth another pass, more than twice is not done.
  for (const auto& [times, scale] : std::vector<std::pair<double, double>>{{1.1, 1}, {3, 2}}) {
    SCOPED_TRACE(times);
    const Matcher chooses = load(static_cast<int>(times * near));
    const Disparity chosen = chooses.match(left, right);
    EXPECT_EQ(chosen.map.width(), left.width);
    const Disparity expected = never.match(left, right, at_scale(scale, true));
    EXPECT_TRUE(same(chosen.map, expected.map));
    EXPECT_TRUE(same(chosen.confidence, expected.confidence));
    EXPECT_EQ(chooses.best_scale(plain.map), scale);
    EXPECT_TRUE(same(chooses.match(left, right, of_view(View::kRight)).map,
                     never.match(left, right, at_scale(scale, true, View::kRight)).map));
    // Labels stay those of the images as they are.
    const Disparity kept = chooses.match(left, right, with_labels());
    EXPECT_EQ(kept.labels.width, 19);
    EXPECT_EQ(kept.labels.height, 12);
  }
}

TEST(Matcher, ChoosesAScaleFromAMap) {
  const Matcher chooses = Matcher::load("formula:fast", options({"match.enlarge=128"}));
  FloatMap map(100, 100, 80);
  EXPECT_DOUBLE_EQ(chooses.best_scale(map), 1.6);
  EXPECT_DOUBLE_EQ(chooses.best_scale(map, 1.5), 1.5) << "close enough to stay";
  EXPECT_DOUBLE_EQ(chooses.best_scale(map, 1), 1.6);
  std::fill(map.row(0), map.row(1), 500.0f);  // few
  std::fill(map.row(1), map.row(2), kInvalidDisparity);
  EXPECT_DOUBLE_EQ(chooses.best_scale(map), 1.6);
  EXPECT_EQ(chooses.best_scale(FloatMap(100, 100, 120)), 1) << "1.07 is not worth it";
  EXPECT_EQ(chooses.best_scale(FloatMap(100, 100, kInvalidDisparity)), 2)
      << "nothing is known to speak against it";
  EXPECT_DOUBLE_EQ(chooses.best_scale(FloatMap(4000, 2000, 10)), 0.5);
  test::error_of(ErrorKind::kUsage, [&] { chooses.best_scale(FloatMap()); });
}

// Of large photographs as many pixels as time and memory allow; the map has all of them.
TEST(Matcher, ShrinksLargeImages) {
  const Image left = smooth_image(2400, 900, 21), right = smooth_image(2400, 900, 22);
  auto load = [](const char* enlarge, const char* guide) {
    return Matcher::load("formula:fast",
                         options({enlarge, guide, "match.fill=0", "match.median=0"}, 64));
  };
  const double scale = std::sqrt(2e6 / (2400 * 900));
  const Disparity expected =
      load("match.enlarge=0", "match.guide=false").match(left, right, at_scale(scale, true));
  EXPECT_TRUE(
      same(load("match.enlarge=1", "match.guide=false").match(left, right).map, expected.map));
  EXPECT_EQ(expected.map.width(), 2400);
}

// The map of half the size guides the match at the scale that it chooses.
TEST(Matcher, AHalfSizeMapChoosesTheScale) {
  const Image left = smooth_image(160, 96, 21), right = smooth_image(160, 96, 22);
  const Matcher chooses = Matcher::load(
      "formula:fast", options({"match.enlarge=1000", "match.fill=0", "match.median=0"}, 64));
  std::vector<std::string> stages;
  MatchOptions how;
  how.progress = [&](const Progress& progress) {
    stages.push_back(progress.stage);
    return true;
  };
  const Disparity found = chooses.match(left, right, how);
  EXPECT_EQ(found.map.width(), 160);
  EXPECT_EQ(std::count(stages.begin(), stages.end(), "backbone"), 2) << "half the size, and once";
}

TEST(Matcher, KeepsLabelsAndSeeds) {
  const Matcher keeps = Matcher::load(
      "formula:fast", options({"match.enlarge=0", "match.guide=false", "seeds.fill=false"}, 64));
  const Image left = noise_image(61, 37, 5), right = noise_image(61, 37, 6);
  const Disparity plain = keeps.match(left, right);
  EXPECT_TRUE(plain.labels.empty() && plain.seeds.empty());
  const Disparity kept = keeps.match(left, right, with_labels());
  EXPECT_TRUE(same(kept.map, plain.map));
  const int k = preset_options("fast").labels;
  for (const CellLabels* cells : {&kept.labels, &kept.seeds}) {
    EXPECT_EQ(cells->width, 8);  // of the image padded to multiples of 8
    EXPECT_EQ(cells->height, 5);
    EXPECT_EQ(cells->count, k);
    ASSERT_EQ(cells->values.size(), static_cast<std::size_t>(8 * 5 * k));
  }
  // Seeds are planes of 8 px below the limit; no pixel has one twice.
  for (int cell = 0; cell < 40; ++cell) {
    const float* seed = kept.seeds.values.data() + cell * k;
    const std::set<float> distinct(seed, seed + k);
    EXPECT_EQ(distinct.size(), static_cast<std::size_t>(k));
    for (float s : distinct) EXPECT_TRUE(s == 8 * std::floor(s / 8) && s >= 0 && s < 64) << s;
  }
  MatchOptions right_labels = with_labels();
  right_labels.view = View::kRight;
  test::error_of(ErrorKind::kUsage, [&] { keeps.match(left, right, right_labels); });
}

TEST(Matcher, OptionsCanBeChanged) {
  const Image left = noise_image(64, 40, 5), right = noise_image(64, 40, 6);
  const Matcher two = Matcher::load("formula:fast", options({"seeds.labels=2"}, 64));
  const Disparity d = two.match(left, right, with_labels());
  EXPECT_EQ(d.labels.count, 2);
  EXPECT_FALSE(same(d.map, matcher().match(left, right).map));
  test::error_of(ErrorKind::kUsage,
                 [] { Matcher::load("formula:fast", options({"seeds.label=2"})); });
}

TEST(Matcher, LoadsFromMemory) {
  std::ifstream file(kBundled, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const Image left = noise_image(64, 40, 5), right = noise_image(64, 40, 6);
  FloatMap from_memory;
  {
    std::vector<char> copy = bytes;
    const Matcher loaded = Matcher::load(std::as_bytes(std::span(copy)));
    std::fill(copy.begin(), copy.end(), 0);  // no longer needed
    from_memory = loaded.match(left, right).map;
  }
  EXPECT_TRUE(same(from_memory, Matcher::load(kBundled).match(left, right).map));
  test::error_of(ErrorKind::kModel,
                 [&] { Matcher::load(std::as_bytes(std::span(bytes).first(1000))); });
}

TEST(Matcher, BadInputIsNamed) {
  const Image image = noise_image(40, 40, 1), small = noise_image(40, 31, 1);
  EXPECT_NE(
      test::error_of(ErrorKind::kInput, [&] { matcher().match(image, noise_image(48, 40, 1)); })
          .find("48x40"),
      std::string::npos);
  EXPECT_NE(test::error_of(ErrorKind::kInput, [&] { matcher().match(small, small); }).find("32x32"),
            std::string::npos);
  test::error_of(ErrorKind::kInput, [&] { matcher().match({}, {}); });
  ImageView floats = image;
  floats.bits = 32;
  test::error_of(ErrorKind::kInput, [&] { matcher().match(floats, floats); });
  test::error_of(ErrorKind::kUsage, [&] { matcher().match(image, image, at_scale(-1)); });
  test::error_of(ErrorKind::kUsage, [] { Matcher::load("formula:fast", options({}, -8)); });
  test::error_of(ErrorKind::kUsage, [] { Matcher::load("formula:fast", options({}, {}, 0)); });
  test::error_of(ErrorKind::kUsage, [] { Matcher::load("formula:none"); });
  MatcherOptions cuda;
  cuda.device = "cuda";
  test::error_of(ErrorKind::kDevice, [&] { Matcher::load("formula:fast", cuda); });
}

// The same map, bit for bit, whatever the number of threads.
TEST(Matcher, ThreadsDoNotChangeTheMap) {
  const Image wide = smooth_image(203, 117, 31);
  const ImageView left = columns(wide, 0, 190), right = columns(wide, 13, 190);
  for (const char* model : {kBundled, "formula:paper"}) {
    Disparity expected;
    for (int threads : {1, 2, 3, 5}) {
      const Disparity d = Matcher::load(model, options({}, 64, threads)).match(left, right);
      if (threads == 1) expected = d;
      EXPECT_TRUE(same(d.map, expected.map)) << model << ", " << threads << " threads";
      EXPECT_TRUE(same(d.confidence, expected.confidence));
      EXPECT_EQ(d.mask, expected.mask);
    }
  }
}

TEST(Matcher, ManyThreadsAtOnce) {
  const Matcher shared = Matcher::load(kBundled, options({}, 64, 3));
  std::vector<std::pair<Image, Image>> pairs;
  std::vector<FloatMap> expected;
  for (int i = 0; i < 4; ++i) {
    pairs.emplace_back(noise_image(64 + 9 * i, 40 + 8 * i, 11 + 2 * i),
                       noise_image(64 + 9 * i, 40 + 8 * i, 12 + 2 * i));
    expected.push_back(shared.match(pairs.back().first, pairs.back().second).map);
  }
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 6; ++i) {
        const auto pick = static_cast<std::size_t>((caller + i) % 4);
        const auto d = shared.match(pairs[pick].first, pairs[pick].second);
        if (!same(d.map, expected[pick])) ++wrong;
      }
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// Bytes in use by malloc, large blocks included.
std::size_t bytes_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(Matcher, MemoryDoesNotGrowOverManyCalls) {
  constexpr int kThreads = 2, kCallers = 8, kRounds = 4, kCalls = 7;  // 224 matches
  const Matcher shared = Matcher::load(kBundled, options({}, 64, kThreads));
  std::vector<std::pair<Image, Image>> pairs;
  for (int i = 0; i < 4; ++i)
    pairs.emplace_back(noise_image(64 + 13 * i, 40 + 8 * i, 11),
                       noise_image(64 + 13 * i, 40 + 8 * i, 12));
  const std::size_t empty = bytes_in_use();
  for (const auto& [left, right] : pairs) shared.match(left, right);
  const std::size_t one_call = bytes_in_use() - empty;
  std::vector<std::size_t> released;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> callers;
    for (int caller = 0; caller < kCallers; ++caller)
      callers.emplace_back([&, caller] {
        for (int i = 0; i < kCalls; ++i) {
          const auto& [left, right] = pairs[static_cast<std::size_t>(caller + i) % pairs.size()];
          shared.match(left, right);
        }
      });
    for (auto& caller : callers) caller.join();
    EXPECT_LE(bytes_in_use(), empty + kThreads * one_call + (1u << 20)) << "round " << round;
    shared.release_idle();
    released.push_back(bytes_in_use());
  }
  EXPECT_LE(released.back(), released.front() + (1u << 16));
}

// After the first call of a size nothing is allocated.
TEST(Matcher, CallsOfASizeSeenBeforeAllocateNothing) {
  const Image wide = smooth_image(160, 96, 41);
  const ImageView left = columns(wide, 0, 150), right = columns(wide, 10, 150);
  for (const char* model : {kBundled, "formula:paper", "formula:swin"})
    for (int threads : {1, 2}) {
      const Matcher reused = Matcher::load(model, options({}, {}, threads));
      Disparity result;
      for (int i = 0; i < 8; ++i)
        reused.match(left, right, {}, result);  // each thread meets each kernel
      const std::size_t before = test::allocations();
      reused.match(left, right, {}, result);
      EXPECT_EQ(test::allocations() - before, 0u) << model << ", " << threads << " threads";
    }
}

TEST(Matcher, ReportsProgressAndCanBeCancelled) {
  const Image left = noise_image(96, 64, 51), right = noise_image(96, 64, 52);
  const Matcher bundled = Matcher::load(kBundled);
  std::vector<double> shares;
  std::set<std::string> stages;
  MatchOptions how;
  how.progress = [&](const Progress& progress) {
    shares.push_back(progress.done);
    stages.insert(progress.stage);
    return true;
  };
  bundled.match(left, right, how);
  ASSERT_GT(shares.size(), 5u);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.front(), 0);
  EXPECT_EQ(shares.back(), 1);
  EXPECT_TRUE(stages.contains("backbone") && stages.contains("refinement"));

  how.progress = [&](const Progress& progress) {
    return std::string_view(progress.stage) != "inference";
  };
  test::error_of(ErrorKind::kCancelled, [&] { bundled.match(left, right, how); });
  EXPECT_FALSE(bundled.match(left, right).map.empty()) << "usable afterwards";
}

// What was filled in is told, and trusted less than what was matched.
TEST(Matcher, FilledPixelsAreMarked) {
  const Image wide = smooth_image(200, 96, 61);
  const ImageView left = columns(wide, 0, 176), right = columns(wide, 24, 176);
  const Disparity d = Matcher::load(kBundled).match(left, right, at_scale(1));
  ASSERT_TRUE(d.confidence3.same_size(d.map) && d.expected_error.same_size(d.map));
  double filled_sum = 0, matched_sum = 0;
  int filled = 0, out_of_view = 0;
  for (std::size_t i = 0; i < d.mask.size(); ++i) {
    filled += (d.mask.data()[i] & kFilled) != 0;
    out_of_view += (d.mask.data()[i] & kOutOfView) != 0;
    (d.mask.data()[i] & kFilled ? filled_sum : matched_sum) += d.confidence.data()[i];
    EXPECT_LE(d.confidence.data()[i], d.confidence3.data()[i]);
    EXPECT_GE(d.expected_error.data()[i], 0);
  }
  ASSERT_GT(filled, 0);
  EXPECT_LT(filled_sum / filled, matched_sum / (static_cast<double>(d.mask.size()) - filled));
  EXPECT_GT(out_of_view, 0);
}

TEST(Matcher, IdleBuffersCanBeReleased) {
  const Image left = noise_image(64, 40, 5), right = noise_image(64, 40, 6);
  const Matcher bundled = Matcher::load(kBundled);
  const FloatMap before = bundled.match(left, right).map;
  bundled.release_idle();
  EXPECT_TRUE(same(bundled.match(left, right).map, before));
}

// A map that is nearly right makes one of the candidate labels needless.
TEST(Matcher, AGuideSavesALabel) {
  const Image left = smooth_image(144, 96, 3), right = smooth_image(144, 96, 4);
  auto with_labels = [](int labels) {
    return Matcher::load(
        "formula:fast",
        options({"match.enlarge=0", "match.median=0", fmt::format("seeds.labels={}", labels)}, 64));
  };
  const Matcher four = with_labels(4), three = with_labels(3);
  const FloatMap guide(144, 96, 9.5f);
  MatchOptions how;
  how.guide = &guide;
  const FloatMap saved = four.match(left, right, how).map;
  how.keep_labels = true;  // asks for all of them
  EXPECT_TRUE(same(saved, three.match(left, right, how).map));
  EXPECT_FALSE(same(saved, four.match(left, right, how).map));
}

}  // namespace
}  // namespace nmrf
