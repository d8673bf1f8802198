// Things at the left edge of the view that are too near for the right view to show them.
#pragma once

#include <opencv2/core.hpp>

namespace nmrf {

// Such a thing has no partner, and a map may take it for what is behind it, which has one: then the
// colours differ. In the left third of the view, pixels whose partners look unlike them are taken
// together. Groups that would look alike nowhere else in the rows of the right view grow, against
// the pixels that have partners alike, over those that have none, up to where colours change most
// (a watershed). What then touches the left edge takes the least disparity with which all of it is
// out of the right view.
// map: CV_32FC1, px, of the left view; left, right: CV_8UC3, of the same size. Values that are not
// finite stay.
cv::Mat put_out_of_view(const cv::Mat& map, const cv::Mat& left, const cv::Mat& right);

}  // namespace nmrf
