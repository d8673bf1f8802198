// Rigs: lenses, files and rectified pairs.
#include "nmrf/rectify.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/rng.h"
#include "geometry/rig_render.h"
#include "nmrf/checks.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::crooked_rig;
using test::error_of;

std::vector<Camera> lenses() {
  Camera plain{400, 402, 320, 240, Lens::kPinhole, {}, 640, 480};
  Camera bent = plain, rational = plain, fisheye = plain;
  bent.distortion = {-0.3, 0.1, 0.001, -0.002, -0.01};
  rational.distortion = {0.5, -0.1, 0.0005, 0.001, 0.02, 0.8, 0.05, 0.01, 1e-4, 2e-5, -1e-4, 1e-5};
  fisheye.lens = Lens::kFisheye;
  fisheye.distortion = {0.02, -0.005, 0.002, -0.0004};
  return {plain, bent, rational, fisheye};
}

TEST(Camera, RaysAndPixelsAgree) {
  for (const Camera& camera : lenses())
    for (double y : {-0.4, 0.0, 200.0, 479.0})
      for (double x : {0.0, 100.5, 320.0, 639.0}) {
        Vector3 ray{};
        ASSERT_TRUE(camera.ray(x, y, ray)) << x << " " << y;
        double u = 0, v = 0;
        ASSERT_TRUE(camera.project({3 * ray[0], 3 * ray[1], 3 * ray[2]}, u, v));
        EXPECT_NEAR(u, x, 1e-5);
        EXPECT_NEAR(v, y, 1e-5);
      }
}

TEST(Camera, KnownValues) {
  // By hand: x = 0.5, y = 0, r2 = 0.25, 1 + k1 r2 + k2 r2^2 = 1 - 0.075 + 0.00625.
  Camera camera{100, 100, 50, 40, Lens::kPinhole, {-0.3, 0.1, 0.01, 0.02}, 100, 80};
  double x = 0, y = 0;
  ASSERT_TRUE(camera.project({1, 0, 2}, x, y));
  EXPECT_NEAR(x, 50 + 100 * (0.5 * 0.93125 + 0.02 * (0.25 + 0.5)), 1e-9);
  EXPECT_NEAR(y, 40 + 100 * (0.01 * 0.25), 1e-9);
  camera.lens = Lens::kFisheye;
  camera.distortion = {0, 0, 0, 0};
  ASSERT_TRUE(camera.project({1, 0, 1}, x, y));
  EXPECT_NEAR(x, 50 + 100 * 0.785398163397448, 1e-9);
  EXPECT_FALSE(camera.project({1, 0, -1}, x, y)) << "behind the camera";
  camera = {100, 100, 50, 40, Lens::kPinhole, {-0.5}, 100, 80};
  EXPECT_FALSE(camera.project({2, 0, 1}, x, y)) << "where the polynomial has turned back";
}

class RigFiles : public ::testing::Test {
 protected:
  std::filesystem::path put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static std::string list(const auto& values) {
    return fmt::format("[{:.17g}]", fmt::join(values, ", "));
  }
  static Matrix3 matrix(const Camera& c) { return {c.fx, 0, c.cx, 0, c.fy, c.cy, 0, 0, 1}; }
  static void expect_same(const StereoRig& a, const StereoRig& b) {
    for (const auto& [p, q] : {std::pair(a.left, b.left), std::pair(a.right, b.right)}) {
      EXPECT_NEAR(p.fx, q.fx, 1e-9);
      EXPECT_NEAR(p.fy, q.fy, 1e-9);
      EXPECT_NEAR(p.cx, q.cx, 1e-9);
      EXPECT_NEAR(p.cy, q.cy, 1e-9);
      EXPECT_EQ(p.lens, q.lens);
      EXPECT_EQ(p.distortion, q.distortion);
      EXPECT_EQ(p.width, q.width);
      EXPECT_EQ(p.height, q.height);
    }
    for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(a.rotation[i], b.rotation[i], 1e-9) << i;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(a.translation[i], b.translation[i], 1e-9) << i;
  }
  std::string refused(const std::vector<std::filesystem::path>& files) {
    return error_of(ErrorKind::kInput, [&] { read_rig(files); });
  }
  test::TempFolder folder_;
};

TEST_F(RigFiles, OwnFilesComeBack) {
  for (Lens lens : {Lens::kPinhole, Lens::kFisheye}) {
    StereoRig rig = crooked_rig();
    if (lens == Lens::kFisheye)
      for (Camera* camera : {&rig.left, &rig.right}) {
        camera->lens = lens;
        camera->distortion = {0.01, -0.002, 0.001, 0.0003};
      }
    const Rectifier rectifier(rig, {});
    write_rig(folder_ / "rig.yml", rig, rectifier);
    expect_same(read_rig({folder_ / "rig.yml"}), rig);
    const Calibration c = read_calibration(folder_ / "rig.yml");
    EXPECT_NEAR(c.fx, rectifier.calibration().fx, 1e-9);
    EXPECT_NEAR(c.baseline, rectifier.calibration().baseline, 1e-12);
    write_calibration(folder_ / "pair.yml", rectifier);
    EXPECT_NEAR(read_calibration(folder_ / "pair.yml").cy, rectifier.calibration().cy, 1e-9);
  }
}

TEST_F(RigFiles, OpenCvInTwoFilesAndXml) {
  const StereoRig rig = crooked_rig();
  auto yml = [&](const char* key, const auto& values) {
    return fmt::format("{}: !!opencv-matrix\n   rows: 1\n   cols: {}\n   dt: d\n   data: {}\n", key,
                       values.size(), list(values));
  };
  const auto intrinsics =
      put("intrinsics.yml", "%YAML:1.0\n---\n" + yml("M1", matrix(rig.left)) +
                                yml("D1", rig.left.distortion) + yml("M2", matrix(rig.right)) +
                                yml("D2", rig.right.distortion));
  const auto extrinsics = put(
      "extrinsics.yml", "%YAML:1.0\n---\n" + yml("R", rig.rotation) + yml("T", rig.translation));
  StereoRig sizeless = rig;
  sizeless.left.width = sizeless.right.width = sizeless.left.height = sizeless.right.height = 0;
  expect_same(read_rig({intrinsics, extrinsics}), sizeless);
  EXPECT_NE(refused({intrinsics}).find("'R' is missing"), std::string::npos);

  auto xml = [&](const char* key, const auto& values) {
    return fmt::format(
        "<{0} type_id=\"opencv-matrix\"><rows>1</rows><cols>{1}</cols><dt>d</dt>\n"
        "<data>{2:.17g}</data></{0}>\n",
        key, values.size(), fmt::join(values, " "));
  };
  expect_same(
      read_rig({put(
          "rig.xml",
          "<?xml version=\"1.0\"?>\n<opencv_storage>\n" + xml("cameraMatrix1", matrix(rig.left)) +
              xml("distCoeffs1", rig.left.distortion) + xml("cameraMatrix2", matrix(rig.right)) +
              xml("distCoeffs2", rig.right.distortion) + xml("R", rotation_vector(rig.rotation)) +
              xml("T", rig.translation) +
              "<image_width>480</image_width><image_height>360</image_height>\n"
              "</opencv_storage>\n")}),
      rig);
}

TEST_F(RigFiles, Kalibr) {
  StereoRig rig = crooked_rig();
  rig.left.distortion.resize(4);
  rig.right.distortion.resize(4);
  const Matrix3& r = rig.rotation;
  const Vector3& t = rig.translation;
  auto text = [&](const char* model) {
    return fmt::format(
        "cam0:\n  cam_overlaps: [1]\n  camera_model: pinhole\n  distortion_coeffs: {}\n"
        "  distortion_model: {}\n  intrinsics: {}\n  resolution: [480, 360]\n  rostopic: /cam0/i\n"
        "cam1:\n  T_cn_cnm1:\n  - [{:.17g}, {:.17g}, {:.17g}, {:.17g}]\n"
        "  - [{:.17g}, {:.17g}, {:.17g}, {:.17g}]\n  - [{:.17g}, {:.17g}, {:.17g}, {:.17g}]\n"
        "  - [0.0, 0.0, 0.0, 1.0]\n  cam_overlaps: [0]\n  camera_model: pinhole\n"
        "  distortion_coeffs: {}\n  distortion_model: {}\n  intrinsics: {}\n"
        "  resolution: [480, 360]\n",
        list(rig.left.distortion), model,
        list(std::vector{rig.left.fx, rig.left.fy, rig.left.cx, rig.left.cy}), r[0], r[1], r[2],
        t[0], r[3], r[4], r[5], t[1], r[6], r[7], r[8], t[2], list(rig.right.distortion), model,
        list(std::vector{rig.right.fx, rig.right.fy, rig.right.cx, rig.right.cy}));
  };
  expect_same(read_rig({put("camchain.yaml", text("radtan"))}), rig);
  rig.left.lens = rig.right.lens = Lens::kFisheye;
  expect_same(read_rig({put("camchain.yaml", text("equidistant"))}), rig);
  EXPECT_NE(refused({put("camchain.yaml", text("fov"))}).find("'fov'"), std::string::npos);
}

TEST_F(RigFiles, Ros) {
  const StereoRig rig = crooked_rig();
  const Rectifier rectifier(rig, {});
  const Projections p = rectifier.projections();
  auto info = [&](const Camera& c, const Matrix3& rotation, const std::array<double, 12>& proj) {
    return fmt::format(
        "image_width: {}\nimage_height: {}\ncamera_name: narrow\ncamera_matrix:\n  rows: 3\n"
        "  cols: 3\n  data: {}\ndistortion_model: plumb_bob\ndistortion_coefficients:\n  rows: 1\n"
        "  cols: 5\n  data: {}\nrectification_matrix:\n  rows: 3\n  cols: 3\n  data: {}\n"
        "projection_matrix:\n  rows: 3\n  cols: 4\n  data: {}\n",
        c.width, c.height, list(matrix(c)), list(c.distortion), list(rotation), list(proj));
  };
  const auto left = put("left.yaml", info(rig.left, rectifier.left_rotation(), p.left));
  const auto right = put("right.yaml", info(rig.right, rectifier.right_rotation(), p.right));
  expect_same(read_rig({left, right}), rig);
  EXPECT_NE(refused({left}).find("Give both"), std::string::npos);
  EXPECT_NE(refused({right, left}).find("no baseline"), std::string::npos);
}

TEST_F(RigFiles, Kitti) {
  const StereoRig rig = crooked_rig();
  // Camera 02 itself lies elsewhere than camera 00.
  const Matrix3 first = rotation_matrix({0.01, 0.02, -0.01});
  const Vector3 first_t{0.06, -0.001, 0.002};
  const Matrix3 second = product(rig.rotation, first);
  Vector3 second_t = product(rig.rotation, first_t);
  for (std::size_t i = 0; i < 3; ++i) second_t[i] += rig.translation[i];
  auto line = [&](const char* key, const auto& values) {
    return fmt::format("{}: {:.17g}\n", key, fmt::join(values, " "));
  };
  const std::string text = "calib_time: 09-Jan-2012 13:57:47\nS_02: 480 360\nS_03: 480 360\n" +
                           line("K_02", matrix(rig.left)) + line("D_02", rig.left.distortion) +
                           line("R_02", first) + line("T_02", first_t) +
                           line("K_03", matrix(rig.right)) + line("D_03", rig.right.distortion) +
                           line("R_03", second) + line("T_03", second_t);
  expect_same(read_rig({put("calib_cam_to_cam.txt", text)}), rig);
}

TEST_F(RigFiles, AreRefusedWithReasons) {
  EXPECT_NE(refused({put("empty.yml", "\n")}).find("empty"), std::string::npos);
  EXPECT_NE(refused({put("text.yml", "hello")}).find("known form"), std::string::npos);
  EXPECT_NE(refused({folder_ / "none.yml"}).find("none.yml"), std::string::npos);
  auto invalid = [](auto change) {
    StereoRig rig = crooked_rig();
    change(rig);
    return error_of(ErrorKind::kInput, [&] { rig.validate(); });
  };
  EXPECT_NE(invalid([](StereoRig& r) { r.translation[0] = 0.12; }).find("swapped"),
            std::string::npos);
  EXPECT_NE(invalid([](StereoRig& r) {
              r.translation = {0.01, -0.1, 0};
            }).find("side by side"),
            std::string::npos);
  EXPECT_NE(invalid([](StereoRig& r) { r.translation = {}; }).find("same place"),
            std::string::npos);
  EXPECT_NE(invalid([](StereoRig& r) { r.rotation[0] = 2; }).find("not a rotation"),
            std::string::npos);
  EXPECT_NE(invalid([](StereoRig& r) { r.left.fx = -1; }).find("focal"), std::string::npos);
  EXPECT_NE(invalid([](StereoRig& r) { r.left.distortion.resize(7); }).find("7 distortion"),
            std::string::npos);
  EXPECT_NE(invalid([](StereoRig& r) { r.left.width = 9; }).find("one size"), std::string::npos);
}

// Points in space fall on the same rows, and their disparity tells their depth.
TEST(Rectifier, RowsAgreeAndDisparityIsDepth) {
  const StereoRig rig = crooked_rig();
  const Rectifier rectifier(rig, {});
  const Calibration& c = rectifier.calibration();
  EXPECT_NEAR(c.baseline, length(rig.translation), 1e-12);
  Rng rng(2);
  for (int i = 0; i < 50; ++i) {
    const Vector3 point{rng.uniform() - 0.5, rng.uniform() - 0.5, 1 + 3 * rng.uniform()};
    Vector3 there = product(rig.rotation, point);
    for (std::size_t k = 0; k < 3; ++k) there[k] += rig.translation[k];
    const Vector3 left = product(rectifier.left_rotation(), point);
    const Vector3 right = product(rectifier.right_rotation(), there);
    EXPECT_NEAR(left[1], right[1], 1e-12);
    EXPECT_NEAR(left[2], right[2], 1e-12);
    EXPECT_NEAR(c.fx * (left[0] - right[0]) / left[2], c.fx * c.baseline / left[2], 1e-9);
  }
}

TEST(Rectifier, AlphaChoosesWhatIsSeen) {
  const StereoRig rig = crooked_rig();
  const Image white = [] {
    Image image(480, 360);
    std::fill_n(image.data(), image.row_bytes() * 360, std::uint8_t{255});
    return image;
  }();
  auto black = [&](const Image& image) {
    int count = 0;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) count += image.row(y)[3 * x] == 0;
    return count;
  };
  const Rectifier inner(rig, {.alpha = 0}), outer(rig, {.alpha = 1});
  EXPECT_EQ(black(inner.left(white)) + black(inner.right(white)), 0);
  EXPECT_GT(black(outer.left(white)), 1000);
  EXPECT_LT(outer.calibration().fx, inner.calibration().fx);
  const Rectifier small(rig, {.alpha = 0, .width = 240, .height = 180});
  EXPECT_EQ(small.left(white).width(), 240);
  EXPECT_NEAR(small.calibration().fx, inner.calibration().fx / 2, 0.01 * inner.calibration().fx);
  error_of(ErrorKind::kUsage, [&] { Rectifier(rig, {.alpha = 2}); });
  error_of(ErrorKind::kInput, [&] { inner.left(Image(100, 100)); });
}

TEST(Rectifier, RenderedRigsGiveRectifiedPairs) {
  for (Lens lens : {Lens::kPinhole, Lens::kFisheye}) {
    StereoRig rig = crooked_rig();
    if (lens == Lens::kFisheye)
      for (Camera* camera : {&rig.left, &rig.right}) {
        camera->lens = lens;
        camera->fx *= 0.6;
        camera->fy *= 0.6;
        camera->distortion = {0.03, -0.01, 0.002, 0};
      }
    const std::vector<test::Flat> scene{
        {rotation_matrix({0.2, 0.3, 0}), {0, 0, 2}, test::texture(1, 0.04, 9, 9)},
        {rotation_matrix({0, -0.2, 0.3}), {0.1, 0.1, 1}, test::texture(2, 0.02, 0.2, 0.2)}};
    const Image left = test::TestCamera(rig.left, rotation_matrix({}), {}).render(scene);
    const Image right = test::TestCamera(rig.right, rig.rotation, rig.translation).render(scene);
    const Rectifier rectifier(rig, {});
    const Image a = rectifier.left(left), b = rectifier.right(right);
    const PairCheck raw = check_pair(left, right), check = check_pair(a, b);
    EXPECT_TRUE(check.conclusive);
    EXPECT_TRUE(check.warnings.empty());
    EXPECT_LT(check.alignment.vertical_rms(480, 360), 0.15);
    EXPECT_GT(raw.vertical_rms, 2) << "the rig is not crooked enough to show anything";
  }
}

}  // namespace
}  // namespace nmrf
