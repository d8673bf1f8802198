// The smallest program: two images and a model in, a disparity map out. nmrf must be installed.
//
//   cmake -S examples -B build/examples -DCMAKE_PREFIX_PATH=/where/nmrf/is/installed
//   cmake --build build/examples
//   build/examples/minimal model.safetensors left.png right.png disparity.pfm
#include <nmrf/image.h>
#include <nmrf/matcher.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: minimal MODEL LEFT RIGHT DISPARITY.pfm\n");
    return 2;
  }
  try {
    const auto matcher = nmrf::Matcher::load(argv[1]);
    const cv::Mat left = nmrf::read_image(argv[2]), right = nmrf::read_image(argv[3]);
    const nmrf::Disparity result = matcher.match(left, right);
    nmrf::write_disparity(argv[4], result.map);

    double nearest = 0;
    cv::minMaxLoc(result.map, nullptr, &nearest);
    std::printf("%s: %dx%d, largest disparity %.2f px, mean confidence %.2f\n", argv[4],
                result.map.cols, result.map.rows, nearest, cv::mean(result.confidence)[0]);
    return 0;
  } catch (const nmrf::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
}
