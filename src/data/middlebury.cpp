// Middlebury: the data sets of 2001 to 2014 and the evaluation sets F, H, Q (MiddEval3).
#include <algorithm>
#include <fstream>

#include "core/check.h"
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

namespace {

// root, root/NAME, root/Middlebury/NAME: the first that is there; else root/NAME for the message.
fs::path tree(const DatasetOptions& options, const char* name) {
  fs::path root = options.root;
  for (const fs::path& base : {root, scan::child(root, {"Middlebury"})})
    if (!base.empty())
      if (fs::path found = scan::child(base, {name}); !found.empty()) return found;
  return root;
}

// The width a PNG file declares, 0 when it is no PNG: enough to tell the published sizes apart
// without decoding.
int png_width(const fs::path& path) {
  unsigned char head[24] = {};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(head), sizeof head)) return 0;
  static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (!std::equal(signature, signature + 8, head)) return 0;
  return static_cast<int>((head[16] & 0x7f) << 24 | head[17] << 16 | head[18] << 8 | head[19]);
}

struct Size {
  const char* name;    // of the setting
  const char* folder;  // of the tree
  double divisor;      // disparity = value / divisor
};
constexpr Size kSizes[] = {
    {"full", "FullSize", 1}, {"half", "HalfSize", 2}, {"third", "ThirdSize", 3}};

// The size of a scene without a size folder, from its width: 2005 and 2006 full images are 1240 to
// 1400 pixels wide.
const Size& size_of(const DatasetOptions& options, const fs::path& image) {
  int width = png_width(image);
  check(width > 0, ErrorKind::kInput, "{}: is not a PNG file, so the size of the scene is unknown",
        image.string());
  const Size& guess = kSizes[width > 1000 ? 0 : width > 550 ? 1 : 2];
  check(options.size.empty() || options.size == "all" || options.size == guess.name,
        ErrorKind::kInput,
        "{}: is {} pixels wide, which is the {} size, but size '{}' was asked for", image.string(),
        width, guess.name, options.size);
  return guess;
}

void add_2005_scene(scan::Collector& out, const fs::path& scene, const std::string& name,
                    double divisor) {
  auto add = [&](const fs::path& views, const std::string& full_name) {
    SampleRef ref;
    ref.name = full_name;
    ref.left = views / "view1.png";
    ref.right = views / "view5.png";
    ref.disparity = scene / "disp1.png";
    ref.right_disparity = scene / "disp5.png";
    ref.coding.divisor = divisor;
    ref.sparse = true;
    out.add(std::move(ref));
  };
  if (fs::exists(scene / "view1.png")) {
    add(scene, name);
    return;
  }
  // The archives with all views hold them per illumination and exposure only.
  for (const auto& light : scan::folder_names(scene))
    if (light.starts_with("Illum"))
      for (const auto& exposure : scan::folder_names(scene / light))
        if (exposure.starts_with("Exp"))
          add(scene / light / exposure, fmt::format("{}/{}/{}", name, light, exposure));
}

Refs middlebury2005or2006(const DatasetOptions& options, const char* year) {
  scan::check_choice(options, "size", options.size, {"", "full", "half", "third", "all"});
  scan::check_choice(options, "split", options.split, {"", "train", "all"});
  fs::path base = tree(options, year);
  scan::Collector out(options, true);
  bool sized = false;
  for (const Size& size : kSizes) sized |= fs::is_directory(base / size.folder);
  if (!sized) {  // scenes directly below, all of one size
    out.looked_for((base / "*/view1.png").string());
    out.looked_for((base / "ThirdSize/*/view1.png").string());
    for (const auto& scene : scan::folder_names(base))
      if (fs::exists(base / scene / "disp1.png"))
        add_2005_scene(out, base / scene, scene,
                       size_of(options, base / scene / "disp1.png").divisor);
    return out.finish();
  }
  // One size unless all were asked for: the third size, which most papers use, where it is there.
  std::string wanted = options.size;
  for (auto size = std::rbegin(kSizes); wanted.empty() && size != std::rend(kSizes); ++size)
    if (fs::is_directory(base / size->folder)) wanted = size->name;
  for (const Size& size : kSizes) {
    if (wanted != "all" && wanted != size.name) continue;
    out.looked_for((base / size.folder / "*/view1.png").string());
    for (const auto& scene : scan::folder_names(base / size.folder))
      add_2005_scene(out, base / size.folder / scene,
                     wanted == "all" ? size.folder + ("/" + scene) : scene, size.divisor);
  }
  return out.finish();
}

// 2001 and 2003: views 2 and 6 of a row of cameras.
void add_2003_scene(scan::Collector& out, const fs::path& scene, const std::string& name,
                    double divisor) {
  fs::path left = scan::image_file(scene / "im2");
  if (left.empty()) return;
  SampleRef ref;
  ref.name = name;
  ref.left = left;
  ref.right = scan::image_file(scene / "im6");
  ref.disparity = scan::image_file(scene / "disp2");
  ref.right_disparity = scan::image_file(scene / "disp6");
  ref.coding.divisor = divisor;
  ref.noc = {scene / "mask_nonocc.png"};
  ref.sparse = true;
  out.add(std::move(ref));
}

Refs middeval3(const DatasetOptions& options, char size) {
  scan::check_choice(options, "split", options.split, {"", "train", "training", "all", "test"});
  bool test = options.split == "test";
  fs::path base = tree(options, "MiddEval3");
  std::string folder = (test ? "test" : "training") + std::string(1, size);
  scan::Collector out(options, !test && options.needs_truth);
  out.looked_for((base / folder / "*/im0.png").string());
  for (const auto& scene : scan::folder_names(base / folder)) {
    fs::path images = base / folder / scene;
    if (!fs::exists(images / "im0.png")) continue;
    // The truth comes in archives of its own; some unpack them beside the images.
    fs::path truth = fs::exists(images / "disp0GT.pfm") ? images : base / (folder + "_GT") / scene;
    SampleRef ref;
    ref.name = scene;
    ref.left = images / "im0.png";
    ref.right = images / "im1.png";
    ref.calibration = images / "calib.txt";
    ref.sparse = true;
    if (!test) {
      ref.disparity = truth / "disp0GT.pfm";
      ref.right_disparity = truth / "disp1GT.pfm";
      ref.noc = {truth / "mask0nocc.png"};
    }
    out.add(std::move(ref));
  }
  return out.finish();
}

}  // namespace

Refs middeval3_full(const DatasetOptions& options) { return middeval3(options, 'F'); }
Refs middeval3_half(const DatasetOptions& options) { return middeval3(options, 'H'); }
Refs middeval3_quarter(const DatasetOptions& options) { return middeval3(options, 'Q'); }

Refs middlebury2001(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "all"});
  fs::path base = tree(options, "2001");
  scan::Collector out(options, true);
  out.looked_for((base / "*/im2.{ppm,png}").string());
  for (const auto& scene : scan::folder_names(base)) add_2003_scene(out, base / scene, scene, 8);
  return out.finish();
}

Refs middlebury2003(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "all"});
  scan::check_choice(options, "size", options.size, {"", "full", "half", "quarter", "all"});
  fs::path base = tree(options, "2003");
  scan::Collector out(options, true);
  struct {
    const char* name;
    char suffix;
    double divisor;
  } const sizes[] = {{"full", 'F', 1}, {"half", 'H', 2}, {"quarter", 'Q', 4}};
  out.looked_for((base / "{cones,teddy}[FHQ]/im2.png").string());
  for (const auto& scene : scan::folder_names(base)) {
    // conesF, conesH, conesQ; without a letter the scene has the quarter size.
    auto size = sizes + 2;
    for (const auto& candidate : sizes)
      if (scene.ends_with(candidate.suffix)) size = &candidate;
    std::string wanted = options.size.empty() ? "quarter" : options.size;
    if (wanted == "all" || wanted == size->name)
      add_2003_scene(out, base / scene, scene, size->divisor);
  }
  return out.finish();
}

Refs middlebury2005(const DatasetOptions& options) { return middlebury2005or2006(options, "2005"); }
Refs middlebury2006(const DatasetOptions& options) { return middlebury2005or2006(options, "2006"); }

Refs middlebury2014(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "all"});
  scan::check_choice(options, "variant", options.variant, {"", "perfect", "imperfect", "all"});
  scan::check_choice(options, "lighting", options.lighting, {"", "default", "E", "L", "all"});
  std::string variant = options.variant.empty() ? "perfect" : options.variant;
  std::string lighting = options.lighting.empty() ? "default" : options.lighting;
  fs::path base = tree(options, "2014");
  scan::Collector out(options, true);
  out.looked_for((base / ("*-" + (variant == "all" ? "*" : variant) + "/im0.png")).string());
  for (const auto& scene : scan::folder_names(base)) {
    fs::path folder = base / scene;
    bool wanted = variant == "all" ? scene.ends_with("perfect")  // both end so
                                   : scene.ends_with("-" + variant);
    if (!wanted || !fs::exists(folder / "im0.png")) continue;
    for (const auto& [label, file] :
         {std::pair{"default", "im1.png"}, {"E", "im1E.png"}, {"L", "im1L.png"}}) {
      if (lighting != "all" && lighting != label) continue;
      SampleRef ref;
      bool extra = lighting == "all" && file != std::string("im1.png");
      ref.name = extra ? scene + "/" + label : scene;
      ref.left = folder / "im0.png";
      ref.right = folder / file;
      ref.disparity = folder / "disp0.pfm";
      ref.right_disparity = folder / "disp1.pfm";
      ref.calibration = folder / "calib.txt";
      ref.coding.max_disparity = 1000;
      ref.sparse = true;
      out.add(std::move(ref));
    }
  }
  return out.finish();
}

}  // namespace nmrf::families
