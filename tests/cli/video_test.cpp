// nmrf match on videos.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>
#include <set>

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

// All frames of a video of 16-bit grey, row by row; empty when it is none. OpenCV 4.6 decodes only
// the upper byte.
std::vector<std::vector<std::uint16_t>> decoded(const std::string& path) {
  std::vector<std::vector<std::uint16_t>> frames;
  AVFormatContext* file = nullptr;
  if (avformat_open_input(&file, path.c_str(), nullptr, nullptr) < 0) return frames;
  const AVCodec* codec = nullptr;
  const int stream = av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  AVCodecContext* decoder = avcodec_alloc_context3(codec);
  avcodec_parameters_to_context(decoder, file->streams[stream]->codecpar);
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  bool more = avcodec_open2(decoder, codec, nullptr) >= 0 && codec->id == AV_CODEC_ID_FFV1;
  while (more) {
    more = av_read_frame(file, packet) >= 0;
    if (avcodec_send_packet(decoder, more ? packet : nullptr) < 0) break;
    while (avcodec_receive_frame(decoder, frame) >= 0) {
      if (frame->format != AV_PIX_FMT_GRAY16LE) continue;
      auto& values = frames.emplace_back();
      for (int y = 0; y < frame->height; ++y) {
        const auto* row =
            reinterpret_cast<const std::uint16_t*>(frame->data[0] + y * frame->linesize[0]);
        values.insert(values.end(), row, row + frame->width);
      }
    }
    av_packet_unref(packet);
  }
  av_frame_free(&frame);
  av_packet_free(&packet);
  avcodec_free_context(&decoder);
  avformat_close_input(&file);
  return frames;
}

// The same 16 bits as in the PNG files of the frames, every one of them.
TEST_F(Video, DisparityVideoIsLossless) {
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
  const auto frames = decoded(path("out/v_disparity.mkv"));
  ASSERT_EQ(frames.size(), 3u);
  std::set<int> low_bytes;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Image png = read_image(path(fmt::format("out/v_{:06}_disparity.png", i)));
    ASSERT_EQ(png.bits(), 16);
    std::vector<std::uint16_t> wanted;
    for (int y = 0; y < png.height(); ++y) {
      const auto* row = reinterpret_cast<const std::uint16_t*>(png.row(y));
      wanted.insert(wanted.end(), row, row + png.width());
    }
    EXPECT_EQ(frames[i], wanted) << i;
    for (std::uint16_t value : wanted) low_bytes.insert(value & 255);
  }
  EXPECT_GT(low_bytes.size(), 20u) << "the lower byte is in use";
}

// A file in place of a camera: newest frames only, so their number is not known.
TEST_F(Video, CamerasByAddress) {
  auto [l, r] = made_pair(1);
  Image joined = beside(l, r);
  const cv::Mat both = mat(joined).clone();
  put_video("v.avi", {both, both, both});
  const Outcome run = match({"--camera", path("v.avi"), "-o", path("out/"), "--no-window"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Names names = names_in(path("out"));
  EXPECT_TRUE(std::find(names.begin(), names.end(), "camera_disparity.mkv") != names.end());
  ASSERT_GE(names.size(), 3u);
  expect_good_map(read_disparity(path("out/" + names[0])));
}

TEST_F(Video, WindowsNeedADisplay) {
  auto [l, r] = made_pair(1);
  Image joined = beside(l, r);
  put_video("v.avi", {mat(joined).clone()});
  const char* display = std::getenv("DISPLAY");
  const std::string kept = display ? display : "";
  ::setenv("DISPLAY", ":4711", 1);
  const Outcome run = match({path("v.avi"), "--side-by-side", "-o", path("out/"), "--window"});
  const Outcome camera = match({"--camera", path("v.avi"), "-o", path("out/")});
  display ? ::setenv("DISPLAY", kept.c_str(), 1) : ::unsetenv("DISPLAY");
  if (!std::getenv("WAYLAND_DISPLAY")) {
    EXPECT_EQ(run.code, 2);
    EXPECT_TRUE(contains(run.err, "window")) << run.err;
    EXPECT_EQ(camera.code, 0) << "of a camera it is left out: " << camera.err;
  }
  const Outcome pair = match({path("a.png"), path("b.png"), "-o", path("out/"), "--window"});
  EXPECT_EQ(pair.code, 3) << "no such files";
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
