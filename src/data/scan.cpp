#include "data/scan.h"

#include <algorithm>
#include <cctype>

#include "core/check.h"
#include "core/log.h"
#include "io/codec.h"

namespace nmrf::scan {
namespace fs = std::filesystem;

namespace {

constexpr int kMaxDepth = 12;

constexpr const char* kImageExtensions[] = {".png", ".webp", ".jpg", ".jpeg", ".ppm",
                                            ".pgm", ".bmp",  ".tif", ".tiff"};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> names_in(const fs::path& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code code;
  if (!fs::is_directory(folder, code)) return names;
  fs::directory_iterator entries(folder, code), end;
  check(!code, ErrorKind::kInput, "{}: the folder cannot be read: {}", folder.string(),
        code.message());
  for (; entries != end; entries.increment(code)) {
    check(!code, ErrorKind::kInput, "{}: the folder cannot be read: {}", folder.string(),
          code.message());
    std::string name = entries->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code ignored;  // a dangling link is neither a file nor a folder
    if (folders ? entries->is_directory(ignored) : entries->is_regular_file(ignored))
      names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void walk(const fs::path& root, const fs::path& relative, int depth, std::vector<fs::path>& out) {
  if (depth > kMaxDepth) return;
  for (const auto& name : folder_names(root / relative)) {
    out.push_back(relative / name);
    walk(root, relative / name, depth + 1, out);
  }
}

}  // namespace

std::vector<std::string> file_names(const fs::path& folder) { return names_in(folder, false); }
std::vector<std::string> folder_names(const fs::path& folder) { return names_in(folder, true); }

std::vector<fs::path> folders_called(const fs::path& root, const std::string& name) {
  std::vector<fs::path> all, found;
  walk(root, "", 1, all);
  for (auto& path : all)
    if (path.filename() == name) found.push_back(std::move(path));
  return found;
}

std::vector<fs::path> folders_below(const fs::path& root) {
  std::vector<fs::path> all{"."};
  walk(root, "", 1, all);
  return all;
}

fs::path child(const fs::path& folder, const std::vector<const char*>& names) {
  for (const char* name : names)
    if (fs::is_directory(folder / name)) return folder / name;
  auto present = folder_names(folder);
  for (const char* name : names)
    for (const auto& candidate : present)
      if (lower(candidate) == lower(name)) return folder / candidate;
  return {};
}

bool is_image_extension(const std::string& extension) {
  std::string small = lower_extension("x" + extension);
  return std::any_of(std::begin(kImageExtensions), std::end(kImageExtensions),
                     [&](const char* candidate) { return small == candidate; });
}

fs::path image_file(const fs::path& stem) {
  for (const char* extension : kImageExtensions) {
    fs::path path = stem;
    path += extension;
    if (fs::exists(path)) return path;
  }
  return {};
}

void check_choice(const DatasetOptions& options, const char* setting, const std::string& value,
                  const std::vector<const char*>& allowed) {
  std::string all;
  for (const char* candidate : allowed) {
    if (value == candidate) return;
    if (*candidate) all += (all.empty() ? "" : ", ") + std::string(candidate);
  }
  fail(ErrorKind::kUsage, "data set {}: there is no {} '{}'; expected one of: {}", options.name,
       setting, value, all);
}

void Collector::add(SampleRef ref) {
  const fs::path* missing = nullptr;
  for (const fs::path* path : {&ref.left, &ref.right})
    if (!missing && !fs::exists(*path)) missing = path;
  if (!missing && !ref.disparity.empty() && !fs::exists(ref.disparity)) {
    if (needs_truth_)
      missing = &ref.disparity;
    else
      ref.disparity.clear();
  }
  if (!missing && needs_truth_ && ref.disparity.empty()) missing = &ref.disparity;
  if (missing) {
    if (left_out_++ == 0) first_missing_ = missing->empty() ? ref.left : *missing;
    return;
  }
  // What is optional is dropped silently when it is not there.
  if (!ref.right_disparity.empty() && !fs::exists(ref.right_disparity)) ref.right_disparity.clear();
  if (!ref.objects.empty() && !fs::exists(ref.objects)) ref.objects.clear();
  if (!ref.right_objects.empty() && !fs::exists(ref.right_objects)) ref.right_objects.clear();
  if (!ref.reflective.empty() && !fs::exists(ref.reflective)) ref.reflective.clear();
  if (!ref.calibration.empty() && !fs::exists(ref.calibration)) ref.calibration.clear();
  if (!std::all_of(ref.noc.begin(), ref.noc.end(), [](const auto& p) { return fs::exists(p); }))
    ref.noc.clear();
  refs_.push_back(std::move(ref));
}

std::vector<SampleRef> Collector::finish() {
  if (refs_.empty()) {
    std::string all;
    for (const auto& pattern : patterns_) all += (all.empty() ? "" : " or ") + pattern;
    if (left_out_ > 0)
      fail(ErrorKind::kInput,
           "data set {}: {} pairs were found, but none is complete; the first missing file is {}. "
           "Looked for {}.",
           options_.name, left_out_, first_missing_.string(), all);
    fail(ErrorKind::kInput,
         "data set {}: no pair was found; looked for {}. Check the root folder '{}' and the split.",
         options_.name, all, options_.root);
  }
  if (left_out_ > 0)
    log_warning("data set {}: {} pairs left out because a file is missing, the first is {}",
                options_.name, left_out_, first_missing_.string());
  return std::move(refs_);
}

}  // namespace nmrf::scan
