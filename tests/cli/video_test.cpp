// nmrf match on videos.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>

#include "cli/run.h"
#include "core/file.h"
#include "nmrf/opencv.h"

namespace nmrf::test {
namespace {

using Names = std::vector<std::string>;

class Video : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  void put_video(const std::string& name, const std::vector<cv::Mat>& frames) {
    cv::VideoWriter writer(path(name), cv::VideoWriter::fourcc('M', 'J', 'P', 'G'), 10,
                           frames[0].size());
    ASSERT_TRUE(writer.isOpened());
    for (const auto& frame : frames) writer.write(frame);
  }
  TempFolder folder_;
};

TEST_F(Video, TwoFilesOrSideBySide) {
  std::vector<cv::Mat> left, right, both;
  for (int i = 0; i < 3; ++i) {
    auto [l, r] = made_pair(i + 1);
    left.push_back(mat(l).clone());
    right.push_back(mat(r).clone());
    Image joined = beside(l, r);
    both.push_back(mat(joined).clone());
  }
  put_video("l.avi", left);
  put_video("r.avi", right);
  put_video("both.avi", both);
  Outcome run = match({path("l.avi"), path("r.avi"), "-o", path("two/"), "--range", "0,64"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(names_in(path("two")),
            (Names{"l_000000_disparity.pfm", "l_000000_vis.png", "l_000001_disparity.pfm",
                   "l_000001_vis.png", "l_000002_disparity.pfm", "l_000002_vis.png"}));
  expect_good_map(read_disparity(path("two/l_000002_disparity.pfm")));
  run = match({path("both.avi"), "--side-by-side", "-o", path("one/"), "--no-picture"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(names_in(path("one")).size(), 3u);
}

// Frames after the first are matched once, at the factor that the map before them asks for.
TEST_F(Video, KeepsItsScale) {
  Image joined = beside(read_image(NMRF_SOURCE_DIR "/examples/pair/left.png"),
                        read_image(NMRF_SOURCE_DIR "/examples/pair/right.png"));
  cv::Mat both;
  cv::resize(mat(joined), both, {}, 0.375, 0.375, cv::INTER_AREA);
  put_video("v.avi", {both, both, both});
  auto frames = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args{path("v.avi"),  "--side-by-side",
                                  "--model",      NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors",
                                  "-o",           path("out/"),
                                  "--no-picture", "--max-disp",
                                  "320"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome run = match(args);
    EXPECT_EQ(run.code, 0) << run.err;
    std::vector<std::string> maps;
    for (int i = 0; i < 3; ++i)
      maps.push_back(read_file(path(fmt::format("out/v_{:06}_disparity.pfm", i))));
    return maps;
  };
  const auto chosen = frames({}), twice = frames({"--scale", "2", "--full-size"});
  // Small disparities: the first frame is matched again at twice the size, guided by its first map.
  EXPECT_FALSE(chosen[0] == frames({"--scale", "1"})[0]);
  EXPECT_FALSE(chosen[0] == twice[0]);
  EXPECT_TRUE(chosen[1] == twice[1] && chosen[2] == twice[2]) << "the factor was kept";
}

}  // namespace
}  // namespace nmrf::test
