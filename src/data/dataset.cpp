#include "data/dataset.h"

#include <cmath>
#include <filesystem>
#include <unordered_set>

#include "core/check.h"
#include "core/log.h"
#include "data/families.h"
#include "io/list_file.h"

namespace nmrf {
namespace {

struct Entry {
  const char* name;
  families::Refs (*list)(const DatasetOptions&);
};

constexpr Entry kEntries[] = {
    {"sceneflow", families::sceneflow},
    {"flyingthings3d", families::flyingthings3d},
    {"monkaa", families::monkaa},
    {"driving", families::driving},
    {"kitti2012", families::kitti2012},
    {"kitti2015", families::kitti2015},
    {"kitti-mix", families::kitti_mix},
    {"middlebury-f", families::middeval3_full},
    {"middlebury-h", families::middeval3_half},
    {"middlebury-q", families::middeval3_quarter},
    {"middlebury-2001", families::middlebury2001},
    {"middlebury-2003", families::middlebury2003},
    {"middlebury-2005", families::middlebury2005},
    {"middlebury-2006", families::middlebury2006},
    {"middlebury-2014", families::middlebury2014},
    {"eth3d", families::eth3d},
    {"sintel", families::sintel},
    {"fallingthings", families::fallingthings},
    {"tartanair", families::tartanair},
    {"vkitti2", families::vkitti2},
    {"crestereo", families::crestereo},
    {"instereo2k", families::instereo2k},
    {"list", families::list_file},
};

// Keeps the samples named in the first column of the list, in the data set's own order.
void keep_named(families::Refs& refs, const DatasetOptions& options) {
  std::unordered_set<std::string> wanted;
  for (auto& line : read_list(options.list)) wanted.insert(std::move(line.columns[0]));
  std::size_t before = refs.size();
  std::string example = refs.front().name;
  std::erase_if(refs, [&](const SampleRef& ref) { return !wanted.contains(ref.name); });
  check(!refs.empty(), ErrorKind::kInput,
        "data set {}: none of its {} samples is named in {}; expected one name a line, for example "
        "'{}'",
        options.name, before, options.list, example);
  if (refs.size() < wanted.size())
    log_warning("data set {}: {} of the {} names in {} are not in this copy of the data set",
                options.name, wanted.size() - refs.size(), wanted.size(), options.list);
}

}  // namespace

void DatasetOptions::validate() const {
  check(std::isfinite(divisor) && divisor >= 0, ErrorKind::kUsage,
        "setting 'divisor' is {}; expected a positive number, or 0 for the data set's own",
        divisor);
  check(std::isfinite(max_disparity) && max_disparity >= 0, ErrorKind::kUsage,
        "setting 'max_disparity' is {}; expected a positive number, or 0 for the data set's own",
        max_disparity);
}

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options) {
  options.validate();
  const Entry* found = nullptr;
  for (const Entry& entry : kEntries)
    if (options.name == entry.name) found = &entry;
  if (!found)
    fail(ErrorKind::kUsage, "there is no data set '{}'; expected one of: {}", options.name,
         fmt::join(dataset_names(), ", "));
  const bool is_list = found->list == families::list_file;
  if (!is_list) {
    check(!options.root.empty(), ErrorKind::kUsage,
          "data set {}: the folder it lies in is not given (setting 'root')", options.name);
    check(std::filesystem::is_directory(options.root), ErrorKind::kInput,
          "data set {}: the root '{}' is not a folder", options.name, options.root);
  }
  families::Refs refs = found->list(options);
  if (!is_list && !options.list.empty()) keep_named(refs, options);
  for (SampleRef& ref : refs) {
    if (!is_list && options.divisor > 0) ref.coding.divisor = options.divisor;
    if (options.max_disparity > 0) ref.coding.max_disparity = options.max_disparity;
    if (options.truth != TruthDensity::kAuto) ref.sparse = options.truth == TruthDensity::kSparse;
  }
  return std::make_unique<Dataset>(options.name, std::move(refs));
}

}  // namespace nmrf
