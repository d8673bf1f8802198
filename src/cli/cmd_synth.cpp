// nmrf synth: rendered stereo pairs with exact truth.
#include <fmt/format.h>

#include <chrono>

#include "cli/command.h"
#include "core/check.h"
#include "core/log.h"
#include "data/synth/tree.h"

namespace nmrf::cli {

int cmd_synth(int argc, char** argv) {
  CLI::App app{
      "Render random stereo scenes with exact disparity, in SceneFlow's layout.\n\n"
      "  nmrf synth DIR --pairs 2000\n"
      "  nmrf synth DIR --pairs 100 --split TEST --size 960x540 --set mix.street=1\n"
      "  nmrf synth --check 50\n\n"
      "A run that was stopped goes on where it was; a finished one can be extended.\n",
      "nmrf synth"};
  std::string folder, size = "512x320", split = "TRAIN", textures;
  std::int64_t pairs = 100, seed = 1;
  int check_pairs = 0;
  double max_disp = 0;
  std::vector<std::string> set;
  CommonOptions common;
  app.add_option("DIR", folder, "Folder to write to");
  app.add_option("-n,--pairs", pairs, "How many")->check(CLI::Range(1, 100000000));
  app.add_option("--size", size, "WxH of the images")->capture_default_str();
  app.add_option("--split", split, "TRAIN or TEST; the two share no scene")
      ->check(CLI::IsMember({"TRAIN", "TEST"}))
      ->capture_default_str();
  app.add_option("--seed", seed, "The same seed gives the same pairs")->capture_default_str();
  app.add_option("--max-disp", max_disp, "Largest disparity, pixels (0: half the width)");
  app.add_option("--textures", textures, "Folder of photographs to mix in");
  app.add_option("-s,--set", set, "Change a setting, e.g. camera.noise=0 (docs/synth.md)");
  app.add_option("--check", check_pairs, "Render this many and test their truth; write nothing");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();

  SynthOptions options;
  options.seed = seed;
  options.textures = textures;
  const auto [width, height] = parse_size(size, 1);
  options.width = width;
  options.height = height;
  options.max_disp = max_disp > 0 ? max_disp : options.width / 2.0;
  for (const auto& assignment : set) set_field(options, assignment);
  options.validate();

  if (check_pairs > 0) {
    // The ideal camera: every difference that is left would be an error of the truth.
    const SynthOptions ideal = options.ideal();
    double worst_photo = 0, worst_share = 0;
    for (int i = 0; i < check_pairs; ++i) {
      SynthPair pair = render_pair(ideal, static_cast<std::uint64_t>(seed), i);
      SynthCheck found = check_pair(pair);
      print(fmt::format(
          "{:4} {:<7} photometric median {:.2f}, 90 % below {:.2f}; left and right differ "
          "in {:.3f} % of the visible pixels; {:.0f} % occluded; disparity {:.1f} to {:.1f}",
          i, pair.kind, found.photo_median, found.photo_q90, 100 * found.inconsistent,
          100 * found.occluded, found.min_disparity, found.max_disparity));
      check(found.not_finite == 0, ErrorKind::kFailure, "pair {}: {} disparities are no numbers", i,
            found.not_finite);
      worst_photo = std::max(worst_photo, found.photo_median);
      worst_share = std::max(worst_share, found.inconsistent);
    }
    print(fmt::format("worst of {}: photometric median {:.2f} grey levels, inconsistent {:.3f} %",
                      check_pairs, worst_photo, 100 * worst_share));
    return 0;
  }

  check(!folder.empty(), ErrorKind::kUsage, "nmrf synth needs a folder to write to");
  SynthTree tree;
  tree.folder = folder;
  tree.pairs = pairs;
  tree.split = split;
  tree.threads = common.threads;
  watch_interrupts();
  tree.stop = [] { return interrupted(); };
  ProgressLine progress(!common.quiet);
  const auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  tree.progress = [&](std::int64_t done, std::int64_t total) {
    progress.show(fmt::format("{}/{} pairs, {:.1f} a second", done, total,
                              static_cast<double>(done) / std::max(elapsed(), 1e-9)));
  };
  SynthTreeResult result = write_synth_tree(options, tree);
  progress.clear();
  print(fmt::format("{}: {} pairs of {}x{} rendered in {:.1f} s ({:.2f} a second), {} were there",
                    folder, result.written, options.width, options.height, elapsed(),
                    static_cast<double>(result.written) / std::max(elapsed(), 1e-9),
                    result.skipped));
  return interrupted() ? kExitInterrupted : 0;
}

}  // namespace nmrf::cli
