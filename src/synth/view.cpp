#include "synth/view.h"

namespace nmrf::synth {
namespace {

// What decides whether a pixel needs more rays.
struct Seen {
  int object;
  int material;
  float inverse;  // 1 / depth, 0 for the sky
  Vec3 normal;
  float light;  // colour relative to the colour of the surface itself
  float open;   // of Shader::corners
};

// True when more rays are worth their time between the two neighbours: at the edge of a surface, a
// shadow or a highlight. Textures are filtered already and need none.
bool differ(const Seen& a, const Seen& b) {
  if (a.object != b.object || a.material != b.material) return true;
  if (dot(a.normal, b.normal) < 0.8f) return true;
  if (std::abs(a.inverse - b.inverse) > 0.06f * std::max(a.inverse, b.inverse)) return true;
  return std::abs(a.light - b.light) > 0.2f * (a.light + b.light);
}

// Depth of the triangle's plane along the ray in double precision: Embree's own value loses digits
// on large triangles.
double plane_depth(const Scene& scene, std::uint32_t triangle, Vec3 origin, Vec3 direction) {
  const auto& t = scene.triangles()[triangle];
  const auto& p = scene.positions();
  auto difference = [](Vec3 a, Vec3 b) {
    return std::array<double, 3>{double(a.x) - b.x, double(a.y) - b.y, double(a.z) - b.z};
  };
  auto e1 = difference(p[t[1]], p[t[0]]), e2 = difference(p[t[2]], p[t[0]]);
  auto o = difference(p[t[0]], origin);
  std::array<double, 3> n{e1[1] * e2[2] - e1[2] * e2[1], e1[2] * e2[0] - e1[0] * e2[2],
                          e1[0] * e2[1] - e1[1] * e2[0]};
  double above = n[0] * o[0] + n[1] * o[1] + n[2] * o[2];
  double slope = n[0] * direction.x + n[1] * direction.y + n[2] * direction.z;
  return slope != 0 ? above / slope : -1;
}

class Renderer {
 public:
  Renderer(const Scene& scene, const Caster& caster, const StereoCamera& camera, bool right,
           const Misalignment& off)
      : scene_(scene),
        caster_(caster),
        camera_(camera),
        right_(right),
        off_(off),
        eye_(camera.center(right)),
        other_(camera.center(!right)),
        shader_(scene, caster, 1 / camera.focal) {
    view_.color.create(camera.height, camera.width, CV_32FC3);
    view_.truth.disparity.create(camera.height, camera.width, CV_32FC1);
    view_.truth.objects.create(camera.height, camera.width, CV_32SC1);
    view_.truth.surfaces.create(camera.height, camera.width, CV_8UC1);
    view_.truth.occluded.create(camera.height, camera.width, CV_8UC1);
    seen_.resize(static_cast<std::size_t>(camera.width) * static_cast<std::size_t>(camera.height));
  }

  View render(int edge_samples) {
    for (int y = 0; y < camera_.height; y += 4)
      for (int x = 0; x < camera_.width; x += 4) block(x, y);
    if (edge_samples > 1) edges(edge_samples);
    return std::move(view_);
  }

 private:
  Vec3& color(int x, int y) { return reinterpret_cast<Vec3&>(view_.color.at<cv::Vec3f>(y, x)); }
  Seen& seen(int x, int y) {
    return seen_[static_cast<std::size_t>(y) * static_cast<std::size_t>(camera_.width) +
                 static_cast<std::size_t>(x)];
  }
  // The ray of the colour image, which may be misaligned.
  Vec3 color_ray(float x, float y) const {
    return camera_.ray(
        x, y + off_.shift + off_.turn * (x - camera_.cx) + off_.stretch * (y - camera_.cy));
  }
  // Half of the sky's disparity for each eye.
  void to_sky() {
    float half = (right_ ? 0.5f : -0.5f) * scene_.sky_disparity / camera_.focal;
    for (int i = 0; i < kPacket; ++i)
      if (packet_.active[i] && !hits_[i].hit)
        hits_[i].direction = hits_[i].direction + camera_.pose.x * half;
  }

  template <class Ray>
  void aim(int bx, int by, Ray&& ray) {
    for (int i = 0; i < kPacket; ++i) {
      int x = bx + i % 4, y = by + i / 4;
      if (x < camera_.width && y < camera_.height)
        packet_.set(i, eye_, ray(static_cast<float>(x), static_cast<float>(y)), camera_.near_depth,
                    1e9f);
      else
        packet_.off(i);
    }
  }

  // Truth and first colour of 4 x 4 pixels.
  void block(int bx, int by) {
    aim(bx, by, [&](float x, float y) { return camera_.ray(x, y); });
    shader_.trace(packet_, true, 1, hits_);
    truth(bx, by);
    if (!off_.none()) {
      aim(bx, by, [&](float x, float y) { return color_ray(x, y); });
      shader_.trace(packet_, true, 1, hits_);
    }
    to_sky();
    Vec3 colors[kPacket], bare[kPacket];
    float open[kPacket];
    shader_.corners(hits_, packet_.active, open);
    shader_.shade(hits_, packet_.active, open, nullptr, colors, bare);
    for (int i = 0; i < kPacket; ++i) {
      if (!packet_.active[i]) continue;
      const Hit& h = hits_[i];
      int x = bx + i % 4, y = by + i / 4;
      color(x, y) = colors[i];
      seen(x, y) = {h.object,
                    h.hit ? h.material : -1,
                    h.hit ? 1 / h.distance : 0.f,
                    h.hit ? h.flat : Vec3{0, 0, 1},
                    h.hit ? luminance(colors[i]) / std::max(luminance(bare[i]), 1e-3f) : 1.f,
                    open[i]};
    }
  }

  void truth(int bx, int by) {
    double scale = double(camera_.focal) * camera_.baseline;
    float to_other = right_ ? 1.f : -1.f;  // x there = x here + to_other * d
    Packet back;
    for (int i = 0; i < kPacket; ++i) {
      back.off(i);
      if (!packet_.active[i]) continue;
      const Hit& h = hits_[i];
      int x = bx + i % 4, y = by + i / 4;
      float d = scene_.sky_disparity;
      if (h.hit) {
        double z = plane_depth(scene_, h.triangle, eye_, h.direction);
        // A ray in the plane itself has no depth there; Embree's value stands.
        if (!(std::abs(z - h.distance) < 1e-3 * h.distance)) z = h.distance;
        d = static_cast<float>(scale / z);
        Vec3 point = eye_ + h.direction * static_cast<float>(z);
        back.set(i, other_, point - other_, camera_.near_depth / static_cast<float>(z), 1 - 5e-4f);
      } else {
        Vec3 there = h.direction + camera_.pose.x * (to_other * d / camera_.focal);
        back.set(i, other_, there, camera_.near_depth, 1e9f);
      }
      float x_other = static_cast<float>(x) + to_other * d;
      bool outside = x_other < -0.5f || x_other > static_cast<float>(camera_.width) - 0.5f;
      if (outside) back.off(i);
      view_.truth.disparity.at<float>(y, x) = d;
      view_.truth.objects.at<int>(y, x) = h.hit ? h.object : 0;
      const Surface surface =
          h.hit ? surface_of(scene_.materials()[static_cast<std::size_t>(h.material)])
                : Surface::kSky;
      view_.truth.surfaces.at<std::uint8_t>(y, x) = static_cast<std::uint8_t>(surface);
      view_.truth.occluded.at<std::uint8_t>(y, x) = outside ? 255 : 0;
    }
    caster_.blocked(back);
    for (int i = 0; i < kPacket; ++i)
      if (back.active[i] && back.distance(i) < 0)
        view_.truth.occluded.at<std::uint8_t>(by + i / 4, bx + i % 4) = 255;
  }

  // The darkening of corners for a further ray: of a pixel nearby that shows the same object.
  float open_near(int x, int y, int object) {
    for (int dy : {0, -1, 1})
      for (int dx : {0, -1, 1}) {
        int nx = x + dx, ny = y + dy;
        if (nx < 0 || ny < 0 || nx >= camera_.width || ny >= camera_.height) continue;
        if (seen(nx, ny).object == object) return seen(nx, ny).open;
      }
    return 0.8f;
  }

  // Replaces the colour of pixels at edges by the mean of several rays.
  void edges(int samples) {
    int width = camera_.width, height = camera_.height;
    cv::Mat edge(height, width, CV_8UC1, cv::Scalar(0));
    double sum = 0;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        sum += luminance(color(x, y));
        if (x + 1 < width && differ(seen(x, y), seen(x + 1, y)))
          edge.at<std::uint8_t>(y, x) = edge.at<std::uint8_t>(y, x + 1) = 1;
        if (y + 1 < height && differ(seen(x, y), seen(x, y + 1)))
          edge.at<std::uint8_t>(y, x) = edge.at<std::uint8_t>(y + 1, x) = 1;
      }
    // Clipped well above white, as a sensor would: one highlight must not outweigh a pixel.
    limit_ = 6 * std::max(1e-4f, static_cast<float>(sum / (double(width) * height)));
    // A lattice that fills the pixel evenly for any number of rays.
    offsets_.clear();
    for (int k = 0; k < samples; ++k) {
      float u = (static_cast<float>(k) + 0.5f) / static_cast<float>(samples);
      float v = static_cast<float>(k) * 0.618034f + 0.25f;
      offsets_.push_back({u - 0.5f, v - std::floor(v) - 0.5f});
    }
    queue_.clear();
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        if (!edge.at<std::uint8_t>(y, x)) continue;
        color(x, y) = {};
        for (int k = 0; k < samples; ++k) {
          queue_.push_back({x, y, k});
          if (queue_.size() == kPacket) flush();
        }
      }
    if (!queue_.empty()) flush();
  }

  void flush() {
    float share = 1 / static_cast<float>(offsets_.size());
    int lamp_points[kPacket] = {};
    for (int i = 0; i < kPacket; ++i) {
      packet_.off(i);
      if (i >= static_cast<int>(queue_.size())) continue;
      const Sample& s = queue_[static_cast<std::size_t>(i)];
      Vec2 o = offsets_[static_cast<std::size_t>(s.number)];
      packet_.set(i, eye_, color_ray(static_cast<float>(s.x) + o.x, static_cast<float>(s.y) + o.y),
                  camera_.near_depth, 1e9f);
      lamp_points[i] = s.number;
    }
    shader_.trace(packet_, true, std::sqrt(share), hits_);
    to_sky();
    float open[kPacket];
    Vec3 colors[kPacket];
    for (std::size_t i = 0; i < queue_.size(); ++i)
      open[i] = open_near(queue_[i].x, queue_[i].y, hits_[i].object);
    shader_.shade(hits_, packet_.active, open, lamp_points, colors);
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      Vec3 c{std::min(colors[i].x, limit_), std::min(colors[i].y, limit_),
             std::min(colors[i].z, limit_)};
      color(queue_[i].x, queue_[i].y) += c * share;
    }
    queue_.clear();
  }

  struct Sample {
    int x, y, number;
  };
  const Scene& scene_;
  const Caster& caster_;
  const StereoCamera& camera_;
  bool right_;
  Misalignment off_;
  Vec3 eye_, other_;
  Shader shader_;
  View view_;
  std::vector<Seen> seen_;
  Packet packet_;
  Hit hits_[kPacket];
  std::vector<Vec2> offsets_;
  std::vector<Sample> queue_;
  float limit_ = 1;
};

}  // namespace

View render_view(const Scene& scene, const Caster& caster, const StereoCamera& camera, bool right,
                 const Misalignment& misalignment, int edge_samples) {
  return Renderer(scene, caster, camera, right, misalignment).render(edge_samples);
}

}  // namespace nmrf::synth
