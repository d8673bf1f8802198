#include <algorithm>
#include <fstream>

#include "data/dataset.h"
#include "data/trees.h"
#include "io/list_file.h"
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

void put_kitti(const test::fs::path& half, const char* left, const char* right, int pairs,
               const std::vector<std::string>& truths) {
  for (int i = 0; i < pairs; ++i) {
    std::string file = fmt::format("{:06}_10.png", i);
    put_image(half / left / file, 1);
    put_image(half / right / file, 2);
    for (const auto& truth : truths) put_integers(half / truth / file, 256 * (i + 1));
  }
}

TEST(Kitti2015, SplitsTruthAndMasks) {
  test::TempFolder folder;
  auto base = folder / "KITTI_2015";
  put_kitti(base / "training", "image_2", "image_3", 11, {"disp_occ_0"});
  put_kitti(base / "testing", "image_2", "image_3", 3, {});
  put_image(base / "training/image_2/000000_11.png", 1);  // the next moment: no pair of ours
  put_integers(base / "training/disp_noc_0/000003_10.png", 256);
  put_integers(base / "training/obj_map/000003_10.png", 2, CV_8UC1);

  auto all = open_dataset(options_of("kitti2015", folder.path()));
  ASSERT_EQ(all->size(), 11u);
  EXPECT_EQ(all->ref(10).name, "000010_10");
  Sample sample = test::expect_disparity(*all, 3, 4);
  EXPECT_TRUE(sample.sparse);
  EXPECT_EQ(sample.noc_mask.at<std::uint8_t>(0, 0), 0);
  EXPECT_EQ(sample.noc_mask.at<std::uint8_t>(1, 1), 255);
  EXPECT_EQ(sample.noc_disparity.at<float>(1, 1), 1) << "its own value, not that of disp_occ_0";
  EXPECT_EQ(sample.objects.at<int>(1, 1), 2);
  EXPECT_TRUE(all->load(2).noc_mask.empty()) << "nothing is known about occlusion there";

  EXPECT_EQ(names_of(*open_dataset(options_of("kitti2015", base, "val"))),
            (Names{"000000_10", "000005_10", "000010_10"}));
  EXPECT_EQ(open_dataset(options_of("kitti2015", base, "train"))->size(), 8u);
  auto test = open_dataset(options_of("kitti2015", folder.path(), "testing"));
  EXPECT_EQ(test->size(), 3u);
  EXPECT_TRUE(test->load(0).disparity.empty());
}

TEST(Kitti2015, OnlyNocTruth) {
  test::TempFolder folder;
  put_kitti(folder / "training", "image_2", "image_3", 1, {"disp_noc_0"});
  auto dataset = open_dataset(options_of("kitti2015", folder.path()));
  Sample sample = test::expect_disparity(*dataset, 0, 1);
  EXPECT_EQ(sample.noc_mask.at<std::uint8_t>(0, 0), 0);
  EXPECT_EQ(cv::countNonZero(sample.noc_mask), test::kWidth * test::kHeight - 1);
}

TEST(Kitti2012, ColourElseGreyAndReflections) {
  test::TempFolder folder;
  auto base = folder / "KITTI_2012";
  put_kitti(base / "training", "image_0", "image_1", 2, {"disp_occ", "disp_noc", "disp_refl_occ"});
  auto grey = open_dataset(options_of("kitti2012", folder.path()));
  EXPECT_TRUE(contains(grey->ref(0).left.string(), "image_0"));
  EXPECT_EQ(cv::countNonZero(grey->load(0).reflective_mask), test::kWidth * test::kHeight - 1);
  put_kitti(base / "training", "colored_0", "colored_1", 2, {});
  auto colour = open_dataset(options_of("kitti2012", folder.path()));
  EXPECT_TRUE(contains(colour->ref(0).left.string(), "colored_0"));
}

TEST(KittiMix, BothYears) {
  test::TempFolder folder;
  put_kitti(folder / "KITTI_2012/training", "colored_0", "colored_1", 3, {"disp_occ"});
  auto message = test::error_of(ErrorKind::kInput,
                                [&] { open_dataset(options_of("kitti-mix", folder.path())); });
  EXPECT_TRUE(contains(message, "KITTI 2015"));
  put_kitti(folder / "KITTI_2015/training", "image_2", "image_3", 2, {"disp_occ_0"});
  auto mix = open_dataset(options_of("kitti-mix", folder.path()));
  EXPECT_EQ(names_of(*mix),
            (Names{"kitti2012/000000_10", "kitti2012/000001_10", "kitti2012/000002_10",
                   "kitti2015/000000_10", "kitti2015/000001_10"}));
  EXPECT_EQ(open_dataset(options_of("kitti-mix", folder.path(), "train"))->size(), 3u);
}

// The files of configs/splits say the same as the rule in the code.
TEST(KittiSplits, ListsEqualTheRule) {
  test::TempFolder folder;
  for (auto [half, left, right, truth, count] :
       {std::tuple{"KITTI_2012", "colored_0", "colored_1", "disp_occ", 194},
        {"KITTI_2015", "image_2", "image_3", "disp_occ_0", 200}})
    for (const char* place : {left, right, truth})
      for (int i = 0; i < count; ++i) {  // only names matter here
        auto path = folder / half / "training" / place / fmt::format("{:06}_10.png", i);
        test::fs::create_directories(path.parent_path());
        std::ofstream(path).put('x');
      }
  for (const std::string name : {"kitti2012", "kitti2015", "kitti-mix"})
    for (const std::string split : {"train", "val"}) {
      auto list =
          test::fs::path(NMRF_SOURCE_DIR) / "configs/splits" / (name + "-" + split + ".txt");
      auto by_rule = open_dataset(options_of(name, folder.path(), split));
      auto options = options_of(name, folder.path());
      options.list = list.string();
      EXPECT_EQ(names_of(*open_dataset(options)), names_of(*by_rule)) << list;
      EXPECT_EQ(read_list(list).size(), by_rule->size()) << list;
    }
  EXPECT_EQ(open_dataset(options_of("kitti2015", folder.path(), "val"))->size(), 40u);
  EXPECT_EQ(open_dataset(options_of("kitti2012", folder.path(), "val"))->size(), 39u);
}

TEST(KittiSplits, NamesThatAreNotThere) {
  test::TempFolder folder;
  put_kitti(folder / "training", "image_2", "image_3", 2, {"disp_occ_0"});
  auto options = options_of("kitti2015", folder.path());
  options.list = (folder / "keep.txt").string();
  write_file(options.list, "000001_10\n000077_10\n");
  test::Warnings warnings;
  EXPECT_EQ(names_of(*open_dataset(options)), Names{"000001_10"});
  ASSERT_EQ(warnings.texts().size(), 1u);
  EXPECT_TRUE(contains(warnings.texts()[0], "1 of the 2 names"));
  write_file(options.list, "x\n");
  EXPECT_TRUE(
      contains(test::error_of(ErrorKind::kInput, [&] { open_dataset(options); }), "'000000_10'"));
}

void put_2005(const test::fs::path& scene, int value, int width) {
  put_image(scene / "view1.png", 1, width);
  put_image(scene / "view5.png", 2, width);
  put_integers(scene / "disp1.png", value, CV_8UC1, width);
  put_integers(scene / "disp5.png", value + 6, CV_8UC1, width);
}

TEST(Middlebury2005, SizesByFolder) {
  test::TempFolder folder;
  auto base = folder / "Middlebury/2005";
  put_2005(base / "ThirdSize/Art", 60, 13);
  put_2005(base / "ThirdSize/Dolls", 60, 13);
  put_2005(base / "HalfSize/Art", 60, 20);
  put_2005(base / "FullSize/Art", 60, 40);
  auto third = open_dataset(options_of("middlebury-2005", folder.path()));
  EXPECT_EQ(names_of(*third), (Names{"Art", "Dolls"}));
  Sample sample = test::expect_disparity(*third, 0, 20);
  EXPECT_EQ(sample.right_disparity.at<float>(2, 2), 22);
  auto options = options_of("middlebury-2005", base);
  options.size = "half";
  test::expect_disparity(*open_dataset(options), 0, 30);
  options.size = "full";
  test::expect_disparity(*open_dataset(options), 0, 60);
  options.size = "all";
  EXPECT_EQ(names_of(*open_dataset(options)),
            (Names{"FullSize/Art", "HalfSize/Art", "ThirdSize/Art", "ThirdSize/Dolls"}));
  options.size = "quarter";
  test::error_of(ErrorKind::kUsage, [&] { open_dataset(options); });
}

TEST(Middlebury2006, SizesByWidthAndLights) {
  test::TempFolder folder;
  put_2005(folder / "2006/Aloe", 60, 1282);
  auto light = folder / "2006/Baby1/Illum2/Exp1";
  put_image(light / "view1.png", 1, 620);
  put_image(light / "view5.png", 2, 620);
  put_integers(folder / "2006/Baby1/disp1.png", 60, CV_8UC1, 620);
  auto dataset = open_dataset(options_of("middlebury-2006", folder.path()));
  EXPECT_EQ(names_of(*dataset), (Names{"Aloe", "Baby1/Illum2/Exp1"}));
  test::expect_disparity(*dataset, 0, 60);
  test::expect_disparity(*dataset, 1, 30);
  auto options = options_of("middlebury-2006", folder.path());
  options.size = "third";
  EXPECT_TRUE(contains(test::error_of(ErrorKind::kInput, [&] { open_dataset(options); }), "1282"));
}

TEST(Middlebury2003, QuarterSizeAndOthers) {
  test::TempFolder folder;
  for (const char* scene : {"cones", "teddyF", "teddyH"}) {
    auto place = folder / "2003" / scene;
    put_image(place / "im2.png", 1);
    put_image(place / "im6.png", 2);
    put_integers(place / "disp2.png", 40, CV_8UC1);
    put_integers(place / "mask_nonocc.png", 255, CV_8UC1);
  }
  auto dataset = open_dataset(options_of("middlebury-2003", folder.path()));
  EXPECT_EQ(names_of(*dataset), Names{"cones"});
  Sample sample = test::expect_disparity(*dataset, 0, 10);
  EXPECT_EQ(cv::countNonZero(sample.noc_mask), test::kWidth * test::kHeight - 1);
  auto options = options_of("middlebury-2003", folder.path());
  options.size = "all";
  auto all = open_dataset(options);
  ASSERT_EQ(all->size(), 3u);
  test::expect_disparity(*all, 1, 40);
  test::expect_disparity(*all, 2, 20);
}

TEST(Middlebury2001, PortablePixmaps) {
  test::TempFolder folder;
  auto scene = folder / "Middlebury/2001/venus";
  put_image(scene / "im2.ppm", 1);
  put_image(scene / "im6.ppm", 2);
  put_integers(scene / "disp2.pgm", 40, CV_8UC1);
  put_integers(scene / "disp6.pgm", 80, CV_8UC1);
  auto dataset = open_dataset(options_of("middlebury-2001", folder.path()));
  EXPECT_EQ(names_of(*dataset), Names{"venus"});
  EXPECT_EQ(test::expect_disparity(*dataset, 0, 5).right_disparity.at<float>(2, 2), 10);
}

TEST(Middlebury2014, VariantsAndLighting) {
  test::TempFolder folder;
  for (const char* scene : {"Adirondack-perfect", "Adirondack-imperfect", "Piano-perfect"}) {
    auto place = folder / "Middlebury/2014" / scene;
    for (const char* file : {"im0.png", "im1.png", "im1E.png", "im1L.png"}) put_image(place / file);
    put_pfm(place / "disp0.pfm", 900);
    put_pfm(place / "disp1.pfm", 1001);
  }
  auto perfect = open_dataset(options_of("middlebury-2014", folder.path()));
  EXPECT_EQ(names_of(*perfect), (Names{"Adirondack-perfect", "Piano-perfect"}));
  Sample sample = test::expect_disparity(*perfect, 0, 900);
  EXPECT_EQ(cv::countNonZero(sample.right_disparity < 2000), 0) << "1000 and more is unknown";
  auto options = options_of("middlebury-2014", folder.path());
  options.variant = "imperfect";
  EXPECT_EQ(names_of(*open_dataset(options)), Names{"Adirondack-imperfect"});
  options.variant = "all";
  options.lighting = "all";
  auto all = open_dataset(options);
  EXPECT_EQ(all->size(), 9u);
  EXPECT_EQ(all->ref(1).name, "Adirondack-imperfect/E");
  options.lighting = "L";
  EXPECT_TRUE(contains(open_dataset(options)->ref(0).right.string(), "im1L.png"));
}

TEST(MiddEval3, TruthInsideAndBeside) {
  test::TempFolder folder;
  auto base = folder / "Middlebury/MiddEval3";
  for (const char* scene : {"Motorcycle", "Adirondack"}) {
    put_image(base / "trainingH" / scene / "im0.png", 1);
    put_image(base / "trainingH" / scene / "im1.png", 2);
  }
  write_file(base / "trainingH/Motorcycle/calib.txt", "doffs=0\n");
  put_pfm(base / "trainingH/Motorcycle/disp0GT.pfm", 7);
  put_pfm(base / "trainingH_GT/Adirondack/disp0GT.pfm", 8);
  put_integers(base / "trainingH_GT/Adirondack/mask0nocc.png", 255, CV_8UC1);
  put_image(base / "testH/Plants/im0.png", 1);
  put_image(base / "testH/Plants/im1.png", 2);
  auto training = open_dataset(options_of("middlebury-h", folder.path()));
  EXPECT_EQ(names_of(*training), (Names{"Adirondack", "Motorcycle"}));
  EXPECT_FALSE(test::expect_disparity(*training, 0, 8).noc_mask.empty());
  EXPECT_TRUE(test::expect_disparity(*training, 1, 7).noc_mask.empty());
  EXPECT_TRUE(training->ref(0).calibration.empty());
  EXPECT_FALSE(training->ref(1).calibration.empty());
  auto test = open_dataset(options_of("middlebury-h", base, "test"));
  EXPECT_EQ(names_of(*test), Names{"Plants"});
  auto message =
      test::error_of(ErrorKind::kInput, [&] { open_dataset(options_of("middlebury-f", base)); });
  EXPECT_TRUE(contains(message, "trainingF"));
}

}  // namespace
}  // namespace nmrf
