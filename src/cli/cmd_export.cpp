// nmrf export: the network of a model as an ONNX file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/model_access.h"
#include "cli/models.h"
#include "core/check.h"
#include "core/sha256.h"
#include "export/export.h"
#include "network/formula.h"

namespace nmrf::cli {
namespace {

// Where the parameters come from, and what is known about them.
struct Source {
  ModelOptions options;
  std::map<std::string, std::string> metadata;
  std::unique_ptr<ModelContent> content;
  std::unique_ptr<Parameters> parameters;
};

Source open_source(const std::string& model, const std::vector<std::string>& set) {
  Source source;
  if (model.starts_with("formula:")) {
    source.options = model_options(model, set);
    source.parameters = std::make_unique<FormulaParameters>();
    source.metadata["trained_on"] = "nothing: weights by formula";
    return source;
  }
  source.content = std::make_unique<ModelContent>(read_model(model, set));
  const ModelContent& content = *source.content;
  check(content.report.complete() || set.empty(), ErrorKind::kModel,
        "{}: {} needs weights that this model does not have: {}", model, fmt::join(set, " "),
        content.report.summary());
  check(content.report.complete(), ErrorKind::kModel,
        "{}: does not hold a complete network: {}\n`nmrf info {}` lists what it holds.", model,
        content.report.summary(), model);
  source.options = content.options;
  source.metadata = content.file.metadata;
  source.metadata["converted_from"] = std::filesystem::path(model).filename().string();
  source.metadata["source_sha256"] = sha256_of_file(model);
  source.parameters = std::make_unique<StoredParameters>(content.file, model);
  return source;
}

}  // namespace

int cmd_export(int argc, char** argv) {
  CLI::App app{
      "Export the network of a model to ONNX, for TensorRT, OpenVINO, ONNX Runtime and others.\n\n"
      "  nmrf export model.onnx --size 640x480\n"
      "  nmrf export model.onnx --dynamic --model sceneflow.pth\n\n"
      "Standard operators only. Inputs left, right [1,3,H,W] RGB 0..255, outputs disparity and\n"
      "confidence [1,1,H,W]. docs/onnx.md describes the steps around the network.\n",
      "nmrf export"};
  std::string output, model, size = "640x480", input = "float";
  bool no_guide = false;
  std::optional<int> max_disp;
  std::vector<std::string> set;
  ExportOptions how;
  CommonOptions common;
  app.add_option("OUT", output, "ONNX file to write")->required();
  app.add_option("--model", model, "Model to export [bundled model]");
  app.add_option("--size", size, "Image size WIDTHxHEIGHT, pixels")->capture_default_str();
  app.add_flag("--dynamic", how.dynamic,
               "Accept images of any size; --size only goes into the metadata");
  app.add_option("--opset", how.opset,
                 fmt::format("ONNX opset, {} to {}", ExportOptions::kOldestOpset,
                             ExportOptions::kNewestOpset))
      ->capture_default_str();
  app.add_flag("--half", how.half, "16-bit weights and arithmetic where accuracy allows");
  app.add_option("--input", input, "Type of the input images: float or uint8")
      ->check(CLI::IsMember({"float", "uint8"}))
      ->capture_default_str();
  app.add_flag("--no-guide", no_guide, "Omit the input guide of models that have one");
  add_max_disp(app, max_disp);
  app.add_option("--set", set, "Change a model option, e.g. seeds.labels=2");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();

  check(std::filesystem::path(output).extension() == ".onnx", ErrorKind::kUsage,
        "{}: ONNX models are written as .onnx; change the extension", output);
  const ImageSize parsed = parse_size(size, ExportOptions::kLeastSide);
  how.width = parsed.width;
  how.height = parsed.height;
  how.byte_images = input == "uint8";
  how.guide = !no_guide;
  how.validate();

  Source source = open_source(model_path(model), set);
  if (max_disp) source.options.max_disp = (*max_disp + 7) / 8 * 8;
  source.options.validate();
  check(!no_guide || source.options.guide, ErrorKind::kUsage,
        "--no-guide: this model takes no guide (match.guide is off)");
  const ExportReport report =
      export_onnx(output, *source.parameters, source.options, how, source.metadata);
  print(fmt::format(
      "{}: written, {} bytes, {} nodes, opset {}, {}", output, report.bytes, report.nodes,
      how.opset,
      how.dynamic ? std::string("any size") : fmt::format("{}x{}", how.width, how.height)));
  return 0;
}

}  // namespace nmrf::cli
