#include "cli/model_access.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/fields.h"
#include "network/network.h"
#include "weights/safetensors.h"

namespace nmrf::cli {
namespace {

constexpr std::string_view kFormula = "formula:";
Grower g_grower = nullptr;

ModelOptions changed(ModelOptions options, const std::vector<std::string>& set) {
  for (const auto& assignment : set) set_field(options, assignment);
  options.validate();
  return options;
}

// The nearest 16-bit float, ties to even; infinity beyond 65504.
std::uint16_t half_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const float size = std::abs(value);
  if (!(size < 65520.f)) return static_cast<std::uint16_t>(sign | 0x7c00);
  std::uint32_t rest = 0;
  if (size < 0x1p-14f)  // subnormal: multiples of 2^-24
    rest = static_cast<std::uint32_t>(std::nearbyint(size * 0x1p24f));
  else {
    const std::uint32_t wide = bits & 0x7fffffff;
    rest = (wide + 0xfff + (wide >> 13 & 1) - (112u << 23)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | rest);
}

}  // namespace

ModelOptions model_options(const std::string& model, const std::vector<std::string>& set) {
  if (model.starts_with(kFormula))
    return changed(preset_options(model.substr(kFormula.size())), set);
  return changed(options_of(read_tensor_file(model), model), set);
}

ModelContent read_model(const std::string& path, const std::vector<std::string>& set) {
  ModelContent model;
  model.path = path;
  model.file = read_tensor_file(path);
  model.options = changed(options_of(model.file, path), set);
  model.report = compare(parameters_of(model.options), model.file);
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
  metadata["format"] = "nmrf";
  metadata["options"] = to_json_object(model.options).dump();
  StoredParameters stored(model.file, model.path);
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<StoredTensor> tensors;
  for (const auto& parameter : parameters_of(model.options)) {
    const std::vector<float> values = stored.take(parameter.name, parameter.shape);
    auto& data = bytes.emplace_back(values.size() * (half ? 2 : 4));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t narrow = half_of(values[i]);
      if (half)
        std::memcpy(data.data() + 2 * i, &narrow, 2);
      else
        std::memcpy(data.data() + 4 * i, &values[i], 4);
    }
    tensors.push_back({parameter.name, half ? DType::kF16 : DType::kF32, parameter.shape, data});
  }
  write_safetensors(path, tensors, metadata);
}

void set_grower(Grower grower) { g_grower = grower; }
Grower grower() { return g_grower; }

}  // namespace nmrf::cli
