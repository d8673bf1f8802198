// Sheets of line charts with round ticks, drawn on a Canvas.
#pragma once

#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "plot/canvas.h"

namespace nmrf {

// One scale: its ends, its ticks and their texts.
struct Axis {
  double lo = 0, hi = 1;
  bool log = false;
  std::vector<double> ticks;
  std::vector<std::string> texts;
  // Where the value lies between lo (0) and hi (1).
  double place(double value) const;
};

// An axis for values from `lo` to `hi` with about `wanted` ticks at 1, 2 or 5 times a power of ten.
// With `snap` it ends at ticks; else exactly at lo and hi. `lo` > 0 for a logarithmic one.
Axis make_axis(double lo, double hi, int wanted, bool log, bool snap);

struct ChartSeries {
  std::vector<cv::Point2d> points;  // by rising x; one that is not finite is a gap
  Stroke stroke;
  bool markers = false;  // discs at the points
};

// A vertical line with a short text above it, e.g. where a stage of a run begins.
struct ChartMark {
  double x = 0;
  std::string text;
  Ink ink;
};

struct ChartPanel {
  std::string title;
  std::vector<ChartSeries> series;  // later ones are drawn over earlier ones
  bool log_y = false;               // values of 0 and less are left out
};

struct LegendEntry {
  std::string text;
  Stroke stroke;
  bool markers = false;
};

struct ChartSheet {
  std::string title;
  std::string x_title;
  std::vector<LegendEntry> legend;
  std::vector<ChartPanel> panels;
  std::vector<ChartMark> marks;  // in every panel
};

// The height, px, that gives the sheet's panels a pleasant shape at that width.
int sheet_height(const ChartSheet& sheet, int width);

// Draws on all of the canvas, which is of `size`. All panels share the range of x. Throws
// Error(kInput) when there is nothing to draw.
void draw_sheet(Canvas& canvas, cv::Size size, const ChartSheet& sheet);

// The ink of the i-th of several lines.
Ink line_ink(std::size_t i);

// Exponential moving average of y as TensorBoard computes it, without the pull of its start:
// weight in [0, 1), 0 changes nothing. Values that are not finite are passed over.
std::vector<cv::Point2d> smoothed(const std::vector<cv::Point2d>& points, double weight);

}  // namespace nmrf
