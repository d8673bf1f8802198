// nmrf info: what a model file holds and what it costs.
#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "cli/command.h"
#include "cli/model_access.h"
#include "core/check.h"
#include "core/sha256.h"
#include "network/flops.h"

namespace nmrf::cli {
namespace {

// The stage a parameter belongs to, by the first part of its name.
std::string stage_of(const std::string& name) {
  auto first = name.substr(0, name.find('.'));
  if (first == "image_encoder") return "backbone";
  if (first == "concatconv" || first == "gw") return "gamma";
  if (first == "dpn") return name.rfind("dpn.mlp", 0) == 0 ? "cost volume" : "propagation";
  if (first.rfind("refine", 0) == 0) return "refinement";
  if (first.rfind("infer", 0) == 0) return "inference";
  return first;
}

}  // namespace

int cmd_info(int argc, char** argv) {
  CLI::App app{
      "Show a model's options, parameters and arithmetic.\n\n"
      "  nmrf info model.safetensors --size 640x480\n"
      "  nmrf info --preset fast\n",
      "nmrf info"};
  std::string path, preset, size = "640x480";
  std::vector<std::string> set;
  bool as_json = false;
  CommonOptions common;
  auto* file_option = app.add_option("FILE", path, "Model (.safetensors or .pth)");
  app.add_option("--preset", preset, "A preset instead of a file: paper, swin, fast or base")
      ->excludes(file_option);
  app.add_option("--size", size, "Image size WxH for the FLOP count")->capture_default_str();
  app.add_option("--set", set, "Change a model option, e.g. seeds.labels=2");
  app.add_flag("--json", as_json, "Print one JSON object");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();
  check(!path.empty() || !preset.empty(), ErrorKind::kUsage,
        "nmrf info needs a model file or a preset, e.g. nmrf info --preset fast");
  const auto [width, height] = parse_size(size, 32);

  ModelContent model;
  if (preset.empty())
    model = read_model(path, set);
  else
    model.options = model_options("formula:" + preset, set);
  const ModelOptions& options = model.options;
  const TensorFile& file = model.file;

  const auto counts = parameter_counts(options);
  std::map<std::string, std::int64_t> parameters;
  std::int64_t all = 0;
  for (const auto& [name, count] : counts) {
    parameters[stage_of(name)] += count;
    all += count;
  }
  const auto stages = count_flops(options, width, height);

  if (as_json) {
    nlohmann::json out;
    out["options"] = to_json_object(options);
    out["parameters"] = all;
    out["size"] = {width, height};
    out["gflop"] = total_flops(stages) / 1e9;
    for (const auto& stage : stages) out["stages"][stage.name]["gflop"] = stage.total() / 1e9;
    for (const auto& [name, count] : parameters) out["stages"][name]["parameters"] = count;
    if (!path.empty()) {
      out["file"] = path;
      out["format"] = file.format;
      out["sha256"] = sha256_of_file(path);
      out["metadata"] = file.metadata;
    }
    print_json(out);
    return 0;
  }

  if (!path.empty()) {
    print(fmt::format("file      {} ({}, {} bytes)", path, file.format,
                      std::filesystem::file_size(path)));
    print("sha256    " + sha256_of_file(path));
    for (const auto& [key, value] : file.metadata)
      if (key != "options") print(fmt::format("{:<9} {}", key, value));
    for (const auto& name : file.skipped) print("skipped   " + name);
    print("weights   " + model.report.summary());
  }
  print(fmt::format("tensors   {}\nparameters {}", counts.size(), all));
  print("\noptions");
  print_settings(options, "  ");
  print(fmt::format("\n{:<14}{:>12}{:>10}{:>10}{:>10}{:>10}{:>10}   GFLOP for {}x{}", "stage",
                    "parameters", "total", "conv", "linear", "attention", "other", width, height));
  for (const auto& stage : stages)
    print(fmt::format("{:<14}{:>12}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}", stage.name,
                      parameters.count(stage.name) ? fmt::format("{}", parameters[stage.name]) : "",
                      stage.total() / 1e9, stage.convolution / 1e9, stage.linear / 1e9,
                      stage.attention / 1e9, stage.other / 1e9));
  print(fmt::format("{:<14}{:>12}{:>10.1f}", "all", all, total_flops(stages) / 1e9));
  return 0;
}

}  // namespace nmrf::cli
