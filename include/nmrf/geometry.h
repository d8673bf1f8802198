// From disparity to metres: the calibration of a rectified pair, depth and point clouds.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "nmrf/disparity.h"
#include "nmrf/export.h"
#include "nmrf/image.h"

namespace nmrf {

// A rectified pair of pinhole cameras. Lengths in pixels of the left image, except the baseline.
struct NMRF_API Calibration {
  double fx = 0;  // focal length
  double fy = 0;  // equal to fx for rectified images of square pixels
  double cx = 0;  // principal point of the left camera
  double cy = 0;
  double doffs = 0;     // cx of the right camera minus cx of the left one
  double baseline = 0;  // metres
  int width = 0;        // of the calibrated images; 0: unknown
  int height = 0;
  std::string source{};  // file and recognised format, for messages

  // Throws Error(kInput) unless fx, fy and baseline are positive, everything is finite, and doffs
  // leaves points in front of the cameras.
  void validate() const;
  // The calibration of the images resized by sx horizontally and sy vertically, centres aligned:
  // cx becomes (cx + 0.5) * sx - 0.5.
  Calibration scaled(double sx, double sy) const;
};

// Recognises by content: Middlebury calib.txt (baseline in mm), KITTI calib_cam_to_cam.txt
// (P_rect_02/03) and the odometry/object form (P2:, P3:), OpenCV FileStorage yml/xml/json (Q, or
// P1/P2; its baseline has the unit of the calibration target, taken as metres), K.txt (nine numbers
// of K, then the baseline in metres), stereodemo json. Throws Error(kInput) naming what was
// recognised and what is missing; warns when the baseline looks like millimetres.
NMRF_API Calibration read_calibration(const std::filesystem::path& path);

// Depth along the optical axis, Z = baseline * fx / (d + doffs), in metres; +infinity where the
// disparity is invalid or d + doffs <= 0. Warns if that drops most of the valid pixels.
NMRF_API FloatMap depth_from_disparity(const FloatMap& disparity, const Calibration& calibration);
// Same without filled-in pixels, unless `filled` is set.
NMRF_API FloatMap depth_from_disparity(const Disparity& disparity, const Calibration& calibration,
                                       bool filled = false);
// Depth error in metres from the expected disparity error e, to first order: Z e / (d + doffs);
// +infinity where the depth is unknown. Throws Error(kUsage) for a result without
// expected errors.
NMRF_API FloatMap depth_sigma(const Disparity& disparity, const Calibration& calibration,
                              bool filled = false);

// Coloured points in the frame of the left camera: +x right, +y down, +z forward, in metres.
struct Point {
  float x, y, z;
  std::array<std::uint8_t, 3> rgb;
  // Unit surface normal, towards the camera; zeros: not requested, or unknown.
  std::array<float, 3> normal{};
};

struct PointCloudOptions {                                 // Which pixels become points.
  double z_near = 0;                                       // metres
  double z_far = std::numeric_limits<double>::infinity();  // metres
  double edge = 0;        // drop pixels whose neighbours differ by more than this many px; 0: none
  int stride = 1;         // every n-th pixel and row
  bool occluded = false;  // keep pixels that are occluded in the other view
  bool filled = false;    // keep pixels whose disparity was filled in
  double min_confidence = 0;  // 0 to 1
  bool normals = false;       // also estimate normals from neighbouring pixels

  // Throws Error(kUsage).
  NMRF_API void validate() const;
};

// image: any ImageView of the map's size. disparity.mask and confidence may be empty.
NMRF_API std::vector<Point> point_cloud(const Disparity& disparity, const ImageView& image,
                                        const Calibration& calibration,
                                        const PointCloudOptions& options = {});

// Voxel grid filter: one point per cube of `size` metres, with mean position, colour and normal. In
// the order of the first point of each cube.
NMRF_API std::vector<Point> thin_out(const std::vector<Point>& points, double size);
// Statistical outlier removal: drops points whose mean distance to their `neighbours` nearest
// points is more than `deviations` standard deviations above average. Clouds of fewer points are
// unchanged.
NMRF_API std::vector<Point> without_outliers(const std::vector<Point>& points, int neighbours = 16,
                                             double deviations = 2);

// Binary little-endian PLY, written under a temporary name and renamed; `normals` as nx, ny, nz.
NMRF_API void write_ply(const std::filesystem::path& path, const std::vector<Point>& points,
                        bool normals = false);
// Binary PCD 0.7 (x, y, z, rgb and, on request, normals) for the Point Cloud Library.
NMRF_API void write_pcd(const std::filesystem::path& path, const std::vector<Point>& points,
                        bool normals = false);

// The visible surface as triangles between neighbouring pixels.
struct Mesh {
  struct Vertex {   // Position and texture coordinates.
    float x, y, z;  // as Point
    float u, v;     // 0 to 1 over the image, from its upper left corner
  };
  std::vector<Vertex> vertices;
  std::vector<std::array<std::uint32_t, 3>> triangles;  // counter-clockwise, seen from the camera
};

// Selects pixels as point_cloud() does. Drops triangles at depth edges, where the disparities of
// the corners differ by more than `cut` px per pixel of distance, and vertices without a
// triangle.
NMRF_API Mesh depth_mesh(const Disparity& disparity, const Calibration& calibration,
                         const PointCloudOptions& options = {}, double cut = 1);
// Wavefront OBJ with material and texture: NAME.obj, NAME.mtl, NAME_texture.png. +y up and +z
// backward, as viewers expect. Returns the files written.
NMRF_API std::vector<std::filesystem::path> write_obj(const std::filesystem::path& path,
                                                      const Mesh& mesh, const ImageView& texture);
// Binary glTF 2.0 with embedded texture, same axes.
NMRF_API void write_glb(const std::filesystem::path& path, const Mesh& mesh,
                        const ImageView& texture);

}  // namespace nmrf
