// What the commands ask of a model file: the few lines that know network/model_file.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "network/model_file.h"
#include "network/options.h"
#include "weights/tensor_file.h"

namespace nmrf::cli {

// The options of a model file or of "formula:PRESET". Throws Error(kModel), and
// Error(kUsage) for a preset that does not exist.
ModelOptions model_options(const std::string& model, const std::vector<std::string>& set = {});

// What a file holds, complete or not.
struct ModelContent {
  std::string path;
  TensorFile file;
  ModelOptions options;  // with the changes of --set
  LoadReport report;     // of every key
};
ModelContent read_model(const std::string& path, const std::vector<std::string>& set);

// Number of values of every parameter of a network of these options.
std::vector<std::pair<std::string, std::int64_t>> parameter_counts(const ModelOptions& options);

// Writes the network of a complete file as safetensors; `half` stores 16-bit floats.
void write_model(const std::filesystem::path& path, const ModelContent& model,
                 std::map<std::string, std::string> metadata, bool half);

// Writes a larger network of the options `to` that computes the same map (train/model/grow.h). Only
// nmrf-train has it.
using Grower = void (*)(const ModelContent& model, const ModelOptions& to,
                        const std::filesystem::path& path,
                        std::map<std::string, std::string> metadata, bool half);
void set_grower(Grower grower);
Grower grower();

}  // namespace nmrf::cli
