#include "data/scan.h"

#include <algorithm>

#include "core/check.h"
#include "core/log.h"

namespace nmrf::scan {
namespace fs = std::filesystem;

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
  if (!ref.surfaces.empty() && !fs::exists(ref.surfaces)) ref.surfaces.clear();
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
