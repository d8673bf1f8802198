#include "network/model_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "network/formula.h"
#include "weights/file_bytes.h"
#include "weights/safetensors.h"

namespace nmrf {
namespace {

constexpr std::string_view kFormulaPrefix = "formula:";

// The first dimension of a tensor of the file, or 0.
int rows_of(const TensorFile& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  if (!tensor || tensor->shape.empty()) return 0;
  return static_cast<int>(std::clamp<std::int64_t>(tensor->shape[0], 0, 1 << 20));
}

int count_layers(const TensorFile& file, const std::string& prefix) {
  int layers = 0;
  while (std::any_of(file.tensors.begin(), file.tensors.end(), [&](const StoredTensor& t) {
    return t.name.starts_with(prefix + std::to_string(layers) + ".");
  }))
    ++layers;
  return layers;
}

// The authors' files with a Swin-T backbone.
bool is_swin(const TensorFile& file) {
  return std::any_of(file.tensors.begin(), file.tensors.end(), [](const StoredTensor& tensor) {
    return tensor.name.starts_with("image_encoder.");
  });
}

// Files of Swin-T carry the scaling of the images; another one than that of the network would go
// unnoticed.
void check_scaling(const TensorFile& file, const std::string& path) {
  auto check_values = [&](const char* name, std::span<const float, 3> expected) {
    const StoredTensor* tensor = file.find(name);
    if (!tensor) return;
    const auto values = is_floating(tensor->dtype) ? to_floats(*tensor) : std::vector<float>();
    check(values.size() == expected.size() &&
              std::equal(values.begin(), values.end(), expected.begin(),
                         [](float a, float b) { return std::abs(a - b) <= 1e-4f * b; }),
          ErrorKind::kModel,
          "{}: '{}' is not the scaling of images that this network has ({}); the weights were "
          "trained for other inputs",
          path, name, fmt::join(expected, ", "));
  };
  check_values("image_encoder.mean", SwinEncoder::kMean);
  check_values("image_encoder.std", SwinEncoder::kDeviation);
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

ModelOptions changed(ModelOptions options, const std::vector<std::string>& set) {
  for (const auto& assignment : set) set_field(options, assignment);
  options.validate();
  return options;
}

LoadedModel from_file(const TensorFile& file, const std::string& path,
                      const std::vector<std::string>& set, std::optional<bool> bytes) {
  LoadedModel model;
  model.path = path;
  model.metadata = file.metadata;
  const auto mark = file.metadata.find(kBytesKey);
  model.bytes = bytes.value_or(mark != file.metadata.end() && mark->second == kBytesChecked);
  const ModelOptions options = changed(options_of(file, path), set);
  // Compared before anything is built: a forged file must not make us build a network that it
  // could never fill.
  const LoadReport report = compare(parameters_of(options), file);
  check(report.complete() || set.empty(), ErrorKind::kModel,
        "{}: {} needs weights of its own, which this model does not have: {}", path,
        fmt::join(set, " "), report.summary());
  check(report.complete(), ErrorKind::kModel, "{}: does not hold a complete network: {}", path,
        report.summary());
  StoredParameters stored(file, path);
  stored.use_bytes(model.bytes);
  model.network = std::make_shared<Network>(stored, options);
  return model;
}

}  // namespace

ModelOptions options_of(const TensorFile& file, const std::string& path) {
  ModelOptions options;
  auto found = file.metadata.find("options");
  if (found != file.metadata.end()) {
    auto object = nlohmann::json::parse(found->second, nullptr, false);
    check(object.is_object(), ErrorKind::kModel,
          "{}: the model options in its metadata are not valid JSON", path);
    // A rule that was removed; files of then still name it.
    if (auto match = object.find("match"); match != object.end() && match->is_object())
      match->erase("border");
    try {
      from_json_object(options, object, path);
    } catch (const Error& error) {
      fail(ErrorKind::kModel, "{}: model options: {}", path, error.what());
    }
  } else {
    if (is_swin(file)) options = preset_options("swin");
    check(is_swin(file) || file.find("backbone.conv1.weight") != nullptr, ErrorKind::kModel,
          "{}: holds no NMRF network: there is neither a tensor 'backbone.conv1.weight' nor one "
          "that begins with 'image_encoder.' among its {} tensors, and no model options in its "
          "metadata",
          path, file.tensors.size());
    // The authors' files carry no sizes; the tensors do, but for k and max_disp.
    for (const auto& [field, size] : sizes_of(file))
      if (size > 0) options.*field = size;
    if (count_layers(file, "refinement.layers.") == 0) options.refinements = 0;
  }
  if (options.backbone == BackboneKind::kSwinT) check_scaling(file, path);
  try {
    options.validate();
  } catch (const Error& error) {
    fail(ErrorKind::kModel, "{}: {}", path, error.what());
  }
  return options;
}

LoadedModel load_model(const std::filesystem::path& path, const std::vector<std::string>& set,
                       std::optional<bool> bytes) {
  const std::string name = path.string();
  if (!name.starts_with(kFormulaPrefix)) return from_file(read_tensor_file(path), name, set, bytes);
  LoadedModel model;
  model.path = name;
  model.trained = false;
  model.bytes = bytes.value_or(false);
  FormulaParameters formula;
  formula.use_bytes(model.bytes);
  model.network = std::make_shared<Network>(
      formula, changed(preset_options(name.substr(kFormulaPrefix.size())), set));
  return model;
}

LoadedModel load_model(std::span<const std::byte> content, const std::string& name,
                       const std::vector<std::string>& set, std::optional<bool> bytes) {
  const FileBytes file{
      name, {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()}, nullptr};
  return from_file(read_tensor_file(file), name, set, bytes);
}

LoadReport check_weights(const ModelOptions& options, const TensorFile& file,
                         const std::string& path) {
  LoadReport report = compare(parameters_of(options), file);
  StoredParameters stored(file, path);
  for (const auto& name : report.used) stored.take(name, {});
  return report;
}

void save_model(const std::filesystem::path& path, const ModelOptions& options,
                const std::vector<ParameterValues>& parameters,
                std::map<std::string, std::string> metadata, bool half) {
  metadata["format"] = "nmrf";
  metadata["options"] = to_json_object(options).dump();
  std::vector<std::vector<std::uint16_t>> halves;
  halves.reserve(parameters.size());
  std::vector<StoredTensor> tensors;
  for (const auto& [spec, values] : parameters) {
    StoredTensor stored;
    stored.name = spec.name;
    stored.shape = spec.shape;
    stored.dtype = half ? DType::kF16 : DType::kF32;
    stored.data = {reinterpret_cast<const std::uint8_t*>(values.data()),
                   values.size() * sizeof(float)};
    if (half) {
      halves.emplace_back(values.size());
      std::transform(values.begin(), values.end(), halves.back().begin(), to_half);
      stored.data = {reinterpret_cast<const std::uint8_t*>(halves.back().data()),
                     halves.back().size() * sizeof(std::uint16_t)};
    }
    tensors.push_back(stored);
  }
  write_safetensors(path, tensors, metadata);
}

void save_model(const std::filesystem::path& path, const ModelOptions& options,
                const TensorFile& file, std::map<std::string, std::string> metadata, bool half) {
  StoredParameters stored(file, "the model");
  std::vector<ParameterValues> values;
  for (const auto& spec : parameters_of(options))
    values.push_back({spec, stored.take(spec.name, spec.shape)});
  save_model(path, options, values, std::move(metadata), half);
}

}  // namespace nmrf
