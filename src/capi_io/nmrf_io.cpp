#include "nmrf/nmrf_io.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "capi/handles.h"
#include "nmrf/files.h"
#include "nmrf/geometry.h"
#include "nmrf/rectify.h"

struct nmrf_io {
  std::string message;
};
struct nmrf_picture {
  nmrf::Image image;
};
struct nmrf_cloud {
  std::vector<nmrf::Point> points;
  bool normals;
};
struct nmrf_rectifier {
  nmrf::Rectifier rectifier;
};

namespace nmrf::capi {
namespace {

// The points are handed out as they are.
static_assert(sizeof(Point) == sizeof(nmrf_point) &&
              offsetof(Point, rgb) == offsetof(nmrf_point, red) &&
              offsetof(Point, normal) == offsetof(nmrf_point, normal));

const char* path_of(const char* path) {
  check(path != nullptr, ErrorKind::kUsage, "the path is NULL");
  return path;
}

const Disparity& disparity_of(const nmrf_result* result) {
  check(result && !result->disparity.map.empty(), ErrorKind::kUsage,
        "the result holds no disparity map");
  return result->disparity;
}

template <class T>
void check_target(T** target) {
  check(target != nullptr, ErrorKind::kUsage, "there is nowhere to put the handle: it is NULL");
  *target = nullptr;
}

Calibration calibration_of(const nmrf_calibration* given) {
  const nmrf_calibration c = read_struct(given, "the calibration");
  Calibration result;
  result.fx = c.fx;
  result.fy = c.fy;
  result.cx = c.cx;
  result.cy = c.cy;
  result.doffs = c.doffs;
  result.baseline = c.baseline;
  result.width = c.width;
  result.height = c.height;
  result.source = "the calibration";
  result.validate();
  return result;
}

void put(const Calibration& c, nmrf_calibration* to) {
  write_struct(to,
               {.size = 0,
                .fx = c.fx,
                .fy = c.fy,
                .cx = c.cx,
                .cy = c.cy,
                .doffs = c.doffs,
                .baseline = c.baseline,
                .width = c.width,
                .height = c.height},
               "the calibration");
}

Camera camera_of(const nmrf_camera& c) {
  constexpr int kRoom = sizeof c.distortion / sizeof c.distortion[0];
  check(c.coefficients >= 0 && c.coefficients <= kRoom, ErrorKind::kUsage,
        "a camera has {} coefficients; expected 0 to {}", c.coefficients, kRoom);
  check(c.lens == NMRF_PINHOLE || c.lens == NMRF_FISHEYE, ErrorKind::kUsage,
        "lens is {}; expected NMRF_PINHOLE or NMRF_FISHEYE", c.lens);
  return {c.fx,
          c.fy,
          c.cx,
          c.cy,
          c.lens == NMRF_PINHOLE ? Lens::kPinhole : Lens::kFisheye,
          {c.distortion, c.distortion + c.coefficients},
          c.width,
          c.height};
}

nmrf_camera plain(const Camera& c) {
  nmrf_camera result{.fx = c.fx,
                     .fy = c.fy,
                     .cx = c.cx,
                     .cy = c.cy,
                     .width = c.width,
                     .height = c.height,
                     .lens = c.lens == Lens::kPinhole ? NMRF_PINHOLE : NMRF_FISHEYE,
                     .coefficients = static_cast<int32_t>(c.distortion.size()),
                     .distortion = {}};
  std::copy(c.distortion.begin(), c.distortion.end(), result.distortion);  // validated: 12 at most
  return result;
}

const Rectifier& rectifier_of(const nmrf_rectifier* rectifier) {
  check(rectifier != nullptr, ErrorKind::kUsage, "the rectifier is NULL");
  return rectifier->rectifier;
}

PointCloudOptions cloud_options(const nmrf_cloud_options* given) {
  const nmrf_cloud_options o = read_optional(given, "the options");
  PointCloudOptions options;
  options.z_near = o.z_near;
  if (o.z_far != 0) options.z_far = o.z_far;
  options.edge = o.edge;
  if (o.stride != 0) options.stride = o.stride;
  options.occluded = o.occluded != 0;
  options.filled = o.filled != 0;
  options.min_confidence = o.min_confidence;
  options.normals = o.normals != 0;
  return options;
}

}  // namespace
}  // namespace nmrf::capi

using namespace nmrf::capi;

nmrf_io* nmrf_io_new(void) { return new (std::nothrow) nmrf_io; }
const char* nmrf_io_message(const nmrf_io* io) {
  return io ? io->message.c_str() : "there is no nmrf_io";
}
void nmrf_io_free(nmrf_io* io) { delete io; }

void nmrf_picture_view(const nmrf_picture* picture, nmrf_image* image) {
  if (!picture) return;
  std::string ignored;
  guarded(ignored, [&] {
    const nmrf::Image& own = picture->image;
    write_struct(image,
                 {.size = 0,
                  .data = own.data(),
                  .width = own.width(),
                  .height = own.height(),
                  .stride = 0,
                  .channels = own.channels(),
                  .bits = own.bits(),
                  .order = own.order() == nmrf::ChannelOrder::kRgb ? NMRF_RGB : NMRF_BGR,
                  .reserved = 0},
                 "the image");
  });
}
void nmrf_picture_free(nmrf_picture* picture) { delete picture; }

nmrf_status nmrf_io_read_image(nmrf_io* io, const char* path, nmrf_picture** picture) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    check_target(picture);
    *picture = new nmrf_picture{nmrf::read_image(path_of(path))};
  });
}

nmrf_status nmrf_io_write_image(nmrf_io* io, const char* path, const nmrf_image* image) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message,
                 [&] { nmrf::write_image(path_of(path), view_of(image, "the image")); });
}

nmrf_status nmrf_io_align_image(nmrf_io* io, const nmrf_image* right,
                                const nmrf_alignment* alignment, nmrf_picture** picture) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    check_target(picture);
    nmrf::check(alignment != nullptr, nmrf::ErrorKind::kUsage, "the alignment is NULL");
    *picture = new nmrf_picture{
        nmrf::aligned(view_of(right, "the right image"), alignment_of(*alignment))};
  });
}

nmrf_status nmrf_io_read_disparity(nmrf_io* io, const char* path, double divisor,
                                   nmrf_result* result) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    nmrf::check(result != nullptr, nmrf::ErrorKind::kUsage, "the result is NULL");
    nmrf::DisparityScale scale;
    if (divisor != 0) scale.divisor = divisor;
    nmrf::Disparity read;
    read.map = nmrf::read_disparity(path_of(path), scale);
    result->disparity = std::move(read);
  });
}

nmrf_status nmrf_io_write_disparity(nmrf_io* io, const char* path, const nmrf_result* result) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message,
                 [&] { nmrf::write_disparity(path_of(path), disparity_of(result).map); });
}

nmrf_status nmrf_io_read_calibration(nmrf_io* io, const char* path, nmrf_calibration* calibration) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] { put(nmrf::read_calibration(path_of(path)), calibration); });
}

nmrf_status nmrf_io_scale_calibration(nmrf_io* io, double sx, double sy,
                                      nmrf_calibration* calibration) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    nmrf::check(sx > 0 && sy > 0, nmrf::ErrorKind::kUsage,
                "a calibration cannot be scaled by {} and {}; expected positive factors", sx, sy);
    put(calibration_of(calibration).scaled(sx, sy), calibration);
  });
}

nmrf_status nmrf_io_depth(nmrf_io* io, const nmrf_result* result,
                          const nmrf_calibration* calibration, int filled, float* depth,
                          ptrdiff_t stride) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    nmrf::check(depth != nullptr, nmrf::ErrorKind::kUsage, "the buffer of the depths is NULL");
    const nmrf::FloatMap map =
        nmrf::depth_from_disparity(disparity_of(result), calibration_of(calibration), filled != 0);
    copy_map(map, depth, stride, "depth");
  });
}

nmrf_status nmrf_io_depth_sigma(nmrf_io* io, const nmrf_result* result,
                                const nmrf_calibration* calibration, int filled, float* sigma,
                                ptrdiff_t stride) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    nmrf::check(sigma != nullptr, nmrf::ErrorKind::kUsage, "the buffer of the errors is NULL");
    const nmrf::FloatMap map =
        nmrf::depth_sigma(disparity_of(result), calibration_of(calibration), filled != 0);
    copy_map(map, sigma, stride, "depth sigma");
  });
}

nmrf_status nmrf_io_write_depth(nmrf_io* io, const char* path, const nmrf_result* result,
                                const nmrf_calibration* calibration, int filled) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    nmrf::write_depth(
        path_of(path),
        nmrf::depth_from_disparity(disparity_of(result), calibration_of(calibration), filled != 0));
  });
}

nmrf_status nmrf_io_read_rig(nmrf_io* io, const char* const* files, nmrf_rig* rig) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    std::vector<std::filesystem::path> paths;
    for (const char* const* file = files; file && *file; ++file) paths.emplace_back(*file);
    const nmrf::StereoRig read = nmrf::read_rig(paths);
    nmrf_rig plain_rig{.size = 0,
                       .left = plain(read.left),
                       .right = plain(read.right),
                       .rotation = {},
                       .translation = {}};
    std::copy(read.rotation.begin(), read.rotation.end(), plain_rig.rotation);
    std::copy(read.translation.begin(), read.translation.end(), plain_rig.translation);
    write_struct(rig, plain_rig, "the rig");
  });
}

nmrf_status nmrf_io_rectifier(nmrf_io* io, const nmrf_rig* rig, const nmrf_rectify_options* options,
                              nmrf_rectifier** rectifier) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    check_target(rectifier);
    const nmrf_rig r = read_struct(rig, "the rig");
    const nmrf_rectify_options o = read_optional(options, "the options");
    nmrf::StereoRig made;
    made.left = camera_of(r.left);
    made.right = camera_of(r.right);
    std::copy_n(r.rotation, 9, made.rotation.begin());
    std::copy_n(r.translation, 3, made.translation.begin());
    *rectifier = new nmrf_rectifier{
        nmrf::Rectifier(made, {.alpha = o.alpha, .width = o.width, .height = o.height})};
  });
}

nmrf_status nmrf_io_rectify(nmrf_io* io, const nmrf_rectifier* rectifier, const nmrf_image* left,
                            const nmrf_image* right, nmrf_picture** rectified_left,
                            nmrf_picture** rectified_right) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    check_target(rectified_left);
    check_target(rectified_right);
    const nmrf::Rectifier& by = rectifier_of(rectifier);
    auto made_left =
        std::make_unique<nmrf_picture>(nmrf_picture{by.left(view_of(left, "the left image"))});
    *rectified_right = new nmrf_picture{by.right(view_of(right, "the right image"))};
    *rectified_left = made_left.release();
  });
}

nmrf_status nmrf_io_rectified_calibration(nmrf_io* io, const nmrf_rectifier* rectifier,
                                          nmrf_calibration* calibration) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] { put(rectifier_of(rectifier).calibration(), calibration); });
}

nmrf_status nmrf_io_write_calibration(nmrf_io* io, const char* path,
                                      const nmrf_rectifier* rectifier) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message,
                 [&] { nmrf::write_calibration(path_of(path), rectifier_of(rectifier)); });
}
void nmrf_rectifier_free(nmrf_rectifier* rectifier) { delete rectifier; }

nmrf_status nmrf_io_point_cloud(nmrf_io* io, const nmrf_result* result, const nmrf_image* image,
                                const nmrf_calibration* calibration,
                                const nmrf_cloud_options* options, nmrf_cloud** cloud) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    check_target(cloud);
    const nmrf::PointCloudOptions chosen = cloud_options(options);
    *cloud = new nmrf_cloud{nmrf::point_cloud(disparity_of(result), view_of(image, "the image"),
                                              calibration_of(calibration), chosen),
                            chosen.normals};
  });
}

const nmrf_point* nmrf_cloud_points(const nmrf_cloud* cloud, size_t* count) {
  if (count) *count = cloud ? cloud->points.size() : 0;
  return cloud ? reinterpret_cast<const nmrf_point*>(cloud->points.data()) : nullptr;
}

nmrf_status nmrf_io_write_ply(nmrf_io* io, const char* path, const nmrf_cloud* cloud) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    nmrf::check(cloud != nullptr, nmrf::ErrorKind::kUsage, "the cloud is NULL");
    nmrf::write_ply(path_of(path), cloud->points, cloud->normals);
  });
}
void nmrf_cloud_free(nmrf_cloud* cloud) { delete cloud; }
