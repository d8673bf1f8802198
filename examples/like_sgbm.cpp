// A program as it is written for cv::StereoSGBM, with nmrf in its place.
//
//   like_sgbm MODEL LEFT RIGHT DISPARITY.pfm
#include <nmrf/files.h>
#include <nmrf/opencv.h>

#include <cstdio>
#include <opencv2/imgcodecs.hpp>

#include "stereo_matcher_adapter.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: like_sgbm MODEL LEFT RIGHT DISPARITY.pfm\n");
    return 2;
  }
  try {
    // Was: cv::StereoSGBM::create(0, 64, 5);
    cv::Ptr<cv::StereoMatcher> matcher = NmrfStereoMatcher::create(argv[1], 0, 64);
    matcher->setDisp12MaxDiff(1);
    cv::Mat disparity, floats;
    matcher->compute(cv::imread(argv[2]), cv::imread(argv[3]), disparity);
    disparity.convertTo(floats, CV_32F, 1.0 / cv::StereoMatcher::DISP_SCALE);
    const cv::Mat invalid = floats < matcher->getMinDisparity();
    floats.setTo(nmrf::kInvalidDisparity, invalid);
    nmrf::write_disparity(argv[4], nmrf::float_map(floats));
    std::printf("%s: %dx%d of type %s, %.1f %% of the pixels fail the left-right check\n", argv[4],
                disparity.cols, disparity.rows, disparity.type() == CV_16SC1 ? "CV_16S" : "other",
                100.0 * cv::countNonZero(invalid) / static_cast<double>(invalid.total()));
    return 0;
  } catch (const nmrf::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  } catch (const cv::Exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
