#include "plot/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace nmrf {
namespace {

constexpr Ink kText{31, 41, 55}, kSoft{107, 114, 128}, kGrid{229, 231, 235}, kFrame{156, 163, 175};
constexpr double kTitleSize = 17, kPanelSize = 13.5, kTickSize = 11.5, kMarkSize = 10.5;
constexpr double kMargin = 18, kLegendRow = 20;

struct Range {
  double lo = std::numeric_limits<double>::infinity(), hi = -lo;
  void add(double value) {
    lo = std::min(lo, value);
    hi = std::max(hi, value);
  }
  bool empty() const { return lo > hi; }
};

bool drawable(const ChartPanel& panel, const cv::Point2d& p) {
  return std::isfinite(p.x) && std::isfinite(p.y) && (!panel.log_y || p.y > 0);
}

// The smallest of 1, 2, 5 times a power of ten that cuts the range into at most `wanted` parts.
double round_step(double range, int wanted) {
  const double rough = range / std::max(1, wanted);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// "5e-4" for 0.0005.
std::string scientific(double value, int digits) {
  std::string text = fmt::format("{:.{}e}", value, digits);
  const auto e = text.find('e');
  std::string exponent = text.substr(e + 1);
  const bool negative = exponent[0] == '-';
  exponent.erase(0, 1);
  exponent.erase(0, std::min(exponent.find_first_not_of('0'), exponent.size() - 1));
  std::string mantissa = text.substr(0, e);
  if (mantissa.ends_with(".0")) mantissa.resize(mantissa.size() - 2);
  return mantissa + "e" + (negative ? "-" : "") + exponent;
}

// The tick's text; neighbours of it are `step` away, the axis reaches to `largest`.
std::string tick_text(double value, double step, double largest) {
  if (value == 0) return "0";
  if (largest < 5e-3 || largest >= 1e9) {
    const double first = std::pow(10.0, std::floor(std::log10(std::abs(value)) + 1e-9));
    return scientific(value, step < first * (1 - 1e-9) ? 1 : 0);
  }
  double unit = 1;
  const char* suffix = "";
  if (largest >= 1e6) {
    unit = 1e6;
    suffix = "M";
  } else if (largest >= 1e4) {
    unit = 1e3;
    suffix = "k";
  }
  const int decimals =
      std::clamp(static_cast<int>(-std::floor(std::log10(step / unit) + 1e-9)), 0, 9);
  return fmt::format("{:.{}f}{}", value / unit, decimals, suffix);
}

Axis linear_axis(double lo, double hi, int wanted, bool snap) {
  if (hi - lo <= 1e-12 * std::max(std::abs(lo), std::abs(hi))) {  // a constant: room around it
    const double room = lo == 0 ? 1 : 0.5 * std::abs(lo);
    lo -= room;
    hi += room;
  }
  Axis axis;
  const double step = round_step(hi - lo, wanted);
  axis.lo = snap ? std::floor(lo / step + 1e-9) * step : lo;
  axis.hi = snap ? std::ceil(hi / step - 1e-9) * step : hi;
  const double first = std::ceil(axis.lo / step - 1e-9), last = std::floor(axis.hi / step + 1e-9);
  for (double i = first; i <= last; ++i) axis.ticks.push_back(i * step == 0 ? 0 : i * step);
  const double largest = std::max(std::abs(axis.lo), std::abs(axis.hi));
  for (double tick : axis.ticks) axis.texts.push_back(tick_text(tick, step, largest));
  return axis;
}

Axis log_axis(double lo, double hi, int wanted) {
  check(lo > 0 && hi >= lo, ErrorKind::kUsage, "a logarithmic axis needs values above 0");
  Axis axis;
  axis.log = true;
  // Few decades: 1, 2, 5 of each; many: each so manieth power of ten.
  const double decades = std::log10(hi / lo);
  const bool fine = 3 * decades <= wanted + 1;
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / std::max(1, wanted))));
  std::vector<double> marks;
  const int first = static_cast<int>(std::floor(std::log10(lo))) - 1;
  const int last = static_cast<int>(std::ceil(std::log10(hi))) + stride;
  for (int power = first; power <= last; ++power)
    for (double factor : {1.0, 2.0, 5.0})
      if (factor == 1 ? (fine || (power - first) % stride == 1 % stride) : fine)
        marks.push_back(factor * std::pow(10.0, power));
  axis.lo = marks.front();
  axis.hi = marks.back();
  for (double mark : marks) {
    if (mark <= lo * (1 + 1e-9)) axis.lo = mark;
    if (mark >= hi * (1 - 1e-9)) {
      axis.hi = std::min(axis.hi, mark);
    }
  }
  if (axis.lo == axis.hi) axis.hi *= 2;
  for (double mark : marks)
    if (mark >= axis.lo * (1 - 1e-9) && mark <= axis.hi * (1 + 1e-9)) {
      axis.ticks.push_back(mark);
      const double power = std::pow(10.0, std::floor(std::log10(mark) + 1e-9));
      axis.texts.push_back(tick_text(mark, power, mark));
    }
  return axis;
}

// At most first, lowest, highest and last of the points that fall into one column of pixels.
std::vector<cv::Point2d> thinned(const std::vector<cv::Point2d>& points) {
  std::vector<cv::Point2d> kept;
  for (std::size_t i = 0; i < points.size();) {
    std::size_t end = i + 1, low = i, high = i;
    for (; end < points.size() && std::floor(points[end].x) == std::floor(points[i].x); ++end) {
      if (points[end].y < points[low].y) low = end;
      if (points[end].y > points[high].y) high = end;
    }
    std::array<std::size_t, 4> chosen{i, low, high, end - 1};
    std::sort(chosen.begin(), chosen.end());
    for (std::size_t c = 0; c < chosen.size(); ++c)
      if (c == 0 || chosen[c] != chosen[c - 1]) kept.push_back(points[chosen[c]]);
    i = end;
  }
  return kept;
}

void draw_series(Canvas& canvas, const ChartPanel& panel, const ChartSeries& series,
                 const cv::Rect2d& frame, const Axis& x, const Axis& y) {
  std::vector<std::vector<cv::Point2d>> runs(1);
  for (const auto& p : series.points) {
    if (!drawable(panel, p)) {
      if (!runs.back().empty()) runs.emplace_back();
      continue;
    }
    runs.back().emplace_back(frame.x + x.place(p.x) * frame.width,
                             frame.y + (1 - y.place(p.y)) * frame.height);
  }
  for (const auto& run : runs) {
    if (run.empty()) continue;
    const auto path = thinned(run);
    if (path.size() > 1) canvas.polyline(path, series.stroke);
    // A lone point would be invisible as a line.
    if (series.markers || path.size() == 1)
      for (const auto& p : path) canvas.disc(p, 1.2 + series.stroke.width, series.stroke.ink);
  }
}

void draw_panel(Canvas& canvas, const cv::Rect2d& area, const ChartPanel& panel,
                const ChartSheet& sheet, const Axis& x, bool bottom) {
  Range range;
  for (const auto& series : panel.series)
    for (const auto& p : series.points)
      if (drawable(panel, p)) range.add(p.y);
  canvas.text({area.x, area.y + 12}, panel.title, kPanelSize, kText);
  constexpr double kLeft = 52, kTop = 26, kBottom = 22;
  const cv::Rect2d frame(area.x + kLeft, area.y + kTop, area.width - kLeft - 8,
                         area.height - kTop - kBottom);
  Axis y;
  if (!range.empty()) {
    // A scale that begins at 0 reads best, unless that would flatten the curve.
    if (!panel.log_y && range.lo > 0 && range.lo < 0.4 * range.hi) range.lo = 0;
    y = make_axis(range.lo, range.hi, std::max(2, static_cast<int>(frame.height / 42)), panel.log_y,
                  true);
  }
  for (std::size_t i = 0; i < y.ticks.size(); ++i) {
    const double at = frame.y + (1 - y.place(y.ticks[i])) * frame.height;
    canvas.polyline({{frame.x, at}, {frame.x + frame.width, at}}, {kGrid});
    canvas.text({frame.x - 7, at + 4}, y.texts[i], kTickSize, kSoft, Anchor::kEnd);
  }
  for (std::size_t i = 0; i < x.ticks.size(); ++i) {
    const double at = frame.x + x.place(x.ticks[i]) * frame.width;
    canvas.polyline({{at, frame.y}, {at, frame.y + frame.height}}, {kGrid});
    canvas.text({at, frame.y + frame.height + 16}, x.texts[i], kTickSize, kSoft, Anchor::kMiddle);
  }
  if (bottom)
    canvas.text({frame.x + frame.width / 2, frame.y + frame.height + 34}, sheet.x_title, kTickSize,
                kSoft, Anchor::kMiddle);
  for (const auto& mark : sheet.marks)
    if (mark.x > x.lo && mark.x < x.hi) {
      const double at = frame.x + x.place(mark.x) * frame.width;
      canvas.polyline({{at, frame.y}, {at, frame.y + frame.height}}, {mark.ink, 1, true});
    }
  for (const auto& series : panel.series) draw_series(canvas, panel, series, frame, x, y);
  double free_from = frame.x;  // texts of marks do not cover each other
  for (const auto& mark : sheet.marks) {
    const double at = frame.x + x.place(mark.x) * frame.width;
    if (mark.x <= x.lo || mark.x >= x.hi || at < free_from) continue;
    canvas.text({at, frame.y - 3}, mark.text, kMarkSize, mark.ink, Anchor::kMiddle);
    free_from = at + canvas.text_width(mark.text, kMarkSize) + 3;
  }
  canvas.polyline({frame.tl(), {frame.x, frame.y + frame.height}, frame.br()}, {kFrame});
  if (range.empty())
    canvas.text({frame.x + frame.width / 2, frame.y + frame.height / 2}, "nothing to show",
                kTickSize, kSoft, Anchor::kMiddle);
}

// The legend's entries in rows that fit the width; draws when there is a canvas to draw on.
int legend_rows(Canvas* canvas, const ChartSheet& sheet, double width, double top) {
  constexpr double kSwatch = 26, kSpace = 20;
  double x = kMargin;
  int row = 0;
  for (const auto& entry : sheet.legend) {
    const double text = canvas ? canvas->text_width(entry.text, kTickSize)
                               : 0.62 * kTickSize * static_cast<double>(entry.text.size());
    if (x > kMargin && x + kSwatch + 6 + text > width - kMargin) {
      x = kMargin;
      ++row;
    }
    if (canvas) {
      const double y = top + kLegendRow * row + 10;
      canvas->polyline({{x, y}, {x + kSwatch, y}}, entry.stroke);
      if (entry.markers)
        canvas->disc({x + kSwatch / 2, y}, 1.2 + entry.stroke.width, entry.stroke.ink);
      canvas->text({x + kSwatch + 6, y + 4}, entry.text, kTickSize, kText);
    }
    x += kSwatch + 6 + text + kSpace;
  }
  return sheet.legend.empty() ? 0 : row + 1;
}

int columns_of(std::size_t panels, int width) {
  const int fit = std::max(1, width / 320);
  const int wanted = panels <= 3 ? static_cast<int>(panels) : panels == 4 ? 2 : 3;
  return std::clamp(wanted, 1, fit);
}

double header_height(const ChartSheet& sheet) { return sheet.title.empty() ? 14 : 40; }

}  // namespace

double Axis::place(double value) const {
  if (log) return std::log(value / lo) / std::log(hi / lo);
  return (value - lo) / (hi - lo);
}

Axis make_axis(double lo, double hi, int wanted, bool log, bool snap) {
  check(std::isfinite(lo) && std::isfinite(hi) && lo <= hi, ErrorKind::kUsage,
        "an axis from {} to {}", lo, hi);
  return log ? log_axis(lo, hi, wanted) : linear_axis(lo, hi, wanted, snap);
}

Ink line_ink(std::size_t i) {
  // Distinct to colour-blind eyes too, and dark enough on white.
  constexpr Ink kInks[] = {{37, 99, 235},  {213, 94, 0},   {0, 148, 110}, {204, 80, 160},
                           {86, 130, 180}, {150, 110, 20}, {75, 85, 99},  {120, 60, 200}};
  return kInks[i % std::size(kInks)];
}

std::vector<cv::Point2d> smoothed(const std::vector<cv::Point2d>& points, double weight) {
  check(weight >= 0 && weight < 1, ErrorKind::kUsage, "smoothing {}: expected 0 to below 1",
        weight);
  std::vector<cv::Point2d> result = points;
  double sum = 0, mass = 0;
  for (auto& p : result) {
    if (!std::isfinite(p.y)) continue;
    sum = weight * sum + (1 - weight) * p.y;
    mass = weight * mass + (1 - weight);
    p.y = sum / mass;
  }
  return result;
}

int sheet_height(const ChartSheet& sheet, int width) {
  const int columns = columns_of(sheet.panels.size(), width);
  const int rows = (static_cast<int>(sheet.panels.size()) + columns - 1) / columns;
  const double panel = std::clamp(0.62 * width / columns, 180.0, 420.0);
  return cvRound(header_height(sheet) + kLegendRow * legend_rows(nullptr, sheet, width, 0) +
                 rows * panel + 2 * kMargin);
}

void draw_sheet(Canvas& canvas, cv::Size size, const ChartSheet& sheet) {
  Range range;
  for (const auto& panel : sheet.panels)
    for (const auto& series : panel.series)
      for (const auto& p : series.points)
        if (drawable(panel, p)) range.add(p.x);
  check(!range.empty(), ErrorKind::kInput, "there is no value to draw");

  double top = header_height(sheet);
  if (!sheet.title.empty()) canvas.text({kMargin, 27}, sheet.title, kTitleSize, kText);
  top += kLegendRow * legend_rows(&canvas, sheet, size.width, top - 4);
  const int count = static_cast<int>(sheet.panels.size());
  const int columns = columns_of(sheet.panels.size(), size.width);
  const int rows = (count + columns - 1) / columns;
  const double width = (size.width - kMargin * (columns + 1)) / columns;
  const double height = (size.height - top - kMargin - 10) / rows;  // 10: the title of x
  const Axis x =
      make_axis(range.lo, range.hi, std::max(2, static_cast<int>(width / 75)), false, false);
  for (int i = 0; i < count; ++i) {
    const cv::Rect2d area(kMargin + (i % columns) * (width + kMargin),
                          top + 8 + (i / columns) * height, width, height - 8);
    draw_panel(canvas, area, sheet.panels[static_cast<std::size_t>(i)], sheet, x,
               i + columns >= count);
  }
}

}  // namespace nmrf
