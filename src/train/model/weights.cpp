#include "train/model/weights.h"

#include <fmt/ranges.h>

#include "core/check.h"
#include "network/formula.h"

namespace nmrf::train {
namespace {

constexpr std::string_view kFormulaPrefix = "formula:";

void copy_values(torch::Tensor& parameter, std::vector<float> values) {
  torch::NoGradGuard no_grad;
  parameter.copy_(torch::from_blob(values.data(), parameter.sizes(), torch::kFloat));
}

ModelOptions changed(ModelOptions options, const std::vector<std::string>& set) {
  for (const auto& assignment : set) set_field(options, assignment);
  options.validate();
  return options;
}

std::vector<ParameterSpec> specs_of(const Network& network) {
  std::vector<ParameterSpec> specs;
  for (const auto& item : network->named_parameters())
    specs.push_back({item.key(), item.value().sizes().vec()});
  return specs;
}

}  // namespace

LoadReport load_weights(Network& network, const TensorFile& file, const std::string& path) {
  LoadReport report = compare(specs_of(network), file);
  StoredParameters stored(file, path);
  auto parameters = network->named_parameters();
  for (const auto& name : report.used) copy_values(parameters[name], stored.take(name, {}));
  return report;
}

void fill_by_formula(Network& network) {
  FormulaParameters formula;
  for (auto& item : network->named_parameters())
    copy_values(item.value(), formula.take(item.key(), item.value().sizes().vec()));
}

LoadedModel load_model(const std::string& path, const std::vector<std::string>& set) {
  LoadedModel model;
  model.path = path;
  if (path.starts_with(kFormulaPrefix)) {
    model.network =
        make_network(changed(preset_options(path.substr(kFormulaPrefix.size())), set), 0);
    fill_by_formula(model.network);
    model.trained = false;
    model.network->eval();
    return model;
  }
  const TensorFile file = read_tensor_file(path);
  model.metadata = file.metadata;
  const ModelOptions options = changed(options_of(file, path), set);
  // Compared before the network is built: a forged file must not make us build what it cannot fill.
  const LoadReport report = compare(parameters_of(options), file);
  check(report.complete() || set.empty(), ErrorKind::kModel,
        "{}: {} needs weights of its own, which this model does not have: {}", path,
        fmt::join(set, " "), report.summary());
  check(report.complete(), ErrorKind::kModel,
        "{}: does not hold a complete network: {}\n`nmrf info {}` lists what it holds.", path,
        report.summary(), path);
  model.network = make_network(options, 0);
  load_weights(model.network, file, path);
  model.network->eval();
  return model;
}

void save_model(const std::filesystem::path& path, const Network& network,
                std::map<std::string, std::string> metadata, bool half) {
  torch::NoGradGuard no_grad;
  std::vector<ParameterValues> parameters;
  for (const auto& item : network->named_parameters()) {
    const auto values = item.value().detach().to(torch::kCPU).to(torch::kFloat).contiguous();
    const auto* data = values.data_ptr<float>();
    parameters.push_back({{item.key(), values.sizes().vec()}, {data, data + values.numel()}});
  }
  nmrf::save_model(path, network->options(), parameters, std::move(metadata), half);
}

}  // namespace nmrf::train
