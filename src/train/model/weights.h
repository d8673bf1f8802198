// Between model files and networks.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "network/model_file.h"
#include "train/model/nmrf.h"
#include "weights/tensor_file.h"

namespace nmrf::train {

// Copies what fits by name and shape; the rest stays as it was. Throws Error(kModel) for a tensor
// of the right name that holds NaN or infinity.
LoadReport load_weights(Network& network, const TensorFile& file,
                        const std::string& path = "the weight file");

// What training starts from: the tensors of a network, or those of a Swin-T pretrained on ImageNet
// for a network that has one, which must all fit. Throws Error(kModel) when nothing fits.
LoadReport load_initial_weights(Network& network, const TensorFile& file, const std::string& path);

// Weights by formula (network/formula.h).
void fill_by_formula(Network& network);

struct LoadedModel {
  Network network{nullptr};
  std::map<std::string, std::string> metadata;
  std::string path;
  bool trained = true;  // false for weights by formula
};

// Reads a .safetensors or .pth file completely; missing or mismatched tensors are an Error(kModel)
// that lists them. "formula:PRESET" gives untrained weights by formula. `set`
// changes model options before the network is built ("seeds.labels=2"): a change that asks for
// weights the file does not have is an Error(kModel), weights that fall out of use are left.
LoadedModel load_model(const std::string& path, const std::vector<std::string>& set = {});

// Writes parameters and options (metadata key "options") as safetensors. `half` stores float16.
void save_model(const std::filesystem::path& path, const Network& network,
                std::map<std::string, std::string> metadata = {}, bool half = false);

}  // namespace nmrf::train
