// Rays against the triangles of a scene, sixteen at a time (Embree).
#pragma once

#include <embree3/rtcore.h>

#include "synth/scene.h"

namespace nmrf::synth {

inline constexpr int kPacket = 16;

// Sixteen rays and what they hit. Lanes that are off keep their old content.
struct Packet {
  alignas(64) RTCRayHit16 rays;
  alignas(64) int active[kPacket];  // -1 = on, 0 = off

  void set(int lane, Vec3 origin, Vec3 direction, float from, float to);
  void off(int lane);
  bool hit(int lane) const { return rays.hit.geomID[lane] != RTC_INVALID_GEOMETRY_ID; }
  float distance(int lane) const { return rays.ray.tfar[lane]; }
  std::uint32_t triangle(int lane) const { return rays.hit.primID[lane]; }
};

// Embree's tree over a scene, which must outlive it and stay as it is. Built by the calling thread
// alone, so that a result never depends on the number of threads. While one lives, Embree limits
// TBB (and with it OpenCV's own threads) to one thread in this process.
class Caster {
 public:
  explicit Caster(const Scene& scene);
  ~Caster();
  Caster(const Caster&) = delete;
  Caster& operator=(const Caster&) = delete;

  // Finds the nearest hit of every lane that is on.
  void nearest(Packet& packet, bool coherent) const;
  // Finds whether anything is hit: distance(lane) < 0 then.
  void blocked(Packet& packet) const;

 private:
  RTCDevice device_ = nullptr;
  RTCScene scene_ = nullptr;
};

}  // namespace nmrf::synth
