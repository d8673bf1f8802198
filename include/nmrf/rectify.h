// From two cameras as they are to a rectified pair: lens distortion and the cameras' turn against
// each other are taken out.
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

enum class Lens {
  kPinhole,  // OpenCV's k1 k2 p1 p2 [k3 [k4 k5 k6 [s1 s2 s3 s4]]]; the rational model included
  kFisheye,  // equidistant, k1 to k4 (cv::fisheye, Kalibr's equidistant)
};

// Row by row.
using Matrix3 = std::array<double, 9>;
using Vector3 = std::array<double, 3>;

struct NMRF_API Camera {
  double fx = 0, fy = 0, cx = 0, cy = 0;  // px
  Lens lens = Lens::kPinhole;
  std::vector<double> distortion;
  int width = 0, height = 0;  // of the images the numbers hold for; 0: unknown

  // The pixel that sees a ray (z > 0, any length); false when the lens does not bend that far.
  bool project(const Vector3& ray, double& x, double& y) const;
  // The ray of a pixel, of z = 1; false when none is found.
  bool ray(double x, double y, Vector3& result) const;
};

// A point X in the left camera's frame lies at rotation * X + translation in the right one's.
struct NMRF_API StereoRig {
  Camera left, right;
  Matrix3 rotation{1, 0, 0, 0, 1, 0, 0, 0, 1};
  Vector3 translation{};  // metres
  std::string source;     // files and recognised format, for messages

  // Throws Error(kInput) for numbers that no rig has: focal lengths, a matrix that is no rotation,
  // no baseline, cameras above each other or swapped.
  void validate() const;
};

// Recognises by content: OpenCV yml/xml/json (M1 D1 M2 D2 R T and other usual names, in one file or
// two), Kalibr's camchain yaml, a pair of ROS camera_info yaml files (left, right), and KITTI's
// calib_cam_to_cam (cameras 02 and 03, else 00 and 01). Throws Error(kInput).
NMRF_API StereoRig read_rig(const std::vector<std::filesystem::path>& files);

struct RectifyOptions {
  // 0: only pixels that both cameras see; 1: everything they see, black around it.
  double alpha = 0;
  int width = 0, height = 0;  // of the rectified images; 0: as the cameras' images

  // Throws Error(kUsage).
  NMRF_API void validate() const;
};

// Projection matrices of the rectified cameras, row by row (3 x 4), and OpenCV's Q (4 x 4).
struct Projections {
  std::array<double, 12> left, right;
  std::array<double, 16> q;
};

// The maps are computed once. Safe to use from several threads.
class NMRF_API Rectifier {
 public:
  // A rig without image sizes takes those of RectifyOptions. Throws Error(kInput), Error(kUsage).
  Rectifier(const StereoRig& rig, const RectifyOptions& options);

  // 8-bit RGB, bicubic. Throws Error(kInput) for an image of another size than the rig's.
  Image left(const ImageView& image) const;
  Image right(const ImageView& image) const;

  const Calibration& calibration() const { return calibration_; }
  Projections projections() const;
  // By which each camera's frame was turned.
  const Matrix3& left_rotation() const { return left_.rotation; }
  const Matrix3& right_rotation() const { return right_.rotation; }

 private:
  struct Side {
    Matrix3 rotation;           // from the camera's frame to the rectified one
    int width = 0, height = 0;  // of the camera's images
    std::vector<float> x, y;    // where each rectified pixel lies in them
  };
  void make_map(const Camera& camera, Side& side) const;
  Image apply(const Side& side, const ImageView& image, const char* name) const;

  Side left_, right_;
  Calibration calibration_;
};

// The rectified pair's calibration as OpenCV yml: image size, P1, P2, Q. Atomic.
NMRF_API void write_calibration(const std::filesystem::path& path, const Rectifier& rectifier);
// A rig as OpenCV yml: image size, M1 D1 M2 D2 R T, and what the rectifier adds: R1 R2 P1 P2 Q.
NMRF_API void write_rig(const std::filesystem::path& path, const StereoRig& rig,
                        const Rectifier& rectifier);

}  // namespace nmrf
