// The parts of the renderer: options, noise, textures, photographs, meshes.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "data/mats.h"
#include "support/support.h"
#include "synth/camera.h"
#include "synth/mesh.h"
#include "synth/noise.h"
#include "synth/options.h"
#include "synth/photos.h"
#include "synth/scene.h"
#include "synth/scenes.h"
#include "synth/texture.h"

namespace nmrf::synth {
namespace {

TEST(SynthOptions, DefaultsAreValidAndSurviveJson) {
  SynthOptions options;
  options.validate();
  options.width = 200, options.mix_street = 0.7, options.textures = "photos";
  SynthOptions back;
  from_json_object(back, to_json_object(options), "test");
  EXPECT_EQ(to_json_object(back), to_json_object(options));
  EXPECT_EQ(back.width, 200);
  EXPECT_DOUBLE_EQ(back.mix_street, 0.7);
}

TEST(SynthOptions, NamesTheSettingThatIsWrong) {
  auto message = [](auto&& change) {
    SynthOptions options;
    change(options);
    return test::error_of(ErrorKind::kUsage, [&] { options.validate(); });
  };
  EXPECT_NE(message([](auto& o) { o.width = 0; }).find("width"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.max_disp = NAN; }).find("max_disp"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.near_max = o.near_min / 2; }).find("near_max"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.grey = 1.5; }).find("camera.grey"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.edge_samples = 17; }).find("edge_samples"), std::string::npos);
  std::string none = message([](auto& o) {
    o.mix_room = o.mix_street = o.mix_park = o.mix_still = o.mix_flying = o.mix_layers = 0;
  });
  EXPECT_NE(none.find("mix"), std::string::npos);
}

TEST(SynthNoise, IsBoundedSmoothAndRepeats) {
  float low = 9, high = -9;
  for (int i = 0; i < 4000; ++i) {
    float x = 0.037f * static_cast<float>(i) - 60, y = 0.051f * static_cast<float>(i) - 90;
    float v = noise2(x, y, 5);
    low = std::min(low, v), high = std::max(high, v);
    EXPECT_EQ(v, noise2(x, y, 5));
    EXPECT_LT(std::abs(noise2(x + 1e-3f, y, 5) - v), 0.02f);
    EXPECT_LE(std::abs(noise3({x, y, x * y}, 5)), 1.6f);
  }
  EXPECT_GT(high, 0.5f);
  EXPECT_LT(low, -0.5f);
  EXPECT_LE(high, 1.2f);
  EXPECT_NE(noise2(0.4f, 0.3f, 5), noise2(0.4f, 0.3f, 6));
}

TEST(SynthNoise, FinerOctavesThanAPixelVanish) {
  double wide = 0, fine = 0;
  for (int i = 0; i < 2000; ++i) {
    float x = 0.13f * static_cast<float>(i);
    wide += std::abs(fractal2(x, 3.7f, 5, 0.6f, 2, 1));
    fine += std::abs(fractal2(x, 3.7f, 5, 0.6f, 0, 1));
  }
  EXPECT_EQ(wide, 0);
  EXPECT_GT(fine, 100);
}

TEST(SynthNoise, CellsAgreeWithBruteForce) {
  for (int i = 0; i < 200; ++i) {
    float x = 0.31f * static_cast<float>(i) - 20, y = 7 - 0.17f * static_cast<float>(i);
    Cell c = cell2(x, y, 9);
    float best = 1e9f;
    // The point of a cell lies where its own centre cell finds it.
    for (int cy = floor_int(y) - 1; cy <= floor_int(y) + 1; ++cy)
      for (int cx = floor_int(x) - 1; cx <= floor_int(x) + 1; ++cx) {
        std::uint32_t h = hash(cx, cy, 9);
        float px = static_cast<float>(cx) + static_cast<float>(h & 0xffff) / 65536;
        float py = static_cast<float>(cy) + static_cast<float>(h >> 16) / 65536;
        best = std::min(best, std::hypot(x - px, y - py));
      }
    EXPECT_NEAR(c.nearest, best, 1e-5);
    EXPECT_GE(c.second, c.nearest);
    EXPECT_NEAR(std::hypot(c.offset.x, c.offset.y), c.nearest, 1e-5);
  }
}

Texture texture_of(Pattern pattern) {
  Texture t;
  t.pattern = pattern;
  t.frequency = 4;
  t.seed = 77;
  t.colors = {Vec3{0.1f, 0.2f, 0.3f}, Vec3{0.7f, 0.6f, 0.5f}, Vec3{0.3f, 0.3f, 0.1f},
              Vec3{0.05f, 0.6f, 0.2f}};
  t.offset = {3.3f, 8.1f};
  return t;
}

TEST(SynthTexture, EveryPatternIsFiniteAndFilteredTowardsItsMean) {
  for (int p = 0; p < static_cast<int>(Pattern::kPhoto); ++p) {
    Texture t = texture_of(static_cast<Pattern>(p));
    Vec3 sum, sum_wide;
    constexpr int kSide = 60;
    for (int i = 0; i < kSide * kSide; ++i) {
      Vec2 uv{static_cast<float>(i % kSide) * 0.0871f - 2, static_cast<float>(i / kSide) * 0.0913f};
      Vec3 c = t.color(uv, 1e-4f), w = t.color(uv, 3);
      for (float v : {c.x, c.y, c.z, w.x, w.y, w.z}) {
        ASSERT_TRUE(std::isfinite(v)) << "pattern " << p;
        ASSERT_GE(v, 0) << "pattern " << p;
        ASSERT_LE(v, 2) << "pattern " << p;
      }
      sum += c, sum_wide += w;
    }
    sum = sum * (1.f / (kSide * kSide)), sum_wide = sum_wide * (1.f / (kSide * kSide));
    // Seen from far away a pattern keeps about its mean brightness.
    EXPECT_NEAR(luminance(sum), luminance(sum_wide), 0.14f) << "pattern " << p;
  }
}

TEST(SynthTexture, DetailIsAsStrongAtEveryDistanceAndChangesWithoutSteps) {
  Texture t = texture_of(Pattern::kPlain);
  t.detail = 0.3f;
  std::vector<double> steps;
  for (float width : {1e-3f, 7e-3f, 0.05f, 0.4f}) {
    double step = 0, jump = 0;
    constexpr int kCount = 4000;
    for (int i = 0; i < kCount; ++i) {
      Vec2 uv{static_cast<float>(i % 61) * 5.3f * width, static_cast<float>(i / 61) * 3.1f * width};
      float c = t.color(uv, width).x;
      step += std::abs(t.color({uv.x + 2 * width, uv.y}, width).x - c) / kCount;
      jump = std::max(jump, static_cast<double>(std::abs(t.color(uv, 1.001f * width).x - c)));
    }
    EXPECT_GT(step, 0.006) << width;  // of a colour of 0.1
    EXPECT_LT(jump, 0.05 * step) << width;
    steps.push_back(step);
  }
  EXPECT_LT(*std::max_element(steps.begin(), steps.end()),
            1.5 * *std::min_element(steps.begin(), steps.end()));
}

TEST(SynthTexture, StripesAreFilteredExactly) {
  Texture t = texture_of(Pattern::kStripes);
  t.a = 0.5f;  // half and half
  for (float v : {0.013f, 0.11f, 0.37f}) {
    for (float width : {0.02f, 0.3f, 1.1f}) {
      double mean = 0;
      constexpr int kTaps = 20000;
      for (int i = 0; i < kTaps; ++i)
        mean +=
            t.color({0, v + width * ((static_cast<float>(i) + 0.5f) / kTaps - 0.5f)}, 0).x / kTaps;
      EXPECT_NEAR(t.color({0, v}, width).x, mean, 6e-3) << v << " " << width;
    }
  }
}

TEST(SynthPhotos, RefusesFoldersWithoutPhotographs) {
  test::TempFolder folder;
  EXPECT_NE(
      test::error_of(ErrorKind::kInput, [&] { PhotoLibrary::open((folder / "none").string()); })
          .find("none"),
      std::string::npos);
  std::filesystem::create_directories(folder / "empty");
  std::ofstream(folder / "empty/readme.txt") << "no image";
  EXPECT_NE(
      test::error_of(ErrorKind::kInput, [&] { PhotoLibrary::open((folder / "empty").string()); })
          .find("no image"),
      std::string::npos);
}

TEST(SynthPhotos, SkipsBrokenAndSmallFilesWhoeverAsks) {
  test::TempFolder folder;
  cv::Mat image(300, 400, CV_8UC3, cv::Scalar(255, 0, 0));
  write_mat(folder / "b.png", image);
  write_mat(folder / "d.png", cv::Mat(20, 20, CV_8UC3, cv::Scalar(0, 0, 255)));
  std::ofstream(folder / "a.png") << "this is no picture";
  auto library = PhotoLibrary::open(folder.path().string());
  EXPECT_EQ(library->size(), 3u);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_NEAR(library->photo(i).aspect(), 4.f / 3, 1e-6);
  EXPECT_EQ(library, PhotoLibrary::open(folder.path().string()));
}

TEST(SynthPhotos, InterpolatesMirrorsAndAverages) {
  cv::Mat image(64, 64, CV_8UC3);
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x)
      image.at<cv::Vec3b>(y, x) = x < 32 ? cv::Vec3b(0, 0, 255) : cv::Vec3b(255, 0, 0);
  Photo photo(image);
  Vec3 left = photo.color(0.2f, 0.5f, 0), right = photo.color(0.8f, 0.5f, 0),
       middle = photo.color(0.5f, 0.5f, 0);
  EXPECT_NEAR(left.x, 1, 1e-4);
  EXPECT_NEAR(left.z, 0, 1e-4);
  EXPECT_NEAR(right.z, 1, 1e-4);
  EXPECT_NEAR(middle.x, 0.5, 1e-4);
  EXPECT_NEAR(photo.color(1.2f, 0.5f, 0).z, 1, 1e-4);  // mirrored
  EXPECT_NEAR(photo.color(-0.2f, -3.3f, 0).x, 1, 1e-4);
  Vec3 far = photo.color(0.2f, 0.5f, 2);
  EXPECT_NEAR(far.x, far.z, 0.05);
}

// Every edge of a closed surface belongs to two triangles, once in each direction.
void expect_closed(const Mesh& mesh, const char* what) {
  std::map<std::array<long, 3>, int> ids;  // vertices by place: seams and creases hold several
  auto id = [&](std::uint32_t i) {
    Vec3 p = mesh.positions[i];
    std::array<long, 3> key{std::lround(p.x * 1e4), std::lround(p.y * 1e4), std::lround(p.z * 1e4)};
    return ids.emplace(key, static_cast<int>(ids.size())).first->second;
  };
  std::map<std::pair<int, int>, int> edges;
  for (const auto& t : mesh.triangles)
    for (int k = 0; k < 3; ++k) {
      int a = id(t[static_cast<std::size_t>(k)]), b = id(t[static_cast<std::size_t>((k + 1) % 3)]);
      if (a != b) ++edges[{std::min(a, b), std::max(a, b)}];
    }
  int odd = 0;
  for (auto [edge, count] : edges) odd += count % 2;
  EXPECT_EQ(odd, 0) << what;
}

void expect_sound(const Mesh& mesh, const char* what) {
  ASSERT_EQ(mesh.positions.size(), mesh.normals.size()) << what;
  ASSERT_EQ(mesh.positions.size(), mesh.coords.size()) << what;
  ASSERT_FALSE(mesh.triangles.empty()) << what;
  if (!mesh.groups.empty()) {
    ASSERT_EQ(mesh.groups.size(), mesh.triangles.size()) << what;
  }
  for (const auto& t : mesh.triangles)
    for (auto i : t) ASSERT_LT(i, mesh.positions.size()) << what;
  for (const auto& n : mesh.normals) ASSERT_NEAR(length(n), 1, 1e-3) << what;
  for (const auto& p : mesh.positions) ASSERT_TRUE(std::isfinite(p.x + p.y + p.z)) << what;
}

TEST(SynthMesh, ShapesAreSoundAndClosed) {
  Dice dice(3);
  const std::pair<const char*, Mesh> closed[] = {
      {"box", box({1, 2, 3})},
      {"ellipsoid", ellipsoid({1, 0.5f, 2})},
      {"superquadric", superquadric({1, 1, 1}, 0.5f, 1.5f)},
      {"torus", torus(1, 0.2f)},
      {"cylinder", cylinder(1, 2)},
      {"cone", cone(1, 0.5f, 2)},
      {"extrusion", extrusion({{0, 0}, {2, 0}, {2, 1}, {1, 0.5f}, {0, 1}}, 0.5f)},
      {"blob", blob(dice, {1, 1, 1}, 0.4f)}};
  for (const auto& [name, mesh] : closed) {
    expect_sound(mesh, name);
    expect_closed(mesh, name);
  }
  expect_sound(folded_sheet(dice, 1, 1, 0.1f), "sheet");
  expect_sound(leaf_cloud(dice, {1, 1, 1}, 30, 0.1f), "leaves");
  expect_sound(blades(dice, 7, 1, 0.1f, 1), "blades");
  expect_sound(tube({{0, 0, 0}, {0, 1, 0}, {1, 1, 1}}, 0.1f, 0.05f), "tube");
  expect_sound(lathe({{0.1f, 0}, {0.5f, 0.5f}, {0.2f, 1}}), "lathe");
  expect_sound(height_field(2, 3, 5, 7, [](float x, float z) { return x * z; }), "height field");
}

TEST(SynthMesh, EveryOutlineIsCoveredByItsTriangles) {
  Dice dice(11);
  for (int round = 0; round < 200; ++round) {
    auto outline = random_outline(dice);
    double area = 0, covered = 0;
    for (std::size_t i = 0; i < outline.size(); ++i) {
      Vec2 a = outline[i], b = outline[(i + 1) % outline.size()];
      area += 0.5 * (double(a.x) * b.y - double(a.y) * b.x);
    }
    Mesh flat = extrusion(outline, 0);
    for (const auto& t : flat.triangles) {
      Vec3 n = cross(flat.positions[t[1]] - flat.positions[t[0]],
                     flat.positions[t[2]] - flat.positions[t[0]]);
      covered += 0.5 * length(n);
    }
    ASSERT_NEAR(covered, std::abs(area), 1e-4) << "round " << round;
  }
}

TEST(SynthScene, GroupsBecomeObjects) {
  Dice dice(5);
  Scene scene;
  int material = scene.add_material({});
  int first = scene.add(box({1, 1, 1}), {}, material);
  int leaves = scene.add(leaf_cloud(dice, {1, 1, 1}, 10, 0.1f), {}, material);
  int last = scene.add(box({1, 1, 1}), Transform::move({3, 0, 0}), material);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(leaves, 2);
  EXPECT_EQ(last, 12);
  EXPECT_EQ(scene.object_count(), 13);
  EXPECT_EQ(scene.object_of(0), 1);
  EXPECT_EQ(scene.object_of(12), 2);
  EXPECT_EQ(scene.object_of(14), 3);
}

// The materials of ten cars: how many are dark and reflect strongly.
int dark_mirrors(double gloss) {
  SynthOptions options;
  options.mirror = options.glass = 0, options.gloss = gloss;
  MaterialMaker make(options);
  int count = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Scene scene;
    Builder builder(options, make, scene, 0.002f);
    Dice dice(seed);
    builder.car(dice, {});
    for (const Material& m : scene.materials())
      count += m.mirror >= 0.4f && luminance(m.texture.colors[0]) < 0.05f;
  }
  return count;
}

TEST(SynthScene, GlossGivesCarsDarkReflectingWindows) {
  EXPECT_EQ(dark_mirrors(0), 0);
  EXPECT_GE(dark_mirrors(1), 10);
}

// A street's scene by one seed.
Scene street(const SynthOptions& options, std::uint64_t seed) {
  MaterialMaker make(options);
  Scene scene;
  Builder builder(options, make, scene, 0.002f);
  Dice dice(seed);
  StereoCamera camera;
  camera.width = 320, camera.height = 200, camera.focal = 500;
  build_street(builder, dice, camera);
  return scene;
}

TEST(SynthScene, LowSunStandsJustAboveTheHorizon) {
  SynthOptions high, low;
  low.low_sun = 1;
  float highest = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    highest = std::max(highest, street(high, seed).sky.sun.y);
    Vec3 sun = street(low, seed).sky.sun;
    EXPECT_LT(sun.y, 0.3f);
    EXPECT_GT(sun.y, 0.05f);
    EXPECT_NEAR(length(sun), 1, 1e-4);
  }
  EXPECT_GT(highest, 0.5f);
}

TEST(SynthScene, FencesStandBetweenKerbAndWall) {
  SynthOptions options;
  MaterialMaker make(options);
  for (int count : {0, 5}) {
    options.fences = count;
    Scene scene;
    Builder builder(options, make, scene, 0.002f);
    Dice dice(6), untouched(6);
    int placed = 0;
    add_fences(builder, dice, 3, [&](float off, float z) {
      ++placed;
      EXPECT_GE(off, 0);
      EXPECT_LT(off, 3);
      EXPECT_GE(z, 4);
      return Transform::move({off, 0, z});
    });
    EXPECT_EQ(placed, count);
    EXPECT_EQ(scene.object_count() - 1, count);  // one object each
    EXPECT_EQ(scene.triangles().empty(), count == 0);
    if (count == 0) {
      EXPECT_EQ(dice.next(), untouched.next());  // streets without them are as they were
    }
  }
}

TEST(SynthScene, NearDisparityIsUniformOverAFactorOfTen) {
  SynthOptions options;
  options.near_uniform = true, options.near_max = 0.2, options.max_disp = 1000;
  Sensor sensor;
  sensor.width = 1000;
  Dice dice(3);
  float low = 1e9f, high = 0;
  double sum = 0;
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    float d = draw_near_disparity(options, SceneKind::kStill, sensor, dice);
    low = std::min(low, d), high = std::max(high, d), sum += d;
  }
  EXPECT_NEAR(low, 20, 2);
  EXPECT_NEAR(high, 200, 2);
  EXPECT_NEAR(sum / kDraws, 110, 4);
}

TEST(SynthCamera, VerticalMisalignmentStaysWithinItsBound) {
  SynthOptions options;
  options.width = 640, options.height = 400;
  options.rectification = 0, options.vertical = 2;
  constexpr int kCameras = 400;
  int misaligned = 0, turned = 0;
  float largest = 0;
  for (std::uint64_t seed = 0; seed < kCameras; ++seed) {
    Dice dice(seed);
    float cx = dice.real(-200, 900), cy = dice.real(-100, 500);
    CameraModel model(options, dice, cx, cy);
    EXPECT_TRUE(model.misalignment(false).none());
    Misalignment off = model.misalignment(true);
    misaligned += !off.none();
    for (float x : {0.f, 639.f})
      for (float y : {0.f, 399.f})
        largest =
            std::max(largest, std::abs(off.shift + off.turn * (x - cx) + off.stretch * (y - cy)));
    turned += std::abs(off.turn) * 640 > 0.1f;
  }
  EXPECT_NEAR(misaligned, kCameras / 2, 40);
  EXPECT_GT(turned, kCameras / 5);
  EXPECT_GT(largest, 1.9f);
  EXPECT_LE(largest, 2.001f);
}

// The mean of a grey wall in the right photograph over that in the left one.
double brightness_ratio(const SynthOptions& options, std::uint64_t seed) {
  Dice dice(seed);
  CameraModel model(options, dice, 16, 16);
  cv::Mat wall(32, 32, CV_32FC3, cv::Scalar::all(0.2)), left, right;
  wall.rowRange(0, 8).setTo(cv::Scalar::all(0.4));  // what the exposure goes by
  model.develop(wall, wall, 16, 16, 1000, left, right);
  return cv::mean(right.rowRange(16, 32))[1] / cv::mean(left.rowRange(16, 32))[1];
}

TEST(SynthCamera, OneEyeInFiveIsExposedOtherwise) {
  SynthOptions options = SynthOptions().ideal();
  options.asymmetric = 0.2;
  int apart = 0;
  constexpr int kCameras = 300;
  for (std::uint64_t seed = 0; seed < kCameras; ++seed)
    apart += std::abs(std::log(brightness_ratio(options, seed))) > 0.02;
  EXPECT_NEAR(apart, 0.2 * kCameras, 25);
  options.asymmetric = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_NEAR(brightness_ratio(options, seed), 1, 0.02);
}

TEST(SynthCamera, RowNoiseIsCommonToARow) {
  auto spreads = [](double strength) {
    SynthOptions options = SynthOptions().ideal();
    options.row_noise = strength;
    Dice dice(4);
    CameraModel model(options, dice, 16, 16);
    cv::Mat wall(64, 64, CV_32FC3, cv::Scalar::all(0.2)), left, right, mean, deviation;
    model.develop(wall, wall, 32, 32, 1000, left, right);
    cv::meanStdDev(left.col(5), mean, deviation);
    double column = deviation.at<double>(0);
    cv::meanStdDev(left.row(5), mean, deviation);
    return std::pair(column, deviation.at<double>(0));
  };
  EXPECT_EQ(spreads(0).first, 0);
  auto [column, row] = spreads(5);
  EXPECT_GT(column, 1);
  EXPECT_EQ(row, 0);
}

}  // namespace
}  // namespace nmrf::synth
