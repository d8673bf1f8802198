#include "train/model/weights.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "weights/safetensors.h"
#include "train/model/formula.h"

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
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

// The first dimension of a tensor of the file, or 0.
int rows_of(const TensorFile& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  if (!tensor || tensor->shape.empty()) return 0;
  return static_cast<int>(std::clamp<std::int64_t>(tensor->shape[0], 0, 1 << 20));
}

int count_layers(const TensorFile& file, const std::string& prefix) {
  int layers = 0;
  while (std::any_of(file.tensors.begin(), file.tensors.end(), [&](const StoredTensor& t) {
    return t.name.rfind(prefix + std::to_string(layers) + ".", 0) == 0;
  }))
    ++layers;
  return layers;
}

// A size of the network as the tensors of a file tell it; 0 when they do not.
struct SizeInFile {
  int ModelOptions::*field;
  int size;
};

std::vector<SizeInFile> sizes_of(const TensorFile& file) {
  using O = ModelOptions;
  return {{&O::backbone_stem, rows_of(file, "backbone.conv1.weight")},
          {&O::backbone_stage1, rows_of(file, "backbone.layer1.0.conv1.weight")},
          {&O::backbone_stage2, rows_of(file, "backbone.layer2.0.conv1.weight")},
          {&O::backbone_stage3, rows_of(file, "backbone.layer3.0.conv1.weight")},
          {&O::feature_channels, rows_of(file, "backbone.conv2.weight")},
          {&O::propagation_layers, count_layers(file, "dpn.propagation.layers.")},
          {&O::propagation_channels, rows_of(file, "dpn.propagation.proj.weight")},
          {&O::inference_layers, count_layers(file, "inference.layers.")},
          {&O::inference_channels, rows_of(file, "inference.norm.weight")},
          {&O::refinement_layers, count_layers(file, "refinement.layers.")},
          {&O::refinement_channels, rows_of(file, "refinement.norm.weight")}};
}

// A network is built before its tensors are compared with the file's. A forged file must not make
// us build one that it could never fill: beyond a common size, its numbers must suffice.
void check_affordable(const ModelOptions& options, const TensorFile& file,
                      const std::string& path) {
  constexpr double kAlways = 64e6;  // parameters; ten times the published network
  double held = 0;
  for (const auto& tensor : file.tensors) held += static_cast<double>(tensor.elements());
  const double needed = least_parameters(options);
  check(needed <= std::max(kAlways, held), ErrorKind::kModel,
        "{}: its options ask for a network of more than {:.0f} million parameters, but it holds "
        "{:.1f} "
        "million numbers; it is damaged or forged",
        path, needed / 1e6, held / 1e6);
}

}  // namespace

double least_parameters(const ModelOptions& o) {
  auto stage = [](double in, double out) { return 9 * (in * out + 3 * out * out); };
  auto projection = [](double in, double hidden, double out) {
    return 9 * in * hidden + hidden * out;
  };
  // q, k, v and the output, and the two layers of the MLP.
  auto layer = [&](double channels) { return (4 + 2 * o.mlp_ratio) * channels * channels; };
  auto tables = [&](double window, double channels) {
    return o.adaptive_bias ? 2 * (2 * window - 1) * (2 * window - 1) * channels : 0;
  };
  double count =
      stage(o.backbone_stem, o.backbone_stage1) + stage(o.backbone_stage1, o.backbone_stage2) +
      stage(o.backbone_stage2, o.backbone_stage3) + 1.0 * o.backbone_stage3 * o.feature_channels;
  count += 5.0 * (o.cost_groups * o.cost_hidden1 + o.cost_hidden1 * o.cost_hidden2);
  count += 1.0 * o.cost_groups * (2 * o.cost_radius + 1) * o.propagation_channels;
  count += projection(o.feature_channels, o.context_hidden, o.context_channels);
  count += projection(o.feature_channels, o.gamma1_hidden, o.gamma1_channels);
  count += projection(o.feature_channels, o.gamma2_hidden, o.gamma2_channels);
  count += o.propagation_layers *
           (layer(o.propagation_channels) + 2.0 * o.context_channels * o.propagation_channels);
  count += o.inference_layers *
           (layer(o.inference_channels) + tables(o.inference_window, o.inference_channels));
  count += o.refinements * o.refinement_layers *
           (layer(o.refinement_channels) + tables(o.refinement_window, o.refinement_channels));
  return count;
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

LoadReport load_weights(Network& network, const TensorFile& file, const std::string& path) {
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
            "{}: tensor '{}' holds NaN or infinity; the file is damaged or its training diverged",
            path, item.key());
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
    for (const auto& [field, size] : sizes_of(file))
      if (size > 0) options.*field = size;
    if (count_layers(file, "refinement.layers.") == 0) options.refinements = 0;
  }
  try {
    options.validate();
  } catch (const Error& error) {
    fail(ErrorKind::kModel, "{}: {}", path, error.what());
  }
  check_affordable(options, file, path);
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
    model.trained = false;
    model.network->eval();
    return model;
  }
  TensorFile file = read_tensor_file(path);
  model.metadata = file.metadata;
  model.network = make_network(changed(options_of(file, path), set), 0);
  LoadReport report = load_weights(model.network, file, path);
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
