// The smallest program: two images and a model in, a disparity map out. nmrf must be installed.
//
//   cmake -S examples -B build/examples -DCMAKE_PREFIX_PATH=/where/nmrf/is/installed
//   cmake --build build/examples
//   build/examples/minimal model.safetensors left.png right.png disparity.pfm
#include <nmrf/files.h>
#include <nmrf/matcher.h>

#include <algorithm>
#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: minimal MODEL LEFT RIGHT DISPARITY.pfm\n");
    return 2;
  }
  try {
    const auto matcher = nmrf::Matcher::load(argv[1]);
    // Any 8- or 16-bit buffer will do, see nmrf::ImageView.
    const nmrf::Image left = nmrf::read_image(argv[2]), right = nmrf::read_image(argv[3]);
    const nmrf::Disparity result = matcher.match(left, right);
    nmrf::write_disparity(argv[4], result.map);

    const auto filled = std::count_if(result.mask.begin(), result.mask.end(),
                                      [](int state) { return (state & nmrf::kFilled) != 0; });
    std::printf("%s: %dx%d, largest disparity %.2f px, %.1f %% filled in\n", argv[4],
                result.map.width(), result.map.height(),
                *std::max_element(result.map.begin(), result.map.end()),
                100.0 * static_cast<double>(filled) / static_cast<double>(result.mask.size()));
    return 0;
  } catch (const nmrf::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
}
