// nmrf synth: rendered stereo pairs with exact truth.
#include <fmt/format.h>

#include <chrono>
#include <numeric>
#include <opencv2/core/utility.hpp>

#include "cli/command.h"
#include "cli/validators.h"
#include "core/check.h"
#include "core/log.h"
#include "core/quantile.h"
#include "data/dataset.h"
#include "data/pair_statistics.h"
#include "synth/tree.h"

namespace nmrf::cli {
namespace {

// Through an ideal camera: every difference that is left would be an error of the truth.
void check_truth(const SynthOptions& options, int pairs) {
  const SynthOptions ideal = options.ideal();
  double worst_photo = 0, worst_share = 0;
  for (int i = 0; i < pairs; ++i) {
    SynthPair pair = render_pair(ideal, static_cast<std::uint64_t>(options.seed), i);
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
                    pairs, worst_photo, 100 * worst_share));
}

// What the rendered pairs look like, beside those of a list file where one is given.
void compare_statistics(const SynthOptions& options, int pairs, const std::string& list,
                        int threads) {
  std::unique_ptr<Dataset> real;
  if (!list.empty()) {
    DatasetOptions from;
    from.name = "list", from.list = list;
    real = open_dataset(from);
  }
  std::vector<PairStatistics> rendered(static_cast<std::size_t>(pairs)), listed;
  for (std::size_t i = 0; real && i < real->size(); ++i) {  // first: a bad file is found at once
    const Sample sample = real->load(i);
    listed.push_back(pair_statistics(sample.left, sample.disparity));
  }
  cv::setNumThreads(threads);
  cv::parallel_for_({0, pairs}, [&](const cv::Range& range) {
    for (int i = range.start; i < range.end; ++i) {
      const SynthPair pair = render_pair(options, static_cast<std::uint64_t>(options.seed), i);
      rendered[static_cast<std::size_t>(i)] = pair_statistics(pair.left, pair.left_disparity);
    }
  });

  // Mean over the pairs, and the range of all but the lowest and the highest tenth of them.
  auto cell = [](const std::vector<PairStatistics>& set, const std::string& wanted) {
    std::vector<double> values;
    for (const PairStatistics& pair : set) values.push_back(to_json_object(pair)[wanted]);
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    return fmt::format("{:.2f} ({:.2f} to {:.2f})", sum / static_cast<double>(values.size()),
                       quantile(values, 0.1), quantile(values, 0.9));
  };
  auto line = [&](const std::string& name, const std::string& first, const std::string& second) {
    print(real ? fmt::format("{:<9} {:>24} {:>24}", name, first, second)
               : fmt::format("{:<9} {:>24}", name, first));
  };
  line("", fmt::format("{} rendered", pairs), fmt::format("{} of the list", listed.size()));
  std::string meaning;
  PairStatistics::fields(rendered.front(), [&](const char* name, double, const char* text) {
    line(name, cell(rendered, name), real ? cell(listed, name) : "");
    meaning += fmt::format("\n  {:<9} {}", name, text);
  });
  print("mean over pairs, 10 % and 90 % quantiles in parentheses" + meaning);
}

}  // namespace

int cmd_synth(int argc, char** argv) {
  CLI::App app{
      "Render random stereo scenes with exact disparity, in SceneFlow's layout.\n\n"
      "  nmrf synth DIR --pairs 2000\n"
      "  nmrf synth DIR --pairs 100 --split TEST --size 960x540 --set mix.street=1\n"
      "  nmrf synth DIR --pairs 8 --frames 20\n"
      "  nmrf synth --check 50\n"
      "  nmrf synth --statistics 50 --list mine.txt --set camera.noise=0.3\n\n"
      "An interrupted run continues where it stopped; a finished one can be extended.\n",
      "nmrf synth"};
  std::string folder, size = "512x320", split = "TRAIN", textures, list;
  std::int64_t pairs = 100, seed = 1;
  int check_pairs = 0, statistics_pairs = 0, frames = 1;
  double max_disp = 0;
  std::vector<std::string> set;
  bool list_settings = false;
  CommonOptions common;
  app.add_option("DIR", folder, "Folder to write to");
  app.add_option("-n,--pairs", pairs, "Number of pairs")->check(CLI::Range(1, 100000000));
  app.add_option("--frames", frames,
                 "Render sequences of this many frames with moving camera and objects; --pairs "
                 "then counts sequences")
      ->check(CLI::Range(1, 9000));
  app.add_option("--size", size, "Image size WxH")->capture_default_str();
  app.add_option("--split", split, "TRAIN or TEST; they have no scene in common")
      ->check(CLI::IsMember({"TRAIN", "TEST"}))
      ->capture_default_str();
  app.add_option("--seed", seed, "The same seed gives the same pairs")->capture_default_str();
  app.add_option("--max-disp", max_disp, "Largest disparity, pixels (0: half the width)")
      ->check(non_negative());
  app.add_option("--textures", textures, "Folder of photos to use as textures");
  app.add_option("-s,--set", set, "Change a setting, e.g. camera.noise=0 (docs/settings.md)");
  app.add_option("--check", check_pairs,
                 "Render this many pairs and check their truth; write nothing");
  app.add_option("--statistics", statistics_pairs,
                 "Render this many pairs and print image statistics; write nothing")
      ->check(CLI::Range(1, 100000));
  app.add_option(
      "--list", list,
      "With --statistics: real pairs to compare with, one per line: left right disparity");
  app.add_flag("--list-settings", list_settings, "Print all settings for --set and their defaults");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();

  if (list_settings) {
    print_settings(SynthOptions());
    return 0;
  }
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
    check_truth(options, check_pairs);
    return 0;
  }
  if (statistics_pairs > 0) {
    compare_statistics(options, statistics_pairs, list, common.thread_count());
    return 0;
  }
  check(list.empty(), ErrorKind::kUsage,
        "--list needs --statistics N, the number of pairs to render for comparison");

  check(!folder.empty(), ErrorKind::kUsage,
        "nmrf synth needs an output folder, e.g. nmrf synth scenes --pairs 10");
  SynthTree tree;
  tree.folder = folder;
  tree.pairs = pairs;
  tree.frames = frames;
  tree.split = split;
  tree.threads = common.thread_count();
  watch_interrupts();
  tree.stop = [] { return interrupted(); };
  ProgressLine progress(!common.quiet);
  const char* what = frames > 1 ? "sequences" : "pairs";
  const auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  tree.progress = [&](std::int64_t done, std::int64_t total) {
    progress.show(fmt::format("{}/{} {}, {:.1f} per second", done, total, what,
                              static_cast<double>(done) / std::max(elapsed(), 1e-9)));
  };
  SynthTreeResult result = write_synth_tree(options, tree);
  progress.clear();
  print(fmt::format("{}: {} {} of {}x{} rendered in {:.1f} s ({:.2f} per second), {} already there",
                    folder, result.written, what, options.width, options.height, elapsed(),
                    static_cast<double>(result.written) / std::max(elapsed(), 1e-9),
                    result.skipped));
  return interrupted() ? kExitInterrupted : 0;
}

}  // namespace nmrf::cli
