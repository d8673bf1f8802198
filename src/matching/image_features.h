// Corners with binary descriptors, in the manner of ORB (Rublee et al., 2011): FAST corners of an
// image pyramid, the strongest by Harris' measure, described by oriented BRIEF.
#pragma once

#include <cstdint>
#include <vector>

#include "nmrf/image.h"

namespace nmrf {

struct Feature {
  float x, y;  // pixels of the image
};

struct Features {
  std::vector<Feature> places;
  // 256 bits each, in the layout of kernels::Descriptors with `step` words per row.
  std::vector<std::uint64_t> words;
  std::size_t step = 0;
};

// An image of one channel of 8 bits.
struct Grey {
  int width = 0, height = 0;
  std::vector<std::uint8_t> values;
  const std::uint8_t* row(int y) const {
    return values.data() + static_cast<std::ptrdiff_t>(y) * width;
  }
};

// image: 8-bit RGB.
Grey to_grey(const Image& image);

// At most about `count`, spread over the levels of the pyramid by their size.
Features find_features(const Grey& image, int count);

struct FeatureMatch {
  std::size_t left, right;  // places of the two sets
  int distance;             // differing bits
};

// Those that are nearest to each other in both directions, with at most `most` differing bits.
std::vector<FeatureMatch> match_features(const Features& left, const Features& right, int most);

}  // namespace nmrf
