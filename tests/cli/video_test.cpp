// nmrf match on videos.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
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
  EXPECT_EQ(
      names_in(path("two")),
      (Names{"l_000000_disparity.pfm", "l_000000_vis.png", "l_000001_disparity.pfm",
             "l_000001_vis.png", "l_000002_disparity.pfm", "l_000002_vis.png", "l_disparity.mkv"}));
  expect_good_map(read_disparity(path("two/l_000002_disparity.pfm")));
  run = match({path("both.avi"), "--side-by-side", "-o", path("one/"), "--no-picture"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(names_in(path("one")).size(), 4u);
  EXPECT_TRUE(contains(run.out, "both_disparity.mkv"));
  run = match({path("both.avi"), "--side-by-side", "-o", path("few/"), "--no-frames", "--frames",
               "2", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(names_in(path("few")), Names{"both_disparity.mkv"});
  EXPECT_EQ(json_lines(run.out).size(), 2u);
}

// What 16-bit PNG files hold; OpenCV 4.6 decodes only the upper byte of 16-bit grey.
TEST_F(Video, DisparityVideoHoldsTheMaps) {
  std::vector<cv::Mat> both;
  for (int i = 0; i < 3; ++i) {
    auto [l, r] = made_pair(3 * i + 1);
    Image joined = beside(l, r);
    both.push_back(mat(joined).clone());
  }
  put_video("v.avi", both);
  ASSERT_EQ(match({path("v.avi"), "--side-by-side", "-o", path("out/"), "--format", "png"}).code,
            0);
  cv::VideoCapture video(path("out/v_disparity.mkv"), cv::CAP_FFMPEG);
  ASSERT_TRUE(video.isOpened());
  EXPECT_NEAR(video.get(cv::CAP_PROP_FPS), 10, 0.01);
  cv::Mat frame;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(video.read(frame));
    const Image png = read_image(path(fmt::format("out/v_{:06}_disparity.png", i)));
    ASSERT_EQ(png.bits(), 16);
    ASSERT_EQ(frame.type(), CV_8UC3);
    ASSERT_EQ(frame.size(), cv::Size(png.width(), png.height()));
    int wrong = 0;
    for (int y = 0; y < frame.rows; ++y)
      for (int x = 0; x < frame.cols; ++x) {
        const auto* row = reinterpret_cast<const std::uint16_t*>(png.row(y));
        wrong += std::abs(frame.at<cv::Vec3b>(y, x)[0] - row[x] / 256) > 1;
      }
    EXPECT_EQ(wrong, 0) << i;
  }
  EXPECT_FALSE(video.read(frame));
}

TEST_F(Video, CamerasThatAreNotThere) {
  Outcome run = match({"--camera", "97", "-o", path("out/")});
  EXPECT_EQ(run.code, 3);
  EXPECT_TRUE(contains(run.err, "camera 97")) << run.err;
  run = match({"a.png", "b.png", "--camera", "0", "-o", path("out/")});
  EXPECT_EQ(run.code, 2);
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
  const auto chosen = frames({}), twice = frames({"--scale", "2", "--full-size"}),
             once = frames({"--scale", "1"});
  // Small disparities: the first frame is matched again at twice the size, guided by its first map.
  EXPECT_FALSE(chosen[0] == once[0]);
  EXPECT_FALSE(chosen[0] == twice[0]);
  // The frames after it too, and not at the size of the images.
  auto apart = [&](const std::string& a, const std::string& b) {
    write_file(path("a.pfm"), a);
    write_file(path("b.pfm"), b);
    const FloatMap first = read_disparity(path("a.pfm")), second = read_disparity(path("b.pfm"));
    double sum = 0;
    for (std::size_t i = 0; i < first.size(); ++i)
      sum += std::min(1.0f, std::abs(first.data()[i] - second.data()[i]));
    return sum;
  };
  EXPECT_LT(apart(chosen[2], twice[2]), 0.5 * apart(chosen[2], once[2]));
}

}  // namespace
}  // namespace nmrf::test
