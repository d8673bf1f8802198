#include "data/dataset.h"

#include <cmath>

#include "data/trees.h"
#include "io/npy.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::contains;
using test::names_of;
using test::options_of;
using test::put_image;
using test::put_integers;
using test::put_pfm;
using Names = std::vector<std::string>;

TEST(OpenDataset, UnknownNameListsAll) {
  auto message =
      test::error_of(ErrorKind::kUsage, [] { open_dataset(options_of("kity", "/tmp")); });
  EXPECT_TRUE(contains(message, "'kity'"));
  for (const auto& name : dataset_names()) EXPECT_TRUE(contains(message, name));
}

TEST(OpenDataset, EmptyRootsNameThePattern) {
  test::TempFolder folder;
  for (const auto& name : dataset_names()) {
    if (name == "list") continue;
    auto message =
        test::error_of(ErrorKind::kInput, [&] { open_dataset(options_of(name, folder.path())); });
    EXPECT_TRUE(contains(message, name)) << name;
    EXPECT_TRUE(contains(message, "looked for")) << name;
    EXPECT_TRUE(contains(message, folder.path().string())) << name;
    EXPECT_TRUE(contains(test::error_of(ErrorKind::kUsage,
                                        [&] {
                                          auto options = options_of(name, folder.path());
                                          options.split = "tset";
                                          open_dataset(options);
                                        }),
                         "expected one of"))
        << name;
  }
}

TEST(OpenDataset, RootIsNeeded) {
  test::error_of(ErrorKind::kUsage, [] { open_dataset(options_of("eth3d", "")); });
  auto message =
      test::error_of(ErrorKind::kInput, [] { open_dataset(options_of("eth3d", "/no/such/root")); });
  EXPECT_TRUE(contains(message, "/no/such/root"));
  auto options = options_of("eth3d", "/tmp");
  options.divisor = -1;
  test::error_of(ErrorKind::kUsage, [&] { open_dataset(options); });
}

TEST(OpenDataset, SettingsGoThroughJson) {
  DatasetOptions options;
  set_field(options, "name=eth3d");
  set_field(options, "truth=sparse");
  set_field(options, "divisor=32");
  EXPECT_EQ(options.name, "eth3d");
  EXPECT_EQ(options.truth, TruthDensity::kSparse);
  DatasetOptions copy;
  from_json_object(copy, to_json_object(options), "test");
  EXPECT_EQ(copy.divisor, 32);
}

// A frame of a SceneFlow part in both passes.
void put_frame(const test::fs::path& part, const std::string& place, const std::string& number,
               float disparity, bool final_pass = true) {
  for (const char* pass : {"frames_cleanpass", "frames_finalpass"}) {
    if (!final_pass && std::string(pass) == "frames_finalpass") continue;
    put_image(part / pass / place / "left" / (number + ".png"), pass[7]);
    put_image(part / pass / place / "right" / (number + ".png"), pass[7] + 1);
  }
  put_pfm(part / "disparity" / place / "left" / (number + ".pfm"), disparity);
}

class SceneFlow : public ::testing::Test {
 protected:
  void SetUp() override {
    auto root = folder_ / "SceneFlow";
    put_frame(root / "FlyingThings3D", "TRAIN/B/0001", "0007", 3);
    put_frame(root / "FlyingThings3D", "TRAIN/A/0000", "0007", 2);
    put_frame(root / "FlyingThings3D", "TRAIN/A/0000", "0006", 1);
    put_frame(root / "FlyingThings3D", "TEST/A/0000", "0006", 4);
    put_frame(root / "Monkaa", "a_rain_of_stones_x2", "0000", 5);
    put_frame(root / "Driving", "15mm_focallength/scene_forwards/fast", "0001", 6);
  }
  test::TempFolder folder_;
};

TEST_F(SceneFlow, TrainAndTest) {
  auto train = open_dataset(options_of("sceneflow", folder_.path()));
  EXPECT_EQ(names_of(*train),
            (Names{"FlyingThings3D/TRAIN/A/0000/0006", "FlyingThings3D/TRAIN/A/0000/0007",
                   "FlyingThings3D/TRAIN/B/0001/0007", "Monkaa/a_rain_of_stones_x2/0000",
                   "Driving/15mm_focallength/scene_forwards/fast/0001"}));
  EXPECT_TRUE(contains(train->ref(0).left.string(), "frames_finalpass"));
  const double expected[] = {1, 2, 3, 5, 6};
  for (std::size_t i = 0; i < 5; ++i) test::expect_disparity(*train, i, expected[i]);
  EXPECT_FALSE(train->ref(0).sparse);

  for (const char* split : {"test", "val"}) {
    auto test = open_dataset(options_of("sceneflow", folder_ / "SceneFlow", split));
    EXPECT_EQ(names_of(*test), Names{"FlyingThings3D/TEST/A/0000/0006"});
  }
  EXPECT_EQ(open_dataset(options_of("sceneflow", folder_.path(), "all"))->size(), 6u);
  EXPECT_EQ(
      open_dataset(options_of("flyingthings3d", folder_ / "SceneFlow/FlyingThings3D"))->size(), 3u);
  EXPECT_EQ(open_dataset(options_of("monkaa", folder_ / "SceneFlow"))->size(), 1u);
  EXPECT_EQ(open_dataset(options_of("driving", folder_ / "SceneFlow"))->size(), 1u);
}

TEST_F(SceneFlow, Passes) {
  auto options = options_of("sceneflow", folder_.path());
  options.pass = "clean";
  auto clean = open_dataset(options);
  EXPECT_EQ(clean->size(), 5u);
  EXPECT_TRUE(contains(clean->ref(0).left.string(), "frames_cleanpass"));
  options.pass = "both";
  auto both = open_dataset(options);
  EXPECT_EQ(both->size(), 10u);
  EXPECT_EQ(both->ref(0).name, "clean/FlyingThings3D/TRAIN/A/0000/0006");
  options.pass = "dirty";
  EXPECT_TRUE(contains(test::error_of(ErrorKind::kUsage, [&] { open_dataset(options); }),
                       "clean, final, both"));
}

TEST_F(SceneFlow, MissingPartsAreTolerated) {
  test::fs::remove_all(folder_ / "SceneFlow/Monkaa");
  test::fs::remove_all(folder_ / "SceneFlow/FlyingThings3D/frames_finalpass");
  test::fs::remove(folder_ / "SceneFlow/FlyingThings3D/disparity/TRAIN/A/0000/left/0006.pfm");
  test::fs::remove(folder_ /
                   "SceneFlow/FlyingThings3D/frames_cleanpass/TRAIN/B/0001/right/0007.png");
  test::Warnings warnings;
  auto train = open_dataset(options_of("sceneflow", folder_.path()));
  EXPECT_EQ(names_of(*train), (Names{"FlyingThings3D/TRAIN/A/0000/0007",
                                     "Driving/15mm_focallength/scene_forwards/fast/0001"}));
  ASSERT_EQ(warnings.texts().size(), 1u);
  EXPECT_TRUE(contains(warnings.texts()[0], "2 pairs left out"));
  EXPECT_TRUE(contains(warnings.texts()[0], "0006.pfm"));
}

TEST_F(SceneFlow, RightTruthAndObjects) {
  auto base = folder_ / "SceneFlow/FlyingThings3D";
  put_pfm(base / "disparity/TEST/A/0000/right/0006.pfm", -9);
  put_pfm(base / "object_index/TEST/A/0000/left/0006.pfm", 17);
  Sample sample = open_dataset(options_of("sceneflow", folder_.path(), "test"))->load(0);
  EXPECT_EQ(sample.right_disparity.at<float>(2, 2), 9);
  EXPECT_EQ(sample.objects.at<int>(2, 2), 17);
}

TEST(SceneFlowSubset, NegativeDisparity) {
  test::TempFolder folder;
  auto base = folder / "FlyingThings3D_subset";
  for (const char* half : {"train", "val"}) {
    put_image(base / half / "image_clean/left/0000003.png", 1);
    put_image(base / half / "image_clean/right/0000003.png", 2);
    put_pfm(base / half / "disparity/left/0000003.pfm", half[0] == 't' ? -4.0f : -5.0f);
  }
  auto train = open_dataset(options_of("sceneflow", folder.path()));
  EXPECT_EQ(names_of(*train), Names{"FlyingThings3D_subset/train/0000003"});
  test::expect_disparity(*train, 0, 4);
  auto val = open_dataset(options_of("flyingthings3d", folder.path(), "test"));
  test::expect_disparity(*val, 0, 5);
}

TEST(Eth3d, BothTreesAndTestSplit) {
  test::TempFolder folder;
  auto root = folder / "ETH3D";
  for (const char* scene : {"delivery_area_1l", "playground_1l"}) {
    put_image(root / "two_view_training" / scene / "im0.png", 1);
    put_image(root / "two_view_training" / scene / "im1.png", 2);
    put_pfm(root / "two_view_training_gt" / scene / "disp0GT.pfm", 3);
    put_integers(root / "two_view_training_gt" / scene / "mask0nocc.png", 255, CV_8UC1);
  }
  put_image(root / "two_view_test/lake_1l/im0.png", 1);
  put_image(root / "two_view_test/lake_1l/im1.png", 2);
  auto training = open_dataset(options_of("eth3d", folder.path()));
  EXPECT_EQ(names_of(*training), (Names{"delivery_area_1l", "playground_1l"}));
  Sample sample = test::expect_disparity(*training, 1, 3);
  EXPECT_EQ(sample.noc_mask.at<std::uint8_t>(0, 0), 0);
  EXPECT_EQ(sample.noc_mask.at<std::uint8_t>(1, 0), 255);
  EXPECT_TRUE(sample.sparse);
  auto test = open_dataset(options_of("eth3d", root, "test"));
  EXPECT_EQ(names_of(*test), Names{"lake_1l"});
  EXPECT_TRUE(test->load(0).disparity.empty());
}

TEST(Sintel, MasksAndPasses) {
  test::TempFolder folder;
  auto base = folder / "SintelStereo/training";
  for (const char* pass : {"clean", "final"}) {
    put_image(base / (pass + std::string("_left")) / "alley_1/frame_0001.png", pass[0]);
    put_image(base / (pass + std::string("_right")) / "alley_1/frame_0001.png", pass[1]);
  }
  auto place = test::fs::path("alley_1/frame_0001.png");
  test::fs::create_directories(base / "disparities/alley_1");
  cv::Mat coded(test::kHeight, test::kWidth, CV_8UC3, cv::Scalar(0, 32, 100));
  write_mat(base / "disparities" / place, coded);
  cv::Mat occluded(test::kHeight, test::kWidth, CV_8UC1, cv::Scalar(0));
  occluded.at<std::uint8_t>(2, 2) = 255;
  test::fs::create_directories(base / "occlusions/alley_1");
  write_mat(base / "occlusions" / place, occluded);
  cv::Mat outside(test::kHeight, test::kWidth, CV_8UC1, cv::Scalar(0));
  outside.at<std::uint8_t>(3, 3) = 255;
  test::fs::create_directories(base / "outofframe/alley_1");
  write_mat(base / "outofframe" / place, outside);

  auto dataset = open_dataset(options_of("sintel", folder.path()));
  EXPECT_EQ(names_of(*dataset), Names{"alley_1/frame_0001"});
  EXPECT_TRUE(contains(dataset->ref(0).left.string(), "final_left"));
  Sample sample = dataset->load(0);
  EXPECT_FLOAT_EQ(sample.disparity.at<float>(1, 1), 400.5f);
  EXPECT_EQ(sample.noc_mask.at<std::uint8_t>(2, 2), 0);
  EXPECT_EQ(sample.noc_mask.at<std::uint8_t>(3, 3), 0);
  EXPECT_EQ(cv::countNonZero(sample.noc_mask), test::kWidth * test::kHeight - 2);
  auto options = options_of("sintel", base);
  options.pass = "both";
  EXPECT_EQ(names_of(*open_dataset(options)),
            (Names{"clean/alley_1/frame_0001", "final/alley_1/frame_0001"}));
}

TEST(FallingThings, FocalLengthFromTheCameraFile) {
  test::TempFolder folder;
  auto scene = folder / "fat/mixed/kitchen_0";
  put_image(scene / "000000.left.jpg", 1);
  put_image(scene / "000000.right.jpg", 2);
  put_integers(scene / "000000.left.depth.png", 10000);  // one metre
  put_integers(scene / "000000.right.depth.png", 65535);
  auto settings = scene / "_camera_settings.json";
  write_file(settings, R"({"camera_settings": [{"intrinsic_settings": {"fx": 768.5}}]})");
  auto dataset = open_dataset(options_of("fallingthings", folder.path()));
  EXPECT_EQ(names_of(*dataset), Names{"mixed/kitchen_0/000000"});
  Sample sample = test::expect_disparity(*dataset, 0, 768.5 * 6 * 100 / 10000);
  EXPECT_TRUE(std::isinf(sample.right_disparity.at<float>(2, 2))) << "the largest value is too far";
  write_file(settings, R"({"camera_settings": [{"intrinsic_settings": {"fx": "wide"}}]})");
  EXPECT_TRUE(
      contains(test::error_of(ErrorKind::kInput,
                              [&] { open_dataset(options_of("fallingthings", folder.path())); }),
               "_camera_settings.json"));
  test::fs::remove(settings);
  test::error_of(ErrorKind::kInput,
                 [&] { open_dataset(options_of("fallingthings", folder.path())); });
}

TEST(TartanAir, DepthInMetres) {
  test::TempFolder folder;
  auto flight = folder / "TartanAir/abandonedfactory/Easy/P000";
  put_image(flight / "image_left/000000_left.png", 1);
  put_image(flight / "image_right/000000_right.png", 2);
  test::fs::create_directories(flight / "depth_left");
  std::vector<float> depth(test::kWidth * test::kHeight, 16.0f);
  depth[0] = 0;
  write_npy(flight / "depth_left/000000_left_depth.npy", {test::kHeight, test::kWidth},
            depth.data());
  auto dataset = open_dataset(options_of("tartanair", folder.path()));
  EXPECT_EQ(names_of(*dataset), Names{"abandonedfactory/Easy/P000/000000"});
  test::expect_disparity(*dataset, 0, 5);
}

TEST(Vkitti2, DepthInCentimetresAndSky) {
  test::TempFolder folder;
  auto frames = folder / "Scene01/15-deg-left/frames";
  put_image(frames / "rgb/Camera_0/rgb_00000.jpg", 1);
  put_image(frames / "rgb/Camera_1/rgb_00000.jpg", 2);
  put_integers(frames / "depth/Camera_0/depth_00000.png", 2000);
  put_integers(frames / "depth/Camera_1/depth_00000.png", 65535);
  auto dataset = open_dataset(options_of("vkitti2", folder.path()));
  EXPECT_EQ(names_of(*dataset), Names{"Scene01/15-deg-left/00000"});
  Sample sample = test::expect_disparity(*dataset, 0, 725.0087 * 0.532725 / 20);
  EXPECT_TRUE(std::isinf(sample.right_disparity.at<float>(2, 2)));
}

TEST(CreStereo, DividedBy32) {
  test::TempFolder folder;
  for (const char* part : {"tree", "hole"}) {
    auto stem = folder / "CREStereo" / part;
    put_image(stem / "abc_left.jpg", 1);
    put_image(stem / "abc_right.jpg", 2);
    put_integers(stem / "abc_left.disp.png", 320);
    put_integers(stem / "abc_right.disp.png", 640);
  }
  auto dataset = open_dataset(options_of("crestereo", folder.path()));
  EXPECT_EQ(names_of(*dataset), (Names{"hole/abc", "tree/abc"}));
  Sample sample = test::expect_disparity(*dataset, 0, 10);
  EXPECT_EQ(sample.right_disparity.at<float>(2, 2), 20);
  auto options = options_of("crestereo", folder.path());
  options.max_disparity = 10;
  EXPECT_TRUE(std::isinf(open_dataset(options)->load(0).disparity.at<float>(2, 2)));
}

TEST(InStereo2k, PartsAndDivisor) {
  test::TempFolder folder;
  for (const char* place :
       {"train/part1/000001", "train/part2/000002", "train/000003", "test/000009"}) {
    put_image(folder / place / "left.png", 1);
    put_image(folder / place / "right.png", 2);
    put_integers(folder / place / "left_disp.png", 1600);
  }
  auto train = open_dataset(options_of("instereo2k", folder.path()));
  EXPECT_EQ(names_of(*train), (Names{"train/000003", "train/part1/000001", "train/part2/000002"}));
  test::expect_disparity(*train, 0, 16);
  auto options = options_of("instereo2k", folder.path(), "test");
  options.divisor = 64;
  auto test = open_dataset(options);
  EXPECT_EQ(names_of(*test), Names{"test/000009"});
  test::expect_disparity(*test, 0, 25);
}

}  // namespace
}  // namespace nmrf
