#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <unordered_map>

#include "core/check.h"
#include "geometry/pixel_choice.h"
#include "nmrf/geometry.h"

namespace nmrf {
namespace {

// The nearest neighbours of points: a tree over their order, its middle element the root of every
// part, which is split along the axes in turn.
class PointTree {
 public:
  explicit PointTree(const std::vector<Point>& points) : points_(points), order_(points.size()) {
    std::iota(order_.begin(), order_.end(), 0u);
    build(0, order_.size(), 0);
  }

  // Mean distance of a point to its `count` nearest others.
  double mean_distance(std::uint32_t point, std::size_t count, std::vector<float>& heap) const {
    heap.clear();
    search(0, order_.size(), 0, point, count, heap);
    double sum = 0;
    for (float square : heap) sum += std::sqrt(square);
    return heap.empty() ? 0 : sum / static_cast<double>(heap.size());
  }

 private:
  static float at(const Point& p, int axis) { return axis == 0 ? p.x : axis == 1 ? p.y : p.z; }

  void build(std::size_t begin, std::size_t end, int axis) {
    if (end - begin < 2) return;
    const std::size_t middle = (begin + end) / 2;
    auto place = [&](std::size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::nth_element(place(begin), place(middle), place(end),
                     [&](std::uint32_t a, std::uint32_t b) {
                       return at(points_[a], axis) < at(points_[b], axis);
                     });
    build(begin, middle, (axis + 1) % 3);
    build(middle + 1, end, (axis + 1) % 3);
  }

  // heap: squared distances, the greatest first.
  void search(std::size_t begin, std::size_t end, int axis, std::uint32_t point, std::size_t count,
              std::vector<float>& heap) const {
    if (begin >= end) return;
    const std::size_t middle = (begin + end) / 2;
    const Point &own = points_[point], &other = points_[order_[middle]];
    if (order_[middle] != point) {
      const float x = own.x - other.x, y = own.y - other.y, z = own.z - other.z,
                  square = x * x + y * y + z * z;
      if (heap.size() < count) {
        heap.push_back(square);
        std::push_heap(heap.begin(), heap.end());
      } else if (square < heap.front()) {
        std::pop_heap(heap.begin(), heap.end());
        heap.back() = square;
        std::push_heap(heap.begin(), heap.end());
      }
    }
    const float side = at(own, axis) - at(other, axis);
    const int next = (axis + 1) % 3;
    if (side < 0)
      search(begin, middle, next, point, count, heap);
    else
      search(middle + 1, end, next, point, count, heap);
    if (heap.size() >= count && side * side > heap.front()) return;
    if (side < 0)
      search(middle + 1, end, next, point, count, heap);
    else
      search(begin, middle, next, point, count, heap);
  }

  const std::vector<Point>& points_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::vector<Point> point_cloud(const Disparity& disparity, const ImageView& image,
                               const Calibration& calibration, const PointCloudOptions& options) {
  const PixelChoice choice(disparity, calibration, options);
  const FloatMap& map = disparity.map;
  check(image.width == map.width() && image.height == map.height(), ErrorKind::kUsage,
        "the image of a point cloud must be of the size of the disparity map, {}x{}; it has {}x{} "
        "pixels.",
        map.width(), map.height(), image.width, image.height);
  const Image colors = to_rgb8(image, "the image of the point cloud");
  std::vector<Point> points;
  for (int y = 0; y < map.height(); y += options.stride)
    for (int x = 0; x < map.width(); x += options.stride) {
      if (!choice.wanted(y, x)) continue;
      const std::uint8_t* rgb = colors.row(y) + 3 * x;
      const auto at = choice.position(y, x);
      points.push_back({at[0], at[1], at[2], {rgb[0], rgb[1], rgb[2]}});
      if (options.normals) points.back().normal = choice.normal(y, x);
    }
  return points;
}

std::vector<Point> thin_out(const std::vector<Point>& points, double size) {
  check(size > 0 && std::isfinite(size), ErrorKind::kUsage,
        "the cubes of a thinned cloud have sides of {} m; expected a positive length.", size);
  struct Cube {
    double position[3] = {}, colour[3] = {}, normal[3] = {}, count = 0;
  };
  struct Key {
    std::int64_t x, y, z;
    bool operator==(const Key&) const = default;
  };
  auto hash = [](const Key& key) {
    std::uint64_t value = static_cast<std::uint64_t>(key.x) * 0x9e3779b97f4a7c15u;
    value = (value ^ static_cast<std::uint64_t>(key.y)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ static_cast<std::uint64_t>(key.z)) * 0x94d049bb133111ebu;
    return static_cast<std::size_t>(value ^ value >> 31);
  };
  std::unordered_map<Key, std::size_t, decltype(hash)> index(points.size(), hash);
  std::vector<Cube> cubes;
  for (const Point& point : points) {
    const float position[3] = {point.x, point.y, point.z};
    auto part = [&](int axis) {
      return static_cast<std::int64_t>(std::floor(position[axis] / size));
    };
    const std::size_t at =
        index.emplace(Key{part(0), part(1), part(2)}, cubes.size()).first->second;
    if (at == cubes.size()) cubes.emplace_back();
    Cube& cube = cubes[at];
    ++cube.count;
    for (std::size_t i = 0; i < 3; ++i) {
      cube.position[i] += position[i];
      cube.colour[i] += point.rgb[i];
      cube.normal[i] += point.normal[i];
    }
  }
  std::vector<Point> result;
  result.reserve(cubes.size());
  for (const Cube& cube : cubes) {
    const double length = std::hypot(cube.normal[0], cube.normal[1], cube.normal[2]);
    Point point{};
    float* to[3] = {&point.x, &point.y, &point.z};
    for (std::size_t i = 0; i < 3; ++i) {
      *to[i] = static_cast<float>(cube.position[i] / cube.count);
      point.rgb[i] = static_cast<std::uint8_t>(std::lround(cube.colour[i] / cube.count));
      if (length > 0) point.normal[i] = static_cast<float>(cube.normal[i] / length);
    }
    result.push_back(point);
  }
  return result;
}

std::vector<Point> without_outliers(const std::vector<Point>& points, int neighbours,
                                    double deviations) {
  check(neighbours >= 1 && deviations >= 0, ErrorKind::kUsage,
        "outliers by {} neighbours and {} deviations; expected at least 1 and 0.", neighbours,
        deviations);
  if (points.size() <= static_cast<std::size_t>(neighbours)) return points;
  const PointTree tree(points);
  std::vector<double> distances(points.size());
  std::vector<float> heap;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    distances[i] = tree.mean_distance(static_cast<std::uint32_t>(i),
                                      static_cast<std::size_t>(neighbours), heap);
    sum += distances[i];
    squares += distances[i] * distances[i];
  }
  const auto count = static_cast<double>(points.size());
  const double mean = sum / count, variance = std::max(0.0, squares / count - mean * mean),
               most = mean + deviations * std::sqrt(variance);
  std::vector<Point> result;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (distances[i] <= most) result.push_back(points[i]);
  return result;
}

}  // namespace nmrf
