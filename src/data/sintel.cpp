// Sintel stereo.
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

Refs sintel(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "training", "all"});
  scan::check_choice(options, "pass", options.pass, {"", "clean", "final", "both"});
  fs::path base = options.root;
  if (fs::path inner = scan::child(base, {"SintelStereo", "Sintel"}); !inner.empty()) base = inner;
  if (fs::is_directory(base / "training")) base /= "training";
  std::vector<std::string> passes{options.pass};
  if (options.pass == "both") passes = {"clean", "final"};
  if (options.pass.empty()) passes = {fs::is_directory(base / "final_left") ? "final" : "clean"};
  scan::Collector out(options, true);
  for (const auto& pass : passes) {
    fs::path left = base / (pass + "_left");
    out.looked_for((left / "*/frame_*.png").string());
    for (const auto& sequence : scan::folder_names(left))
      for (const auto& file : scan::file_names(left / sequence)) {
        if (!file.ends_with(".png")) continue;
        SampleRef ref;
        ref.name = sequence + "/" + fs::path(file).stem().string();
        if (options.pass == "both") ref.name = pass + "/" + ref.name;
        ref.left = left / sequence / file;
        ref.right = base / (pass + "_right") / sequence / file;
        ref.disparity = base / "disparities" / sequence / file;
        ref.coding.kind = TruthKind::kSintel;
        ref.coding.max_disparity = 512;
        ref.noc = {base / "occlusions" / sequence / file, base / "outofframe" / sequence / file};
        ref.noc_coding = NocCoding::kZeroVisible;
        out.add(std::move(ref));
      }
  }
  return out.finish();
}

}  // namespace nmrf::families
