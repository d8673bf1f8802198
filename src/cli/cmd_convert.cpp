// nmrf convert: weight files to our own format, with a report of every key.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "cli/command.h"
#include "cli/model_access.h"
#include "cli/program.h"
#include "core/check.h"
#include "core/sha256.h"
#include "network/model_file.h"

namespace nmrf::cli {

int cmd_convert(int argc, char** argv) {
  CLI::App app{
      "Convert a checkpoint (.pth or .safetensors) into a .safetensors model.\n\n"
      "  nmrf convert sceneflow.pth sceneflow.safetensors\n"
      "  nmrf convert nmrf-fast.safetensors start.safetensors --grow base\n",
      "nmrf convert"};
  std::string input, output, licence, trained_on, grow;
  bool half = false, list = false, bytes = false;
  std::vector<std::string> set;
  CommonOptions common;
  app.add_option("IN", input, "Checkpoint to read; nothing in it is executed")->required();
  app.add_option("OUT", output, "Model to write")->required();
  app.add_flag("--half", half, "Store weights as 16-bit floats");
  app.add_flag("--int8", bytes,
               "Mark the model as measured with 8-bit integers: --precision auto then uses them");
  app.add_flag("--list", list, "Print every key and how it was used");
  app.add_option("--set", set, "Model option, e.g. seeds.labels=4 (not stored in a .pth)");
  app.add_option("--trained-on", trained_on, "Training data, for the metadata");
  app.add_option("--licence", licence, "Licence of the weights, for the metadata");
  app.add_option("--grow", grow,
                 "Widen and deepen the network to this preset without changing its output, for "
                 "further training");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();

  check(std::filesystem::path(output).extension() == ".safetensors", ErrorKind::kUsage,
        "{}: models are written as .safetensors; change the extension", output);

  std::error_code not_there;
  check(!std::filesystem::equivalent(input, output, not_there), ErrorKind::kUsage,
        "{}: is the input file and would be overwritten; give the new model another name", output);
  if (!grow.empty() && !grower()) hand_over(kTrain, argc, argv);

  const ModelContent model = read_model(input, set);
  const LoadReport& report = model.report;
  if (list) {
    for (const auto& name : report.used) print("used        " + name);
    for (const auto& name : report.missing) print("missing     " + name);
    for (const auto& name : report.unexpected) print("unexpected  " + name);
    for (const auto& name : report.ignored) print("ignored     " + name);
    for (const auto& item : report.mismatched)
      print(fmt::format("shape       {}: {} in the file, {} expected", item.name, item.in_file,
                        item.in_model));
    for (const auto& name : model.file.skipped) print("skipped     " + name);
  }
  print(fmt::format("{}: {}", input, report.summary()));
  check(report.complete(), ErrorKind::kModel,
        "{}: parameters of the network are missing; nothing was written. --list shows all keys, "
        "--set changes the expected sizes.",
        input);

  std::map<std::string, std::string> metadata = model.file.metadata;
  metadata["converted_from"] = std::filesystem::path(input).filename().string();
  metadata["source_sha256"] = sha256_of_file(input);
  if (!trained_on.empty()) metadata["trained_on"] = trained_on;
  if (!licence.empty()) metadata["licence"] = licence;
  if (bytes) metadata[kBytesKey] = kBytesChecked;
  if (grow.empty())
    write_model(output, model, metadata, half);
  else
    grower()(model, preset_options(grow), output, metadata, half);
  print(fmt::format("{}: written, {} bytes, sha256 {}", output, std::filesystem::file_size(output),
                    sha256_of_file(output)));
  return 0;
}

}  // namespace nmrf::cli
