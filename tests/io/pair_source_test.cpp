#include "io/pair_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/file.h"
#include "io/maps.h"
#include "io/pictures.h"
#include "io/read_ahead.h"
#include "io/video.h"
#include "nmrf/files.h"
#include "nmrf/log.h"
#include "support/support.h"

namespace nmrf {
namespace {

namespace fs = std::filesystem;

constexpr int kWidth = 13, kHeight = 7;

::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

Image noise_image(std::uint64_t seed, int width = kWidth, int height = kHeight) {
  return test::noise(width, height, 3, 8, seed);
}

void put_image(const fs::path& path, std::uint64_t seed, int width = kWidth, int height = kHeight) {
  fs::create_directories(path.parent_path());
  write_image(path, noise_image(seed, width, height));
}

// All stems; expects no errors.
std::vector<std::string> stems(const PairInput& input) {
  auto source = open_pairs(input);
  std::vector<std::string> out;
  InputPair pair;
  while (source->next(pair)) {
    EXPECT_FALSE(pair.error) << pair.error->what();
    EXPECT_EQ(pair.left.channels(), 3);
    EXPECT_EQ(pair.left.bits(), 8);
    EXPECT_EQ(pair.left.width(), pair.right.width());
    EXPECT_EQ(pair.left.height(), pair.right.height());
    EXPECT_EQ(pair.index, static_cast<std::int64_t>(out.size()));
    out.push_back(pair.stem);
  }
  EXPECT_FALSE(source->next(pair)) << "the end stays the end";
  EXPECT_EQ(source->total(), static_cast<std::int64_t>(out.size()));
  return out;
}

using Names = std::vector<std::string>;

TEST(PairSource, TwoFiles) {
  test::TempFolder folder;
  put_image(folder / "a.png", 1);
  put_image(folder / "b.png", 2);
  auto source = open_pairs({.left = folder / "a.png", .right = folder / "b.png"});
  InputPair pair;
  ASSERT_TRUE(source->next(pair));
  EXPECT_EQ(pair.stem, "a");
  test::expect_same_bits(pair.right, noise_image(2));
  EXPECT_FALSE(source->next(pair));
  EXPECT_FALSE(source->frame_rate());
  auto message = test::error_of(ErrorKind::kInput, [&] {
    open_pairs({.left = folder / "a.png", .right = folder / "none.png"});
  });
  EXPECT_TRUE(contains(message, "none.png"));
}

// Grey and 16-bit files come as 8-bit RGB.
TEST(PairSource, ImagesAreRgb8) {
  test::TempFolder folder;
  const Image grey = test::noise(6, 5, 1), wide = test::noise(6, 5, 4, 16);
  write_image(folder / "a.png", grey);
  write_image(folder / "b.png", wide);
  auto source = open_pairs({.left = folder / "a.png", .right = folder / "b.png"});
  InputPair pair;
  ASSERT_TRUE(source->next(pair));
  ASSERT_FALSE(pair.error);
  test::expect_same_bits(pair.left, to_rgb8(grey));
  test::expect_same_bits(pair.right, to_rgb8(wide));
}

TEST(PairSource, FoldersAreMatchedByName) {
  test::TempFolder folder;
  for (const char* name : {"b10.png", "a2.jpg", "c.bmp"}) {
    put_image(folder / "l" / name, 1);
    put_image(folder / "r" / name, 2);
  }
  write_file(folder / "l/notes.txt", "not a picture");
  EXPECT_EQ(stems({.left = folder / "l", .right = folder / "r"}), (Names{"a2", "b10", "c"}));
  put_image(folder / "r/b5.png", 2);
  auto message = test::error_of(ErrorKind::kInput,
                                [&] { open_pairs({.left = folder / "l", .right = folder / "r"}); });
  EXPECT_TRUE(contains(message, "b5.png"));
  EXPECT_TRUE(contains(message, "3 left images, 4 right"));
  put_image(folder / "l/a3.png", 2);  // now both sides have four
  message = test::error_of(ErrorKind::kInput,
                           [&] { open_pairs({.left = folder / "l", .right = folder / "r"}); });
  EXPECT_TRUE(contains(message, "a3.png"));
  fs::create_directories(folder / "empty");
  message = test::error_of(ErrorKind::kInput,
                           [&] { open_pairs({.left = folder / "empty", .right = folder / "r"}); });
  EXPECT_TRUE(contains(message, "empty"));
}

TEST(PairSource, SidesInNames) {
  EXPECT_EQ(name_without_side("Left_01"), name_without_side("right_01"));
  EXPECT_EQ(name_without_side("img_L"), name_without_side("img_R"));
  EXPECT_EQ(name_without_side("L0001"), name_without_side("r0001"));
  EXPECT_EQ(name_without_side("leftImg8bit"), name_without_side("rightImg8bit"));
  EXPECT_NE(name_without_side("left_01"), name_without_side("right_02"));
  EXPECT_NE(name_without_side("lamp"), name_without_side("ramp"));
  EXPECT_NE(name_without_side("000000"), name_without_side("000001"));
  test::TempFolder folder;
  for (int i : {3, 5}) {
    put_image(folder / fmt::format("l/left{:02}.png", i), 1);
    put_image(folder / fmt::format("r/right{:02}.png", i), 2);
  }
  EXPECT_EQ(stems({.left = folder / "l", .right = folder / "r"}), (Names{"left03", "left05"}));
}

TEST(PairSource, PatternsCompareWhatTheWildcardsStandFor) {
  test::TempFolder folder;
  for (const char* scene : {"Motorcycle", "Piano"}) {
    put_image(folder / scene / "im0.png", 1);
    put_image(folder / scene / "im1.png", 2);
  }
  PairInput input{.left = folder / "*/im0.png", .right = folder / "*/im1.png"};
  EXPECT_EQ(stems(input), (Names{"Motorcycle_im0", "Piano_im0"}));
  fs::remove(folder / "Piano/im1.png");
  put_image(folder / "Vintage/im1.png", 2);
  auto message = test::error_of(ErrorKind::kInput, [&] { open_pairs(input); });
  EXPECT_TRUE(contains(message, "Piano/im0.png"));
  input.left = folder / "*/none*.png";
  EXPECT_TRUE(contains(test::error_of(ErrorKind::kInput, [&] { open_pairs(input); }), "none*"));
  // Brackets and question marks.
  put_image(folder / "x/a1_left.png", 1);
  put_image(folder / "x/a1_right.png", 1);
  put_image(folder / "x/b2_left.png", 1);
  put_image(folder / "x/b2_right.png", 1);
  EXPECT_EQ(stems({.left = folder / "x/[ab]?_left.png", .right = folder / "x/[ab]?_right.png"}),
            (Names{"a1_left", "b2_left"}));
  // One side a folder, the other a pattern.
  EXPECT_TRUE(contains(test::error_of(ErrorKind::kUsage,
                                      [&] {
                                        open_pairs({.left = folder / "x/*_left.png",
                                                    .right = folder / "x/a1_right.png"});
                                      }),
                       "is a file but"));
}

TEST(PairSource, Lists) {
  test::TempFolder folder;
  for (const char* place : {"a", "b"}) {
    put_image(folder / place / "im0.png", 1);
    put_image(folder / place / "im1.png", 2);
  }
  write_file(folder / "list.txt", "# pairs\na/im0.png a/im1.png\nb/im0.png b/im1.png extra 7\n");
  EXPECT_EQ(stems({.list = folder / "list.txt"}), (Names{"a_im0", "b_im0"}));
  write_file(folder / "sub.txt", "im0.png im1.png\nim0.png im1.png\n");
  EXPECT_EQ(stems({.list = folder / "sub.txt", .root = folder / "a"}), (Names{"im0", "im0-2"}));
  write_file(folder / "bad.txt", "a/im0.png\n");
  EXPECT_TRUE(
      contains(test::error_of(ErrorKind::kInput, [&] { open_pairs({.list = folder / "bad.txt"}); }),
               "line 1"));
  test::error_of(ErrorKind::kUsage,
                 [&] { open_pairs({.left = folder / "a/im0.png", .list = folder / "list.txt"}); });
}

// Every pair belongs to one process, and is named as it is without others.
TEST(PairSource, SharedByProcesses) {
  test::TempFolder folder;
  for (const char* side : {"left", "right"})
    for (int i = 0; i < 5; ++i) put_image(folder / side / fmt::format("{}.png", i), 1);
  PairInput input{.left = folder / "left", .right = folder / "right"};
  input.shard = {0, 3};
  EXPECT_EQ(stems(input), (Names{"0", "3"}));
  input.shard = {1, 3};
  EXPECT_EQ(stems(input), (Names{"1", "4"}));
  input.shard = {2, 3};
  EXPECT_EQ(stems(input), Names{"2"});
  input.shard = {5, 6};
  EXPECT_EQ(stems(input), Names{});
}

// The same pairs in the same order, bad ones among them; a reader that is left early is stopped.
TEST(PairSource, ReadAhead) {
  test::TempFolder folder;
  for (const char* side : {"left", "right"})
    for (int i = 0; i < 6; ++i)
      put_image(folder / side / fmt::format("{}.png", i), static_cast<std::uint64_t>(i));
  write_file(folder / "left" / "2.png", "no picture");
  const PairInput input{.left = folder / "left", .right = folder / "right"};
  for (const std::size_t depth : {1, 2, 9}) {
    auto plain = open_pairs(input), ahead = read_ahead(open_pairs(input), depth);
    EXPECT_EQ(ahead->total(), 6);
    EXPECT_FALSE(ahead->frame_rate());
    InputPair a, b;
    while (plain->next(a)) {
      ASSERT_TRUE(ahead->next(b));
      EXPECT_EQ(a.stem, b.stem);
      EXPECT_EQ(a.error.has_value(), b.error.has_value());
      ASSERT_EQ(a.left.height(), b.left.height());
      for (int y = 0; y < a.left.height(); ++y)
        EXPECT_TRUE(std::equal(a.left.row(y), a.left.row(y) + a.left.row_bytes(), b.left.row(y)));
    }
    EXPECT_FALSE(ahead->next(b));
    EXPECT_FALSE(ahead->next(b)) << "the end stays the end";
    auto left_early = read_ahead(open_pairs(input), depth);
    EXPECT_TRUE(left_early->next(b));
  }
}

TEST(PairSource, BadPairsDoNotEndTheIteration) {
  test::TempFolder folder;
  for (int i = 0; i < 4; ++i) {
    put_image(folder / fmt::format("l/{}.png", i), 1);
    put_image(folder / fmt::format("r/{}.png", i), 2);
  }
  write_file(folder / "l/1.png", "no picture");
  put_image(folder / "r/2.png", 2, kWidth + 4);
  auto source = open_pairs({.left = folder / "l", .right = folder / "r"});
  InputPair pair;
  std::vector<std::string> errors;
  while (source->next(pair)) {
    errors.push_back(pair.error ? pair.error->what() : "");
    EXPECT_EQ(pair.left.empty(), pair.error.has_value());
    if (pair.error) {
      EXPECT_EQ(pair.error->kind(), ErrorKind::kInput);
    }
  }
  ASSERT_EQ(errors.size(), 4u);
  EXPECT_EQ(errors[0], "");
  EXPECT_TRUE(contains(errors[1], "l/1.png"));
  EXPECT_TRUE(contains(errors[2], "17 x 7"));
  EXPECT_TRUE(contains(errors[2], "13 x 7"));
  EXPECT_EQ(errors[3], "");
}

TEST(PairSource, SideBySidePictures) {
  test::TempFolder folder;
  put_image(folder / "a.png", 1, 20, 6);
  put_image(folder / "b.png", 2, 21, 6);
  auto source = open_pairs({.left = folder.path(), .layout = Layout::kSideBySide});
  InputPair pair;
  ASSERT_TRUE(source->next(pair));
  const Image whole = noise_image(1, 20, 6);
  ASSERT_EQ(pair.left.width(), 10);
  ASSERT_EQ(pair.right.width(), 10);
  for (int y = 0; y < 6; ++y) {
    EXPECT_EQ(0, std::memcmp(pair.left.row(y), whole.row(y), 30));
    EXPECT_EQ(0, std::memcmp(pair.right.row(y), whole.row(y) + 30, 30));
  }
  ASSERT_TRUE(source->next(pair));
  ASSERT_TRUE(pair.error);
  EXPECT_TRUE(contains(pair.error->what(), "21 pixels wide"));
  EXPECT_EQ(stems({.left = folder / "a.png", .layout = Layout::kSideBySide}), Names{"a"});
  test::error_of(ErrorKind::kUsage, [&] {
    open_pairs(
        {.left = folder / "a.png", .right = folder / "b.png", .layout = Layout::kSideBySide});
  });
}

TEST(PairSource, LayoutsOfBothViews) {
  test::TempFolder folder;
  put_image(folder / "a.png", 1, 20, 6);
  std::filesystem::copy_file(folder / "a.png", folder / "b.jps");
  const Image whole = noise_image(1, 20, 6);
  // Where each view begins: column and row.
  struct Case {
    const char* name;
    Layout layout;
    int width, height, left_x, left_y, right_x, right_y;
  };
  for (const Case& c : {Case{"a.png", Layout::kSideBySide, 10, 6, 0, 0, 10, 0},
                        {"a.png", Layout::kCrossed, 10, 6, 10, 0, 0, 0},
                        {"b.jps", Layout::kByName, 10, 6, 10, 0, 0, 0},
                        {"b.jps", Layout::kSideBySide, 10, 6, 0, 0, 10, 0},
                        {"a.png", Layout::kTopBottom, 20, 3, 0, 0, 0, 3},
                        {"a.png", Layout::kBottomTop, 20, 3, 0, 3, 0, 0}}) {
    SCOPED_TRACE(c.name + std::to_string(static_cast<int>(c.layout)));
    InputPair pair;
    ASSERT_TRUE(open_pairs({.left = folder / c.name, .layout = c.layout})->next(pair));
    ASSERT_FALSE(pair.error);
    ASSERT_EQ(std::pair(pair.left.width(), pair.left.height()), std::pair(c.width, c.height));
    const auto bytes = static_cast<std::size_t>(3 * c.width);
    for (int y = 0; y < c.height; ++y) {
      EXPECT_EQ(0, std::memcmp(pair.left.row(y), whole.row(c.left_y + y) + 3 * c.left_x, bytes));
      EXPECT_EQ(0, std::memcmp(pair.right.row(y), whole.row(c.right_y + y) + 3 * c.right_x, bytes));
    }
  }
  put_image(folder / "odd.png", 2, 20, 7);
  InputPair pair;
  ASSERT_TRUE(open_pairs({.left = folder / "odd.png", .layout = Layout::kTopBottom})->next(pair));
  ASSERT_TRUE(pair.error);
  EXPECT_TRUE(contains(pair.error->what(), "7 pixels high"));
  test::error_of(ErrorKind::kUsage, [&] { open_pairs({.left = folder / "a.png"}); });
}

TEST(PairSource, UsageErrors) {
  test::error_of(ErrorKind::kUsage, [] { open_pairs({}); });
  test::TempFolder folder;
  put_image(folder / "a.png", 1);
  test::error_of(ErrorKind::kUsage, [&] { open_pairs({.left = folder / "a.png"}); });
  test::error_of(ErrorKind::kUsage,
                 [&] { open_pairs({.left = folder.path(), .right = folder / "a.png"}); });
}

TEST(PairSource, Videos) {
  test::TempFolder folder;
  const std::string left = folder / "left.avi", right = folder / "right.avi";
  // Flat grey frames of growing brightness; the right half is brighter by 100.
  auto put_video = [](const std::string& path, int frames, int base) {
    std::vector<Image> all;
    for (int i = 0; i < frames; ++i) {
      Image frame(64, 32);
      for (int y = 0; y < 32; ++y)
        for (int x = 0; x < 64 * 3; ++x)
          frame.row(y)[x] = static_cast<std::uint8_t>(base + 10 * i + (x < 32 * 3 ? 0 : 100));
      all.push_back(std::move(frame));
    }
    test::put(path, test::avi_file(all, 25));
  };
  put_video(left, 5, 20);
  put_video(right, 4, 60);
  put_image(folder / "a.png", 1);
  test::error_of(ErrorKind::kUsage, [&] { open_pairs({.left = left, .right = folder / "a.png"}); });
  if (!test::has_video_module()) {
    const auto message =
        test::error_of(ErrorKind::kUsage, [&] { open_pairs({.left = left, .right = right}); });
    EXPECT_TRUE(contains(message, "NMRF_BUILD_EVAL"));
    GTEST_SKIP() << "skipped: the module for videos is not built (NMRF_BUILD_EVAL)";
  }
  auto source = open_pairs({.left = left, .right = right});
  EXPECT_EQ(source->total(), 4);
  ASSERT_TRUE(source->frame_rate());
  EXPECT_NEAR(*source->frame_rate(), 25, 0.1);
  InputPair pair;
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel level, const std::string& text) {
    if (level == LogLevel::kWarning) warnings.push_back(text);
  });
  int count = 0;
  while (source->next(pair)) {
    ASSERT_FALSE(pair.error);
    EXPECT_EQ(pair.stem, fmt::format("left_{:06}", count));
    EXPECT_NEAR(test::value(pair.left, 16, 8, 1), 20 + 10 * count, 3);
    EXPECT_NEAR(test::value(pair.right, 16, 8, 1), 60 + 10 * count, 3);
    ++count;
  }
  set_log_sink({});
  EXPECT_EQ(count, 4);
  ASSERT_EQ(warnings.size(), 1u) << "the videos differ in length";
  EXPECT_TRUE(contains(warnings[0], "right.avi ends after 4 frames"));

  source = open_pairs({.left = left, .layout = Layout::kSideBySide});
  count = 0;
  while (source->next(pair)) {
    ASSERT_FALSE(pair.error);
    EXPECT_EQ(pair.left.width(), 32);
    EXPECT_EQ(pair.left.height(), 32);
    EXPECT_NEAR(test::value(pair.right, 16, 16, 0) - test::value(pair.left, 16, 16, 0), 100, 6);
    ++count;
  }
  EXPECT_EQ(count, 5);

  write_file(folder / "bad.avi", "no video");
  auto message = test::error_of(ErrorKind::kInput,
                                [&] { open_pairs({.left = folder / "bad.avi", .right = right}); });
  EXPECT_TRUE(contains(message, "bad.avi"));
}

}  // namespace
}  // namespace nmrf
