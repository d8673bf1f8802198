#include "data/synth/view.h"

#include <cstring>

namespace nmrf::synth {
namespace {

// Calls visit(x, y, lane mask setter) for blocks of 4 x 4 pixels.
template <class Fill, class Done>
void for_blocks(int width, int height, Fill&& fill, Done&& done) {
  for (int by = 0; by < height; by += 4)
    for (int bx = 0; bx < width; bx += 4) {
      for (int i = 0; i < kPacket; ++i) {
        int x = bx + i % 4, y = by + i / 4;
        fill(i, x, y, x < width && y < height);
      }
      done(bx, by);
    }
}

// The direction in which the camera sees the sky: half of the sky's disparity for each eye.
Vec3 sky_direction(const Scene& scene, const StereoCamera& camera, bool right, Vec3 direction) {
  float half = 0.5f * scene.sky_disparity / camera.focal;
  return direction + camera.pose.x * (right ? half : -half);
}

// Depth of the triangle's plane along the ray in double precision: Embree's own value loses digits on
// large triangles.
double plane_depth(const Scene& scene, std::uint32_t triangle, Vec3 origin, Vec3 direction) {
  const auto& t = scene.triangles()[triangle];
  const auto& p = scene.positions();
  auto d = [](Vec3 a, Vec3 b) {
    return std::array<double, 3>{double(a.x) - b.x, double(a.y) - b.y, double(a.z) - b.z};
  };
  auto e1 = d(p[t[1]], p[t[0]]), e2 = d(p[t[2]], p[t[0]]), o = d(p[t[0]], origin);
  std::array<double, 3> n{e1[1] * e2[2] - e1[2] * e2[1], e1[2] * e2[0] - e1[0] * e2[2],
                          e1[0] * e2[1] - e1[1] * e2[0]};
  double above = n[0] * o[0] + n[1] * o[1] + n[2] * o[2];
  double slope = n[0] * direction.x + n[1] * direction.y + n[2] * direction.z;
  return slope != 0 ? above / slope : -1;
}

}  // namespace

Truth render_truth(const Scene& scene, const Caster& caster, const StereoCamera& camera,
                   bool right) {
  int width = camera.width, height = camera.height;
  Truth truth;
  truth.disparity.create(height, width, CV_32FC1);
  truth.objects.create(height, width, CV_32SC1);
  truth.occluded.create(height, width, CV_8UC1);
  Vec3 eye = camera.center(right), other = camera.center(!right);
  double scale = double(camera.focal) * camera.baseline;
  float to_other = right ? 1.f : -1.f;  // x there = x here + to_other * d
  Packet packet;
  for_blocks(
      width, height,
      [&](int lane, int x, int y, bool in) {
        if (in)
          packet.set(lane, eye, camera.ray(static_cast<float>(x), static_cast<float>(y)),
                     camera.near_depth, 1e9f);
        else
          packet.off(lane);
      },
      [&](int bx, int by) {
        caster.nearest(packet, true);
        Packet back;
        for (int i = 0; i < kPacket; ++i) {
          back.off(i);
          if (!packet.active[i]) continue;
          int x = bx + i % 4, y = by + i / 4;
          Vec3 direction = camera.ray(static_cast<float>(x), static_cast<float>(y));
          float d = scene.sky_disparity;
          int object = 0;
          if (packet.hit(i)) {
            std::uint32_t triangle = packet.triangle(i);
            double z = plane_depth(scene, triangle, eye, direction);
            float near_z = packet.distance(i);
            // A ray in the plane itself has no depth there; Embree's value stands.
            if (!(std::abs(z - near_z) < 1e-3 * near_z)) z = near_z;
            d = static_cast<float>(scale / z);
            object = scene.object_of(triangle);
            Vec3 point = eye + direction * static_cast<float>(z);
            back.set(i, other, point - other, camera.near_depth / static_cast<float>(z),
                     1 - 5e-4f);
          } else {
            Vec3 there = direction + camera.pose.x * (to_other * d / camera.focal);
            back.set(i, other, there, camera.near_depth, 1e9f);
          }
          truth.disparity.at<float>(y, x) = d;
          truth.objects.at<int>(y, x) = object;
          float x_other = static_cast<float>(x) + to_other * d;
          bool outside = x_other < -0.5f || x_other > static_cast<float>(width) - 0.5f;
          truth.occluded.at<std::uint8_t>(y, x) = outside ? 255 : 0;
          if (outside) back.off(i);
        }
        caster.blocked(back);
        for (int i = 0; i < kPacket; ++i)
          if (back.active[i] && back.distance(i) < 0)
            truth.occluded.at<std::uint8_t>(by + i / 4, bx + i % 4) = 255;
      });
  return truth;
}

namespace {

// What decides whether a pixel needs more rays.
struct Seen {
  int object;
  int material;
  float inverse;  // 1 / depth, 0 for the sky
  Vec3 normal;
};

float tone(float v) { return std::sqrt(std::max(v, 0.f)); }

// True when the two neighbours differ visibly. `reference`: brightness of the image as a whole.
bool differ(const Seen& a, const Seen& b, Vec3 ca, Vec3 cb, float reference) {
  if (a.object != b.object || a.material != b.material) return true;
  if (dot(a.normal, b.normal) < 0.85f) return true;
  if (std::abs(a.inverse - b.inverse) > 0.06f * std::max(a.inverse, b.inverse)) return true;
  float step = std::max({std::abs(tone(ca.x) - tone(cb.x)), std::abs(tone(ca.y) - tone(cb.y)),
                         std::abs(tone(ca.z) - tone(cb.z))});
  return step > 0.16f * reference;
}

}  // namespace

cv::Mat render_color(const Scene& scene, const Caster& caster, const StereoCamera& camera,
                     bool right, const Misalignment& off, int edge_samples) {
  int width = camera.width, height = camera.height;
  auto pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  Shader shader(scene, caster, 1 / camera.focal);
  Vec3 eye = camera.center(right);
  cv::Mat image(height, width, CV_32FC3);
  auto color_at = [&](int x, int y) -> Vec3& {
    return reinterpret_cast<Vec3&>(image.at<cv::Vec3f>(y, x));
  };
  auto ray = [&](float x, float y) {
    return camera.ray(x, y + off.shift + off.turn * (x - camera.cx) + off.stretch * (y - camera.cy));
  };
  std::vector<Seen> seen(pixels);
  Packet packet;
  Hit hits[kPacket];
  Vec3 colors[kPacket];
  auto to_sky = [&] {
    for (int i = 0; i < kPacket; ++i)
      if (packet.active[i] && !hits[i].hit)
        hits[i].direction = sky_direction(scene, camera, right, hits[i].direction);
  };
  for_blocks(
      width, height,
      [&](int lane, int x, int y, bool in) {
        if (in)
          packet.set(lane, eye, ray(static_cast<float>(x), static_cast<float>(y)),
                     camera.near_depth, 1e9f);
        else
          packet.off(lane);
      },
      [&](int bx, int by) {
        shader.trace(packet, true, 1, hits);
        to_sky();
        shader.shade(hits, packet.active, colors);
        for (int i = 0; i < kPacket; ++i) {
          if (!packet.active[i]) continue;
          int x = bx + i % 4, y = by + i / 4;
          color_at(x, y) = colors[i];
          Seen& s = seen[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                         static_cast<std::size_t>(x)];
          s = {hits[i].object, hits[i].hit ? hits[i].material : -1,
               hits[i].hit ? 1 / hits[i].distance : 0.f, hits[i].hit ? hits[i].flat : Vec3{0, 0, 1}};
        }
      });
  if (edge_samples <= 1) return image;

  double sum = 0;
  for (int y = 0; y < height; y += 3)
    for (int x = 0; x < width; x += 3) sum += tone(luminance(color_at(x, y)));
  float reference = std::max(1e-3f, static_cast<float>(sum * 9 / static_cast<double>(pixels)));
  cv::Mat edges(height, width, CV_8UC1, cv::Scalar(0));
  auto seen_at = [&](int x, int y) -> const Seen& {
    return seen[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                static_cast<std::size_t>(x)];
  };
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      auto compare = [&](int x2, int y2) {
        if (x2 >= width || y2 >= height) return;
        if (differ(seen_at(x, y), seen_at(x2, y2), color_at(x, y), color_at(x2, y2), reference))
          edges.at<std::uint8_t>(y, x) = edges.at<std::uint8_t>(y2, x2) = 1;
      };
      compare(x + 1, y);
      compare(x, y + 1);
    }

  // Offsets of the extra rays: a lattice that fills the pixel evenly for any number of them.
  std::vector<Vec2> offsets;
  for (int k = 0; k < edge_samples; ++k) {
    float u = (static_cast<float>(k) + 0.5f) / static_cast<float>(edge_samples);
    float v = static_cast<float>(k) * 0.618034f + 0.25f;
    offsets.push_back({u - 0.5f, v - std::floor(v) - 0.5f});
  }
  float fine = 1 / std::sqrt(static_cast<float>(edge_samples));
  struct Sample {
    int x, y;
    Vec2 offset;
  };
  std::vector<Sample> queue;
  auto flush = [&] {
    for (int i = 0; i < kPacket; ++i) {
      if (i < static_cast<int>(queue.size())) {
        const Sample& s = queue[static_cast<std::size_t>(i)];
        packet.set(i, eye, ray(static_cast<float>(s.x) + s.offset.x, static_cast<float>(s.y) + s.offset.y),
                   camera.near_depth, 1e9f);
      } else {
        packet.off(i);
      }
    }
    shader.trace(packet, true, fine, hits);
    to_sky();
    shader.shade(hits, packet.active, colors);
    // Clipped a little above white, as a sensor would: one highlight must not outweigh the pixel.
    float limit = 6 * reference * reference;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      Vec3 c = colors[i];
      c = {std::min(c.x, limit), std::min(c.y, limit), std::min(c.z, limit)};
      color_at(queue[i].x, queue[i].y) += c * (1.f / static_cast<float>(edge_samples));
    }
    queue.clear();
  };
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      if (!edges.at<std::uint8_t>(y, x)) continue;
      color_at(x, y) = {};
      for (const Vec2& offset : offsets) {
        queue.push_back({x, y, offset});
        if (queue.size() == kPacket) flush();
      }
    }
  if (!queue.empty()) flush();
  return image;
}

}  // namespace nmrf::synth
