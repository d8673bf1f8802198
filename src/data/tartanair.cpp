// TartanAir: flights through rendered scenes, truth as depth in metres.
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

Refs tartanair(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "all"});
  fs::path base = options.root;
  if (fs::path inner = scan::child(base, {"TartanAir"}); !inner.empty()) base = inner;
  scan::Collector out(options, true);
  out.looked_for((base / "**/image_left/*_left.png").string());
  for (const fs::path& relative : scan::folders_called(base, "image_left")) {
    fs::path flight = relative.parent_path();
    for (const auto& file : scan::file_names(base / relative)) {
      constexpr std::string_view ending = "_left.png";
      if (!file.ends_with(ending)) continue;
      std::string stem = file.substr(0, file.size() - ending.size());
      SampleRef ref;
      ref.name = (flight / stem).generic_string();
      ref.left = base / relative / file;
      ref.right = base / flight / "image_right" / (stem + "_right.png");
      ref.disparity = base / flight / "depth_left" / (stem + "_left_depth.npy");
      ref.right_disparity = base / flight / "depth_right" / (stem + "_right_depth.npy");
      ref.coding.kind = TruthKind::kDepth;
      ref.coding.depth_numerator = 80;  // 320 pixels of focal length, 0.25 m between the cameras
      ref.coding.max_disparity = 512;
      out.add(std::move(ref));
    }
  }
  return out.finish();
}

}  // namespace nmrf::families
