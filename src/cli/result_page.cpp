#include "cli/result_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/markup.h"
#include "io/formats.h"
#include "viewer_source.h"

namespace nmrf::cli {
namespace {

// What turns the data below into a result of web/viewer.
constexpr const char* kStart = R"js(
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const show = (pixels) => {
  const stored = new Uint16Array(bytes(data.map).buffer);
  const result = { name: data.name, width: data.width, height: data.height, pixels };
  result.map = Float32Array.from(stored, (v) => (v ? v / data.unit : Infinity));
  if (data.confidence) result.confidence = Float32Array.from(bytes(data.confidence), (v) => v / 255);
  if (data.mask) result.mask = bytes(data.mask);
  if (data.calibration) result.calibration = data.calibration;
  window.viewer = createViewer(document.getElementById('viewer'));
  window.viewer.show(result);
  document.body.dataset.ready = 'yes';
};
const photo = new Image();
photo.onload = () => {
  const canvas = document.createElement('canvas');
  canvas.width = data.width;
  canvas.height = data.height;
  const context = canvas.getContext('2d');
  context.drawImage(photo, 0, 0, data.width, data.height);
  show(context.getImageData(0, 0, data.width, data.height).data);
};
photo.src = data.photo;
)js";

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

std::string result_page(const std::string& name, const Disparity& result, const ImageView& image,
                        const std::optional<Calibration>& calibration) {
  const FloatMap& map = result.map;
  float greatest = 0;
  for (float d : map)
    if (std::isfinite(d)) greatest = std::max(greatest, d);
  // 16 bits, as fine as the greatest value allows.
  const double unit = std::exp2(std::floor(std::log2(65535 / std::max(greatest, 1.0f))));
  std::vector<std::uint8_t> stored;
  stored.reserve(2 * map.size());
  for (float d : map) {
    const long value = std::isfinite(d) ? std::clamp(std::lround(d * unit), 1L, 65535L) : 0;
    stored.push_back(static_cast<std::uint8_t>(value & 255));
    stored.push_back(static_cast<std::uint8_t>(value >> 8));
  }
  nlohmann::json data{{"name", name},
                      {"width", map.width()},
                      {"height", map.height()},
                      {"unit", unit},
                      {"map", text_of(stored)}};
  if (result.confidence.same_size(map)) {
    std::vector<std::uint8_t> levels(map.size());
    std::transform(result.confidence.begin(), result.confidence.end(), levels.begin(), [](float p) {
      return static_cast<std::uint8_t>(std::lround(255 * std::clamp(p, 0.f, 1.f)));
    });
    data["confidence"] = text_of(levels);
  }
  if (result.mask.same_size(map)) data["mask"] = text_of({result.mask.begin(), result.mask.end()});
  if (calibration)
    data["calibration"] = {{"fx", calibration->fx},       {"fy", calibration->fy},
                           {"cx", calibration->cx},       {"cy", calibration->cy},
                           {"doffs", calibration->doffs}, {"baseline", calibration->baseline}};
  Image grey;
  if (image.empty()) {
    grey = Image(map.width(), map.height());
    for (int y = 0; y < map.height(); ++y)
      for (int x = 0; x < map.width(); ++x) {
        const float d = map.at(y, x);
        const float part = std::isfinite(d) ? d / std::max(greatest, 1.0f) : 0;
        std::fill_n(grey.row(y) + 3 * x, 3, static_cast<std::uint8_t>(std::lround(255 * part)));
      }
  }
  data["photo"] = "data:image/jpeg;base64," +
                  base64(formats::encode_jpeg(image.empty() ? grey.view() : image, name, 90));
  // A name may hold "</script>": JSON allows \u003c for its first letter.
  std::string json = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos;)
    json.replace(at, 1, "\\u003c");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>\nbody {{ margin: 1rem auto; max-width: 72rem; padding: 0 1rem; "
      "font-family: system-ui, sans-serif; }}\n{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n"
      "<div id=\"viewer\"></div>\n<script>\n{2}const data = {3};\n{4}</script>\n</body>\n</html>\n",
      html_text(name), kViewerStyle, kViewerScript, json, kStart);
}

}  // namespace nmrf::cli
