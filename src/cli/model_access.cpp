#include "cli/model_access.h"

#include "core/check.h"
#include "network/parameters.h"
#include "weights/safetensors.h"

namespace nmrf::cli {
namespace {

constexpr std::string_view kFormula = "formula:";

ModelOptions changed(ModelOptions options, const std::vector<std::string>& set) {
  for (const auto& assignment : set) set_field(options, assignment);
  options.validate();
  return options;
}

}  // namespace

ModelOptions model_options(const std::string& model, const std::vector<std::string>& set) {
  if (model.starts_with(kFormula))
    return changed(preset_options(model.substr(kFormula.size())), set);
  return changed(options_of(read_tensor_file(model), model), set);
}

ModelContent read_model(const std::string& path, const std::vector<std::string>& set) {
  ModelContent model;
  model.file = read_tensor_file(path);
  model.options = changed(options_of(model.file, path), set);
  model.report = check_weights(model.options, model.file, path);
  return model;
}

std::vector<std::pair<std::string, std::int64_t>> parameter_counts(const ModelOptions& options) {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  for (const auto& parameter : parameters_of(options))
    counts.emplace_back(parameter.name, parameter.elements());
  return counts;
}

void write_model(const std::filesystem::path& path, const ModelContent& model,
                 std::map<std::string, std::string> metadata, bool half) {
  save_model(path, model.options, model.file, std::move(metadata), half);
}

}  // namespace nmrf::cli
