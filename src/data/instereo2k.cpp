// InStereo2K: indoor scenes measured by structured light.
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

Refs instereo2k(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "test", "val", "all"});
  fs::path base = options.root;
  if (fs::path inner = scan::child(base, {"InStereo2K"}); !inner.empty()) base = inner;
  std::vector<std::string> halves{"train"};
  if (options.split == "test" || options.split == "val") halves = {"test"};
  if (options.split == "all") halves = {"train", "test"};
  scan::Collector out(options, true);
  for (const auto& half : halves) {
    out.looked_for((base / half / "{part*/,}*/left.png").string());
    for (const fs::path& relative : scan::folders_below(base / half)) {
      fs::path folder = base / half / relative;
      if (!fs::exists(folder / "left.png")) continue;
      SampleRef ref;
      ref.name = (half / relative).lexically_normal().generic_string();
      ref.left = folder / "left.png";
      ref.right = folder / "right.png";
      ref.disparity = folder / "left_disp.png";
      ref.right_disparity = folder / "right_disp.png";
      ref.coding.divisor = 100;  // published readers disagree (100, 1024): see `divisor`
      ref.sparse = true;
      out.add(std::move(ref));
    }
  }
  return out.finish();
}

}  // namespace nmrf::families
