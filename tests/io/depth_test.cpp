#include "io/depth.h"

#include <limits>
#include <opencv2/imgcodecs.hpp>

#include "io/maps.h"
#include "io/npy.h"
#include "io/pfm.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

constexpr float kInf = std::numeric_limits<float>::infinity();

cv::Mat row_of(const std::vector<float>& values) {
  return cv::Mat(1, static_cast<int>(values.size()), CV_32FC1, const_cast<float*>(values.data()))
      .clone();
}

TEST(Depth, PngHoldsMillimetres) {
  test::TempFolder folder;
  const std::vector<float> metres = {
      1.0f, 0.0004f, 1e-6f, 2.3456f, 65.535f, 65.6f,
      1e9f, 0.0f,    -1.0f, kInf,    -kInf,   std::numeric_limits<float>::quiet_NaN()};
  const std::vector<int> wanted = {1000, 1, 1, 2346, 65535, 65535, 65535, 0, 0, 0, 0, 0};
  write_depth(folder / "a.png", row_of(metres));
  const cv::Mat raw = cv::imread((folder / "a.png").string(), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(raw.type(), CV_16UC1);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(raw.at<std::uint16_t>(0, static_cast<int>(i)), wanted[i]) << metres[i];
}

TEST(Depth, FloatFormatsHoldMetres) {
  test::TempFolder folder;
  for (cv::Size size : {cv::Size(1, 1), cv::Size(5, 3)}) {
    const cv::Mat depth = test::sample_map(size.height, size.width);
    write_depth(folder / "a.pfm", depth);
    test::expect_same_bits(read_pfm(folder / "a.pfm"), depth);
    write_depth(folder / "a.TIFF", depth);
    test::expect_same_bits(cv::imread((folder / "a.TIFF").string(), cv::IMREAD_UNCHANGED), depth);
    write_depth(folder / "a.npy", depth);
    const NpyArray array = read_npy(folder / "a.npy");
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{size.height, size.width}));
    EXPECT_EQ(0, std::memcmp(array.data<float>(), depth.data, array.bytes.size()));
  }
  write_depth(folder / "b.pfm", row_of({-1.0f, 0.0f, -kInf, 2.0f}));
  const cv::Mat back = read_pfm(folder / "b.pfm");
  for (int x = 0; x < 3; ++x) EXPECT_EQ(back.at<float>(0, x), kInf);
  EXPECT_EQ(back.at<float>(0, 3), 2.0f);
}

TEST(Depth, Refuses) {
  test::TempFolder folder;
  const cv::Mat depth = test::sample_map(2, 2);
  EXPECT_NE(error_of(ErrorKind::kUsage, [&] { write_depth(folder / "a.jpg", depth); }).find(".npy"),
            std::string::npos);
  error_of(ErrorKind::kUsage, [&] { write_depth(folder / "a.png", cv::Mat()); });
  error_of(ErrorKind::kUsage, [&] { write_depth(folder / "a.png", cv::Mat(2, 2, CV_16UC1)); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(is_depth_extension(".PNG"));
  EXPECT_FALSE(is_depth_extension(".ply"));
}

}  // namespace
}  // namespace nmrf
