#include <algorithm>

#include "nmrf/matcher.h"

extern "C" {
#include "capi_test.h"
}

int same_as_cpp(const char* model, int max_disp, const nmrf_maps* maps) {
  const auto matcher = nmrf::Matcher::load(model, {.threads = 2, .max_disp = max_disp});
  const nmrf::Disparity expected =
      matcher.match({left_pixels, kWidth, kHeight}, {right_pixels, kWidth, kHeight}, {.scale = 1});
  return expected.map.width() == maps->width && expected.map.height() == maps->height &&
         std::equal(expected.map.begin(), expected.map.end(), maps->disparity) &&
         std::equal(expected.confidence.begin(), expected.confidence.end(), maps->confidence) &&
         std::equal(expected.mask.begin(), expected.mask.end(), maps->mask) &&
         std::equal(expected.confidence3.begin(), expected.confidence3.end(), maps->confidence3) &&
         std::equal(expected.expected_error.begin(), expected.expected_error.end(),
                    maps->expected_error) &&
         std::equal(expected.posterior.begin(), expected.posterior.end(), maps->posterior) &&
         !expected.expected_error.empty() && !expected.posterior.empty();
}
