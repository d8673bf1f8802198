#include "train/model/weights.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/check.h"
#include "network/formula.h"

namespace nmrf::train {
namespace {

constexpr std::string_view kFormulaPrefix = "formula:";
constexpr std::string_view kSwinPrefix = "image_encoder.backbone.";

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

// A classifier's Swin-T under the names it has here, without the head.
TensorFile as_swin_backbone(const TensorFile& file) {
  TensorFile renamed = file;
  renamed.tensors.clear();
  for (StoredTensor tensor : file.tensors) {
    const std::string& name = tensor.name;
    if (name.find("attn_mask") != std::string::npos || name.starts_with("norm") ||
        name.starts_with("head"))
      continue;
    tensor.name.insert(0, kSwinPrefix);
    renamed.tensors.push_back(std::move(tensor));
  }
  return renamed;
}

}  // namespace

LoadReport load_weights(Network& network, const TensorFile& file, const std::string& path) {
  LoadReport report = compare(specs_of(network), file);
  StoredParameters stored(file, path);
  auto parameters = network->named_parameters();
  for (const auto& name : report.used) copy_values(parameters[name], stored.take(name, {}));
  return report;
}

LoadReport load_initial_weights(Network& network, const TensorFile& file, const std::string& path) {
  const bool pretrained = network->encoder() && file.find("patch_embed.proj.weight");
  const LoadReport report = load_weights(network, pretrained ? as_swin_backbone(file) : file, path);
  check(!report.used.empty(), ErrorKind::kModel, "{}: none of its tensors fits this network: {}",
        path, report.summary());
  if (!pretrained) return report;
  const auto missing =
      std::count_if(report.missing.begin(), report.missing.end(),
                    [](const std::string& name) { return name.starts_with(kSwinPrefix); });
  check(missing == 0 && report.unexpected.empty() && report.mismatched.empty(), ErrorKind::kModel,
        "{}: is no Swin-T with patches of 4 and windows of 7 (swin_tiny_patch4_window7_224.pth): "
        "{}",
        path, report.summary());
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
