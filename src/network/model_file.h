// Between model files and networks.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/network.h"
#include "network/options.h"
#include "network/parameters.h"
#include "weights/tensor_file.h"

namespace nmrf {

// The options in the file's metadata or, for files without (the authors' .pth), the published ones
// with sizes read off the tensors where these tell. Options that are no longer known (match.border
// of earlier files) are dropped. Throws Error(kModel).
ModelOptions options_of(const TensorFile& file, const std::string& path);

// What a network of these options would take from the file. Throws Error(kModel) for a tensor it
// would use that holds NaN or infinity.
LoadReport check_weights(const ModelOptions& options, const TensorFile& file,
                         const std::string& path);

// Metadata of models whose accuracy was measured with 8-bit integers and found to be that of
// floats: "int8": "checked".
inline constexpr const char* kBytesKey = "int8";
inline constexpr const char* kBytesChecked = "checked";

struct LoadedModel {
  std::shared_ptr<Network> network;
  std::map<std::string, std::string> metadata;
  std::string path;
  bool trained = true;  // false for weights by formula
  bool bytes = false;   // token layers on 8-bit integers
};

// Reads a .safetensors or .pth file completely; missing or mismatched tensors are an Error(kModel)
// that lists them. "formula:PRESET" gives untrained weights by formula. `set` changes model
// options before the network is built ("seeds.labels=2"): a change that asks for
// weights the file does not have is an Error(kModel), weights that fall out of use are left.
// `bytes`: on 8-bit integers (kernels/bytes.h); without a value, where the file is marked for it
// (kBytesKey).
LoadedModel load_model(const std::filesystem::path& path, const std::vector<std::string>& set = {},
                       std::optional<bool> bytes = false);
// The same from the bytes of a file; `name` stands for it in messages.
LoadedModel load_model(std::span<const std::byte> content, const std::string& name,
                       const std::vector<std::string>& set = {}, std::optional<bool> bytes = false);

// Writes parameters and options (metadata key "options") as safetensors, atomically. `half` stores
// 16-bit floats.
struct ParameterValues {
  ParameterSpec spec;
  std::vector<float> values;
};
void save_model(const std::filesystem::path& path, const ModelOptions& options,
                const std::vector<ParameterValues>& parameters,
                std::map<std::string, std::string> metadata = {}, bool half = false);
// The same with the parameters of a complete file.
void save_model(const std::filesystem::path& path, const ModelOptions& options,
                const TensorFile& file, std::map<std::string, std::string> metadata = {},
                bool half = false);

}  // namespace nmrf
