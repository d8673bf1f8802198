#include "model/weights.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "io/safetensors.h"
#include "model/formula.h"

namespace nmrf {
namespace {

constexpr const char* kFormulaPrefix = "formula:";

bool ends_with(const std::string& text, std::string_view ending) {
  return text.size() >= ending.size() &&
         text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

// Buffers of the authors' files that hold nothing learned.
bool is_known_buffer(const std::string& name) {
  return ends_with(name, "relative_position_index") || name == "device_indicator_tensor";
}

std::string shape_of(const torch::Tensor& tensor) {
  return shape_text(std::span(tensor.sizes().data(), tensor.sizes().size()));
}

std::string listed(const std::vector<std::string>& names, std::size_t most = 8) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

// The first dimension of a tensor of the file, or `otherwise`.
int rows_of(const TensorFile& file, const std::string& name, int otherwise, std::size_t axis = 0) {
  const StoredTensor* tensor = file.find(name);
  if (!tensor || tensor->shape.size() <= axis) return otherwise;
  return static_cast<int>(std::clamp<std::int64_t>(tensor->shape[axis], 0, 1 << 20));
}

int count_layers(const TensorFile& file, const std::string& prefix) {
  int layers = 0;
  while (std::any_of(file.tensors.begin(), file.tensors.end(), [&](const StoredTensor& t) {
    return t.name.rfind(prefix + std::to_string(layers) + ".", 0) == 0;
  }))
    ++layers;
  return layers;
}

}  // namespace

std::string LoadReport::summary() const {
  std::string text = fmt::format("{} tensors used, {} missing, {} unexpected, {} of another shape, "
                                 "{} ignored (no parameters)",
                                 used.size(), missing.size(), unexpected.size(), mismatched.size(),
                                 ignored.size());
  if (!missing.empty()) text += "\n  missing: " + listed(missing);
  if (!unexpected.empty()) text += "\n  unexpected: " + listed(unexpected);
  for (std::size_t i = 0; i < std::min<std::size_t>(mismatched.size(), 8); ++i)
    text += fmt::format("\n  {}: {} in the file, {} in the network", mismatched[i].name,
                        mismatched[i].in_file, mismatched[i].in_model);
  return text;
}

LoadReport load_weights(Network& network, const TensorFile& file) {
  torch::NoGradGuard no_grad;
  LoadReport report;
  auto parameters = network->named_parameters();
  for (const auto& stored : file.tensors) {
    if (parameters.contains(stored.name) || !is_known_buffer(stored.name)) continue;
    report.ignored.push_back(stored.name);
  }
  for (const auto& stored : file.tensors)
    if (!parameters.contains(stored.name) && !is_known_buffer(stored.name))
      report.unexpected.push_back(stored.name);
  for (auto& item : parameters) {
    const StoredTensor* stored = file.find(item.key());
    torch::Tensor& parameter = item.value();
    if (!stored) {
      report.missing.push_back(item.key());
    } else if (parameter.sizes() != at::IntArrayRef(stored->shape) || !is_floating(stored->dtype)) {
      report.mismatched.push_back(
          {item.key(), fmt::format("{} {}", dtype_name(stored->dtype), shape_text(stored->shape)),
           shape_of(parameter)});
    } else {
      std::vector<float> values = to_floats(*stored);
      auto tensor = torch::from_blob(values.data(), parameter.sizes(), torch::kFloat);
      check(torch::isfinite(tensor).all().item<bool>(), ErrorKind::kModel,
            "tensor '{}' of the weight file holds NaN or infinity; the file is damaged or its "
            "training diverged",
            item.key());
      parameter.copy_(tensor);
      report.used.push_back(item.key());
    }
  }
  return report;
}

ModelOptions options_of(const TensorFile& file, const std::string& path) {
  ModelOptions options;
  auto found = file.metadata.find("options");
  if (found != file.metadata.end()) {
    auto object = nlohmann::json::parse(found->second, nullptr, false);
    check(!object.is_discarded(), ErrorKind::kModel,
          "{}: the model options in its metadata are not valid JSON", path);
    try {
      from_json_object(options, object, path);
    } catch (const Error& error) {
      fail(ErrorKind::kModel, "{}: model options: {}", path, error.what());
    }
  } else {
    check(file.find("backbone.conv1.weight") != nullptr, ErrorKind::kModel,
          "{}: holds no NMRF network: there is no tensor 'backbone.conv1.weight' among its {} "
          "tensors and no model options in its metadata",
          path, file.tensors.size());
    // The authors' files carry no sizes; the tensors do, but for k and max_disp.
    options.backbone_stem = rows_of(file, "backbone.conv1.weight", 64);
    options.backbone_stage1 = rows_of(file, "backbone.layer1.0.conv1.weight", 64);
    options.backbone_stage2 = rows_of(file, "backbone.layer2.0.conv1.weight", 96);
    options.backbone_stage3 = rows_of(file, "backbone.layer3.0.conv1.weight", 128);
    options.feature_channels = rows_of(file, "backbone.conv2.weight", 256);
    options.propagation_layers = count_layers(file, "dpn.propagation.layers.");
    options.inference_layers = count_layers(file, "inference.layers.");
    options.refinement_layers = count_layers(file, "refinement.layers.");
    if (options.refinement_layers == 0) {
      options.refinements = 0;
      options.refinement_layers = 1;
    }
    options.propagation_channels = rows_of(file, "dpn.propagation.proj.weight", 128);
    options.inference_channels = rows_of(file, "inference.norm.weight", 128);
    options.refinement_channels = rows_of(file, "refinement.norm.weight", 128);
  }
  options.validate();
  return options;
}

namespace {

ModelOptions changed(ModelOptions options, const std::vector<std::string>& set) {
  for (const auto& assignment : set) set_field(options, assignment);
  options.validate();
  return options;
}

}  // namespace

LoadedModel load_model(const std::string& path, const std::vector<std::string>& set) {
  LoadedModel model;
  model.path = path;
  if (path.rfind(kFormulaPrefix, 0) == 0) {
    const std::string preset = path.substr(std::strlen(kFormulaPrefix));
    model.network = make_network(changed(preset_options(preset), set), 0);
    fill_by_formula(model.network);
    model.metadata["trained"] = "no: weights by formula, the map means nothing";
    model.network->eval();
    return model;
  }
  TensorFile file = read_tensor_file(path);
  model.metadata = file.metadata;
  model.network = make_network(changed(options_of(file, path), set), 0);
  LoadReport report = load_weights(model.network, file);
  check(report.complete() || set.empty(), ErrorKind::kModel,
        "{}: {} needs weights of its own, which this model does not have: {}", path,
        fmt::join(set, " "), report.summary());
  check(report.complete(), ErrorKind::kModel,
        "{}: does not hold a complete network: {}\n`nmrf info {}` lists what it holds.", path,
        report.summary(), path);
  model.network->eval();
  return model;
}

void save_model(const std::filesystem::path& path, const Network& network,
                std::map<std::string, std::string> metadata, bool half) {
  torch::NoGradGuard no_grad;
  metadata["format"] = "nmrf";
  metadata["options"] = to_json_object(network->options()).dump();
  std::vector<torch::Tensor> kept;
  std::vector<StoredTensor> tensors;
  for (const auto& item : network->named_parameters()) {
    auto value = item.value().detach().to(torch::kCPU).to(half ? torch::kHalf : torch::kFloat);
    kept.push_back(value.contiguous());
    StoredTensor stored;
    stored.name = item.key();
    stored.dtype = half ? DType::kF16 : DType::kF32;
    stored.shape = kept.back().sizes().vec();
    stored.data = {static_cast<const std::uint8_t*>(kept.back().data_ptr()), kept.back().nbytes()};
    tensors.push_back(stored);
  }
  write_safetensors(path, tensors, metadata);
}

}  // namespace nmrf
