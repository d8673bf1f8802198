// OpenCV (yml, xml, json), Kalibr's camchain, ROS camera_info and KITTI's calib_cam_to_cam. A zero
// byte divides the input into two files.
#include <algorithm>
#include <filesystem>
#include <vector>

#include "fuzz/fuzz.h"
#include "nmrf/rectify.h"

NMRF_FUZZ_TARGET({
  const auto cut = std::find(input.begin(), input.end(), 0);
  const auto first = static_cast<std::size_t>(cut - input.begin());
  std::vector<std::filesystem::path> files{nmrf::fuzz::as_file(input.first(first))};
  if (cut != input.end()) files.push_back(nmrf::fuzz::as_file(input.subspan(first + 1), 1));
  nmrf::StereoRig rig = nmrf::read_rig(files);
  if (rig.left.width * std::int64_t{rig.left.height} > 4096) return;
  nmrf::Rectifier(rig, {});
})
