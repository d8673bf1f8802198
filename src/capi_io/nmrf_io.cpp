#include "nmrf/nmrf_io.h"

#include <limits>
#include <vector>

#include "capi/handles.h"
#include "nmrf/files.h"
#include "nmrf/geometry.h"

struct nmrf_io {
  std::string message;
};
struct nmrf_picture {
  nmrf::Image image;
};
struct nmrf_cloud {
  std::vector<nmrf::Point> points;
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

nmrf_status nmrf_io_write_depth(nmrf_io* io, const char* path, const nmrf_result* result,
                                const nmrf_calibration* calibration, int filled) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    nmrf::write_depth(
        path_of(path),
        nmrf::depth_from_disparity(disparity_of(result), calibration_of(calibration), filled != 0));
  });
}

nmrf_status nmrf_io_point_cloud(nmrf_io* io, const nmrf_result* result, const nmrf_image* image,
                                const nmrf_calibration* calibration,
                                const nmrf_cloud_options* options, nmrf_cloud** cloud) {
  if (!io) return NMRF_USAGE;
  return guarded(io->message, [&] {
    check_target(cloud);
    *cloud = new nmrf_cloud{nmrf::point_cloud(disparity_of(result), view_of(image, "the image"),
                                              calibration_of(calibration), cloud_options(options))};
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
    nmrf::write_ply(path_of(path), cloud->points);
  });
}
void nmrf_cloud_free(nmrf_cloud* cloud) { delete cloud; }
