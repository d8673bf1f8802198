#include "cli/feature_rectify.h"

#include "cli/pair_rectifier.h"
#include "core/log.h"
#include "rig/feature_rectifier.h"

namespace nmrf::cli {
namespace {

void rectify(InputPair& pair, nlohmann::json& report) {
  FeatureRectification found;
  try {
    found = rectify_by_features(pair.left, pair.right);
  } catch (const Error& error) {  // it knows no file names
    throw Error(error.kind(), pair.left_name + ": " + error.what());
  }
  pair.left = warp(pair.left, found.left, found.width, found.height);
  pair.right = warp(pair.right, found.right, found.width, found.height);
  report["rectified"] = {{"matches", found.matches},
                         {"vertical_before_px", found.before},
                         {"vertical_px", found.residual},
                         {"turn_deg", found.turn},
                         {"shift_px", found.shift},
                         {"focal_px", found.focal},
                         {"homography_left", found.left},
                         {"homography_right", found.right},
                         {"size", {found.width, found.height}}};
  log_info(
      "{}: rectified from {} feature matches, vertical error {:.1f} px before, {:.2f} px after; "
      "the map belongs to the rectified left image, {}x{}. Without a calibration depth has no "
      "scale.",
      pair.stem, found.matches, found.before, found.residual, found.width, found.height);
}

}  // namespace

void use_feature_rectifier() { set_feature_rectifier(rectify); }

}  // namespace nmrf::cli
