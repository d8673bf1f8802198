#include "eval/metrics.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "core/check.h"
#include "data/surfaces.h"
#include "eval/fill.h"

namespace nmrf {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBinsPerOctave = 24, kBinScale = 8;
constexpr float kInvalidLimit = std::numeric_limits<float>::max();

// Collects the errors of one region; they are needed together for the quantiles.
struct Region {
  ErrorStats stats;
  std::vector<float> errors;

  void add(bool predicted, bool measured, float error, float truth, double cap) {
    ++stats.pixels;
    stats.predicted += predicted;
    if (!measured) return;
    ++stats.measured;
    for (std::size_t i = 0; i < kBadThresholds.size(); ++i)
      stats.bad[i] += error > static_cast<float>(kBadThresholds[i]);
    const double e = error;
    stats.d1 += e > 3 && e > 0.05 * std::abs(static_cast<double>(truth));
    const double counted = cap > 0 ? std::min(e, cap) : e;
    stats.sum += counted;
    stats.sum_square += counted * counted;
    errors.push_back(error);
  }

  ErrorStats finish() {
    for (float error : errors) stats.histogram.add(error);
    const std::size_t n = errors.size();
    std::size_t sorted_from = 0;  // quantiles rise: what lies below the last one is settled
    for (std::size_t i = 0; n > 0 && i < kErrorQuantiles.size(); ++i) {
      const auto at =
          static_cast<std::size_t>(std::floor(static_cast<double>(n) * kErrorQuantiles[i]));
      std::nth_element(errors.begin() + static_cast<std::ptrdiff_t>(sorted_from),
                       errors.begin() + static_cast<std::ptrdiff_t>(at), errors.end());
      stats.quantiles[i] = errors[at];
      sorted_from = at;
    }
    return std::move(stats);
  }
};

void check_mask(const cv::Mat& mask, int type, const Sample& sample, const char* what) {
  check(mask.empty() || (mask.type() == type && mask.size() == sample.disparity.size()),
        ErrorKind::kInput, "{}: the {} does not fit the truth of {}x{} pixels", sample.name, what,
        sample.disparity.cols, sample.disparity.rows);
}

template <std::size_t kThreshold>
double bad_percent(const ErrorStats& s) {
  return s.percent(s.bad[kThreshold]);
}

template <std::size_t kThreshold>
double total_bad_percent(const ErrorStats& s) {
  if (s.pixels == 0) return kNaN;
  return 100.0 * static_cast<double>(s.bad[kThreshold] + s.invalid()) /
         static_cast<double>(s.pixels);
}

template <std::size_t kQuantile>
double quantile_value(const ErrorStats& s) {
  if (s.pixels == 0) return kNaN;
  if (s.measured == 0) return kInfinity;
  if (!std::isnan(s.quantiles[kQuantile])) return s.quantiles[kQuantile];
  return s.histogram.quantile(kErrorQuantiles[kQuantile]);
}

double epe_value(const ErrorStats& s) {
  if (s.pixels == 0) return kNaN;
  return s.measured == 0 ? kInfinity : s.sum / static_cast<double>(s.measured);
}

double rms_value(const ErrorStats& s) {
  if (s.pixels == 0) return kNaN;
  return s.measured == 0 ? kInfinity : std::sqrt(s.sum_square / static_cast<double>(s.measured));
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? kNaN : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// 255 for pixels at most `reach` pixels from a depth edge of the truth.
cv::Mat near_edges(const cv::Mat& truth, int reach) {
  cv::Mat edges = cv::Mat::zeros(truth.size(), CV_8UC1);
  auto mark = [&](int y, int x, int next_y, int next_x) {
    const float a = truth.at<float>(y, x), b = truth.at<float>(next_y, next_x);
    if (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) > kDepthEdge)
      edges.at<uchar>(y, x) = edges.at<uchar>(next_y, next_x) = 255;
  };
  for (int y = 0; y < truth.rows; ++y)
    for (int x = 0; x < truth.cols; ++x) {
      if (x + 1 < truth.cols) mark(y, x, y, x + 1);
      if (y + 1 < truth.rows) mark(y, x, y + 1, x);
    }
  // The pixels on both sides of an edge are at distance 1.
  const int side = 2 * (reach - 1) + 1;
  cv::dilate(edges, edges, cv::getStructuringElement(cv::MORPH_RECT, {side, side}));
  return edges;
}

}  // namespace

void MetricOptions::validate() const {
  for (const auto& [name, value] :
       {std::pair{"max_disparity", max_disparity}, {"error_cap", error_cap}, {"clip", clip}})
    check(std::isfinite(value) && value >= 0, ErrorKind::kUsage,
          "setting '{}' is {}; expected a positive number, or 0 for none", name, value);
  check(edges >= 0 && edges <= 100, ErrorKind::kUsage,
        "setting 'edges' is {}; expected pixels from 0 (none) to 100", edges);
}

void ErrorHistogram::add(double error, std::int64_t count) {
  if (counts_.empty()) counts_.assign(kBins, 0);
  const double at = kBinsPerOctave * std::log2(1 + kBinScale * error);
  // Not the other way round: a NaN must not become an index.
  const int bin = at < kBins - 1 ? std::max(0, static_cast<int>(at)) : kBins - 1;
  counts_[static_cast<std::size_t>(bin)] += count;
}

void ErrorHistogram::merge(const ErrorHistogram& other) {
  if (other.counts_.empty()) return;
  if (counts_.empty()) counts_.assign(kBins, 0);
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

std::int64_t ErrorHistogram::total() const {
  std::int64_t sum = 0;
  for (std::int64_t count : counts_) sum += count;
  return sum;
}

double ErrorHistogram::lower_edge(int bin) {
  return (std::exp2(bin / kBinsPerOctave) - 1) / kBinScale;
}

double ErrorHistogram::quantile(double q) const {
  const std::int64_t n = total();
  if (n == 0) return kNaN;
  const auto wanted = static_cast<std::int64_t>(std::floor(static_cast<double>(n) * q));
  std::int64_t seen = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    seen += counts_[static_cast<std::size_t>(bin)];
    if (seen > wanted) return (lower_edge(bin) + lower_edge(bin + 1)) / 2;
  }
  return lower_edge(kBins);
}

nlohmann::json ErrorHistogram::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < counts_.size(); ++i)
    if (counts_[i] != 0) list.push_back({i, counts_[i]});
  return list;
}

ErrorHistogram ErrorHistogram::from_json(const nlohmann::json& json) {
  ErrorHistogram histogram;
  for (const auto& item : json) {
    const auto bin = item.at(0).get<std::int64_t>(), count = item.at(1).get<std::int64_t>();
    check(bin >= 0 && bin < kBins && count >= 0, ErrorKind::kInput,
          "a histogram has no bin {} with count {}", bin, count);
    if (histogram.counts_.empty()) histogram.counts_.assign(kBins, 0);
    histogram.counts_[static_cast<std::size_t>(bin)] += count;
  }
  return histogram;
}

double ErrorStats::percent(std::int64_t wrong) const {
  if (pixels == 0) return kNaN;
  switch (holes) {
    case Holes::kCount:
      return share(wrong, pixels);
    case Holes::kExclude:
      return measured == 0 ? 100.0 : share(wrong, measured);
    case Holes::kFill:
      return share(wrong + invalid(), pixels);
  }
  return kNaN;
}

void ErrorStats::merge(const ErrorStats& other) {
  if (other.pixels == 0) return;
  if (pixels == 0) {
    *this = other;
    return;
  }
  check(holes == other.holes, ErrorKind::kUsage,
        "results with holes '{}' and '{}' cannot be merged", enum_name(holes),
        enum_name(other.holes));
  pixels += other.pixels;
  predicted += other.predicted;
  measured += other.measured;
  for (std::size_t i = 0; i < bad.size(); ++i) bad[i] += other.bad[i];
  d1 += other.d1;
  sum += other.sum;
  sum_square += other.sum_square;
  histogram.merge(other.histogram);
  quantiles.fill(kNaN);
}

nlohmann::json ErrorStats::to_json() const {
  nlohmann::json json{{"holes", enum_name(holes)},
                      {"pixels", pixels},
                      {"predicted", predicted},
                      {"measured", measured},
                      {"bad", bad},
                      {"d1", d1},
                      {"sum", sum},
                      {"sum_square", sum_square},
                      {"histogram", histogram.to_json()}};
  if (!std::isnan(quantiles[0])) json["quantiles"] = quantiles;
  return json;
}

ErrorStats ErrorStats::from_json(const nlohmann::json& json, const std::string& what) {
  ErrorStats s;
  try {
    fields_detail::decode("holes", json.at("holes"), s.holes);
    json.at("pixels").get_to(s.pixels);
    json.at("predicted").get_to(s.predicted);
    json.at("measured").get_to(s.measured);
    json.at("bad").get_to(s.bad);
    json.at("d1").get_to(s.d1);
    json.at("sum").get_to(s.sum);
    json.at("sum_square").get_to(s.sum_square);
    s.histogram = ErrorHistogram::from_json(json.at("histogram"));
    if (json.contains("quantiles")) json.at("quantiles").get_to(s.quantiles);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::kInput, "{}: is no result of an evaluation ({})", what, error.what());
  } catch (const Error& error) {
    fail(ErrorKind::kInput, "{}: is no result of an evaluation ({})", what, error.what());
  }
  bool sound = s.pixels >= 0 && s.predicted >= 0 && s.predicted <= s.pixels && s.measured >= 0 &&
               s.measured <= s.pixels && s.d1 >= 0 && s.d1 <= s.measured &&
               s.histogram.total() == s.measured && s.sum >= 0 && s.sum_square >= 0;
  for (std::int64_t count : s.bad) sound = sound && count >= 0 && count <= s.measured;
  check(sound, ErrorKind::kInput,
        "{}: the counts of this result contradict each other; remove the file and evaluate again",
        what);
  return s;
}

RegionStats measure(const cv::Mat& predicted, const Sample& sample, const MetricOptions& options) {
  const cv::Mat& truth = sample.disparity;
  check(truth.type() == CV_32FC1 && !truth.empty(), ErrorKind::kInput,
        "{}: has no true disparity to compare with", sample.name);
  check(predicted.type() == CV_32FC1 && predicted.size() == truth.size(), ErrorKind::kInput,
        "{}: the predicted disparity is {}x{} and the truth {}x{}", sample.name, predicted.cols,
        predicted.rows, truth.cols, truth.rows);
  check_mask(sample.noc_mask, CV_8UC1, sample, "mask of visible pixels");
  check_mask(sample.noc_disparity, CV_32FC1, sample, "truth of visible pixels");
  check_mask(sample.reflective_mask, CV_8UC1, sample, "mask of reflecting surfaces");
  check_mask(sample.objects, CV_32SC1, sample, "object map");
  check_mask(sample.surfaces, CV_8UC1, sample, "map of surfaces");
  const bool filling = options.holes == Holes::kFill;
  const cv::Mat filled = filling ? fill_background(predicted) : predicted;
  const auto limit =
      options.holes == Holes::kExclude ? static_cast<float>(truth.cols) : kInvalidLimit;
  const bool objects = options.objects && !sample.objects.empty();

  const auto counts = [&](float t) {
    return std::isfinite(t) &&
           !(options.max_disparity > 0 && t >= static_cast<float>(options.max_disparity));
  };

  const cv::Mat edge_mask = options.edges > 0 ? near_edges(truth, options.edges) : cv::Mat();

  const bool classes = options.surfaces && !sample.surfaces.empty();

  Region all, noc, occ, bg, fg, refl, noc_bg, noc_fg, noc_refl, edges;
  std::array<Region, kSurfaceNames.size()> surfaces;
  for (int y = 0; y < truth.rows; ++y) {
    const float* t = truth.ptr<float>(y);
    const float* t_seen = sample.noc_disparity.empty() ? t : sample.noc_disparity.ptr<float>(y);
    const float* own = predicted.ptr<float>(y);
    const float* value = filled.ptr<float>(y);
    const uchar* seen = sample.noc_mask.empty() ? nullptr : sample.noc_mask.ptr<uchar>(y);
    const uchar* mirror =
        sample.reflective_mask.empty() ? nullptr : sample.reflective_mask.ptr<uchar>(y);
    const int* object = objects ? sample.objects.ptr<int>(y) : nullptr;
    for (int x = 0; x < truth.cols; ++x) {
      const bool known = counts(t[x]);
      const bool visible = seen && seen[x] == 255 && counts(t_seen[x]);
      if (!known && !visible) continue;
      const bool has_own = std::isfinite(own[x]) && std::abs(own[x]) <= limit;
      const bool measured = std::isfinite(value[x]) && std::abs(value[x]) <= limit;
      float d = value[x];
      if (options.clip > 0) d = std::clamp(d, 0.0f, static_cast<float>(options.clip));
      auto add = [&](Region& region, float against) {
        region.add(has_own, measured, std::abs(d - against), against, options.error_cap);
      };
      const bool reflecting = mirror && mirror[x] == 255;
      if (known) {
        add(all, t[x]);
        if (seen && !visible) add(occ, t[x]);
        if (object) add(object[x] == 0 ? bg : fg, t[x]);
        if (reflecting) add(refl, t[x]);
        if (!edge_mask.empty() && edge_mask.at<uchar>(y, x)) add(edges, t[x]);
        if (classes)
          if (const auto kind = sample.surfaces.at<uchar>(y, x); kind < surfaces.size())
            add(surfaces[kind], t[x]);
      }
      if (visible) {
        add(noc, t_seen[x]);
        if (object) add(object[x] == 0 ? noc_bg : noc_fg, t_seen[x]);
        if (reflecting) add(noc_refl, t_seen[x]);
      }
    }
  }

  RegionStats result;
  auto keep = [&](const char* name, Region& region) {
    region.stats.holes = options.holes;
    result[name] = region.finish();
  };
  keep("all", all);
  if (!sample.noc_mask.empty()) {
    keep("noc", noc);
    keep("occ", occ);
  }
  if (!edge_mask.empty()) keep("edges", edges);
  for (std::size_t i = 0; classes && i < surfaces.size(); ++i)
    if (surfaces[i].stats.pixels > 0) keep(kSurfaceNames[i], surfaces[i]);
  if (objects) {
    keep("bg", bg);
    keep("fg", fg);
    if (!sample.noc_mask.empty()) {
      keep("noc-bg", noc_bg);
      keep("noc-fg", noc_fg);
    }
  }
  if (!sample.reflective_mask.empty()) {
    keep("refl", refl);
    if (!sample.noc_mask.empty()) keep("noc-refl", noc_refl);
  }
  return result;
}

void merge(RegionStats& into, const RegionStats& other) {
  for (const auto& [name, stats] : other) {
    auto [place, added] = into.emplace(name, stats);
    if (!added) place->second.merge(stats);
  }
}

nlohmann::json to_json(const RegionStats& regions) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, stats] : regions) json[name] = stats.to_json();
  return json;
}

RegionStats regions_from_json(const nlohmann::json& json, const std::string& what) {
  check(json.is_object(), ErrorKind::kInput, "{}: is no result of an evaluation", what);
  RegionStats regions;
  for (const auto& [name, stats] : json.items())
    regions[name] = ErrorStats::from_json(stats, what + ", region " + name);
  return regions;
}

const std::vector<Metric>& all_metrics() {
  static const std::vector<Metric> metrics{
      {"epe", "px", "mean |d - truth| over the evaluated pixels that have a prediction (avgerr)",
       epe_value},
      {"rms", "px", "root of the mean squared error of the same pixels", rms_value},
      {"bad0.5", "%", "error > 0.5 px", bad_percent<0>},
      {"bad1", "%", "error > 1 px", bad_percent<1>},
      {"bad2", "%", "error > 2 px (KITTI 2012: Out at 2 px)", bad_percent<2>},
      {"bad3", "%", "error > 3 px (KITTI 2012: Out at 3 px)", bad_percent<3>},
      {"bad4", "%", "error > 4 px", bad_percent<4>},
      {"bad5", "%", "error > 5 px", bad_percent<5>},
      {"d1", "%", "error > 3 px and > 5 % of the truth (KITTI 2015)",
       [](const ErrorStats& s) { return s.percent(s.d1); }},
      {"a50", "px", "element floor(0.50 n) of the n sorted errors", quantile_value<0>},
      {"a90", "px", "element floor(0.90 n) of the n sorted errors", quantile_value<1>},
      {"a95", "px", "element floor(0.95 n) of the n sorted errors", quantile_value<2>},
      {"a99", "px", "element floor(0.99 n) of the n sorted errors", quantile_value<3>},
      {"invalid", "%", "evaluated pixels without prediction",
       [](const ErrorStats& s) { return share(s.invalid(), s.pixels); }},
      {"totbad0.5", "%", "bad0.5 + invalid, of all evaluated pixels", total_bad_percent<0>},
      {"totbad1", "%", "bad1 + invalid, of all evaluated pixels", total_bad_percent<1>},
      {"totbad2", "%", "bad2 + invalid, of all evaluated pixels", total_bad_percent<2>},
      {"totbad4", "%", "bad4 + invalid, of all evaluated pixels", total_bad_percent<4>},
      {"density", "%", "evaluated pixels with a prediction before holes are filled",
       [](const ErrorStats& s) { return share(s.predicted, s.pixels); }},
  };
  return metrics;
}

const Metric& find_metric(const std::string& name) {
  std::vector<std::string> names;
  for (const Metric& metric : all_metrics()) {
    if (metric.name == name) return metric;
    names.push_back(metric.name);
  }
  fail(ErrorKind::kUsage, "there is no metric '{}'; expected one of: {}", name,
       fmt::join(names, ", "));
}

double aggregate(const std::vector<const ErrorStats*>& images, const Metric& metric,
                 Aggregation aggregation, const std::vector<double>& weights) {
  check(weights.empty() || weights.size() == images.size(), ErrorKind::kUsage,
        "{} weights for {} images", weights.size(), images.size());
  if (aggregation == Aggregation::kPixels) {
    ErrorStats pool;
    for (const ErrorStats* image : images) pool.merge(*image);
    return metric.value(pool);
  }
  double sum = 0, weight = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (images[i]->pixels == 0) continue;
    const bool weighted = aggregation == Aggregation::kWeighted && !weights.empty();
    const double w = weighted ? weights[i] : 1.0;
    sum += w * metric.value(*images[i]);
    weight += w;
  }
  return weight > 0 ? sum / weight : kNaN;
}

}  // namespace nmrf
