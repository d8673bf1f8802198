// Between model files and networks.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "weights/tensor_file.h"
#include "train/model/nmrf.h"

namespace nmrf {

// What became of every key of a weight file.
struct LoadReport {
  struct Mismatch {
    std::string name, in_file, in_model;  // shapes as text
  };
  std::vector<std::string> used;
  std::vector<std::string> missing;     // parameters the file does not have
  std::vector<std::string> unexpected;  // tensors the network has no place for
  std::vector<std::string> ignored;     // buffers known to be no parameters
  std::vector<Mismatch> mismatched;     // same name, other shape
  bool complete() const { return missing.empty() && mismatched.empty(); }
  // A few lines for a person.
  std::string summary() const;
};

// Copies what fits by name and shape; the rest stays as it was. Throws Error(kModel) for a tensor
// of the right name that holds NaN or infinity.
LoadReport load_weights(Network& network, const TensorFile& file,
                        const std::string& path = "the weight file");

// The options in the file's metadata or, for files without (the authors' .pth), the published ones
// with sizes read off the tensors where these tell. Throws Error(kModel).
ModelOptions options_of(const TensorFile& file, const std::string& path);

// No network of these options has fewer parameters; counts the large tensors only.
double least_parameters(const ModelOptions& options);

struct LoadedModel {
  Network network{nullptr};
  std::map<std::string, std::string> metadata;
  std::string path;
  bool trained = true;  // false for weights by formula
};

// Reads a .safetensors or .pth file completely; missing or mismatched tensors are an Error(kModel)
// that lists them. "formula:paper" and "formula:fast" give untrained weights by formula. `set`
// changes model options before the network is built ("seeds.labels=2"): a change that asks for
// weights the file does not have is an Error(kModel), weights that fall out of use are left.
LoadedModel load_model(const std::string& path, const std::vector<std::string>& set = {});

// Writes parameters and options (metadata key "options") as safetensors. `half` stores float16.
void save_model(const std::filesystem::path& path, const Network& network,
                std::map<std::string, std::string> metadata = {}, bool half = false);

}  // namespace nmrf
