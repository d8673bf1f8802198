#include "cli/match_exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/file.h"
#include "io/float_map.h"
#include "nmrf/files.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;

// sensor_msgs/CameraInfo as camera_calibration writes it; tx: fx times the baseline, negative for
// the right camera.
std::string camera_info(const char* name, const Calibration& c, int width, int height, double cx,
                        double tx) {
  return fmt::format(
      "image_width: {}\n"
      "image_height: {}\n"
      "camera_name: {}\n"
      "camera_matrix:\n  rows: 3\n  cols: 3\n  data: [{:.9g}, 0, {:.9g}, 0, {:.9g}, {:.9g}, 0, 0, "
      "1]\n"
      "distortion_model: plumb_bob\n"
      "distortion_coefficients:\n  rows: 1\n  cols: 5\n  data: [0, 0, 0, 0, 0]\n"
      "rectification_matrix:\n  rows: 3\n  cols: 3\n  data: [1, 0, 0, 0, 1, 0, 0, 0, 1]\n"
      "projection_matrix:\n  rows: 3\n  cols: 4\n  data: [{:.9g}, 0, {:.9g}, {:.9g}, 0, {:.9g}, "
      "{:.9g}, 0, 0, 0, 1, 0]\n",
      width, height, name, c.fx, cx, c.fy, c.cy, c.fx, cx, tx, c.fy, c.cy);
}

}  // namespace

void ExportSettings::add_to(CLI::App& app, const std::string& group) {
  app.add_option("--z-near", cloud.z_near, "Drop points nearer than this, metres")->group(group);
  app.add_option("--z-far", cloud.z_far, "Drop points farther than this, metres")->group(group);
  app.add_option("--edge", cloud.edge,
                 "Drop flying points at disparity steps above this many pixels (0: keep all)")
      ->group(group);
  app.add_option("--stride", cloud.stride, "Use every n-th pixel of every n-th row")->group(group);
  app.add_option("--min-confidence", cloud.min_confidence,
                 "Drop points below this confidence, 0 to 1")
      ->group(group);
  app.add_flag("--normals", cloud.normals, "Add normals to the points")->group(group);
  app.add_option("--voxel", voxel, "Thin to one point per voxel of this size, metres")
      ->group(group);
  app.add_option("--outliers", outliers,
                 "Drop points whose mean distance to their 16 nearest neighbours is this many "
                 "standard deviations above average, e.g. 2")
      ->group(group);
  app.add_option("--export", formats,
                 "Also write, separated by commas: pcd; obj, glb (textured meshes); colmap, tum, "
                 "ros (folders)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"pcd", "obj", "glb", "colmap", "tum", "ros"}))
      ->group(group);
  app.add_option("--cut", cut, "Cut meshes at disparity steps above this, px per pixel")
      ->capture_default_str()
      ->group(group);
}

void ExportSettings::validate() const {
  check(cloud.z_near >= 0 && cloud.z_far > cloud.z_near, ErrorKind::kUsage,
        "--z-near {} and --z-far {}: the range is empty", cloud.z_near, cloud.z_far);
  check(cloud.edge >= 0 && std::isfinite(cloud.edge), ErrorKind::kUsage,
        "--edge {}: expected pixels, 0 or more", cloud.edge);
  check(cloud.stride >= 1, ErrorKind::kUsage, "--stride {}: expected 1 or more", cloud.stride);
  check(cloud.min_confidence >= 0 && cloud.min_confidence <= 1, ErrorKind::kUsage,
        "--min-confidence {}: expected 0 to 1", cloud.min_confidence);
  check(voxel >= 0 && std::isfinite(voxel), ErrorKind::kUsage,
        "--voxel {}: expected metres, 0 or more", voxel);
  check(outliers.value_or(0) >= 0 && std::isfinite(outliers.value_or(0)), ErrorKind::kUsage,
        "--outliers {}: expected standard deviations, 0 or more", outliers.value_or(0));
  check(cut > 0 && std::isfinite(cut), ErrorKind::kUsage,
        "--cut {}: expected pixels of disparity per pixel, more than 0", cut);
}

std::vector<Point> ExportSettings::finish(std::vector<Point> points) const {
  if (outliers) points = without_outliers(points, 16, *outliers);
  if (voxel > 0) points = thin_out(points, voxel);
  return points;
}

void Exporter::write(const ExportInput& input, const Companion& companion, const Note& note) {
  const fs::path folder = companion("").parent_path();
  std::optional<Mesh> mesh;
  auto surface = [&]() -> const Mesh& {
    if (!mesh) mesh = depth_mesh(input.result, input.calibration, s_.cloud, s_.cut);
    return *mesh;
  };
  for (const std::string& format : s_.formats) {
    if (format == "pcd") {
      const fs::path path = companion("_cloud.pcd");
      write_pcd(path, input.points, s_.cloud.normals);
      note(path);
    } else if (format == "obj") {
      for (const auto& path : write_obj(companion("_mesh.obj"), surface(), input.image)) note(path);
    } else if (format == "glb") {
      const fs::path path = companion("_mesh.glb");
      write_glb(path, surface(), input.image);
      note(path);
    } else if (format == "colmap") {
      write_colmap(input, folder / "colmap" / "stereo" / "depth_maps", note);
    } else if (format == "tum") {
      write_tum(input, folder / "tum", note);
    } else if (format == "ros") {
      write_ros(input, folder / "ros", note);
    }
  }
}

void Exporter::write_colmap(const ExportInput& input, const fs::path& folder,
                            const Note& note) const {
  make_folder(folder);
  const fs::path path =
      folder / (fs::path(input.pair.left_name).filename().string() + ".geometric.bin");
  AtomicFile file(path);
  file.write(fmt::format("{}&{}&1&", input.depth.width(), input.depth.height()));
  FloatMap depth = input.depth;
  for (float& z : depth)
    if (!std::isfinite(z)) z = 0;
  file.write(depth.data(), depth.size() * sizeof(float));
  file.commit();
  note(path);
}

void Exporter::write_tum(const ExportInput& input, const fs::path& folder, const Note& note) {
  constexpr double kUnitsPerMetre = 5000;
  make_folder(folder / "rgb");
  make_folder(folder / "depth");
  const std::string time =
      fmt::format("{:.6f}", static_cast<double>(input.pair.index) / frame_rate_);
  const fs::path rgb = fs::path("rgb") / (time + ".png"),
                 depth = fs::path("depth") / (time + ".png");
  write_image(folder / rgb, input.image);
  write_png16(folder / depth, input.depth, kUnitsPerMetre);
  tum_rgb_ += fmt::format("{} {}\n", time, rgb.string());
  tum_depth_ += fmt::format("{} {}\n", time, depth.string());
  write_file(folder / "rgb.txt", "# timestamp filename\n" + tum_rgb_);
  write_file(folder / "depth.txt", "# timestamp filename; metres = value / 5000\n" + tum_depth_);
  const Calibration& c = input.calibration;
  write_file(folder / "intrinsics.txt",
             fmt::format("# fx fy cx cy\n{:.9g} {:.9g} {:.9g} {:.9g}\n", c.fx, c.fy, c.cx, c.cy));
  note(folder / rgb);
  note(folder / depth);
}

void Exporter::write_ros(const ExportInput& input, const fs::path& folder, const Note& note) const {
  make_folder(folder);
  const fs::path path = folder / (input.pair.stem + "_depth.png");
  write_depth(path, input.depth);
  note(path);
  const Calibration& c = input.calibration;
  const int width = input.depth.width(), height = input.depth.height();
  write_file(folder / "left.yaml", camera_info("left", c, width, height, c.cx, 0));
  write_file(folder / "right.yaml",
             camera_info("right", c, width, height, c.cx + c.doffs, -c.fx * c.baseline));
  note(folder / "left.yaml");
  note(folder / "right.yaml");
}

}  // namespace nmrf::cli
