#include "data/pair_source.h"

#include <opencv2/videoio.hpp>

#include "data/trees.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::contains;
using test::put_image;

// All stems; expects no errors.
std::vector<std::string> stems(const PairInput& input) {
  auto source = open_pairs(input);
  std::vector<std::string> out;
  InputPair pair;
  while (source->next(pair)) {
    EXPECT_FALSE(pair.error) << pair.error->what();
    EXPECT_EQ(pair.left.type(), CV_8UC3);
    EXPECT_EQ(pair.left.size(), pair.right.size());
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
  EXPECT_EQ(cv::norm(pair.right, test::noise_image(test::kWidth, test::kHeight, 2), cv::NORM_INF),
            0);
  EXPECT_FALSE(source->next(pair));
  EXPECT_FALSE(source->frame_rate());
  auto message = test::error_of(ErrorKind::kInput, [&] {
    open_pairs({.left = folder / "a.png", .right = folder / "none.png"});
  });
  EXPECT_TRUE(contains(message, "none.png"));
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
  EXPECT_TRUE(contains(message, "3 pictures left, 4 right"));
  put_image(folder / "l/a3.png", 2);  // now both sides have four
  message = test::error_of(ErrorKind::kInput,
                           [&] { open_pairs({.left = folder / "l", .right = folder / "r"}); });
  EXPECT_TRUE(contains(message, "a3.png"));
  test::fs::create_directories(folder / "empty");
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
  test::fs::remove(folder / "Piano/im1.png");
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
                       "one file"));
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

TEST(PairSource, BadPairsDoNotEndTheIteration) {
  test::TempFolder folder;
  for (int i = 0; i < 4; ++i) {
    put_image(folder / fmt::format("l/{}.png", i), 1);
    put_image(folder / fmt::format("r/{}.png", i), 2);
  }
  write_file(folder / "l/1.png", "no picture");
  put_image(folder / "r/2.png", 2, test::kWidth + 4);
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
  auto source = open_pairs({.left = folder.path(), .side_by_side = true});
  InputPair pair;
  ASSERT_TRUE(source->next(pair));
  cv::Mat whole = test::noise_image(20, 6, 1);
  EXPECT_EQ(cv::norm(pair.left, whole.colRange(0, 10), cv::NORM_INF), 0);
  EXPECT_EQ(cv::norm(pair.right, whole.colRange(10, 20), cv::NORM_INF), 0);
  ASSERT_TRUE(source->next(pair));
  ASSERT_TRUE(pair.error);
  EXPECT_TRUE(contains(pair.error->what(), "21 pixels wide"));
  EXPECT_EQ(stems({.left = folder / "a.png", .side_by_side = true}), Names{"a"});
  test::error_of(ErrorKind::kUsage, [&] {
    open_pairs({.left = folder / "a.png", .right = folder / "b.png", .side_by_side = true});
  });
}

TEST(PairSource, UsageErrors) {
  test::error_of(ErrorKind::kUsage, [] { open_pairs({}); });
  test::TempFolder folder;
  put_image(folder / "a.png", 1);
  test::error_of(ErrorKind::kUsage, [&] { open_pairs({.left = folder / "a.png"}); });
  test::error_of(ErrorKind::kUsage,
                 [&] { open_pairs({.left = folder.path(), .right = folder / "a.png"}); });
}

// A video of flat grey frames of growing brightness. False when OpenCV cannot write one.
bool put_video(const std::string& path, int frames, int base, cv::Size size) {
  cv::VideoWriter writer(path, cv::CAP_OPENCV_MJPEG, cv::VideoWriter::fourcc('M', 'J', 'P', 'G'),
                         25, size);
  if (!writer.isOpened()) return false;
  for (int i = 0; i < frames; ++i) {
    cv::Mat frame(size, CV_8UC3, cv::Scalar::all(base + 10 * i));
    frame.colRange(size.width / 2, size.width) += cv::Scalar::all(100);
    writer.write(frame);
  }
  return true;
}

TEST(PairSource, Videos) {
  test::TempFolder folder;
  std::string left = folder / "left.avi", right = folder / "right.avi";
  if (!put_video(left, 5, 20, {64, 32}) || !put_video(right, 4, 60, {64, 32}))
    GTEST_SKIP() << "skipped: this OpenCV writes no video";
  auto source = open_pairs({.left = left, .right = right});
  EXPECT_EQ(source->total(), 4);
  ASSERT_TRUE(source->frame_rate());
  EXPECT_NEAR(*source->frame_rate(), 25, 0.1);
  InputPair pair;
  test::Warnings warnings;
  int count = 0;
  while (source->next(pair)) {
    ASSERT_FALSE(pair.error);
    EXPECT_EQ(pair.stem, fmt::format("left_{:06}", count));
    EXPECT_NEAR(pair.left.at<cv::Vec3b>(16, 8)[1], 20 + 10 * count, 3);
    EXPECT_NEAR(pair.right.at<cv::Vec3b>(16, 8)[1], 60 + 10 * count, 3);
    ++count;
  }
  EXPECT_EQ(count, 4);
  ASSERT_EQ(warnings.texts().size(), 1u) << "the videos differ in length";
  EXPECT_TRUE(contains(warnings.texts()[0], "right.avi ends after 4 frames"));

  source = open_pairs({.left = left, .side_by_side = true});
  count = 0;
  while (source->next(pair)) {
    ASSERT_FALSE(pair.error);
    EXPECT_EQ(pair.left.size(), cv::Size(32, 32));
    EXPECT_NEAR(pair.right.at<cv::Vec3b>(16, 16)[0] - pair.left.at<cv::Vec3b>(16, 16)[0], 100, 6);
    ++count;
  }
  EXPECT_EQ(count, 5);

  put_image(folder / "a.png", 1);
  test::error_of(ErrorKind::kUsage, [&] { open_pairs({.left = left, .right = folder / "a.png"}); });
  write_file(folder / "bad.avi", "no video");
  auto message = test::error_of(ErrorKind::kInput,
                                [&] { open_pairs({.left = folder / "bad.avi", .right = right}); });
  EXPECT_TRUE(contains(message, "bad.avi"));
}

}  // namespace
}  // namespace nmrf
