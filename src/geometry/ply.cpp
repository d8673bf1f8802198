#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/file.h"
#include "nmrf/geometry.h"

namespace nmrf {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

void write_ply(const std::filesystem::path& path, const std::vector<Point>& points) {
  constexpr std::size_t kPointBytes = 15;  // without the padding that the struct has in memory
  constexpr std::size_t kBatch = 1 << 14;
  AtomicFile file(path);
  file.write(
      fmt::format("ply\n"
                  "format binary_little_endian 1.0\n"
                  "comment metres; +x right, +y down, +z forward\n"
                  "element vertex {}\n"
                  "property float x\n"
                  "property float y\n"
                  "property float z\n"
                  "property uchar red\n"
                  "property uchar green\n"
                  "property uchar blue\n"
                  "end_header\n",
                  points.size()));
  std::vector<std::uint8_t> buffer;
  for (std::size_t first = 0; first < points.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, points.size() - first);
    buffer.resize(count * kPointBytes);
    for (std::size_t i = 0; i < count; ++i) {
      const Point& point = points[first + i];
      const float position[3] = {point.x, point.y, point.z};
      std::memcpy(buffer.data() + i * kPointBytes, position, sizeof position);
      std::memcpy(buffer.data() + i * kPointBytes + sizeof position, point.rgb.data(), 3);
    }
    file.write(buffer.data(), buffer.size());
  }
  file.commit();
}

}  // namespace nmrf
