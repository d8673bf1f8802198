#include "data/trees.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::contains;

class ListDataset : public ::testing::Test {
 protected:
  void SetUp() override {
    test::put_image(folder_ / "data/l/1.png", 1);
    test::put_image(folder_ / "data/r/1.png", 2);
    test::put_integers(folder_ / "data/d/1.png", 512);
    test::put_integers(folder_ / "data/d/8.png", 30, CV_8UC1);
    test::put_pfm(folder_ / "data/d/1.pfm", 6);
    cv::Mat mask(test::kHeight, test::kWidth, CV_8UC1, cv::Scalar(0));
    mask.at<std::uint8_t>(4, 4) = 255;
    write_mat(folder_ / "data/m.png", mask);
    options_.name = "list";
    options_.list = (folder_ / "data/list.txt").string();
  }
  std::unique_ptr<Dataset> open(const std::string& text) {
    write_file(options_.list, text);
    return open_dataset(options_);
  }
  test::TempFolder folder_;
  DatasetOptions options_;
};

TEST_F(ListDataset, KindsAndDivisors) {
  auto dataset = open(
      "l/1.png r/1.png d/1.png\n"        // the default: /256
      "l/1.png r/1.png d/1.png kitti\n"  // the same, said
      "l/1.png r/1.png d/1.png u16/64\n"
      "l/1.png r/1.png d/8.png u8/3\n"
      "l/1.png r/1.png d/1.pfm pfm\n"
      "l/1.png r/1.png d/1.pfm\n");
  ASSERT_EQ(dataset->size(), 6u);
  test::expect_disparity(*dataset, 0, 2);
  test::expect_disparity(*dataset, 1, 2);
  test::expect_disparity(*dataset, 2, 8);
  test::expect_disparity(*dataset, 3, 10);
  test::expect_disparity(*dataset, 4, 6);
  EXPECT_TRUE(dataset->load(1).sparse);
  EXPECT_TRUE(dataset->load(3).sparse);
  EXPECT_FALSE(dataset->load(4).sparse);
  EXPECT_FALSE(dataset->load(5).sparse);
  EXPECT_EQ(dataset->ref(0).name, "l/1");
  EXPECT_EQ(dataset->ref(1).name, "l/1-2") << "names stay unique";

  options_.divisor = 128;
  dataset = open("l/1.png r/1.png d/1.png\nl/1.png r/1.png d/1.png kitti\n");
  test::expect_disparity(*dataset, 0, 4);
  test::expect_disparity(*dataset, 1, 2);  // what the line says wins
}

TEST_F(ListDataset, MaskInEitherPlace) {
  auto dataset = open(
      "l/1.png r/1.png d/1.pfm m.png\n"
      "l/1.png r/1.png d/1.png m.png u16/512\n"
      "l/1.png r/1.png d/1.png u16/512 m.png\n");
  for (std::size_t i = 0; i < 3; ++i) {
    cv::Mat map = dataset->load(i).disparity;
    EXPECT_EQ(map.at<float>(4, 4), i == 0 ? 6 : 1) << i;
    EXPECT_TRUE(std::isinf(map.at<float>(4, 5))) << i;
  }
}

TEST_F(ListDataset, RootInsteadOfTheListsFolder) {
  options_.list = (folder_ / "elsewhere.txt").string();
  options_.root = (folder_ / "data").string();
  EXPECT_EQ(open("l/1.png r/1.png d/1.pfm\n")->size(), 1u);
  options_.root.clear();
  auto absolute = (folder_ / "data").string();
  auto dataset = open(absolute + "/l/1.png " + absolute + "/r/1.png " + absolute + "/d/1.pfm\n");
  EXPECT_FALSE(dataset->ref(0).name.starts_with("/"));
  dataset = open("data/../data/l/1.png data/r/1.png data/d/1.pfm\n");
  EXPECT_EQ(dataset->ref(0).name, "data/l/1");
}

TEST_F(ListDataset, TwoColumnsOnlyWithoutTruth) {
  auto message = test::error_of(ErrorKind::kInput, [&] { open("# x\nl/1.png r/1.png\n"); });
  EXPECT_TRUE(contains(message, "line 2"));
  EXPECT_TRUE(contains(message, "split = test"));
  options_.split = "test";
  auto dataset = open("l/1.png r/1.png\nl/1.png r/1.png d/1.pfm\n");
  EXPECT_TRUE(dataset->load(0).disparity.empty());
  EXPECT_FALSE(dataset->load(1).disparity.empty());
}

TEST_F(ListDataset, MistakesNameTheLine) {
  auto refuse = [&](const std::string& text) {
    return test::error_of(ErrorKind::kInput, [&] { open(text); });
  };
  EXPECT_TRUE(contains(refuse("l/1.png r/2.png d/1.pfm\n"), "r/2.png"));
  EXPECT_TRUE(contains(refuse("l/1.png r/1.png d/1.pfm u8/0\n"), "neither a kind"));
  EXPECT_TRUE(contains(refuse("l/1.png r/1.png d/1.pfm u8/x\n"), "u8/x"));
  EXPECT_TRUE(contains(refuse("l/1.png r/1.png d/1.pfm m.png m.png\n"), "two masks"));
  EXPECT_TRUE(contains(refuse("l/1.png r/1.png d/1.pfm m.png pfm x\n"), "6 columns"));
  EXPECT_TRUE(contains(refuse("# nothing\n"), "no line"));
  options_.list.clear();
  options_.root = folder_.path().string();
  EXPECT_TRUE(contains(test::error_of(ErrorKind::kUsage, [&] { open_dataset(options_); }), "list"));
}

TEST_F(ListDataset, DensityCanBeSet) {
  options_.truth = TruthDensity::kSparse;
  EXPECT_TRUE(open("l/1.png r/1.png d/1.pfm\n")->load(0).sparse);
  options_.truth = TruthDensity::kDense;
  EXPECT_FALSE(open("l/1.png r/1.png d/1.png\n")->load(0).sparse);
}

}  // namespace
}  // namespace nmrf
