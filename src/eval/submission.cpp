#include "eval/submission.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "data/dataset.h"
#include "data/mats.h"
#include "nmrf/disparity.h"
#include "weights/zip.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

constexpr const char* kBenchmarks[] = {"kitti2012", "kitti2015", "middlebury", "eth3d"};

const std::vector<std::string> kMiddleburyTraining{
    "Adirondack", "ArtL",    "Jadeplant", "Motorcycle", "MotorcycleE",
    "Piano",      "PianoL",  "Pipes",     "Playroom",   "Playtable",
    "PlaytableP", "Recycle", "Shelves",   "Teddy",      "Vintage"};
const std::vector<std::string> kMiddleburyTest{
    "Australia", "AustraliaP", "Bicycle2", "Classroom2", "Classroom2E",
    "Computer",  "Crusade",    "CrusadeP", "Djembe",     "DjembeL",
    "Hoops",     "Livingroom", "Newkuba",  "Plants",     "Staircase"};

// 000000_10, 000001_10, ...
std::vector<std::string> kitti_names(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("{:06}_10", i));
  return names;
}

std::vector<SampleRef> open_half(const SubmissionOptions& options, const std::string& dataset,
                                 const std::string& split) {
  DatasetOptions data;
  data.name = dataset;
  data.root = options.root;
  data.split = split;
  data.needs_truth = false;
  try {
    return open_dataset(data)->refs();
  } catch (const Error& error) {
    if (options.partial && error.kind() == ErrorKind::kInput) {
      log_warning("{}", error.what());
      return {};
    }
    throw;
  }
}

// Complains unless the pairs are those of the benchmark: by name, or by number where `names` is
// empty.
void check_complete(const SubmissionOptions& options, const std::string& what,
                    const std::vector<SampleRef>& refs, const std::vector<std::string>& names,
                    std::size_t count) {
  std::string problem;
  std::set<std::string> found;
  for (const auto& ref : refs) found.insert(ref.name);
  std::vector<std::string> missing;
  for (const auto& name : names)
    if (found.erase(name) == 0) missing.push_back(name);
  const auto some = [](const std::vector<std::string>& list) {
    return fmt::format(
        "{}{}",
        fmt::join(list.begin(),
                  list.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(5, list.size())),
                  ", "),
        list.size() > 5 ? ", ..." : "");
  };
  if (!names.empty() && !missing.empty())
    problem =
        fmt::format("{} of {} pairs are missing ({})", missing.size(), names.size(), some(missing));
  else if (!names.empty() && !found.empty())
    problem = fmt::format("there are pairs the benchmark does not have ({})",
                          some({found.begin(), found.end()}));
  else if (names.empty() && refs.size() != count)
    problem = fmt::format("there are {} pairs; the benchmark has {}", refs.size(), count);
  if (problem.empty()) return;
  check(options.partial, ErrorKind::kInput,
        "{}, {}: {}. Complete the data set, or use --partial for an archive to look at.",
        options.benchmark, what, problem);
  log_warning("{}, {}: {}; the benchmark will not accept this archive", options.benchmark, what,
              problem);
}

cv::Size size_of(const Image& image) { return {image.width(), image.height()}; }

SubmissionItem item_of(const SampleRef& ref, std::string map_entry, std::string time_entry) {
  SubmissionItem item;
  item.left = ref.left;
  item.right = ref.right;
  const cv::Size left = size_of(read_image(ref.left)), right = size_of(read_image(ref.right));
  check(left == right, ErrorKind::kInput, "{} is {}x{} and {} is {}x{}; a pair has one size",
        ref.left.string(), left.width, left.height, ref.right.string(), right.width, right.height);
  item.width = left.width;
  item.height = left.height;
  item.map_entry = std::move(map_entry);
  item.time_entry = std::move(time_entry);
  return item;
}

// The map of an item as it lies in the folder, checked.
void check_map(const fs::path& path, const SubmissionItem& item) {
  const cv::Mat map = read_disparity_mat(path);
  check(map.cols == item.width && map.rows == item.height, ErrorKind::kFailure,
        "{}: the map is {}x{} and the image {}x{}", item.map_entry, map.cols, map.rows, item.width,
        item.height);
  check(cv::checkRange(map), ErrorKind::kFailure, "{}: the map has pixels without a disparity",
        item.map_entry);
}

}  // namespace

void SubmissionOptions::validate() const {
  check(
      std::find(std::begin(kBenchmarks), std::end(kBenchmarks), benchmark) != std::end(kBenchmarks),
      ErrorKind::kUsage, "there is no benchmark '{}'; expected one of: {}", benchmark,
      fmt::join(kBenchmarks, ", "));
  check(resolution == "F" || resolution == "H" || resolution == "Q", ErrorKind::kUsage,
        "the resolution is '{}'; expected F, H or Q", resolution);
  const bool plain =
      !method.empty() && std::all_of(method.begin(), method.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '_';
      });
  check(plain && method.size() <= 40 && !method.ends_with("_s"), ErrorKind::kUsage,
        "the method is called '{}'; it becomes part of file names: expected letters, digits, - and "
        "_, not ending in _s (which means sparse maps)",
        method);
}

std::vector<SubmissionItem> plan_submission(const SubmissionOptions& options) {
  options.validate();
  std::vector<SubmissionItem> items;
  if (options.benchmark == "kitti2012" || options.benchmark == "kitti2015") {
    const bool of_2012 = options.benchmark == "kitti2012";
    const auto refs = open_half(options, options.benchmark, "test");
    check_complete(options, "testing", refs, kitti_names(of_2012 ? 195 : 200), 0);
    for (const auto& ref : refs)
      items.push_back(item_of(ref, (of_2012 ? "" : "disp_0/") + ref.name + ".png", ""));
  } else if (options.benchmark == "middlebury") {
    const char size = options.resolution[0];
    const std::string dataset = std::string("middlebury-") + static_cast<char>(std::tolower(size));
    for (const auto& [split, names] :
         {std::pair{"training", &kMiddleburyTraining}, {"test", &kMiddleburyTest}}) {
      // The dataset's word for the first half is "train"; the tree's is "training".
      const auto refs =
          open_half(options, dataset, split == std::string("test") ? "test" : "train");
      const std::string folder = split + std::string(1, size);
      check_complete(options, folder, refs, *names, 0);
      for (const auto& ref : refs) {
        const std::string scene = folder + "/" + ref.name + "/";
        items.push_back(item_of(ref, scene + "disp0" + options.method + ".pfm",
                                scene + "time" + options.method + ".txt"));
      }
    }
  } else {
    for (const auto& [split, count] : {std::pair{"train", 27}, {"test", 20}}) {
      const auto refs = open_half(options, "eth3d", split);
      check_complete(options,
                     split == std::string("test") ? "two_view_testing" : "two_view_training", refs,
                     {}, static_cast<std::size_t>(count));
      for (const auto& ref : refs)
        items.push_back(item_of(ref, "low_res_two_view/" + ref.name + ".pfm",
                                "low_res_two_view/" + ref.name + ".txt"));
    }
  }
  check(!items.empty(), ErrorKind::kInput, "{}: no pairs were found below {}", options.benchmark,
        options.root);
  return items;
}

void write_submission_item(const fs::path& folder, const SubmissionItem& item,
                           const SubmissionOptions& options, const Prediction& prediction) {
  const cv::Mat& map = prediction.disparity;
  check(map.type() == CV_32FC1 && map.cols == item.width && map.rows == item.height,
        ErrorKind::kFailure, "{}: the map is {}x{} and the image {}x{}", item.map_entry, map.cols,
        map.rows, item.width, item.height);
  check(cv::checkRange(map), ErrorKind::kFailure, "{}: the map has pixels without a disparity",
        item.map_entry);
  const fs::path path = folder / item.map_entry;
  make_folder(path.parent_path());
  if (!item.time_entry.empty()) {
    const char* word = options.benchmark == "eth3d" ? "runtime " : "";
    write_file(folder / item.time_entry, fmt::format("{}{:.3f}\n", word, prediction.seconds));
  }
  // Last, so that a map stands for a finished pair.
  write_disparity_mat(path, map);
}

bool submission_item_done(const fs::path& folder, const SubmissionItem& item) {
  std::error_code ignored;
  if (!fs::exists(folder / item.map_entry, ignored)) return false;
  if (!item.time_entry.empty() && !fs::exists(folder / item.time_entry, ignored)) return false;
  try {
    check_map(folder / item.map_entry, item);
  } catch (const Error&) {
    return false;
  }
  return true;
}

void build_submission(const fs::path& archive, const fs::path& folder,
                      const std::vector<SubmissionItem>& items) {
  std::vector<std::string> names;
  for (const auto& item : items) {
    check_map(folder / item.map_entry, item);
    names.push_back(item.map_entry);
    if (!item.time_entry.empty()) names.push_back(item.time_entry);
  }
  if (archive.has_parent_path()) make_folder(archive.parent_path());
  {
    ZipWriter zip(archive);
    for (const auto& name : names) zip.add(name, read_file(folder / name));
    zip.commit();
  }
  try {
    const ZipReader zip(map_weight_file(archive));
    check(zip.entries().size() == names.size(), ErrorKind::kFailure,
          "{}: holds {} entries instead of {}", archive.string(), zip.entries().size(),
          names.size());
    for (const auto& name : names) {
      const ZipEntry* entry = zip.find(name);
      check(entry != nullptr, ErrorKind::kFailure, "{}: has no entry {}", archive.string(), name);
      const auto stored = zip.read(*entry);
      const std::string file = read_file(folder / name);
      check(stored.size() == file.size() && std::equal(stored.begin(), stored.end(), file.begin(),
                                                       [](std::uint8_t a, char b) {
                                                         return a == static_cast<std::uint8_t>(b);
                                                       }),
            ErrorKind::kFailure, "{}: the entry {} is not what was put in", archive.string(), name);
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove(archive, ignored);
    throw;
  }
}

}  // namespace nmrf
