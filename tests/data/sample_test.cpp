#include "data/sample.h"

#include <cmath>
#include <limits>

#include "data/trees.h"
#include "io/npy.h"
#include "nmrf/disparity.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::contains;
using test::kHeight;
using test::kWidth;

class SampleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::put_image(folder_ / "l.png", 1);
    test::put_image(folder_ / "r.png", 2);
    ref_.name = "x";
    ref_.left = folder_ / "l.png";
    ref_.right = folder_ / "r.png";
  }
  // Writes a row of numbers as the first row of a float map and reads it as truth.
  std::vector<float> truth_of(std::vector<float> values, const TruthCoding& coding) {
    cv::Mat map(kHeight, kWidth, CV_32FC1, cv::Scalar(0));
    for (std::size_t i = 0; i < values.size(); ++i)
      map.at<float>(0, static_cast<int>(i)) = values[i];
    write_disparity_mat(folder_ / "d.pfm", map);
    ref_.disparity = folder_ / "d.pfm";
    ref_.coding = coding;
    cv::Mat out = load_sample(ref_).disparity;
    return {out.ptr<float>(0), out.ptr<float>(0) + values.size()};
  }
  test::TempFolder folder_;
  SampleRef ref_;
};

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_F(SampleTest, ImagesWithoutTruth) {
  Sample sample = load_sample(ref_);
  EXPECT_TRUE(sample.disparity.empty());
  EXPECT_TRUE(sample.noc_mask.empty());
  EXPECT_EQ(cv::norm(sample.left, test::noise_image(kWidth, kHeight, 1), cv::NORM_INF), 0);
  EXPECT_EQ(cv::norm(sample.right, test::noise_image(kWidth, kHeight, 2), cv::NORM_INF), 0);
}

TEST_F(SampleTest, UnknownValuesBecomeInfinity) {
  auto out = truth_of({3.5f, kInf, -kInf, kNan, -2, 0, 511.9f, 512}, {.max_disparity = 512});
  EXPECT_EQ(out, (std::vector<float>{3.5f, kInf, kInf, kInf, kInf, 0, 511.9f, kInf}));
  EXPECT_EQ(truth_of({512, 5000}, {}), (std::vector<float>{512, 5000})) << "no limit by default";
}

TEST_F(SampleTest, NegatedFilesAreTurnedOnlyWhenAllowedAndPure) {
  EXPECT_EQ(truth_of({-3, -4.5f, kInf}, {.either_sign = true}),
            (std::vector<float>{3, 4.5f, kInf}));
  EXPECT_EQ(truth_of({-3, 4.5f}, {.either_sign = true}), (std::vector<float>{kInf, 4.5f}))
      << "mixed signs: the negative ones are errors";
  EXPECT_EQ(truth_of({-3, -4.5f}, {}), (std::vector<float>{kInf, kInf}));
}

TEST_F(SampleTest, DepthBecomesDisparity) {
  auto out = truth_of({10, 0, -5, kInf, 65534, 65535},
                      {.kind = TruthKind::kDepth, .depth_numerator = 80, .unknown_from = 65535});
  EXPECT_FLOAT_EQ(out[0], 8);
  EXPECT_EQ(out[1], kInf) << "depth zero is no measurement";
  EXPECT_EQ(out[2], kInf);
  EXPECT_EQ(out[3], kInf);
  EXPECT_FLOAT_EQ(out[4], 80.0f / 65534);
  EXPECT_EQ(out[5], kInf);
}

TEST_F(SampleTest, SintelIsDecodedInFloat) {
  cv::Mat coded(kHeight, kWidth, CV_8UC3, cv::Scalar(64, 32, 200));  // B, G, R
  write_mat(folder_ / "d.png", coded);
  ref_.disparity = folder_ / "d.png";
  ref_.coding.kind = TruthKind::kSintel;
  cv::Mat out = load_sample(ref_).disparity;
  EXPECT_FLOAT_EQ(out.at<float>(3, 3), 800 + 0.5f + 64 / 16384.0f) << "eight bits would overflow";
}

TEST_F(SampleTest, IntegersAreDividedAndZeroIsUnknown) {
  test::put_integers(folder_ / "d.png", 30, CV_8UC1);
  ref_.disparity = folder_ / "d.png";
  ref_.coding.divisor = 4;
  cv::Mat out = load_sample(ref_).disparity;
  EXPECT_EQ(out.at<float>(0, 0), kInf);
  EXPECT_FLOAT_EQ(out.at<float>(1, 1), 7.5f);
}

TEST_F(SampleTest, NocMasks) {
  test::put_pfm(folder_ / "d.pfm", 2);
  ref_.disparity = folder_ / "d.pfm";
  cv::Mat mask(kHeight, kWidth, CV_8UC1, cv::Scalar(255));
  mask.at<std::uint8_t>(1, 1) = 128;  // occluded in Middlebury's masks
  mask.at<std::uint8_t>(1, 2) = 0;
  write_mat(folder_ / "m.png", mask);

  ref_.noc = {folder_ / "m.png"};
  cv::Mat noc = load_sample(ref_).noc_mask;
  EXPECT_EQ(noc.type(), CV_8UC1);
  EXPECT_EQ(noc.at<std::uint8_t>(1, 1), 0);
  EXPECT_EQ(noc.at<std::uint8_t>(1, 2), 0);
  EXPECT_EQ(cv::countNonZero(noc == 255), kWidth * kHeight - 2);

  ref_.noc_coding = NocCoding::kZeroVisible;
  noc = load_sample(ref_).noc_mask;
  EXPECT_EQ(cv::countNonZero(noc == 255), 1);
  EXPECT_EQ(noc.at<std::uint8_t>(1, 2), 255);

  test::put_integers(folder_ / "k.png", 1);  // 16 bits, d = 1/256: known although tiny
  ref_.noc_coding = NocCoding::kKnown;
  ref_.noc = {folder_ / "k.png"};
  noc = load_sample(ref_).noc_mask;
  EXPECT_EQ(noc.at<std::uint8_t>(0, 0), 0);
  EXPECT_EQ(cv::countNonZero(noc == 255), kWidth * kHeight - 1);

  ref_.noc_coding = NocCoding::kSameAsTruth;
  ref_.noc.clear();
  noc = load_sample(ref_).noc_mask;
  EXPECT_EQ(noc.at<std::uint8_t>(0, 0), 0);
  EXPECT_EQ(cv::countNonZero(noc == 255), kWidth * kHeight - 1);
}

TEST_F(SampleTest, ValidMaskTakesTruthAway) {
  test::put_pfm(folder_ / "d.pfm", 2);
  ref_.disparity = folder_ / "d.pfm";
  cv::Mat mask(kHeight, kWidth, CV_16UC1, cv::Scalar(0));
  mask.at<std::uint16_t>(2, 3) = 1;  // 1 of 65535 still counts as set
  write_mat(folder_ / "m.png", mask);
  ref_.valid_mask = folder_ / "m.png";
  cv::Mat out = load_sample(ref_).disparity;
  EXPECT_EQ(out.at<float>(2, 3), 2);
  EXPECT_EQ(cv::countNonZero(out == kInf), kWidth * kHeight - 1);
}

TEST_F(SampleTest, ObjectIdsFromPngAndPfm) {
  test::put_integers(folder_ / "o.png", 40000);
  ref_.objects = folder_ / "o.png";
  cv::Mat ids = load_sample(ref_).objects;
  EXPECT_EQ(ids.type(), CV_32SC1);
  EXPECT_EQ(ids.at<int>(0, 0), 0);
  EXPECT_EQ(ids.at<int>(1, 0), 40000);
  test::put_pfm(folder_ / "o.pfm", 12);
  ref_.objects = folder_ / "o.pfm";
  ids = load_sample(ref_).objects;
  EXPECT_EQ(ids.at<int>(0, 0), 0) << "infinity is no id";
  EXPECT_EQ(ids.at<int>(1, 0), 12);
}

TEST_F(SampleTest, SizesMustAgree) {
  test::put_image(folder_ / "small.png", 2, kWidth - 1, kHeight);
  auto broken = ref_;
  broken.right = folder_ / "small.png";
  auto message = test::error_of(ErrorKind::kInput, [&] { load_sample(broken); });
  EXPECT_TRUE(contains(message, "small.png"));
  EXPECT_TRUE(contains(message, "12 x 7"));
  EXPECT_TRUE(contains(message, "13 x 7"));

  test::put_pfm(folder_ / "d.pfm", 2, kWidth, kHeight + 1);
  broken = ref_;
  broken.disparity = folder_ / "d.pfm";
  message = test::error_of(ErrorKind::kInput, [&] { load_sample(broken); });
  EXPECT_TRUE(contains(message, "d.pfm"));

  test::put_pfm(folder_ / "ok.pfm", 2);
  broken.disparity = folder_ / "ok.pfm";
  test::put_integers(folder_ / "m.png", 255, CV_8UC1, kWidth + 2);
  broken.noc = {folder_ / "m.png"};
  message = test::error_of(ErrorKind::kInput, [&] { load_sample(broken); });
  EXPECT_TRUE(contains(message, "m.png"));
}

TEST_F(SampleTest, MissingAndBrokenFilesAreNamed) {
  auto broken = ref_;
  broken.left = folder_ / "none.png";
  EXPECT_TRUE(
      contains(test::error_of(ErrorKind::kInput, [&] { load_sample(broken); }), "none.png"));
  write_file(folder_ / "bad.pfm", "Pf\n13 7\n-1\nshort");
  broken = ref_;
  broken.disparity = folder_ / "bad.pfm";
  EXPECT_TRUE(contains(test::error_of(ErrorKind::kInput, [&] { load_sample(broken); }), "bad.pfm"));
}

}  // namespace
}  // namespace nmrf
