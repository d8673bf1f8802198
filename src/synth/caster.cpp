#include "synth/caster.h"

#include <algorithm>

#include "core/check.h"

namespace nmrf::synth {

void Packet::set(int lane, Vec3 origin, Vec3 direction, float from, float to) {
  auto& r = rays.ray;
  active[lane] = -1;
  r.org_x[lane] = origin.x, r.org_y[lane] = origin.y, r.org_z[lane] = origin.z;
  r.dir_x[lane] = direction.x, r.dir_y[lane] = direction.y, r.dir_z[lane] = direction.z;
  r.tnear[lane] = from, r.tfar[lane] = to;
  r.time[lane] = 0, r.mask[lane] = ~0u, r.id[lane] = 0, r.flags[lane] = 0;
  rays.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
  rays.hit.instID[0][lane] = RTC_INVALID_GEOMETRY_ID;
}

void Packet::off(int lane) {
  active[lane] = 0;
  rays.ray.tnear[lane] = 1, rays.ray.tfar[lane] = -1;
  rays.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
}

Caster::Caster(const Scene& scene) {
  device_ = rtcNewDevice("threads=1");
  check(device_ != nullptr, ErrorKind::kDevice, "Embree could not be started (error {})",
        static_cast<int>(rtcGetDeviceError(nullptr)));
  scene_ = rtcNewScene(device_);
  // Robust: no ray slips between two triangles that share an edge.
  rtcSetSceneFlags(scene_, RTC_SCENE_FLAG_ROBUST);
  // The better tree pays while the scene is small: long thin bars overlap each other in a plain
  // one.
  auto quality =
      scene.triangles().size() > 40000 ? RTC_BUILD_QUALITY_MEDIUM : RTC_BUILD_QUALITY_HIGH;
  rtcSetSceneBuildQuality(scene_, quality);
  RTCGeometry geometry = rtcNewGeometry(device_, RTC_GEOMETRY_TYPE_TRIANGLE);
  rtcSetGeometryBuildQuality(geometry, quality);
  // Copied: Embree reads sixteen bytes for each vertex, which a shared buffer would have to allow.
  auto* vertices = static_cast<Vec3*>(rtcSetNewGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0,
                                                              RTC_FORMAT_FLOAT3, sizeof(Vec3),
                                                              scene.positions().size()));
  auto* indices = static_cast<Scene::Triangle*>(
      rtcSetNewGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3,
                              sizeof(Scene::Triangle), scene.triangles().size()));
  if (vertices && indices) {
    std::copy(scene.positions().begin(), scene.positions().end(), vertices);
    std::copy(scene.triangles().begin(), scene.triangles().end(), indices);
    rtcCommitGeometry(geometry);
    rtcAttachGeometry(scene_, geometry);
  }
  rtcReleaseGeometry(geometry);
  rtcCommitScene(scene_);
  RTCError error = rtcGetDeviceError(device_);
  if (error != RTC_ERROR_NONE) {
    rtcReleaseScene(scene_);
    rtcReleaseDevice(device_);
    fail(error == RTC_ERROR_OUT_OF_MEMORY ? ErrorKind::kDevice : ErrorKind::kFailure,
         "Embree could not build a scene of {} triangles (error {})", scene.triangles().size(),
         static_cast<int>(error));
  }
}

Caster::~Caster() {
  rtcReleaseScene(scene_);
  rtcReleaseDevice(device_);
}

void Caster::nearest(Packet& packet, bool coherent) const {
  RTCIntersectContext context;
  rtcInitIntersectContext(&context);
  if (coherent) context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
  rtcIntersect16(packet.active, scene_, &context, &packet.rays);
}

void Caster::blocked(Packet& packet) const {
  RTCIntersectContext context;
  rtcInitIntersectContext(&context);
  context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
  rtcOccluded16(packet.active, scene_, &context, &packet.rays.ray);
}

}  // namespace nmrf::synth
