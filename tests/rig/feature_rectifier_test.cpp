// Rectification by features: accurate where it can be done, refused with a reason where it cannot.
#include "rig/feature_rectifier.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "geometry/rig_render.h"
#include "nmrf/checks.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

constexpr int kWidth = 560, kHeight = 420;

Camera plain_camera() { return {480, 480, 279.5, 209.5, Lens::kPinhole, {}, kWidth, kHeight}; }

// A room corner with things in front of it.
std::vector<test::Flat> room() {
  std::vector<test::Flat> things{
      {rotation_matrix({0, 0.3, 0}), {0, 0, 4}, test::texture(1, 0.05, 9, 9)}};
  Rng rng(9);
  for (std::uint32_t i = 0; i < 12; ++i)
    things.push_back(
        {rotation_matrix({rng.uniform() - 0.5, rng.uniform() - 0.5, rng.uniform()}),
         {3 * (rng.uniform() - 0.5), 2 * (rng.uniform() - 0.5), 1.5 + 2 * rng.uniform()},
         test::texture(10 + i, 0.03, 0.25, 0.2)});
  return things;
}

struct Views {
  Image left, right;
};

Views see(const Vector3& turn, const Vector3& translation, const std::vector<test::Flat>& things) {
  const Camera camera = plain_camera();
  return {test::TestCamera(camera, rotation_matrix({}), {}).render(things),
          test::TestCamera(camera, rotation_matrix(turn), translation).render(things)};
}

TEST(FeatureRectifier, RectifiesTurnedCameras) {
  for (const Vector3& turn : {Vector3{0.03, -0.04, 0.05}, Vector3{-0.05, 0.02, -0.1}}) {
    const Views views = see(turn, {-0.15, 0.01, 0.005}, room());
    EXPECT_GT(check_pair(views.left, views.right).vertical_rms, 5);
    const FeatureRectification found = rectify_by_features(views.left, views.right);
    EXPECT_GT(found.matches, 100);
    EXPECT_GT(found.before, 5);
    EXPECT_LT(found.residual, 0.6);
    const Image left = warp(views.left, found.left, found.width, found.height);
    const Image right = warp(views.right, found.right, found.width, found.height);
    const PairCheck check = check_pair(left, right);
    EXPECT_TRUE(check.conclusive);
    EXPECT_FALSE(check.not_rectified);
    EXPECT_LT(check.alignment.vertical_rms(found.width, found.height), 0.3);
    EXPECT_LT(check.negative_share, 0.1) << "disparities are positive";
    // The shape is kept: sides of the rectified left image are as long as before.
    const auto& h = found.left;
    EXPECT_NEAR(std::hypot(h[0], h[3]) / h[8], 1, 0.15);
    EXPECT_NEAR(std::hypot(h[1], h[4]) / h[8], 1, 0.15);
    EXPECT_GT(found.width, 0.6 * kWidth);
    const FeatureRectification again = rectify_by_features(views.left, views.right);
    EXPECT_EQ(again.left, found.left) << "repeats exactly";
  }
}

std::string refused(const Views& views) {
  return error_of(ErrorKind::kInput, [&] { rectify_by_features(views.left, views.right); });
}

TEST(FeatureRectifier, RefusesATurnOnTheSpot) {
  const std::string text = refused(see({0.02, 0.1, 0.03}, {}, room()));
  EXPECT_NE(text.find("too little parallax"), std::string::npos) << text;
}

TEST(FeatureRectifier, RefusesAFlatScene) {
  const std::string text =
      refused(see({0.03, 0.02, 0.03}, {-0.2, 0, 0},
                  {{rotation_matrix({0.1, 0, 0}), {0, 0, 3}, test::texture(4, 0.05, 9, 9)}}));
  EXPECT_NE(text.find("too little parallax"), std::string::npos) << text;
}

TEST(FeatureRectifier, RefusesForwardMotion) {
  const std::string text = refused(see({0.01, 0.01, 0.02}, {0.01, 0, -0.4}, room()));
  EXPECT_NE(text.find("viewing direction"), std::string::npos) << text;
}

TEST(FeatureRectifier, RefusesCamerasAboveEachOther) {
  const std::string text = refused(see({0.02, 0.02, 0.02}, {0.01, -0.25, 0}, room()));
  EXPECT_NE(text.find("above the other"), std::string::npos) << text;
}

// The cameras look so far past each other that little is left of what both see.
TEST(FeatureRectifier, RefusesTooLittleOverlap) {
  const std::string text = refused(see({0, 0.82, 0}, {-0.25, 0, 0}, room()));
  EXPECT_NE(text.find("in common"), std::string::npos) << text;
}

TEST(FeatureRectifier, RefusesUnrelatedAndPlainImages) {
  const Views views = see({}, {-0.1, 0, 0}, room());
  const Views others = see(
      {}, {-0.1, 0, 0}, {{rotation_matrix({0, 0, 0}), {0, 0, 3}, test::texture(99, 0.04, 9, 9)}});
  EXPECT_NE(refused({views.left, others.right}).find("points were found in both"),
            std::string::npos);
  const Image plain(kWidth, kHeight);
  EXPECT_NE(refused({plain, plain}).find("points were found in both"), std::string::npos);
}

}  // namespace
}  // namespace nmrf
