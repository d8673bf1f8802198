// Rectification by a calibration: removes lens distortion and the rotation between the two
// cameras.
//
//   nmrf::StereoRig rig = nmrf::read_rig("stereo.yml");
//   nmrf::Rectifier rectifier(rig, {});
//   nmrf::Image left = rectifier.left(raw_left), right = rectifier.right(raw_right);
//   nmrf::Calibration calibration = rectifier.calibration();   // of the rectified pair
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "nmrf/export.h"
#include "nmrf/geometry.h"
#include "nmrf/image.h"

namespace nmrf {

enum class Lens {  // Distortion model.
  kPinhole,  // OpenCV's k1 k2 p1 p2 [k3 [k4 k5 k6 [s1 s2 s3 s4]]]; the rational model included
  kFisheye,  // equidistant, k1 to k4 (cv::fisheye, Kalibr's equidistant)
};

// Row-major.
using Matrix3 = std::array<double, 9>;
using Vector3 = std::array<double, 3>;  // x, y, z

struct NMRF_API Camera {                  // Intrinsics and distortion of one camera.
  double fx = 0, fy = 0, cx = 0, cy = 0;  // px
  Lens lens = Lens::kPinhole;
  std::vector<double> distortion;
  int width = 0, height = 0;  // of the calibrated images; 0: unknown

  // Projects a ray (z > 0, any length) to a pixel; false if it is outside the lens model.
  bool project(const Vector3& ray, double& x, double& y) const;
  // The ray of a pixel, scaled to z = 1; false if none is found.
  bool ray(double x, double y, Vector3& result) const;
};

// A point X in the left camera frame is rotation * X + translation in the right camera frame.
struct NMRF_API StereoRig {
  Camera left, right;
  Matrix3 rotation{1, 0, 0, 0, 1, 0, 0, 0, 1};
  Vector3 translation{};  // metres
  std::string source;     // files and recognised format, for messages

  // Throws Error(kInput) for implausible values: focal lengths, a matrix that is no rotation, no
  // baseline, cameras above each other or swapped.
  void validate() const;
};

// Recognises by content: OpenCV yml/xml/json (M1 D1 M2 D2 R T and other usual names, in one file or
// two), Kalibr's camchain yaml, a pair of ROS camera_info yaml files (left, right), and KITTI's
// calib_cam_to_cam (cameras 02 and 03, else 00 and 01). Throws Error(kInput).
NMRF_API StereoRig read_rig(const std::vector<std::filesystem::path>& files);

struct RectifyOptions {  // Crop and size of rectified images.
  // 0: crop to pixels that both cameras see; 1: keep all pixels, with black borders.
  double alpha = 0;
  int width = 0, height = 0;  // of the rectified images; 0: as the camera images

  // Throws Error(kUsage).
  NMRF_API void validate() const;
};

// Projection matrices of the rectified cameras (3 x 4, row-major) and OpenCV's Q (4 x 4).
struct Projections {
  std::array<double, 12> left, right;
  std::array<double, 16> q;
};

// Computes the remapping tables once. Thread-safe.
class NMRF_API Rectifier {
 public:
  // A rig without image sizes takes those of RectifyOptions. Throws Error(kInput), Error(kUsage).
  Rectifier(const StereoRig& rig, const RectifyOptions& options);

  // 8-bit RGB, bicubic. Throws Error(kInput) for an image of another size than the rig's.
  Image left(const ImageView& image) const;
  Image right(const ImageView& image) const;

  const Calibration& calibration() const { return calibration_; }
  Projections projections() const;
  // Rotation from each camera frame to the rectified one.
  const Matrix3& left_rotation() const { return left_.rotation; }
  const Matrix3& right_rotation() const { return right_.rotation; }

 private:
  struct Side {
    Matrix3 rotation;           // from the camera's frame to the rectified one
    int width = 0, height = 0;  // of the camera's images
    std::vector<float> x, y;    // source position of each rectified pixel
  };
  void make_map(const Camera& camera, Side& side) const;
  Image apply(const Side& side, const ImageView& image, const char* name) const;

  Side left_, right_;
  Calibration calibration_;
};

// The rectified pair's calibration as OpenCV yml: image size, P1, P2, Q. Atomic.
NMRF_API void write_calibration(const std::filesystem::path& path, const Rectifier& rectifier);
// A rig as OpenCV yml: image size, M1 D1 M2 D2 R T, and R1 R2 P1 P2 Q of the rectifier.
NMRF_API void write_rig(const std::filesystem::path& path, const StereoRig& rig,
                        const Rectifier& rectifier);

}  // namespace nmrf
