// PLY and PCD.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/file.h"
#include "nmrf/geometry.h"

namespace nmrf {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

// Writes the header, then pack(point, to) for each point, `bytes` of them.
template <class Pack>
void write_points(const std::filesystem::path& path, const std::string& header,
                  const std::vector<Point>& points, std::size_t bytes, const Pack& pack) {
  constexpr std::size_t kBatch = 1 << 14;
  AtomicFile file(path);
  file.write(header);
  std::vector<std::uint8_t> buffer;
  for (std::size_t first = 0; first < points.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, points.size() - first);
    buffer.resize(count * bytes);
    for (std::size_t i = 0; i < count; ++i) pack(points[first + i], buffer.data() + i * bytes);
    file.write(buffer.data(), buffer.size());
  }
  file.commit();
}

constexpr std::size_t kVector = 3 * sizeof(float);

void put_position(const Point& point, std::uint8_t* to) {
  const float position[3] = {point.x, point.y, point.z};
  std::memcpy(to, position, kVector);
}

}  // namespace

void write_ply(const std::filesystem::path& path, const std::vector<Point>& points, bool normals) {
  const std::string header = fmt::format(
      "ply\n"
      "format binary_little_endian 1.0\n"
      "comment metres; +x right, +y down, +z forward\n"
      "element vertex {}\n"
      "property float x\n"
      "property float y\n"
      "property float z\n"
      "{}"
      "property uchar red\n"
      "property uchar green\n"
      "property uchar blue\n"
      "end_header\n",
      points.size(), normals ? "property float nx\nproperty float ny\nproperty float nz\n" : "");
  const std::size_t colour = normals ? 2 * kVector : kVector;
  write_points(path, header, points, colour + 3, [&](const Point& point, std::uint8_t* to) {
    put_position(point, to);
    if (normals) std::memcpy(to + kVector, point.normal.data(), kVector);
    std::memcpy(to + colour, point.rgb.data(), 3);
  });
}

void write_pcd(const std::filesystem::path& path, const std::vector<Point>& points, bool normals) {
  const std::string header = fmt::format(
      "# .PCD v0.7 - Point Cloud Data file format\n"
      "VERSION 0.7\n"
      "FIELDS x y z rgb{0}\n"
      "SIZE 4 4 4 4{1}\n"
      "TYPE F F F U{2}\n"
      "COUNT 1 1 1 1{3}\n"
      "WIDTH {4}\n"
      "HEIGHT 1\n"
      "VIEWPOINT 0 0 0 1 0 0 0\n"
      "POINTS {4}\n"
      "DATA binary\n",
      normals ? " normal_x normal_y normal_z" : "", normals ? " 4 4 4" : "",
      normals ? " F F F" : "", normals ? " 1 1 1" : "", points.size());
  constexpr std::size_t kNormal = kVector + sizeof(std::uint32_t);
  write_points(path, header, points, normals ? kNormal + kVector : kNormal,
               [&](const Point& point, std::uint8_t* to) {
                 put_position(point, to);
                 const std::uint32_t rgb = static_cast<std::uint32_t>(point.rgb[0]) << 16 |
                                           static_cast<std::uint32_t>(point.rgb[1]) << 8 |
                                           point.rgb[2];
                 std::memcpy(to + kVector, &rgb, sizeof rgb);
                 if (normals) std::memcpy(to + kNormal, point.normal.data(), kVector);
               });
}

}  // namespace nmrf
