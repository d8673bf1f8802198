// The accuracy of the bundled models: their figures must stay close to the recorded ones, in both
// directions. A change that costs accuracy fails; one that gains it is recorded with
//   NMRF_RECORD=1 nmrf_test_accuracy
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "data/dataset.h"
#include "data/mats.h"
#include "eval/metrics.h"
#include "nmrf/matcher.h"
#include "nmrf/opencv.h"
#include "synth/synth.h"

namespace nmrf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kSource = NMRF_SOURCE_DIR;
const fs::path kRecorded = kSource / "tests/accuracy/figures.json";
constexpr int kRendered = 8;

// The margin of a figure: a share of it, and what rounding on another machine may do at the least.
struct Margin {
  const char* metric;
  double share, least;
};
constexpr Margin kMargins[] = {{"epe", 0.03, 0.02}, {"bad1", 0.03, 0.2}, {"d1", 0.03, 0.2}};

std::vector<Sample> bundled_pair() {
  DatasetOptions options;
  options.name = "list";
  options.list = (kSource / "examples/pair/pair.txt").string();
  return {open_dataset(options)->load(0)};
}

// Small scenes of every kind, with half of the largest disparity that they could have.
std::vector<Sample> rendered_pairs() {
  SynthOptions options;
  options.width = 320;
  options.height = 192;
  options.max_disp = 80;
  std::vector<Sample> samples;
  for (int i = 0; i < kRendered; ++i) {
    SynthPair pair = render_pair(options, 4242, i);
    Sample sample;
    sample.name = fmt::format("{} {}", pair.kind, i);
    sample.left = pair.left;
    sample.right = pair.right;
    sample.disparity = pair.left_disparity;
    samples.push_back(std::move(sample));
  }
  return samples;
}

// The mean over the pairs of every guarded metric.
json figures_of(const Matcher& matcher, const std::vector<Sample>& samples) {
  json figures = json::object();
  for (const Sample& sample : samples) {
    const Disparity found = matcher.match(view(sample.left), view(sample.right));
    const auto regions = measure(mat(found.map), sample, {});
    for (const Margin& margin : kMargins) {
      const double value = find_metric(margin.metric).value(regions.at("all"));
      figures[margin.metric] =
          figures.value(margin.metric, 0.0) + value / static_cast<double>(samples.size());
    }
  }
  return figures;
}

using Sets = std::map<std::string, std::vector<Sample>>;
const Sets& all_sets() {
  static const Sets sets = {{"examples/pair", bundled_pair()}, {"rendered", rendered_pairs()}};
  return sets;
}

double allowed(const Margin& margin, double recorded) {
  return std::max(margin.share * recorded, margin.least);
}

TEST(Accuracy, OfTheBundledModels) {
  json measured;
  for (const auto& entry : fs::directory_iterator(kSource / "models")) {
    if (entry.path().extension() != ".safetensors") continue;
    const Matcher matcher = Matcher::load(entry.path());
    for (const auto& [name, samples] : all_sets())
      measured[entry.path().filename().string()][name] = figures_of(matcher, samples);
  }
  ASSERT_FALSE(measured.empty());
  if (std::getenv("NMRF_RECORD")) write_file(kRecorded, measured.dump(1) + "\n");
  const json recorded = json::parse(read_file(kRecorded));
  for (const auto& [model, by_set] : measured.items()) {
    ASSERT_TRUE(recorded.contains(model)) << model << ": record its figures with NMRF_RECORD=1";
    for (const auto& [set, figures] : by_set.items())
      for (const Margin& margin : kMargins) {
        const double now = figures.at(margin.metric), then = recorded[model][set][margin.metric];
        std::cout << fmt::format("  {}, {}: {} {:.3f}, recorded {:.3f}\n", model, set,
                                 margin.metric, now, then);
        EXPECT_NEAR(now, then, allowed(margin, then))
            << model << ", " << set << ", " << margin.metric
            << (now > then ? ": accuracy was lost" : ": better; record it with NMRF_RECORD=1");
      }
  }
  EXPECT_EQ(recorded.size(), measured.size()) << "figures of models that are no longer bundled";
}

// The guard can fail: parts of the network and of post-processing that are left out cost more than
// the margin on the bundled pair.
TEST(Accuracy, FailsWhenPartsAreLeftOut) {
  const json recorded = json::parse(read_file(kRecorded)).at("nmrf-fast.safetensors");
  const Sets& sets = all_sets();
  for (const char* change :
       {"match.median=0", "match.fill=0", "match.guide=false", "refinement.count=0"}) {
    MatcherOptions options;
    options.set = {change};
    const Matcher matcher = Matcher::load(kSource / "models/nmrf-fast.safetensors", options);
    int outside = 0;
    for (const auto& [set, samples] : sets) {
      const json now = figures_of(matcher, samples);
      for (const Margin& margin : kMargins) {
        const double then = recorded[set][margin.metric], found = now[margin.metric];
        outside += std::abs(found - then) > allowed(margin, then);
        std::cout << fmt::format("  {}, {}: {} {:.3f}, recorded {:.3f}\n", change, set,
                                 margin.metric, found, then);
      }
    }
    EXPECT_GT(outside, 0) << change << " goes unnoticed";
  }
}

}  // namespace
}  // namespace nmrf
