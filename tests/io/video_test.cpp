#include "io/video.h"

#include <gtest/gtest.h>

#include "io/maps.h"
#include "io/pictures.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

TEST(Video, WithoutTheModuleTheErrorSaysWhatToInstall) {
  test::TempFolder folder;
  test::put(folder / "a.avi", test::avi_file({test::picture(32, 16, 3)}, 10));
  const std::string message =
      error_of(ErrorKind::kUsage, [&] { open_video(folder / "a.avi", {folder.path()}); });
  EXPECT_NE(message.find("a.avi"), std::string::npos) << message;
  EXPECT_NE(message.find("nmrf-video.so"), std::string::npos) << message;
  EXPECT_NE(message.find("NMRF_BUILD_EVAL"), std::string::npos) << message;
  // A file of that name which is no module.
  test::put(folder / "nmrf-video.so", "text");
  EXPECT_NE(error_of(ErrorKind::kUsage, [&] { open_video(folder / "a.avi", {folder.path()}); })
                .find("cannot be loaded"),
            std::string::npos);
  // A missing video is named before anything is loaded.
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { open_video(folder / "none.avi"); }).find("none.avi"),
            std::string::npos);
  error_of(ErrorKind::kInput, [&] { open_video(folder.path()); });
}

TEST(Video, FramesAreRgb) {
  if (!test::has_video_module())
    GTEST_SKIP() << "skipped: the module for videos is not built (NMRF_BUILD_EVAL)";
  test::TempFolder folder;
  std::vector<Image> frames;
  for (int i = 0; i < 3; ++i) {
    Image frame(48, 32);
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 48; ++x) {
        frame.row(y)[3 * x] = static_cast<std::uint8_t>(200 + 10 * i);
        frame.row(y)[3 * x + 1] = 100;
        frame.row(y)[3 * x + 2] = 30;
      }
    frames.push_back(frame);
  }
  test::put(folder / "a.avi", test::avi_file(frames, 10));
  auto video = open_video(folder / "a.avi");
  EXPECT_EQ(video->frame_count(), 3);
  ASSERT_TRUE(video->frame_rate());
  EXPECT_NEAR(*video->frame_rate(), 10, 0.01);
  Image frame(3, 3, 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(video->next(frame));
    ASSERT_EQ(frame.width(), 48);
    ASSERT_EQ(frame.height(), 32);
    EXPECT_LT(test::largest_difference(frame, frames[static_cast<std::size_t>(i)]), 6);
  }
  EXPECT_FALSE(video->next(frame));
  EXPECT_FALSE(video->next(frame));
  test::put(folder / "b.avi", "no video");
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { open_video(folder / "b.avi"); }).find("b.avi"),
            std::string::npos);
}

}  // namespace
}  // namespace nmrf
