#include "plot/canvas.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "core/check.h"
#include "core/markup.h"
#include "io/formats.h"
#include "nmrf/opencv.h"

namespace nmrf {
namespace {

constexpr double kDash = 5, kGap = 4;  // px

// Drawn larger and reduced at the end: OpenCV smooths lines, but not their thickness.
class PixelCanvas : public Canvas {
 public:
  explicit PixelCanvas(cv::Size size)
      : size_(size), paper_(size * kOver, CV_8UC3, cv::Scalar::all(255)) {}

  void fill(const cv::Rect2d& area, Ink ink) override {
    cv::rectangle(paper_, fixed(area.tl()), fixed(area.br()), color(ink), cv::FILLED, cv::LINE_AA,
                  kShift);
  }

  void polyline(const std::vector<cv::Point2d>& points, const Stroke& stroke) override {
    if (stroke.dashed) {
      for (const auto& dash : dashes(points)) draw(dash, stroke);
    } else {
      draw(points, stroke);
    }
  }

  void disc(cv::Point2d centre, double radius, Ink ink) override {
    cv::circle(paper_, fixed(centre), cvRound(radius * kUnit), color(ink), cv::FILLED, cv::LINE_AA,
               kShift);
  }

  void text(cv::Point2d at, const std::string& text, double size, Ink ink, Anchor anchor) override {
    if (anchor != Anchor::kStart)
      at.x -= text_width(text, size) * (anchor == Anchor::kMiddle ? 0.5 : 1);
    cv::putText(paper_, text, cv::Point(cvRound(at.x * kOver), cvRound(at.y * kOver)), kFont,
                font_scale(size), color(ink), thickness(size), cv::LINE_AA);
  }

  double text_width(const std::string& text, double size) const override {
    return cv::getTextSize(text, kFont, font_scale(size), thickness(size), nullptr).width /
           static_cast<double>(kOver);
  }

  std::string bytes() const override {
    cv::Mat picture;
    cv::resize(paper_, picture, size_, 0, 0, cv::INTER_AREA);
    return formats::encode_png(view(picture), "the chart");
  }

 private:
  static constexpr int kOver = 3, kShift = 4, kFont = cv::FONT_HERSHEY_SIMPLEX;
  static constexpr double kUnit = kOver * (1 << kShift);
  static cv::Scalar color(Ink ink) { return {double(ink.b), double(ink.g), double(ink.r)}; }
  // Capitals of this font are 22 px high at scale 1; those of a font of size s about 0.72 s.
  static double font_scale(double size) { return 0.72 * size * kOver / 22; }
  static int thickness(double size) { return std::max(1, cvRound(size * kOver / 11)); }
  static cv::Point fixed(cv::Point2d p) { return {cvRound(p.x * kUnit), cvRound(p.y * kUnit)}; }

  void draw(const std::vector<cv::Point2d>& points, const Stroke& stroke) {
    std::vector<cv::Point> path;
    path.reserve(points.size());
    for (const auto& p : points) path.push_back(fixed(p));
    cv::polylines(paper_, path, false, color(stroke.ink),
                  std::max(1, cvRound(stroke.width * kOver)), cv::LINE_AA, kShift);
  }

  // The pieces of a path that are drawn when it is dashed.
  static std::vector<std::vector<cv::Point2d>> dashes(const std::vector<cv::Point2d>& points) {
    std::vector<std::vector<cv::Point2d>> pieces;
    double left = kDash;  // of the present dash or gap
    bool on = true;
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      cv::Point2d at = points[i];
      double length = cv::norm(points[i + 1] - at);
      if (on && (i == 0 || pieces.empty())) pieces.push_back({at});
      while (length > 0) {
        const double step = std::min(left, length);
        at += (points[i + 1] - at) * (step / length);
        length -= step;
        left -= step;
        if (on) pieces.back().push_back(at);
        if (left > 1e-9) continue;
        on = !on;
        left = on ? kDash : kGap;
        if (on) pieces.push_back({at});
      }
    }
    return pieces;
  }

  cv::Size size_;
  cv::Mat paper_;
};

class SvgCanvas : public Canvas {
 public:
  explicit SvgCanvas(cv::Size size) : size_(size) {}

  void fill(const cv::Rect2d& area, Ink ink) override {
    body_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
        area.x, area.y, area.width, area.height, color(ink));
  }

  void polyline(const std::vector<cv::Point2d>& points, const Stroke& stroke) override {
    body_ += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{:g}\"{} points=\"",
        color(stroke.ink), stroke.width,
        stroke.dashed ? fmt::format(" stroke-dasharray=\"{} {}\"", kDash, kGap) : std::string());
    for (std::size_t i = 0; i < points.size(); ++i)
      body_ += fmt::format("{}{:.2f},{:.2f}", i ? " " : "", points[i].x, points[i].y);
    body_ += "\"/>\n";
  }

  void disc(cv::Point2d centre, double radius, Ink ink) override {
    body_ += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:g}\" fill=\"{}\"/>\n", centre.x,
                         centre.y, radius, color(ink));
  }

  void text(cv::Point2d at, const std::string& text, double size, Ink ink, Anchor anchor) override {
    body_ += fmt::format(
        "<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{:g}\" fill=\"{}\" text-anchor=\"{}\">{}"
        "</text>\n",
        at.x, at.y, size, color(ink),
        anchor == Anchor::kStart    ? "start"
        : anchor == Anchor::kMiddle ? "middle"
                                    : "end",
        html_text(text));
  }

  double text_width(const std::string& text, double size) const override {
    return 0.56 * size * static_cast<double>(text.size());
  }

  std::string bytes() const override {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"system-ui, Helvetica, Arial, sans-serif\" stroke-linejoin=\"round\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{2}</svg>\n",
        size_.width, size_.height, body_);
  }

 private:
  static std::string color(Ink ink) {
    return fmt::format("#{:02x}{:02x}{:02x}", ink.r, ink.g, ink.b);
  }

  cv::Size size_;
  std::string body_;
};

}  // namespace

Ink faded(Ink ink, double share) {
  auto mix = [share](std::uint8_t v) {
    return static_cast<std::uint8_t>(std::lround(255 + share * (v - 255)));
  };
  return {mix(ink.r), mix(ink.g), mix(ink.b)};
}

std::unique_ptr<Canvas> make_canvas(const std::filesystem::path& path, cv::Size size) {
  check(std::min(size.width, size.height) >= 64 && std::max(size.width, size.height) <= 16384,
        ErrorKind::kUsage, "a picture of {}x{} px: expected 64 to 16384 px each way", size.width,
        size.height);
  if (path.extension() == ".png") return std::make_unique<PixelCanvas>(size);
  if (path.extension() == ".svg") return std::make_unique<SvgCanvas>(size);
  fail(ErrorKind::kUsage, "{}: pictures of curves are written as .png or .svg", path.string());
}

}  // namespace nmrf
