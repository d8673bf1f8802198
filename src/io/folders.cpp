#include "io/folders.h"

#include <algorithm>
#include <cctype>

#include "core/check.h"
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

}  // namespace nmrf::scan
