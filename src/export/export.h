// Writes a network as an ONNX model.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "network/options.h"
#include "network/parameters.h"

namespace onnx {
class ModelProto;
}

namespace nmrf {

struct ExportOptions {
  int width = 640, height = 480;  // of the images, in pixels
  bool dynamic = false;           // images of any size; width and height are noted as typical
  int opset = kNewestOpset;
  bool half = false;         // 16-bit weights and arithmetic, but for labels, costs and results
  bool byte_images = false;  // inputs of type uint8 instead of float
  bool guide = true;         // an input `guide` where the model takes one (match.guide)

  static constexpr int kLeastSide = 32, kMostSide = 16384;
  static constexpr int kOldestOpset = 13, kNewestOpset = 17;
  // Throws Error(kUsage) naming the option and the rule it breaks.
  void validate() const;
};

// The network of these options with the parameters it asks for. Inputs `left`, `right` [1, 3, H, W]
// RGB 0 to 255, outputs `disparity` (px) and `confidence` (0 to 1) [1, 1, H, W]; where the model
// takes one, an input `guide` [1, 1, H, W] px. The result has passed ONNX's own checker and its
// shape inference. metadata: copied beside the options.
onnx::ModelProto make_onnx(Parameters& parameters, const ModelOptions& model,
                           const ExportOptions& how,
                           const std::map<std::string, std::string>& metadata = {});

struct ExportReport {
  std::uintmax_t bytes = 0;
  int nodes = 0;
};
// The same into a file, under a temporary name until it is complete.
ExportReport export_onnx(const std::filesystem::path& path, Parameters& parameters,
                         const ModelOptions& model, const ExportOptions& how,
                         const std::map<std::string, std::string>& metadata = {});

}  // namespace nmrf
