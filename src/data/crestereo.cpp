// The synthetic set published with CREStereo.
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

Refs crestereo(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "all"});
  fs::path base = options.root;
  if (fs::path inner = scan::child(base, {"CREStereo", "CREStereo_dataset"}); !inner.empty())
    base = inner;
  scan::Collector out(options, true);
  out.looked_for((base / "**/*_left.jpg").string());
  for (const fs::path& relative : scan::folders_below(base)) {
    fs::path folder = base / relative;
    for (const auto& file : scan::file_names(folder)) {
      std::string extension = fs::path(file).extension().string();
      std::string ending = "_left" + extension;
      if ((extension != ".jpg" && extension != ".png") || !file.ends_with(ending)) continue;
      std::string stem = file.substr(0, file.size() - ending.size());
      SampleRef ref;
      ref.name = (relative / stem).lexically_normal().generic_string();
      ref.left = folder / file;
      ref.right = folder / (stem + "_right" + extension);
      ref.disparity = folder / (stem + "_left.disp.png");
      ref.right_disparity = folder / (stem + "_right.disp.png");
      ref.coding.divisor = 32;
      ref.coding.max_disparity = 512;
      out.add(std::move(ref));
    }
  }
  return out.finish();
}

}  // namespace nmrf::families
