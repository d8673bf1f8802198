#include "network/parameters.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/check.h"

namespace nmrf {
namespace {

// Buffers of the authors' files that hold nothing learned.
bool is_known_buffer(const std::string& name) {
  return name.ends_with("relative_position_index") || name == "device_indicator_tensor" ||
         name == "image_encoder.mean" || name == "image_encoder.std";
}

std::string listed(const std::vector<std::string>& names, std::size_t most = 8) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

}  // namespace

std::int64_t ParameterSpec::elements() const {
  std::int64_t count = 1;
  for (std::int64_t size : shape) count *= size;
  return count;
}

std::vector<float> ParameterList::take(const std::string& name, std::vector<std::int64_t> shape) {
  // Heads repeat the norm of the stack below them.
  if (std::none_of(specs_.begin(), specs_.end(), [&](const auto& s) { return s.name == name; }))
    specs_.push_back({name, std::move(shape)});
  return {};
}

std::vector<float> StoredParameters::take(const std::string& name, std::vector<std::int64_t>) {
  const StoredTensor* tensor = file_.find(name);
  check(tensor != nullptr, ErrorKind::kModel, "{}: there is no tensor '{}'", path_, name);
  std::vector<float> values = to_floats(*tensor);
  check(std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); }),
        ErrorKind::kModel,
        "{}: tensor '{}' holds NaN or infinity; the file is damaged or its training diverged",
        path_, name);
  return values;
}

LoadReport compare(const std::vector<ParameterSpec>& parameters, const TensorFile& file) {
  LoadReport report;
  std::unordered_set<std::string> known;
  for (const auto& parameter : parameters) {
    known.insert(parameter.name);
    const StoredTensor* stored = file.find(parameter.name);
    if (!stored)
      report.missing.push_back(parameter.name);
    else if (stored->shape != parameter.shape || !is_floating(stored->dtype))
      report.mismatched.push_back(
          {parameter.name,
           fmt::format("{} {}", dtype_name(stored->dtype), shape_text(stored->shape)),
           shape_text(parameter.shape)});
    else
      report.used.push_back(parameter.name);
  }
  for (const auto& stored : file.tensors) {
    if (known.contains(stored.name)) continue;
    (is_known_buffer(stored.name) ? report.ignored : report.unexpected).push_back(stored.name);
  }
  return report;
}

std::string LoadReport::summary() const {
  std::string text = fmt::format(
      "{} tensors used, {} missing, {} unexpected, {} of another shape, "
      "{} ignored (no parameters)",
      used.size(), missing.size(), unexpected.size(), mismatched.size(), ignored.size());
  if (!missing.empty()) text += "\n  missing: " + listed(missing);
  if (!unexpected.empty()) text += "\n  unexpected: " + listed(unexpected);
  for (std::size_t i = 0; i < std::min<std::size_t>(mismatched.size(), 8); ++i)
    text += fmt::format("\n  {}: {} in the file, {} in the network", mismatched[i].name,
                        mismatched[i].in_file, mismatched[i].in_model);
  return text;
}

}  // namespace nmrf
