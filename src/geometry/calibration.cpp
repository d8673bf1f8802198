#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/log.h"
#include "geometry/calibration_text.h"
#include "nmrf/geometry.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kKnownForms =
    "Known are: Middlebury calib.txt (cam0=, baseline=), KITTI (P_rect_02: and P_rect_03:, or P2: "
    "and "
    "P3:), OpenCV yml/xml/json (Q, or P1 and P2), K.txt (nine numbers of K, then the baseline in "
    "metres), stereodemo json (fx, cx0, cx1, cy, baseline_meters)";

Calibration from_middlebury(std::string_view content, const std::string& file) {
  Entries entries(file, "Middlebury calib.txt, baseline in mm");
  entries.add_lines(content, '=');
  const Numbers& left = entries.camera("cam0");
  Calibration c;
  c.fx = left[0];
  c.cx = left[2];
  c.fy = left[4];
  c.cy = left[5];
  c.baseline = entries.number("baseline") / 1000.0;
  if (!entries.has("doffs") && !entries.has("cam1")) entries.missing("'doffs' (or 'cam1')");
  const bool both = entries.has("doffs") && entries.has("cam1");
  c.doffs = entries.has("doffs") ? entries.number("doffs") : entries.camera("cam1")[2] - c.cx;
  constexpr double kRounding = 0.1;  // pixels
  const double shift = both ? entries.camera("cam1")[2] - c.cx : c.doffs;
  check(!(std::abs(c.doffs - shift) > kRounding), ErrorKind::kInput,
        "{}: doffs is {} px, but the principal points of cam0 and cam1 differ by {} px "
        "({} and {}). Both must agree: correct the one that is wrong, or remove doffs.",
        entries.source(), c.doffs, shift, c.cx, c.cx + shift);
  c.width = entries.size("width");
  c.height = entries.size("height");
  c.source = entries.source();
  return c;
}

// From the two 3x4 projection matrices of rectified cameras, row by row. The fourth number of the
// first row is -fx times the position of the camera along x.
Calibration from_projections(const Numbers& left, const Numbers& right) {
  Calibration c;
  c.fx = left[0];
  c.cx = left[2];
  c.fy = left[5];
  c.cy = left[6];
  c.doffs = right[2] - left[2];
  c.baseline = (left[3] - right[3]) / left[0];
  return c;
}

Calibration from_kitti(std::string_view content, const std::string& file) {
  const bool raw = has_key(content, "P_rect_02", ':') || has_key(content, "P_rect_03", ':');
  Entries entries(
      file, raw ? "KITTI calib_cam_to_cam (cameras 02 and 03)" : "KITTI calibration (P2, P3)");
  entries.add_lines(content, ':');
  const Numbers& left = entries.get(raw ? "P_rect_02" : "P2", 12);
  const Numbers& right = entries.get(raw ? "P_rect_03" : "P3", 12);
  Calibration c = from_projections(left, right);
  if (raw && entries.has("S_rect_02")) {
    const Numbers& size = entries.get("S_rect_02", 2);
    c.width = entries.pixels("S_rect_02", size[0]);
    c.height = entries.pixels("S_rect_02", size[1]);
  }
  c.source = entries.source();
  return c;
}

// Tx of stereoRectify has the unit of the calibration target; metres are assumed, as nothing in the
// file tells. A baseline that no rig has in metres is pointed out by read_calibration.
Calibration from_opencv(std::string_view content, const std::string& file) {
  Entries entries(file, "OpenCV storage, baseline taken as metres");
  entries.add_opencv(content, {"Q", "P1", "P2", "image_width", "image_height"});
  // Q alone does not tell a vertical pair from a horizontal one; P2 does.
  check(!entries.has("P2") || entries.get("P2", 12)[7] == 0, ErrorKind::kInput,
        "{}: P2 holds a shift along y: one camera lies above the other, and disparities would be "
        "vertical. Only pairs side by side are matched.",
        file);
  Calibration c;
  if (entries.has("Q")) {
    // Q = [1 0 0 -cx; 0 1 0 -cy; 0 0 0 f; 0 0 -1/Tx (cx-cx')/Tx], and Tx = -baseline.
    const Numbers& q = entries.get("Q", 16);
    c.fx = c.fy = q[11];
    c.cx = -q[3];
    c.cy = -q[7];
    check(q[14] != 0, ErrorKind::kInput,
          "{}: the Q matrix has 0 in row 4, column 3, where stereoRectify puts 1/baseline.", file);
    c.baseline = 1.0 / q[14];
    c.doffs = q[15] / q[14];
  } else {
    if (!entries.has("P1") && !entries.has("P2")) entries.missing("'Q' (or 'P1' and 'P2')");
    const Numbers& left = entries.get("P1", 12);
    const Numbers& right = entries.get("P2", 12);
    c = from_projections(left, right);
  }
  c.width = entries.size("image_width");
  c.height = entries.size("image_height");
  c.source = entries.source();
  return c;
}

Calibration from_stereodemo(const nlohmann::json& object, const std::string& file) {
  Entries entries(file, "stereodemo json");
  for (const auto& [key, value] : object.items())
    if (value.is_number()) entries.add(key, {value.get<double>()});
  Calibration c;
  c.fx = entries.number("fx");
  c.fy = entries.number("fy", c.fx);
  c.cx = entries.number("cx0");
  c.cy = entries.number("cy");
  c.doffs = entries.number("cx1", c.cx) - c.cx;
  c.baseline = entries.number("baseline_meters");
  c.width = entries.size("width");
  c.height = entries.size("height");
  c.source = entries.source();
  return c;
}

Calibration from_k(const Numbers& numbers, const std::string& file) {
  Entries entries(file, "K.txt, baseline in metres");
  check(numbers.size() >= 9, ErrorKind::kInput,
        "{}: holds {} numbers; K.txt has the nine numbers of K, then the baseline in metres.", file,
        numbers.size());
  entries.add("K", Numbers(numbers.begin(), numbers.begin() + 9));
  if (numbers.size() > 9) entries.add("baseline", Numbers(numbers.begin() + 9, numbers.end()));
  const Numbers& k = entries.camera("K");
  Calibration c;
  c.fx = k[0];
  c.cx = k[2];
  c.fy = k[4];
  c.cy = k[5];
  c.baseline = entries.number("baseline");
  c.source = entries.source();
  return c;
}

Calibration from_json(std::string_view content, const std::string& file) {
  const auto object = nlohmann::json::parse(content, nullptr, false);
  check(object.is_object(), ErrorKind::kInput,
        "{}: begins like JSON but is not a whole JSON object. The file is truncated or damaged.",
        file);
  if (object.contains("fx") || object.contains("baseline_meters"))
    return from_stereodemo(object, file);
  return from_opencv(content, file);
}

Calibration recognise(const std::string& content, const std::string& file) {
  const std::string_view text = bare(content);
  check(!text.empty(), ErrorKind::kInput, "{}: the calibration file is empty. {}.", file,
        kKnownForms);
  if (text.starts_with('{')) return from_json(text, file);
  if (text.starts_with("%YAML") || text.starts_with("<?xml")) return from_opencv(text, file);
  if (has_key(text, "cam0", '=') || has_key(text, "baseline", '='))
    return from_middlebury(text, file);
  for (const char* key : {"P_rect_02", "P_rect_03", "P2", "P3"})
    if (has_key(text, key, ':')) return from_kitti(text, file);
  if (auto numbers = numbers_of(text)) return from_k(*numbers, file);
  fail(ErrorKind::kInput, "{}: is not a calibration of a known form. {}.", file, kKnownForms);
}

}  // namespace

void Calibration::validate() const {
  const std::string name = source.empty() ? "calibration" : source;
  for (const auto& [value, what] :
       {std::pair(fx, "fx"), std::pair(fy, "fy"), std::pair(cx, "cx"), std::pair(cy, "cy"),
        std::pair(doffs, "doffs"), std::pair(baseline, "the baseline")})
    check(std::isfinite(value), ErrorKind::kInput, "{}: {} is {}, not a finite number.", name, what,
          value);
  check(fx > 0 && fy > 0, ErrorKind::kInput,
        "{}: the focal length is {} x {} pixels; it must be positive.", name, fx, fy);
  check(
      baseline > 0, ErrorKind::kInput,
      "{}: the baseline is {} m; it must be positive. Was the pair calibrated with left and right "
      "swapped?",
      name, baseline);
  check(width >= 0 && height >= 0, ErrorKind::kInput, "{}: the image size {}x{} is negative.", name,
        width, height);
  check(width == 0 || doffs > -width, ErrorKind::kInput,
        "{}: doffs is {} px and the images are {} pixels wide: every point would lie behind the "
        "cameras. Check its sign; it is cx of the right camera minus cx of the left one.",
        name, doffs, width);
}

Calibration Calibration::scaled(double sx, double sy) const {
  check(std::isfinite(sx) && std::isfinite(sy) && sx > 0 && sy > 0, ErrorKind::kUsage,
        "a calibration cannot be scaled by {} and {}; both must be positive.", sx, sy);
  // Resizing keeps the centres aligned: pixel x, whose centre is x + 0.5 from the edge, moves to
  // (x + 0.5) * s - 0.5. The shift cancels in the difference of two principal points.
  Calibration c = *this;
  c.fx *= sx;
  c.cx = (cx + 0.5) * sx - 0.5;
  c.doffs *= sx;
  c.fy *= sy;
  c.cy = (cy + 0.5) * sy - 0.5;
  c.width = static_cast<int>(std::lround(width * sx));
  c.height = static_cast<int>(std::lround(height * sy));
  return c;
}

Calibration read_calibration(const fs::path& path) {
  Calibration c = recognise(read_calibration_text(path.string()), path.string());
  c.validate();
  if (c.baseline > 10)
    log_warning(
        "{}: the baseline is {} m. If the calibration target was measured in millimetres, depths "
        "will "
        "come out 1000 times too large.",
        c.source, c.baseline);
  return c;
}

}  // namespace nmrf
