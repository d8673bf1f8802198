// Files that describe a stereo rig: OpenCV, Kalibr, ROS and KITTI.
#include <fmt/ranges.h>

#include <algorithm>

#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "geometry/calibration_text.h"
#include "geometry/matrix3.h"
#include "nmrf/rectify.h"

namespace nmrf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKnownForms =
    "Known are: OpenCV yml/xml/json (M1 D1 M2 D2 R T, in one file or two), Kalibr's camchain yaml "
    "(cam0, cam1), two camera_info yaml files of ROS (left, right), and KITTI's calib_cam_to_cam "
    "(K_02 D_02 R_02 T_02 and those of 03)";

struct File {
  std::string name, content;
  std::string_view text() const { return bare(content); }
};

template <std::size_t kCount>
std::array<double, kCount> array_of(const Numbers& numbers) {
  std::array<double, kCount> result{};
  std::copy_n(numbers.begin(), kCount, result.begin());
  return result;
}

// A rotation as nine numbers or as a vector of three.
Matrix3 rotation_of(const Entries& entries, const std::string& key) {
  if (entries.get(key).size() == 3) return rotation_matrix(array_of<3>(entries.get(key)));
  return array_of<9>(entries.get(key, 9));
}

void set_matrix(Camera& camera, const Entries& entries, const std::string& key) {
  const Numbers& k = entries.camera(key);
  camera.fx = k[0];
  camera.cx = k[2];
  camera.fy = k[4];
  camera.cy = k[5];
}

StereoRig from_opencv(const std::vector<File>& files) {
  std::string names = files[0].name;
  for (std::size_t i = 1; i < files.size(); ++i) names += " and " + files[i].name;
  Entries entries(names, "OpenCV storage, lengths taken as metres");
  for (const File& file : files)
    entries.add_opencv(file.text(), {"M1",
                                     "M2",
                                     "K1",
                                     "K2",
                                     "CM1",
                                     "CM2",
                                     "D1",
                                     "D2",
                                     "cameraMatrix1",
                                     "cameraMatrix2",
                                     "distCoeffs1",
                                     "distCoeffs2",
                                     "dist1",
                                     "dist2",
                                     "left_camera_matrix",
                                     "right_camera_matrix",
                                     "left_distortion_coefficients",
                                     "right_distortion_coefficients",
                                     "R",
                                     "T",
                                     "image_width",
                                     "image_height",
                                     "fisheye"});
  StereoRig rig;
  set_matrix(rig.left, entries,
             entries.any({"M1", "K1", "CM1", "cameraMatrix1", "left_camera_matrix"}));
  set_matrix(rig.right, entries,
             entries.any({"M2", "K2", "CM2", "cameraMatrix2", "right_camera_matrix"}));
  rig.left.distortion =
      entries.get(entries.any({"D1", "distCoeffs1", "dist1", "left_distortion_coefficients"}));
  rig.right.distortion =
      entries.get(entries.any({"D2", "distCoeffs2", "dist2", "right_distortion_coefficients"}));
  rig.rotation = rotation_of(entries, "R");
  rig.translation = array_of<3>(entries.get("T", 3));
  rig.left.lens = rig.right.lens =
      entries.number("fisheye", 0) != 0 ? Lens::kFisheye : Lens::kPinhole;
  rig.left.width = rig.right.width = entries.size("image_width");
  rig.left.height = rig.right.height = entries.size("image_height");
  rig.source = entries.source();
  return rig;
}

Lens lens_of(const std::string& name, std::string_view model) {
  if (model == "equidistant" || model == "fisheye") return Lens::kFisheye;
  check(model == "radtan" || model == "plumb_bob" || model == "rational_polynomial" ||
            model == "none" || model.empty(),
        ErrorKind::kInput,
        "{}: the distortion model '{}' is not known; expected radtan, plumb_bob, "
        "rational_polynomial or equidistant.",
        name, model);
  return Lens::kPinhole;
}

// A word under a key, without quotes.
std::string word_of(std::string_view content, const char* key) {
  std::string word = yaml_entry(content, key).value_or("");
  std::erase_if(word, [](char c) { return c == '"' || c == '\'' || c == '\n' || c == '\r'; });
  return std::string(trimmed(word));
}

StereoRig from_kalibr(const File& file) {
  StereoRig rig;
  Camera* cameras[] = {&rig.left, &rig.right};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string key = fmt::format("cam{}", i);
    const auto block = yaml_entry(file.text(), key);
    check(block.has_value(), ErrorKind::kInput,
          "{}: recognised as a camchain of Kalibr, but '{}' is missing.", file.name, key);
    Entries entries(file.name, "a camchain of Kalibr, " + key);
    entries.add_yaml(*block, {"intrinsics", "distortion_coeffs", "resolution", "T_cn_cnm1"});
    const std::string model = word_of(*block, "camera_model");
    check(model == "pinhole" || model.empty(), ErrorKind::kInput,
          "{}: the camera model '{}' of {} is not known; only pinhole is.", file.name, model, key);
    Camera& camera = *cameras[i];
    const Numbers& intrinsics = entries.get("intrinsics", 4);
    camera.fx = intrinsics[0];
    camera.fy = intrinsics[1];
    camera.cx = intrinsics[2];
    camera.cy = intrinsics[3];
    camera.lens = lens_of(file.name, word_of(*block, "distortion_model"));
    camera.distortion = entries.get("distortion_coeffs");
    if (entries.has("resolution")) {
      const Numbers& size = entries.get("resolution", 2);
      camera.width = entries.pixels("resolution", size[0]);
      camera.height = entries.pixels("resolution", size[1]);
    }
    if (i == 0) continue;
    const Numbers& t = entries.get("T_cn_cnm1", 16);
    rig.rotation = {t[0], t[1], t[2], t[4], t[5], t[6], t[8], t[9], t[10]};
    rig.translation = {t[3], t[7], t[11]};
  }
  rig.source = file.name + " (Kalibr camchain)";
  return rig;
}

// One camera_info, with the rotation into its rectified frame and its projection there.
struct CameraInfo {
  Camera camera;
  Matrix3 rectification;
  std::array<double, 12> projection;
};

CameraInfo camera_info(const File& file) {
  Entries entries(file.name, "camera_info of ROS");
  entries.add_yaml(file.text(),
                   {"image_width", "image_height", "camera_matrix", "distortion_coefficients",
                    "rectification_matrix", "projection_matrix"});
  CameraInfo info;
  set_matrix(info.camera, entries, "camera_matrix");
  info.camera.lens = lens_of(file.name, word_of(file.text(), "distortion_model"));
  info.camera.distortion = entries.get("distortion_coefficients");
  info.camera.width = entries.size("image_width");
  info.camera.height = entries.size("image_height");
  info.rectification = array_of<9>(entries.get("rectification_matrix", 9));
  info.projection = array_of<12>(entries.get("projection_matrix", 12));
  return info;
}

// ROS stores how it would rectify, from which the cameras' places follow.
StereoRig from_ros(const File& left_file, const File& right_file) {
  const CameraInfo left = camera_info(left_file), right = camera_info(right_file);
  check(
      right.projection[0] > 0 && right.projection[3] != 0, ErrorKind::kInput,
      "{}: the projection matrix holds no baseline (its fourth number is 0). Give the camera_info "
      "of a stereo calibration, the left camera's first.",
      right_file.name);
  StereoRig rig;
  rig.left = left.camera;
  rig.right = right.camera;
  const Matrix3 back = transposed(right.rectification);
  rig.rotation = product(back, left.rectification);
  rig.translation = product(
      back, Vector3{(right.projection[3] - left.projection[3]) / right.projection[0], 0, 0});
  rig.source = fmt::format("{} and {} (camera_info of ROS)", left_file.name, right_file.name);
  return rig;
}

StereoRig from_kitti(const File& file) {
  Entries entries(file.name, "KITTI calib_cam_to_cam");
  entries.add_lines(file.text(), ':');
  const bool colour = entries.has("K_02") && entries.has("K_03");
  const std::string one = colour ? "02" : "00", two = colour ? "03" : "01";
  StereoRig rig;
  auto read = [&](Camera& camera, const std::string& which) {
    set_matrix(camera, entries, "K_" + which);
    camera.distortion = entries.get("D_" + which, 5);
    const Numbers& size = entries.get("S_" + which, 2);
    camera.width = entries.pixels("S_" + which, size[0]);
    camera.height = entries.pixels("S_" + which, size[1]);
  };
  read(rig.left, one);
  read(rig.right, two);
  // Both relative to camera 00.
  const Matrix3 first = array_of<9>(entries.get("R_" + one, 9));
  const Vector3 first_t = array_of<3>(entries.get("T_" + one, 3));
  rig.rotation = product(array_of<9>(entries.get("R_" + two, 9)), transposed(first));
  const Vector3 turned = product(rig.rotation, first_t);
  rig.translation = array_of<3>(entries.get("T_" + two, 3));
  for (std::size_t i = 0; i < 3; ++i) rig.translation[i] -= turned[i];
  rig.source = fmt::format("{} (KITTI calib_cam_to_cam, cameras {} and {})", file.name, one, two);
  return rig;
}

bool is_camera_info(const File& file) {
  return yaml_entry(file.text(), "camera_matrix") && yaml_entry(file.text(), "projection_matrix");
}

StereoRig recognise(const std::vector<File>& files) {
  for (const File& file : files)
    check(!file.text().empty(), ErrorKind::kInput, "{}: the calibration file is empty. {}.",
          file.name, kKnownForms);
  const std::string_view text = files[0].text();
  if (is_camera_info(files[0])) {
    check(files.size() == 2 && is_camera_info(files[1]), ErrorKind::kInput,
          "{}: is the camera_info of one camera. Give both: left.yaml,right.yaml", files[0].name);
    return from_ros(files[0], files[1]);
  }
  if (files.size() == 1 && yaml_entry(text, "cam0")) return from_kalibr(files[0]);
  if (files.size() == 1 && (has_key(text, "K_02", ':') || has_key(text, "K_00", ':')))
    return from_kitti(files[0]);
  if (text.starts_with('{') || text.starts_with("%YAML") || text.starts_with("<?xml"))
    return from_opencv(files);
  fail(ErrorKind::kInput, "{}: is not the calibration of a stereo rig in a known form. {}.",
       files[0].name, kKnownForms);
}

template <std::size_t kCount>
std::string matrix_text(const char* key, int rows, const std::array<double, kCount>& values) {
  return fmt::format(
      "{}: !!opencv-matrix\n   rows: {}\n   cols: {}\n   dt: d\n   data: [ {:.17g} ]\n", key, rows,
      static_cast<int>(kCount) / rows, fmt::join(values, ", "));
}

std::string head_text(int width, int height) {
  return fmt::format("%YAML:1.0\n---\nimage_width: {}\nimage_height: {}\n", width, height);
}

std::string projections_text(const Projections& projections) {
  return matrix_text("P1", 3, projections.left) + matrix_text("P2", 3, projections.right) +
         matrix_text("Q", 4, projections.q);
}

}  // namespace

StereoRig read_rig(const std::vector<fs::path>& paths) {
  check(paths.size() == 1 || paths.size() == 2, ErrorKind::kUsage,
        "{} calibration files; expected one, or two separated by a comma", paths.size());
  std::vector<File> files;
  for (const auto& path : paths)
    files.push_back({path.string(), read_calibration_text(path.string())});
  StereoRig rig = recognise(files);
  rig.validate();
  if (const double baseline = length(rig.translation); baseline > 10)
    log_warning(
        "{}: the baseline is {:.1f} m. If the calibration target was measured in millimetres, "
        "depths will come out 1000 times too large.",
        rig.source, baseline);
  return rig;
}

void write_calibration(const fs::path& path, const Rectifier& rectifier) {
  const Calibration& c = rectifier.calibration();
  write_file(path, head_text(c.width, c.height) + projections_text(rectifier.projections()));
}

void write_rig(const fs::path& path, const StereoRig& rig, const Rectifier& rectifier) {
  auto camera_text = [](int number, const Camera& camera) {
    return matrix_text(fmt::format("M{}", number).c_str(), 3,
                       Matrix3{camera.fx, 0, camera.cx, 0, camera.fy, camera.cy, 0, 0, 1}) +
           fmt::format(
               "D{}: !!opencv-matrix\n   rows: 1\n   cols: {}\n   dt: d\n   data: [ {:.17g} ]\n",
               number, camera.distortion.size(), fmt::join(camera.distortion, ", "));
  };
  write_file(path, head_text(rig.left.width, rig.left.height) +
                       fmt::format("fisheye: {}\n", rig.left.lens == Lens::kFisheye ? 1 : 0) +
                       camera_text(1, rig.left) + camera_text(2, rig.right) +
                       matrix_text("R", 3, rig.rotation) + matrix_text("T", 3, rig.translation) +
                       matrix_text("R1", 3, rectifier.left_rotation()) +
                       matrix_text("R2", 3, rectifier.right_rotation()) +
                       projections_text(rectifier.projections()));
}

}  // namespace nmrf
