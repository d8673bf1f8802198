// KITTI 2012, KITTI 2015 and their union.
#include <algorithm>
#include <cctype>

#include "core/check.h"
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

namespace {

struct Year {
  const char* number;
  std::vector<const char*> folders;  // names of the tree below the root
  // Candidates in order of preference: {left, right} folders of images.
  std::vector<std::pair<const char*, const char*>> images;
  const char* all_truth;
  const char* noc_truth;
};

const Year k2012{"2012",
                 {"KITTI_2012", "KITTI2012", "kitti12", "data_stereo_flow", "2012"},
                 {{"colored_0", "colored_1"}, {"image_0", "image_1"}},
                 "disp_occ",
                 "disp_noc"};
const Year k2015{"2015",
                 {"KITTI_2015", "KITTI2015", "kitti15", "data_scene_flow", "2015"},
                 {{"image_2", "image_3"}},
                 "disp_occ_0",
                 "disp_noc_0"};

// The folder holding training/ and testing/ with this year's image folders.
fs::path tree(const DatasetOptions& options, const Year& year) {
  fs::path root = options.root;
  std::vector<fs::path> candidates{root};
  for (const fs::path& base : {root, scan::child(root, {"KITTI"})})
    if (!base.empty())
      if (fs::path found = scan::child(base, year.folders); !found.empty())
        candidates.push_back(found);
  for (const auto& candidate : candidates)
    for (const char* half : {"training", "testing"})
      for (const auto& [left, right] : year.images)
        if (fs::is_directory(candidate / half / left)) return candidate;
  return {};
}

// The pair's number: the digits its name starts with, or -1.
int pair_number(const std::string& stem) {
  std::size_t digits = 0;
  while (digits < stem.size() && std::isdigit(static_cast<unsigned char>(stem[digits]))) ++digits;
  return digits == 0 || digits > 9 ? -1 : std::stoi(stem.substr(0, digits));
}

// Our split: pairs whose number is divisible by 5 are for validation, the others for training.
bool in_split(const std::string& split, const std::string& stem) {
  if (split == "train") return pair_number(stem) % 5 != 0;
  if (split == "val") return pair_number(stem) % 5 == 0;
  return true;
}

std::string split_of(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split,
                     {"", "all", "training", "train", "val", "test", "testing"});
  if (options.split.empty() || options.split == "training") return "all";
  return options.split == "testing" ? "test" : options.split;
}

void add_year(scan::Collector& out, const DatasetOptions& options, const Year& year,
              const std::string& split, const std::string& prefix) {
  const char* half = split == "test" ? "testing" : "training";
  fs::path base = tree(options, year);
  if (base.empty()) {
    out.looked_for((fs::path(options.root) / year.folders.front() / half /
                    year.images.front().first / "*_10.png")
                       .string());
    return;
  }
  base /= half;
  auto images = year.images.front();
  for (const auto& candidate : year.images)
    if (fs::is_directory(base / candidate.first)) {
      images = candidate;
      break;
    }
  out.looked_for((base / images.first / "*_10.png").string());
  for (const auto& file : scan::file_names(base / images.first)) {
    std::string stem = fs::path(file).stem().string();
    // *_11 is the next moment in time; only *_10 has truth.
    if (!file.ends_with("_10.png") || !in_split(split, stem)) continue;
    SampleRef ref;
    ref.name = prefix + stem;
    ref.left = base / images.first / file;
    ref.right = base / images.second / file;
    ref.sparse = true;
    if (split != "test") {
      fs::path all = base / year.all_truth / file, noc = base / year.noc_truth / file;
      bool has_all = fs::exists(all);
      ref.disparity = has_all || !fs::exists(noc) ? all : noc;
      if (has_all) ref.noc = {noc};
      ref.noc_coding = has_all ? NocCoding::kKnown : NocCoding::kSameAsTruth;
      ref.objects = base / "obj_map" / file;
      ref.reflective = base / "disp_refl_occ" / file;
    }
    out.add(std::move(ref));
  }
}

Refs one_year(const DatasetOptions& options, const Year& year) {
  std::string split = split_of(options);
  scan::Collector out(options, split != "test");
  add_year(out, options, year, split, "");
  return out.finish();
}

}  // namespace

Refs kitti2012(const DatasetOptions& options) { return one_year(options, k2012); }
Refs kitti2015(const DatasetOptions& options) { return one_year(options, k2015); }

Refs kitti_mix(const DatasetOptions& options) {
  std::string split = split_of(options);
  for (const Year* year : {&k2012, &k2015})
    check(!tree(options, *year).empty(), ErrorKind::kInput,
          "data set {}: no KITTI {} was found; looked for {}. Put both years below one folder, or "
          "use kitti2012 or kitti2015 alone.",
          options.name, year->number,
          (fs::path(options.root) / year->folders.front() / "training" / year->images.front().first)
              .string());
  scan::Collector out(options, split != "test");
  add_year(out, options, k2012, split, "kitti2012/");
  add_year(out, options, k2015, split, "kitti2015/");
  return out.finish();
}

}  // namespace nmrf::families
