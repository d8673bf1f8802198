// Exactness of disparity and occlusion on scenes whose geometry is known in closed form.
#include <gtest/gtest.h>

#include "synth/scenes.h"
#include "synth/view.h"

namespace nmrf::synth {
namespace {

StereoCamera camera_of(int width, int height, float focal, float baseline) {
  StereoCamera c;
  c.width = width, c.height = height;
  c.focal = focal, c.baseline = baseline;
  c.cx = 0.47f * static_cast<float>(width), c.cy = 0.55f * static_cast<float>(height);
  return c;
}

TEST(SynthTruth, SlantedPlaneToThePrecisionOfFloats) {
  // z = 5 + 0.3 x - 0.2 y in camera axes (y up), made of four corners far outside the view.
  auto z = [](double x, double y) { return 5 + 0.3 * x - 0.2 * y; };
  Mesh mesh;
  Vec3 corner[4];
  int k = 0;
  for (auto [x, y] : {std::pair{-8.f, -8.f}, {8.f, -8.f}, {8.f, 8.f}, {-8.f, 8.f}})
    corner[k++] = {x, y, static_cast<float>(z(x, y))};
  mesh.quad(corner[0], corner[1], corner[2], corner[3]);
  Scene scene;
  int object = scene.add(mesh, {}, Material{});
  Caster caster(scene);
  StereoCamera camera = camera_of(97, 61, 110, 0.37f);
  for (bool right : {false, true}) {
    View view = render_view(scene, caster, camera, right, {}, 1);
    for (int y = 0; y < camera.height; ++y)
      for (int x = 0; x < camera.width; ++x) {
        double dx = (x - double(camera.cx)) / camera.focal,
               dy = -(y - double(camera.cy)) / camera.focal;
        double eye = right ? camera.baseline : 0.0;
        double depth = (5 + 0.3 * eye) / (1 - 0.3 * dx + 0.2 * dy);
        ASSERT_NEAR(view.truth.disparity.at<float>(y, x), camera.focal * camera.baseline / depth,
                    2e-5)
            << x << " " << y << " " << right;
        ASSERT_EQ(view.truth.objects.at<int>(y, x), object);
      }
  }
}

TEST(SynthTruth, OcclusionBesideASquareIsAsWideAsTheDisparitiesDiffer) {
  Scene scene;
  int wall = scene.add(rectangle(40, 40), Transform::move({0, 0, 8}), Material{});
  int square = scene.add(rectangle(0.8f, 0.8f), Transform::move({0, 0, 2}), Material{});
  Caster caster(scene);
  StereoCamera camera = camera_of(160, 90, 100, 0.4f);
  camera.cx = 80, camera.cy = 45;
  float near = 100 * 0.4f / 2, far = 100 * 0.4f / 8;  // 20 and 5 pixels
  View left = render_view(scene, caster, camera, false, {}, 1),
       right = render_view(scene, caster, camera, true, {}, 1);
  int y = 45;
  // The square covers 60..100 in the left view and 40..80 in the right one.
  for (int x = 0; x < 160; ++x) {
    bool front = x >= 60 && x <= 100;
    if (std::abs(x - 60) <= 1 || std::abs(x - 100) <= 1) continue;  // edges, decided by rounding
    EXPECT_NEAR(left.truth.disparity.at<float>(y, x), front ? near : far, 1e-4) << x;
    EXPECT_EQ(left.truth.objects.at<int>(y, x), front ? square : wall) << x;
    // The wall is hidden where x - far lies within 40..80 but x is not on the square: 45..60.
    bool hidden = (!front && x - far > 40 && x - far < 80) || x < far - 0.5f;
    if (std::abs(x - 45) <= 1 || std::abs(x - 85) <= 1) continue;
    EXPECT_EQ(left.truth.occluded.at<std::uint8_t>(y, x) != 0, hidden) << x;
    bool front_right = x >= 40 && x <= 80;
    if (std::abs(x - 40) <= 1 || std::abs(x - 80) <= 1 || std::abs(x - 95) <= 1) continue;
    EXPECT_EQ(right.truth.objects.at<int>(y, x), front_right ? square : wall) << x;
    bool hidden_right = (!front_right && x + far > 60 && x + far < 100) || x + far > 159.5f;
    EXPECT_EQ(right.truth.occluded.at<std::uint8_t>(y, x) != 0, hidden_right) << x;
  }
}

TEST(SynthTruth, SkyHasItsOwnDisparityInBothViews) {
  Scene scene;
  scene.add(rectangle(0.5f, 0.5f), Transform::move({0, 0, 2}), Material{});
  scene.sky.clouds = 0.5f;
  scene.sky_disparity = 3;
  Caster caster(scene);
  StereoCamera camera = camera_of(120, 64, 90, 0.3f);
  camera.pose = look({}, 0, 0.5f, 0);  // up into the clouds
  View left = render_view(scene, caster, camera, false, {}, 1),
       right = render_view(scene, caster, camera, true, {}, 1);
  int compared = 0;
  for (int y = 0; y < 64; ++y)
    for (int x = 4; x < 120; ++x) {
      if (left.truth.objects.at<int>(y, x) != 0 || left.truth.occluded.at<std::uint8_t>(y, x))
        continue;
      ASSERT_EQ(left.truth.disparity.at<float>(y, x), 3);
      ASSERT_EQ(right.truth.objects.at<int>(y, x - 3), 0);
      for (int k = 0; k < 3; ++k)
        ASSERT_NEAR(left.color.at<cv::Vec3f>(y, x)[k], right.color.at<cv::Vec3f>(y, x - 3)[k],
                    1e-4);
      ++compared;
    }
  EXPECT_GT(compared, 3000);
}

TEST(SynthTruth, NothingIsNearerThanTheNearDepth) {
  Scene scene;
  scene.add(rectangle(40, 40), Transform::move({0, 0, 9}), Material{});
  scene.add(ellipsoid({0.6f, 0.6f, 0.6f}), Transform::move({0, 0, 1.2f}), Material{});
  Caster caster(scene);
  StereoCamera camera = camera_of(90, 70, 80, 0.5f);
  camera.near_depth = 1;
  View view = render_view(scene, caster, camera, false, {}, 1);
  double most = 0;
  cv::minMaxLoc(view.truth.disparity, nullptr, &most);
  EXPECT_LE(most, 80 * 0.5f / 1.0f);
  EXPECT_GT(most, 30);  // the ball itself is still seen
}

TEST(SynthTruth, MisalignmentMovesColourAndNotTruth) {
  Scene scene;
  Material stripes;
  stripes.texture.pattern = Pattern::kStripes;
  stripes.texture.frequency = 2;
  stripes.texture.colors = {Vec3{0, 0, 0}, Vec3{1, 1, 1}, Vec3{}, Vec3{}};
  stripes.texture.a = 0.5f;
  scene.add(rectangle(40, 40), Transform::move({0, 0, 4}), std::move(stripes));
  scene.ambient = 1;
  Caster caster(scene);
  StereoCamera camera = camera_of(64, 64, 80, 0.5f);
  Misalignment off;
  off.shift = 3;
  View plain = render_view(scene, caster, camera, true, {}, 1),
       moved = render_view(scene, caster, camera, true, off, 1);
  EXPECT_EQ(cv::norm(plain.truth.disparity, moved.truth.disparity, cv::NORM_INF), 0);
  for (int y = 0; y + 3 < 64; ++y)
    ASSERT_NEAR(moved.color.at<cv::Vec3f>(y, 20)[1], plain.color.at<cv::Vec3f>(y + 3, 20)[1], 1e-3)
        << y;
  EXPECT_GT(cv::norm(plain.color, moved.color, cv::NORM_INF), 0.1);
}

TEST(SynthTruth, ShadowsFallWhereTheLightIsBlocked) {
  Scene scene;
  Material white;
  white.texture.colors[0] = {1, 1, 1};
  scene.add(rectangle(40, 40), Transform::move({0, 0, 8}), white);
  scene.add(rectangle(1, 1), Transform::move({0, 0, 4}), white);
  scene.ambient = 0;
  Light sun;
  sun.sun = true;
  sun.place = normalize(Vec3{-1, 0, -1});  // from the left behind the camera
  scene.lights.push_back(sun);
  Caster caster(scene);
  StereoCamera camera = camera_of(160, 80, 80, 0.1f);
  camera.cx = 80, camera.cy = 40;
  View view = render_view(scene, caster, camera, false, {}, 1);
  // The shadow of the square lies four metres to the right on the wall: x = 3.5 .. 4.5, pixel 115
  // .. 125.
  EXPECT_LT(view.color.at<cv::Vec3f>(40, 120)[1], 1e-4);
  EXPECT_GT(view.color.at<cv::Vec3f>(40, 110)[1], 0.5);
  EXPECT_GT(view.color.at<cv::Vec3f>(40, 130)[1], 0.5);
  EXPECT_GT(view.color.at<cv::Vec3f>(40, 80)[1], 0.5);
}

}  // namespace
}  // namespace nmrf::synth
