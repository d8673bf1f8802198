// Is this a rectified pair?
#pragma once

#include <string>
#include <vector>

#include "nmrf/export.h"
#include "nmrf/image.h"

namespace nmrf {

// What is wrong with a pair, in sentences for a person; none when nothing is.
struct PairCheck {
  std::vector<std::string> warnings;
  double vertical_offset = 0;  // px, median of the matched corners; 0 when too few matched
  int matches = 0;
};

// Looks for swapped, unrectified, identical or unrelated images. left, right: of one size.
NMRF_API PairCheck check_pair(const ImageView& left, const ImageView& right);

}  // namespace nmrf
