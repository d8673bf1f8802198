// Virtual KITTI 2: rendered drives, truth as depth in centimetres.
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

namespace {

constexpr double kFocal = 725.0087;     // pixels
constexpr double kBaseline = 0.532725;  // metres

}  // namespace

Refs vkitti2(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "all"});
  fs::path base = options.root;
  if (fs::path inner = scan::child(base, {"VKITTI2", "vkitti2", "Virtual_KITTI_2"}); !inner.empty())
    base = inner;
  scan::Collector out(options, true);
  out.looked_for((base / "Scene*/*/frames/rgb/Camera_0/rgb_*.jpg").string());
  for (const auto& scene : scan::folder_names(base)) {
    if (!scene.starts_with("Scene")) continue;
    for (const auto& weather : scan::folder_names(base / scene)) {
      fs::path frames = base / scene / weather / "frames";
      for (const auto& file : scan::file_names(frames / "rgb/Camera_0")) {
        std::string number = fs::path(file).stem().string();
        if (!number.starts_with("rgb_") || !scan::is_image_extension(fs::path(file).extension()))
          continue;
        number = number.substr(4);
        SampleRef ref;
        ref.name = scene + "/" + weather + "/" + number;
        ref.left = frames / "rgb/Camera_0" / file;
        ref.right = frames / "rgb/Camera_1" / file;
        ref.disparity = frames / "depth/Camera_0" / ("depth_" + number + ".png");
        ref.right_disparity = frames / "depth/Camera_1" / ("depth_" + number + ".png");
        ref.coding.kind = TruthKind::kDepth;
        ref.coding.depth_numerator = kFocal * kBaseline * 100;
        ref.coding.unknown_from = 65535;  // the sky
        ref.coding.max_disparity = 512;
        out.add(std::move(ref));
      }
    }
  }
  return out.finish();
}

}  // namespace nmrf::families
