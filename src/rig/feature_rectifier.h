// Rectifies a pair without a calibration, by features found in both images.
#pragma once

#include <array>
#include <string>

#include "nmrf/image.h"

namespace nmrf {

struct FeatureRectification {
  // Row by row; from pixels of an image to pixels of the rectified one.
  std::array<double, 9> left, right;
  int width = 0, height = 0;  // of the rectified images: what both show
  int matches = 0;            // it rests on
  double before = 0;          // px: root mean square of their vertical offset as they were
  double residual = 0;        // and rectified, in px of the rectified images
  double turn = 0;            // degrees, by which the right image was turned against the left
  double focal = 0;           // px, a by-product of the fit: rough
  double shift = 0;           // px, added to all disparities so that none is negative
};

// SIFT features and a robust fundamental matrix; then the turns of both cameras and the focal
// length that bring matches to the same rows (Fusiello and Irsara, 2008): turned cameras keep the
// shape of the images. Images: 8-bit RGB, one size. Repeats exactly. Throws Error(kInput) with the
// reason where the pair cannot be rectified: too few matches, too little parallax (a turn on the
// spot, a flat scene), motion along the viewing direction, cameras above each other, too little in
// common.
FeatureRectification rectify_by_features(const Image& left, const Image& right);

// A part of an image, px.
struct ImageFrame {
  double x = 0, y = 0;  // whole numbers: its first pixel
  int width = 0, height = 0;
};
// What two images of one size both fill after their homographies; empty: nothing.
ImageFrame common_frame(const std::array<double, 9>& left, const std::array<double, 9>& right,
                        int width, int height);

// The image as the homography shows it; bicubic, black outside.
Image warp(const Image& image, const std::array<double, 9>& homography, int width, int height);

}  // namespace nmrf
