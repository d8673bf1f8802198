// nmrf eval: the benchmarks' own numbers, with their definitions.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <opencv2/core/utility.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/eval_confidence.h"
#include "cli/eval_methods.h"
#include "cli/eval_sequences.h"
#include "cli/eval_turned.h"
#include "cli/models.h"
#include "cli/program.h"
#include "cli/simd_option.h"
#include "cli/validators.h"
#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "data/modals.h"
#include "data/surfaces.h"
#include "eval/baseline.h"
#include "eval/disturbance.h"
#include "eval/html_report.h"
#include "eval/runner.h"
#include "eval/summary.h"
#include "nmrf/version.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::vector<std::string> datasets, roots, models, baselines, set, disturbances;
  std::string protocol, list, rectify = "small";
  MatcherOptions matcher;
  std::optional<double> scale, turn;
  std::uint64_t seed = 1;
  bool proposals = false, ablate = false, confidence = false;
  std::string output, report, json, csv, fit, sequences;
  std::size_t report_images = 100, first = 0;
  std::optional<std::size_t> limit;
  std::optional<std::string> aggregate, holes;
  std::optional<double> max_truth, cap;
  std::optional<int> edges;
  bool surfaces = false;
  std::vector<std::string> metrics;
  CommonOptions common;
};

void add_options(CLI::App& app, Settings& s) {
  const char* data = "Data";
  app.add_option("-d,--dataset", s.datasets,
                 "Data set, or NAME:key=value,... (split, pass, size, list, ...); repeatable")
      ->group(data);
  app.add_option("-r,--root", s.roots, "Data folder: one for all data sets, or one for each")
      ->group(data);
  app.add_option("--list", s.list,
                 "List file, one pair per line: left right disparity [mask] [kind]")
      ->group(data);
  app.add_option("--protocol", s.protocol, "zero-shot: the four data sets of the paper's Table 3")
      ->check(CLI::IsMember({"zero-shot"}))
      ->group(data);
  app.add_option("--first", s.first, "Skip this many images of each data set")->group(data);
  app.add_option("--limit", s.limit, "Use at most this many images of each data set")
      ->check(positive())
      ->group(data);

  const char* what = "Methods";
  app.add_option("-m,--model,--models", s.models,
                 "Model files, separated by commas; 'none': baselines only [bundled model]")
      ->delimiter(',')
      ->group(what);
  app.add_option("--baseline", s.baselines, "Also evaluate sgbm, OpenCV's semi-global matching")
      ->check(CLI::IsMember({"sgbm"}))
      ->group(what);
  app.add_flag("--ablate", s.ablate,
               "Also evaluate variants of the model: k = 1 to 6, self edges, bias, refinement")
      ->group(what);
  app.add_option("--set", s.set, "Change a model option, e.g. seeds.labels=2")->group(what);
  add_max_disp(app, s.matcher.max_disp)->group(what);
  add_precision(app, s.matcher.precision)->group(what);
  add_simd(app)->group(what);
  add_scale(app, s.scale, "As for nmrf match; maps are compared at full size")->group(what);
  add_device(app, s.matcher.device)->group(what);
  add_rectify(app, s.rectify)->group(what);
  app.add_option(
         "--disturb", s.disturbances,
         "Also evaluate with disturbed right images, separated by commas: dy=PX, rotate=DEG, "
         "scale=F, brightness=F, blur=PX, noise=LEVELS, jpeg=Q; combined: dy=1+jpeg=50")
      ->delimiter(',')
      ->group(what);

  const char* numbers = "Metrics (defaults follow the benchmark)";
  app.add_flag("--proposals", s.proposals,
               "Also measure recall of labels and seeds (paper Table 4)")
      ->group(numbers);
  app.add_flag("--confidence", s.confidence,
               "Measure the confidence instead: sparsification and calibration, with charts in the "
               "-o folder")
      ->group(numbers);
  app.add_option(
         "--fit", s.fit,
         "With --confidence: fit the error model to these pairs and write the model to this file")
      ->group(numbers);
  app.add_option("--sequences", s.sequences,
                 "Compare video mode with frame-by-frame matching on the sequences of nmrf synth "
                 "--frames in this folder")
      ->group(numbers);
  app.add_option(
         "--turn", s.turn,
         "Compare pairs whose cameras were rotated at random by up to this many degrees per "
         "axis and rectified by features with the original pairs")
      ->group(numbers);
  app.add_option("--seed", s.seed, "With --turn: seed of the rotations")
      ->capture_default_str()
      ->group(numbers);
  app.add_option("--metrics", s.metrics, "Columns, separated by commas, e.g. epe,bad1,d1")
      ->delimiter(',')
      ->group(numbers);
  app.add_option("--aggregate", s.aggregate, "images, weighted or pixels")->group(numbers);
  app.add_option("--holes", s.holes, "count, exclude or fill")->group(numbers);
  app.add_option("--max-truth", s.max_truth,
                 "Ignore truth from this disparity on, pixels (0: use all)")
      ->group(numbers);
  app.add_option("--cap", s.cap, "Cap errors in EPE and RMS, pixels (0: no cap)")->group(numbers);
  app.add_option("--edges", s.edges, "Also report pixels this close to a depth edge (region edges)")
      ->group(numbers);
  app.add_flag("--surfaces", s.surfaces,
               "Also report by class of surface: matte, glossy, ... (pairs of nmrf synth)")
      ->group(numbers);

  const char* out = "Output";
  app.add_option("-o,--output", s.output, "Folder for results; finished images are not run again")
      ->group(out);
  app.add_option("--json", s.json, "Write everything as JSON to this file ('-': stdout)")
      ->group(out);
  app.add_option("--csv", s.csv, "Write one line per image to this file ('-': stdout)")->group(out);
  app.add_option("--report", s.report,
                 "Write an HTML report with tables and pictures to this folder")
      ->group(out);
  app.add_option("--report-images", s.report_images,
                 "Images per data set in the report, worst first")
      ->capture_default_str()
      ->group(out);
  s.common.add_to(app);
}

std::vector<EvalSet> open_sets(const Settings& s) {
  std::vector<EvalSet> sets;
  if (!s.protocol.empty()) {
    check(s.datasets.empty() && s.list.empty() && s.roots.size() == 1, ErrorKind::kUsage,
          "--protocol {} brings its own data sets: give one --root and no --dataset", s.protocol);
    sets = open_zero_shot(s.roots[0]);
  } else {
    std::vector<std::string> specs = s.datasets;
    if (!s.list.empty()) specs.push_back("list:list=" + s.list);
    check(!specs.empty(), ErrorKind::kUsage,
          "nothing to evaluate on: give --dataset NAME --root DIR, --list FILE or --protocol");
    check(s.roots.size() <= 1 || s.roots.size() == specs.size(), ErrorKind::kUsage,
          "{} data sets and {} roots; give one --root for all, or one for each", specs.size(),
          s.roots.size());
    for (std::size_t i = 0; i < specs.size(); ++i)
      sets.push_back(
          open_eval_set(specs[i], s.roots.empty() ? "" : s.roots[s.roots.size() == 1 ? 0 : i]));
  }
  std::erase_if(sets, [](const EvalSet& set) { return !set.dataset; });
  for (std::size_t i = 0; i < sets.size(); ++i) {
    int same = 1;
    for (std::size_t j = 0; j < i; ++j) same += sets[j].label == sets[i].label;
    if (same > 1) sets[i].label += fmt::format("-{}", same);
    MetricOptions& m = sets[i].protocol.metrics;
    if (s.aggregate) set_field(m, "aggregation=" + *s.aggregate);
    if (s.holes) set_field(m, "holes=" + *s.holes);
    if (s.max_truth) m.max_disparity = *s.max_truth;
    if (s.cap) m.error_cap = *s.cap;
    if (s.edges) m.edges = *s.edges;
    m.surfaces = s.surfaces;
    std::vector<std::string>& regions = sets[i].protocol.regions;
    if (m.edges > 0) regions.push_back("edges");
    if (m.surfaces) regions.insert(regions.end(), kSurfaceNames.begin(), kSurfaceNames.end());
    m.validate();
    if (!s.metrics.empty()) {
      for (const auto& name : s.metrics) find_metric(name);
      sets[i].protocol.columns = s.metrics;
    }
  }
  return sets;
}

using Methods = std::vector<std::unique_ptr<Method>>;

// A name no other method has.
std::string unique_name(const Methods& methods, const std::string& wish) {
  std::string name = wish;
  for (int n = 2;; ++n) {
    bool taken = false;
    for (const auto& method : methods) taken = taken || method->name() == name;
    if (!taken) return name;
    name = fmt::format("{}-{}", wish, n);
  }
}

Methods make_methods(const Settings& s, nlohmann::json& about) {
  Methods methods;
  MatchOptions how;
  how.scale = s.scale;
  how.keep_labels = s.proposals || s.ablate;
  how.align = s.rectify == "small";
  auto add = [&](const std::string& name, const std::string& model, const MatcherOptions& options) {
    auto method = std::make_unique<MatcherMethod>(unique_name(methods, name), model, options, how);
    about["methods"][method->name()] = method->about();
    methods.push_back(std::move(method));
  };
  std::vector<std::string> models = s.models;
  if (models.empty()) {
    try {
      models.push_back(model_path(""));
    } catch (const Error& error) {
      if (s.baselines.empty()) throw;
      log_info("no model found: evaluating the baselines only");
    }
  }
  std::erase(models, "none");
  check(!models.empty() || !s.baselines.empty(), ErrorKind::kUsage,
        "nothing to evaluate: give --model FILE or --baseline sgbm");
  check(!s.ablate || !models.empty(), ErrorKind::kUsage, "--ablate needs a model");
  MatcherOptions base = s.matcher;
  base.set = s.set;
  base.threads = s.common.thread_count();
  for (const auto& model : models) add(model_name(model), model, base);
  if (s.ablate)
    for (const auto& model : models)
      for (const Variant& variant : ablations(model)) {
        MatcherOptions options = base;
        options.set.insert(options.set.end(), variant.set.begin(), variant.set.end());
        const std::string name =
            models.size() == 1 ? variant.name : model_name(model) + ", " + variant.name;
        try {
          add(name, model, options);
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::kModel) throw;
          log_info(
              "'{}' cannot run on the weights of {}; train a model with {} and pass it with "
              "--models",
              variant.name, model, fmt::join(variant.set, " "));
          about["needs_own_weights"].push_back(name);
        }
      }
  for (const auto& baseline : s.baselines) {
    (void)baseline;  // sgbm is the only one
    auto method = std::make_unique<SgbmMethod>();
    about["methods"][method->name()] = method->identity();
    methods.push_back(std::move(method));
  }
  const std::size_t whole = methods.size();
  for (const auto& text : s.disturbances)
    for (std::size_t i = 0; i < whole; ++i)
      methods.push_back(std::make_unique<DisturbedMethod>(*methods[i], Disturbance(text)));
  return methods;
}

// The part of a study's settings that all studies have. `--sequences` opens no sets.
template <class Study>
Study study_of(const Settings& s) {
  check(s.models.size() <= 1, ErrorKind::kUsage, "{} takes one model",
        s.turn                ? "--turn"
        : s.sequences.empty() ? "--confidence"
                              : "--sequences");
  Study study;
  if (s.sequences.empty()) study.sets = open_sets(s);
  study.model = model_path(s.models.empty() ? "" : s.models[0]);
  study.matcher = s.matcher;
  study.matcher.set = s.set;
  study.matcher.threads = s.common.thread_count();
  study.scale = s.scale;
  study.first = s.first;
  if (s.limit) study.count = *s.limit;
  study.json = s.json;
  study.quiet = s.common.quiet;
  return study;
}

int eval_sequences(const Settings& s) {
  auto study = study_of<SequenceSettings>(s);
  study.folder = s.sequences;
  return run_sequences(study);
}

int eval_confidence(const Settings& s) {
  check(s.baselines.empty() && !s.ablate && !s.proposals && s.csv.empty() && s.report.empty(),
        ErrorKind::kUsage,
        "--confidence takes one model and no --baseline, --ablate, --proposals, --csv or --report");
  auto study = study_of<ConfidenceSettings>(s);
  study.folder = s.output;
  study.fit = s.fit;
  return run_confidence(study);
}

int eval_turned(const Settings& s) {
  check(s.baselines.empty() && s.disturbances.empty(), ErrorKind::kUsage,
        "--turn looks at one model: no --baseline or --disturb");
  auto study = study_of<TurnedSettings>(s);
  study.degrees = *s.turn;
  study.seed = s.seed;
  return run_turned(study);
}

void write_or_print(const std::string& where, const std::string& text) {
  if (where == "-")
    print(text);
  else
    write_file(where, text);
}

}  // namespace

int cmd_eval(int argc, char** argv) {
  CLI::App app{
      "Evaluate with the metrics of the benchmarks; every number is printed with its "
      "definition.\n\n"
      "  nmrf eval --dataset kitti2015 --root /data/KITTI --baseline sgbm\n"
      "  nmrf eval --model m.safetensors --dataset sceneflow --root /data/SceneFlow -o out/ "
      "--report out/html\n"
      "  nmrf eval --dataset middlebury-q --dataset eth3d --root /data --json result.json\n"
      "  nmrf eval --protocol zero-shot --root /data\n"
      "  nmrf eval --ablate --dataset kitti2015:split=val --root /data/KITTI\n"
      "  nmrf eval --confidence --dataset kitti2015 --root /data/KITTI -o out/\n\n"
      "With RANK and WORLD_SIZE set and a common -o folder, several processes share the work; the "
      "last\n"
      "one to finish prints the table.\n",
      "nmrf eval"};
  Settings s;
  add_options(app, s);
  std::string command = "nmrf";
  for (int i = 0; i < argc; ++i) command += std::string(" ") + argv[i];
  if (int code = parse(app, argc, argv); code >= 0) return code;
  s.common.apply();
  // Superpixels come from OpenCV's ximgproc, which only training links.
  const bool modals = s.proposals || s.ablate;
  if (needs_libtorch(s.matcher.device) || (modals && !has_segmenter()))
    hand_over(kTrain, argc, argv);
  cv::setNumThreads(s.common.thread_count());  // of the baseline
  check(s.fit.empty() || s.confidence, ErrorKind::kUsage, "--fit needs --confidence");
  if (!s.sequences.empty()) return eval_sequences(s);
  if (s.confidence) return eval_confidence(s);
  if (s.turn) return eval_turned(s);

  RunOptions run;
  run.shard = Shard::from_environment();
  run.first = s.first;
  if (s.limit) run.count = *s.limit;
  run.pictures = !s.report.empty();
  run.folder =
      s.output.empty() && !s.report.empty() ? fs::path(s.report) / "results" : fs::path(s.output);
  if (modals) {
    const auto split = make_segmenter(run.folder.empty() ? fs::path() : run.folder / "superpixels");
    run.modals = [split](const Sample& sample) {
      return disparity_modals(sample.disparity, split(sample.left));
    };
  }
  const bool to_stdout = s.json == "-" || s.csv == "-";
  check(s.json != "-" || s.csv != "-", ErrorKind::kUsage,
        "--json - and --csv - cannot both write to stdout");

  auto sets = open_sets(s);
  nlohmann::json about{
      {"program", fmt::format("nmrf {}", NMRF_VERSION)},
      {"command", command},
      {"date", fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)))},
      {"threads", s.common.thread_count()}};
  Methods methods = make_methods(s, about);
  std::vector<const Method*> pointers;
  for (const auto& method : methods) pointers.push_back(method.get());

  watch_interrupts();
  ProgressLine progress(!s.common.quiet);
  run.stop = interrupted;
  run.progress = [&](const std::string& set, const std::string& method, std::size_t i,
                     std::size_t n) {
    progress.show(fmt::format("{}  {}/{}  {}", set, i + 1, n, method));
  };

  std::vector<SetResults> results;
  std::size_t failures = 0, missing = 0;
  std::string failed;
  for (const auto& set : sets) {
    results.push_back(evaluate(set, pointers, run));
    progress.clear();
    for (const auto& method : results.back().methods) {
      missing += method.missing;
      for (const auto& image : method.failed)
        failed += fmt::format("\n  {}, {}, {}", set.label, method.method, image.name);
    }
    failures += results.back().failures();
    if (interrupted()) {
      log_info("interrupted{}",
               run.folder.empty() ? "" : "; run the same command again to continue");
      return kExitInterrupted;
    }
  }
  if (missing > 0 && run.shard.world > 1) {
    log_info(
        "rank {} of {} has finished its share; {} results of other ranks are still missing. The "
        "last rank prints the table, or run again without RANK and WORLD_SIZE.",
        run.shard.rank, run.shard.world, missing);
  } else {
    std::string text;
    for (const auto& set : results) {
      text += text_report(set) + "\n";
      if (s.ablate || s.proposals || methods.size() > 1) text += ablation_report(set) + "\n";
    }
    if (!s.protocol.empty()) text += zero_shot_report(results) + "\n";
    text += definitions(results);
    if (!to_stdout) print(text);
    const auto replace = nlohmann::json::error_handler_t::replace;
    if (!s.json.empty())
      write_or_print(s.json, json_report(results, about).dump(1, ' ', false, replace));
    if (!s.csv.empty()) write_or_print(s.csv, csv_report(results));
    if (!s.report.empty()) {
      make_folder(s.report);
      HtmlReportOptions html;
      html.title = "nmrf eval";
      html.pictures = s.report_images;
      const fs::path page = fs::path(s.report) / "index.html";
      write_file(page, html_report(results, about, html));
      log_info("report: {}", page.string());
    }
  }
  for (const auto& set : results)
    check(set.methods.empty() || set.methods[0].images.empty() ||
              set.without_truth() < set.methods[0].images.size(),
          ErrorKind::kInput,
          "{}: none of its {} images has a pixel with valid truth, so nothing was measured. Check "
          "its disparity files (0 and infinity mean unknown) and --max-truth.",
          set.set.label, set.images);
  check(failures == 0, ErrorKind::kInput, "{} results are missing because these pairs failed:{}",
        failures, failed);
  return 0;
}

}  // namespace nmrf::cli
