// nmrf submit: the archive that a benchmark's upload page wants.
#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/eval_methods.h"
#include "cli/models.h"
#include "cli/program.h"
#include "core/check.h"
#include "core/file.h"
#include "core/folder_lock.h"
#include "core/log.h"
#include "core/sha256.h"
#include "data/mats.h"
#include "eval/runner.h"
#include "eval/submission.h"

namespace nmrf::cli {

namespace fs = std::filesystem;

int cmd_submit(int argc, char** argv) {
  CLI::App app{
      "Create and check the archive for a benchmark's upload page.\n\n"
      "  nmrf submit --benchmark kitti2015 --root /data/KITTI --model kitti.safetensors -o "
      "kitti15.zip\n"
      "  nmrf submit --benchmark middlebury --resolution H --root /data/Middlebury -o "
      "middlebury.zip\n\n"
      "Results stay in OUT.parts until the archive is complete, so an interrupted command "
      "continues\n"
      "where it stopped. RANK and WORLD_SIZE share the work among processes.\n",
      "nmrf submit"};
  SubmissionOptions options;
  MatcherOptions matcher;
  MatchOptions how;
  std::string model, output;
  bool dry_run = false, keep = false;
  CommonOptions common;
  app.add_option("-b,--benchmark", options.benchmark, "kitti2012, kitti2015, middlebury or eth3d")
      ->required();
  app.add_option("-r,--root", options.root, "Folder of the data set")->required();
  app.add_option("-o,--output", output, "Archive to write [BENCHMARK.zip]");
  app.add_option("-m,--model", model, "Model file");
  app.add_option("--resolution", options.resolution, "Middlebury: F, H or Q")
      ->capture_default_str();
  app.add_option("--method", options.method, "Middlebury: method name used in file names")
      ->capture_default_str();
  add_max_disp(app, matcher.max_disp);
  add_precision(app, matcher.precision);
  add_scale(app, how.scale, "As for nmrf match; maps stay at full size");
  add_device(app, matcher.device);
  app.add_option("--set", matcher.set, "Change a model option, e.g. seeds.labels=2");
  app.add_flag("--partial", options.partial,
               "Allow an incomplete data set, to inspect the archive");
  app.add_flag("--check", dry_run, "Only check the data set; match nothing");
  app.add_flag("--keep", keep, "Keep the individual files next to the archive");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();
  if (needs_libtorch(matcher.device)) hand_over(kTrain, argc, argv);
  matcher.threads = common.thread_count();
  if (output.empty()) output = options.benchmark + ".zip";

  const auto items = plan_submission(options);
  log_info("{}: {} pairs found", options.benchmark, items.size());
  if (dry_run) {
    for (const auto& item : items)
      print(fmt::format("{}  {}x{}", item.map_entry, item.width, item.height));
    return 0;
  }
  const Shard shard = Shard::from_environment();
  const MatcherMethod method(options.method, model_path(model), matcher, how);
  // Files of another model or other settings must not end up in this archive.
  Sha256 key;
  key.update(method.identity() + options.benchmark + options.resolution + options.method);
  const fs::path folder = fs::path(output + ".parts") / key.hex().substr(0, 12);

  make_folder(folder);
  const FolderLock lock(folder, "nmrf submit", shard.world > 1);

  watch_interrupts();
  ProgressLine progress(!common.quiet);
  std::string failed;
  std::size_t failures = 0, missing = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const SubmissionItem& item = items[i];
    if (i % static_cast<std::size_t>(shard.world) != static_cast<std::size_t>(shard.rank)) continue;
    if (submission_item_done(folder, item)) continue;
    if (interrupted()) {
      progress.clear();
      log_info("interrupted; run the same command again to continue");
      return kExitInterrupted;
    }
    progress.show(fmt::format("{}/{}  {}", i + 1, items.size(), item.map_entry));
    try {
      write_submission_item(folder, item, options,
                            method.predict(read_bgr(item.left), read_bgr(item.right)));
    } catch (const Error& error) {
      // A pair that cannot be read or matched is listed; a full disk would fail the others too.
      if (error.kind() != ErrorKind::kInput && error.kind() != ErrorKind::kDevice) throw;
      progress.clear();
      log_warning("{}: {}", item.map_entry, error.what());
      failed += "\n  " + item.map_entry;
      ++failures;
    }
  }
  progress.clear();
  check(failures == 0, ErrorKind::kInput, "{} of {} pairs failed, so no archive was written:{}",
        failures, items.size(), failed);
  for (const auto& item : items) missing += !submission_item_done(folder, item);
  if (missing > 0) {
    log_info(
        "rank {} of {} has finished its share; {} maps of other ranks are still missing. The last "
        "rank writes the archive, or run again without RANK and WORLD_SIZE.",
        shard.rank, shard.world, missing);
    return 0;
  }
  build_submission(output, folder, items);
  if (!keep && shard.world == 1) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    fs::remove(folder.parent_path(), ignored);  // unless another model's parts are there
  }
  print(fmt::format("{}: {} maps, {} bytes, checked", output, items.size(), fs::file_size(output)));
  return 0;
}

}  // namespace nmrf::cli
