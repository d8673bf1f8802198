#include "io/list_file.h"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/check.h"
#include "data/families.h"
#include "data/scan.h"
#include "io/codec.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace families {
namespace {

struct Kind {
  double divisor = 0;  // 0: the setting's
  bool sparse = false;
};

// "kitti", "pfm", "u8/N", "u16/N"; nothing when the token is none of these.
std::optional<Kind> parse_kind(const std::string& token) {
  if (token == "kitti") return Kind{256, true};
  if (token == "pfm") return Kind{0, false};
  for (const char* bits : {"u8/", "u16/"}) {
    if (!token.starts_with(bits)) continue;
    const char* begin = token.c_str() + std::string_view(bits).size();
    char* end = nullptr;
    double divisor = std::strtod(begin, &end);
    if (end != begin && *end == '\0' && std::isfinite(divisor) && divisor > 0)
      return Kind{divisor, true};
  }
  return std::nullopt;
}

// A name for outputs from the path in the list: no extension, no leading slash, no "..".
std::string name_of(const fs::path& left) {
  fs::path name;
  for (const auto& part : left.lexically_normal().relative_path())
    if (part != ".." && part != ".") name /= part;
  return name.replace_extension().generic_string();
}

}  // namespace

Refs list_file(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "all", "test"});
  check(!options.list.empty(), ErrorKind::kUsage,
        "data set list: the list file is not given (setting 'list')");
  fs::path list = options.list;
  fs::path base = options.root.empty() ? list.parent_path() : fs::path(options.root);
  bool needs_truth = options.split != "test";
  Refs refs;
  std::unordered_map<std::string, int> seen;
  for (const auto& [number, columns] : read_list(list)) {
    auto refuse = [&, number = number](const std::string& reason) {
      fail(ErrorKind::kInput, "{}, line {}: {}", list.string(), number, reason);
    };
    auto existing = [&](const std::string& column) {
      fs::path path = base / column;
      if (!fs::exists(path))
        refuse(fmt::format("there is no file {}. Paths are relative to {}.", path.string(),
                           base.empty() ? "." : base.string()));
      return path;
    };
    if (columns.size() < (needs_truth ? 3 : 2) || columns.size() > 5)
      refuse(fmt::format("has {} columns; expected 'left right disparity [mask] [kind]'{}",
                         columns.size(),
                         needs_truth ? ". Pairs without truth need split = test" : ""));
    SampleRef ref;
    ref.left = existing(columns[0]);
    ref.right = existing(columns[1]);
    ref.name = name_of(columns[0]);
    if (int count = ++seen[ref.name]; count > 1) ref.name += fmt::format("-{}", count);
    if (columns.size() > 2) {
      ref.disparity = existing(columns[2]);
      std::string extension = lower_extension(ref.disparity);
      Kind kind{0, extension != ".pfm" && extension != ".npy"};
      for (std::size_t i = 3; i < columns.size(); ++i) {
        if (auto given = parse_kind(columns[i])) {
          kind = *given;
        } else {
          if (!ref.valid_mask.empty()) refuse("names two masks");
          if (!fs::exists(base / columns[i]))
            refuse(
                fmt::format("'{}' is neither a kind (kitti, pfm, u8/N, u16/N) nor a mask file "
                            "below {}",
                            columns[i], base.empty() ? "." : base.string()));
          ref.valid_mask = base / columns[i];
        }
      }
      if (kind.divisor == 0) kind.divisor = options.divisor;
      if (kind.divisor > 0) ref.coding.divisor = kind.divisor;
      ref.sparse = kind.sparse;
    }
    refs.push_back(std::move(ref));
  }
  check(!refs.empty(), ErrorKind::kInput,
        "{}: the list has no line of the form 'left right disparity [mask] [kind]'", list.string());
  return refs;
}

}  // namespace families
}  // namespace nmrf
