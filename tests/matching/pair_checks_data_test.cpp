// The pair check on real pairs: silent where they are good, and not where they are spoilt.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "matching/pair_warps.h"
#include "nmrf/checks.h"
#include "nmrf/files.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::moved;
using test::turned;

TEST(PairCheck, RealPairs) {
  NMRF_NEED_SHARED("data/pairs.txt");
  const auto folder = test::shared_folder() / "data";
  std::ifstream list(folder / "pairs.txt");
  std::string line;
  int found = 0, pairs = 0;
  for (int i = 0; std::getline(list, line); ++i) {
    std::istringstream words(line);
    std::string left_name, right_name;
    words >> left_name >> right_name;
    const Image left = to_rgb8(read_image(folder / left_name));
    const Image right = to_rgb8(read_image(folder / right_name));
    SCOPED_TRACE(left_name);
    ++pairs;
    const PairCheck good = check_pair(left, right);
    EXPECT_TRUE(good.warnings.empty()) << good.warnings[0];
    EXPECT_FALSE(good.correctable) << good.alignment.vertical_rms(left.width(), left.height());
    // A shift by two pixels is found on top of what the pair has itself.
    const PairCheck lower = check_pair(left, moved(right, 2));
    found += lower.correctable;
    if (lower.correctable) {
      EXPECT_NEAR(lower.alignment.offset, 2 + good.alignment.offset, 0.25);
    }
    // The wrong ways in turn, to keep the test short.
    switch (i % 4) {
      case 0:
        EXPECT_TRUE(check_pair(right, left).swapped);
        break;
      case 1:
        EXPECT_TRUE(check_pair(left, moved(right, 3)).not_rectified);
        break;
      case 2:
        EXPECT_TRUE(check_pair(left, moved(right, -3)).not_rectified);
        break;
      default:
        EXPECT_TRUE(check_pair(left, turned(right, 1)).not_rectified);
    }
  }
  EXPECT_GE(found, 0.9 * pairs);
  std::cout << "[ figures  ] " << found << " of " << pairs
            << " pairs moved by 2 px are corrected\n";
}

}  // namespace
}  // namespace nmrf
