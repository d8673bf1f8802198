// SceneFlow: FlyingThings3D (full set and subset), Monkaa, Driving.
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

namespace {

struct Rendering {
  const char* label;   // "clean"
  const char* folder;  // "frames_cleanpass"
};

constexpr Rendering kFull[] = {{"clean", "frames_cleanpass"}, {"final", "frames_finalpass"}};
constexpr Rendering kSubset[] = {{"clean", "image_clean"}, {"final", "image_final"}};

// The folder of one part: root/PART, root/SceneFlow/PART, or the root itself when it is called so.
fs::path part_folder(const DatasetOptions& options, const std::vector<const char*>& names) {
  fs::path root = options.root;
  if (fs::path found = scan::child(root, names); !found.empty()) return found;
  if (fs::path outer = scan::child(root, {"SceneFlow"}); !outer.empty())
    if (fs::path found = scan::child(outer, names); !found.empty()) return found;
  fs::path self = fs::absolute(root / ".").lexically_normal().parent_path();
  for (const char* name : names)
    if (self.filename() == name) return root;
  return {};
}

// The renderings to list: what was asked for, or the final pass and without one the clean pass.
std::vector<Rendering> renderings(const DatasetOptions& options, const fs::path& base,
                                  const Rendering (&known)[2]) {
  if (options.pass == "clean") return {known[0]};
  if (options.pass == "final") return {known[1]};
  if (options.pass == "both") return {known[0], known[1]};
  return {fs::is_directory(base / known[1].folder) ? known[1] : known[0]};
}

// Every `left` folder below base/<rendering>/<inside>; truth below base/disparity under the same
// relative path.
void add_tree(scan::Collector& out, const DatasetOptions& options, const std::string& part,
              const fs::path& base, const fs::path& inside, const Rendering (&known)[2]) {
  for (const Rendering& rendering : renderings(options, base, known)) {
    fs::path images = base / rendering.folder / inside;
    out.looked_for((images / "**/left/*.png").string());
    for (const fs::path& relative : scan::folders_called(images, "left")) {
      fs::path above = relative.parent_path();
      for (const auto& file : scan::file_names(images / relative)) {
        fs::path name = file;
        if (!scan::is_image_extension(name.extension().string())) continue;
        fs::path stem = name.stem();
        fs::path truth = stem;
        truth += ".pfm";
        SampleRef ref;
        ref.left = images / relative / name;
        ref.right = images / above / "right" / name;
        ref.disparity = base / "disparity" / inside / relative / truth;
        ref.right_disparity = base / "disparity" / inside / above / "right" / truth;
        ref.objects = base / "object_index" / inside / relative / truth;
        ref.right_objects = base / "object_index" / inside / above / "right" / truth;
        ref.objects_everywhere = true;
        ref.surfaces = base / "material_index" / inside / relative / stem;
        ref.surfaces +=
            ".png";  // of nmrf synth; FlyingThings3D's own are .pfm and mean other things
        ref.coding.either_sign = true;  // the subset stores the left view's disparity negated
        ref.coding.max_disparity = 512;
        ref.name = (part / inside / above / stem).generic_string();
        if (options.pass == "both") ref.name = std::string(rendering.label) + "/" + ref.name;
        out.add(std::move(ref));
      }
    }
  }
}

// "train", "test" or "all"; `val` is the test split, which the literature reports.
std::string split_of(const DatasetOptions& options) {
  scan::check_choice(options, "pass", options.pass, {"", "clean", "final", "both"});
  scan::check_choice(options, "split", options.split, {"", "train", "test", "val", "all"});
  if (options.split.empty()) return "train";
  return options.split == "val" ? "test" : options.split;
}

void add_things(scan::Collector& out, const DatasetOptions& options, const std::string& split) {
  fs::path base = part_folder(options, {"FlyingThings3D"});
  fs::path subset = part_folder(options, {"FlyingThings3D_subset"});
  if (base.empty() && !subset.empty()) {
    if (split != "test")
      add_tree(out, options, "FlyingThings3D_subset/train", subset / "train", "", kSubset);
    if (split != "train")
      add_tree(out, options, "FlyingThings3D_subset/val", subset / "val", "", kSubset);
    return;
  }
  if (base.empty()) base = fs::path(options.root) / "FlyingThings3D";
  if (split != "test") add_tree(out, options, "FlyingThings3D", base, "TRAIN", kFull);
  if (split != "train") add_tree(out, options, "FlyingThings3D", base, "TEST", kFull);
}

// Monkaa and Driving have no test split.
void add_part(scan::Collector& out, const DatasetOptions& options, const char* part) {
  fs::path base = part_folder(options, {part});
  if (base.empty()) base = fs::path(options.root) / part;
  add_tree(out, options, part, base, "", kFull);
}

Refs training_only(const DatasetOptions& options, const char* part) {
  scan::check_choice(options, "pass", options.pass, {"", "clean", "final", "both"});
  scan::check_choice(options, "split", options.split, {"", "train", "all"});
  scan::Collector out(options, true);
  add_part(out, options, part);
  return out.finish();
}

}  // namespace

Refs sceneflow(const DatasetOptions& options) {
  std::string split = split_of(options);
  scan::Collector out(options, true);
  add_things(out, options, split);
  if (split != "test") {
    add_part(out, options, "Monkaa");
    add_part(out, options, "Driving");
  }
  return out.finish();
}

Refs flyingthings3d(const DatasetOptions& options) {
  scan::Collector out(options, true);
  add_things(out, options, split_of(options));
  return out.finish();
}

Refs monkaa(const DatasetOptions& options) { return training_only(options, "Monkaa"); }
Refs driving(const DatasetOptions& options) { return training_only(options, "Driving"); }

}  // namespace nmrf::families
