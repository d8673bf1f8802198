// The numbers of the stereo benchmarks: what is counted in one image, and how images are put
// together.
//
//   RegionStats image = measure(prediction, sample, {});
//   double d1 = find_metric("d1").value(image.at("noc"));
//
// Everything that is kept is a count or a sum, so that results of several processes can be merged.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/fields.h"
#include "data/sample.h"

namespace nmrf {

// A pixel is bad when its error is greater than the threshold (strictly), in pixels.
inline constexpr std::array<double, 6> kBadThresholds{0.5, 1, 2, 3, 4, 5};
// A depth edge lies between neighbours in a row or column whose truth differs by more than this.
inline constexpr float kDepthEdge = 2;  // pixels
// A50 to A99: element floor(n q) of the n sorted errors.
inline constexpr std::array<double, 4> kErrorQuantiles{0.5, 0.9, 0.95, 0.99};

// What becomes of a pixel that has a truth and no prediction.
enum class Holes {
  kCount,    // Middlebury: it is no bad pixel but an invalid one, and part of the denominator
  kExclude,  // ETH3D: it counts in the density only; so does a prediction beyond the image's width
  kFill,     // KITTI: the background is interpolated first (eval/fill.h); what stays open is wrong
};

template <>
struct EnumNames<Holes> {
  static constexpr std::array<std::pair<Holes, const char*>, 3> values{
      {{Holes::kCount, "count"}, {Holes::kExclude, "exclude"}, {Holes::kFill, "fill"}}};
};

// How the images of a data set become one number.
enum class Aggregation {
  kImages,    // the mean of the images' own values
  kWeighted,  // the same with the benchmark's weight of each image
  kPixels,    // counts and sums of all images are added first
};

template <>
struct EnumNames<Aggregation> {
  static constexpr std::array<std::pair<Aggregation, const char*>, 3> values{
      {{Aggregation::kImages, "images"},
       {Aggregation::kWeighted, "weighted"},
       {Aggregation::kPixels, "pixels"}}};
};

struct MetricOptions {
  Holes holes = Holes::kCount;
  Aggregation aggregation = Aggregation::kImages;
  double max_disparity = 0;  // truth from here on is not evaluated (SceneFlow: 192); 0 = all
  double error_cap = 0;      // a greater error counts as this in EPE and RMS; 0 = as it is
  double clip = 0;           // predictions are clipped to [0, clip] (Middlebury); 0 = as they are
  bool objects = false;      // also the regions bg and fg: the objects are KITTI's vehicles
  // Also the region "edges": pixels at most this far (Chebyshev distance, pixels) from a depth
  // edge, where neighbours with known truth differ by more than kDepthEdge. 0 = not.
  int edges = 0;
  bool surfaces = false;  // also one region per class of surface (data/surfaces.h)

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("holes", self.holes, "pixels without prediction: count, exclude or fill");
    visit("aggregation", self.aggregation, "images, weighted or pixels: see Aggregation");
    visit("max_disparity", self.max_disparity, "truth from here on is not evaluated; 0 = all");
    visit("error_cap", self.error_cap, "greater errors count as this in EPE and RMS; 0 = none");
    visit("clip", self.clip, "predictions are clipped to [0, clip]; 0 = not");
    visit("objects", self.objects, "regions bg and fg from the object map");
    visit("edges", self.edges, "region edges: pixels this close to a depth edge; 0 = not");
    visit("surfaces", self.surfaces, "regions by class of surface, of rendered pairs");
  }
  // Throws Error(kUsage).
  void validate() const;
};

// Counts of errors up to any size: bin b holds errors e with b <= 24 log2(1 + 8 e) < b + 1, in
// pixels, so bins are 0.0036 px wide at 0 and 3 % of the error from 1 px on.
class ErrorHistogram {
 public:
  static constexpr int kBins = 400;
  void add(double error, std::int64_t count = 1);
  void merge(const ErrorHistogram& other);
  std::int64_t total() const;
  const std::vector<std::int64_t>& counts() const { return counts_; }  // empty: nothing added
  static double lower_edge(int bin);                                   // pixels
  // The middle of the bin of element floor(n q) of the n sorted errors; NaN when empty.
  double quantile(double q) const;
  nlohmann::json to_json() const;  // [[bin, count], ...]
  static ErrorHistogram from_json(const nlohmann::json& json);

 private:
  std::vector<std::int64_t> counts_;
};

// What was counted in one region of one image or, merged, of several.
struct ErrorStats {
  Holes holes = Holes::kCount;
  std::int64_t pixels = 0;     // with known truth
  std::int64_t predicted = 0;  // of these, with a prediction of the method's own
  std::int64_t measured = 0;   // of these, with an error: predicted or filled
  std::array<std::int64_t, kBadThresholds.size()> bad{};
  std::int64_t d1 = 0;  // error > 3 px and > 5 % of the truth
  double sum = 0;       // of the errors, pixels
  double sum_square = 0;
  ErrorHistogram histogram;
  // Exact, of a single image; NaN after merging, when the histogram must do.
  std::array<double, kErrorQuantiles.size()> quantiles = {
      std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN(),
      std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};

  void merge(const ErrorStats& other);
  std::int64_t invalid() const { return pixels - measured; }
  // 100 * count / denominator, by the rule for holes; NaN without truth.
  double percent(std::int64_t wrong) const;
  nlohmann::json to_json() const;
  // Throws Error(kInput) naming `what` when counts are missing, negative or contradict each other.
  static ErrorStats from_json(const nlohmann::json& json, const std::string& what);
};

// By region: "all" (every pixel with truth), "noc" (visible in both views), "occ" (the rest of
// all), "bg" and "fg" (background and vehicles), "refl" (reflecting surfaces), "noc-bg",
// "noc-fg", "noc-refl", "edges" (near depth edges), and kSurfaceNames. Regions the data set knows
// nothing of are absent.
using RegionStats = std::map<std::string, ErrorStats>;

// Compares `predicted` (CV_32FC1, pixels of the left view; non-finite = no prediction) with the
// sample's truth. Throws Error(kInput) when sizes differ or the sample has no truth.
RegionStats measure(const cv::Mat& predicted, const Sample& sample, const MetricOptions& options);

void merge(RegionStats& into, const RegionStats& other);
nlohmann::json to_json(const RegionStats& regions);
RegionStats regions_from_json(const nlohmann::json& json, const std::string& what);

// One number of the output and what it means.
struct Metric {
  std::string name;  // "epe", "bad2", "d1", "a90", ...
  std::string unit;  // "px" or "%"
  std::string definition;
  double (*value)(const ErrorStats&);  // NaN without truth, +infinity without any prediction
};

// epe rms bad0.5 bad1 bad2 bad3 bad4 bad5 d1 a50 a90 a95 a99 invalid totbad0.5 .. totbad4 density.
const std::vector<Metric>& all_metrics();
// Throws Error(kUsage) listing the names.
const Metric& find_metric(const std::string& name);

// One number for several images; those without truth are left out. `weights` is empty (all equal)
// or one an image, and used by Aggregation::kWeighted only. NaN when no image has truth.
double aggregate(const std::vector<const ErrorStats*>& images, const Metric& metric,
                 Aggregation aggregation, const std::vector<double>& weights = {});

}  // namespace nmrf
