// What a pair looks like, in numbers that can be compared between photographs and rendered images.
#pragma once

#include <opencv2/core.hpp>

namespace nmrf {

// All shares are per cent of the pixels.
struct PairStatistics {
  double near = 0, middle = 0, far = 0;
  double outside = 0;
  double plain = 0;
  double contrast = 0;
  double noise = 0;
  double white = 0, black = 0;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("near", self.near, "disparity below which 99 % lie, % of the width");
    visit("middle", self.middle, "median disparity, % of the width");
    visit("far", self.far, "disparity below which 5 % lie, % of the width");
    visit("outside", self.outside, "% of the pixels that lie left of the right view");
    visit("plain", self.plain, "% of the pixels with a deviation below 4 in 9x9, grey levels");
    visit("contrast", self.contrast, "median of that deviation, grey levels");
    visit("noise", self.noise, "deviation of noise, of the quietest 5 % of blocks, grey levels");
    visit("white", self.white, "% of the pixels of grey 250 and more");
    visit("black", self.black, "% of the pixels of grey 8 and less");
  }
};

// Of the left image (CV_8UC3) and its disparity (CV_32FC1, +infinity = unknown; empty: the first
// four stay 0). Throws Error(kUsage) for other types and sizes.
PairStatistics pair_statistics(const cv::Mat& left, const cv::Mat& disparity);

}  // namespace nmrf
