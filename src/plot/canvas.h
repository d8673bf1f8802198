// A small drawing surface on two kinds of paper: pixels (PNG) and SVG.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

namespace nmrf {

struct Ink {
  std::uint8_t r = 0, g = 0, b = 0;
  bool operator==(const Ink&) const = default;
};

// The ink mixed with white: share 1 is the ink itself, 0 is white.
Ink faded(Ink ink, double share);

struct Stroke {
  Ink ink;
  double width = 1;  // px
  bool dashed = false;
};

enum class Anchor { kStart, kMiddle, kEnd };

// White paper. Positions and sizes in pixels, y downwards.
class Canvas {
 public:
  virtual ~Canvas() = default;
  virtual void fill(const cv::Rect2d& area, Ink ink) = 0;
  virtual void polyline(const std::vector<cv::Point2d>& points, const Stroke& stroke) = 0;
  virtual void disc(cv::Point2d centre, double radius, Ink ink) = 0;
  // `at` lies on the base line, at the start, middle or end of the text; `size` is the font's.
  virtual void text(cv::Point2d at, const std::string& text, double size, Ink ink,
                    Anchor anchor = Anchor::kStart) = 0;
  // Exact on pixels; on SVG an estimate, as the viewer chooses the font.
  virtual double text_width(const std::string& text, double size) const = 0;
  // The finished file.
  virtual std::string bytes() const = 0;
};

// Paper of the kind that the extension of `path` names. Throws Error(kUsage) for another extension
// than .png and .svg, and for sizes outside 64 to 16384 px.
std::unique_ptr<Canvas> make_canvas(const std::filesystem::path& path, cv::Size size);

}  // namespace nmrf
