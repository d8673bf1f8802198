// ETH3D, two views.
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

Refs eth3d(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "training", "all", "test"});
  bool test = options.split == "test";
  fs::path root = options.root;
  if (fs::path inner = scan::child(root, {"ETH3D"}); !inner.empty()) root = inner;
  fs::path base = test ? scan::child(root, {"two_view_testing", "two_view_test"})
                       : scan::child(root, {"two_view_training"});
  if (base.empty()) base = root / (test ? "two_view_testing" : "two_view_training");
  scan::Collector out(options, !test && options.needs_truth);
  out.looked_for((base / "*/im0.png").string());
  for (const auto& scene : scan::folder_names(base)) {
    fs::path images = base / scene;
    if (!fs::exists(images / "im0.png")) continue;
    SampleRef ref;
    ref.name = scene;
    ref.left = images / "im0.png";
    ref.right = images / "im1.png";
    ref.calibration = images / "calib.txt";
    ref.sparse = true;
    if (!test) {
      fs::path truth =
          fs::exists(images / "disp0GT.pfm") ? images : root / "two_view_training_gt" / scene;
      ref.disparity = truth / "disp0GT.pfm";
      ref.noc = {truth / "mask0nocc.png"};
    }
    out.add(std::move(ref));
  }
  return out.finish();
}

}  // namespace nmrf::families
