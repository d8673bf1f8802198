// An archive for each benchmark from a tiny fake tree, looked at entry by entry.
#include "eval/submission.h"

#include <gtest/gtest.h>

#include <map>

#include "data/trees.h"
#include "io/formats.h"
#include "support/support.h"
#include "weights/zip.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

using test::contains;
using test::error_of;
using test::put_image;
using test::TempFolder;

Prediction prediction_for(const SubmissionItem& item, float value) {
  Prediction p;
  p.disparity = cv::Mat(item.height, item.width, CV_32FC1, cv::Scalar(value));
  p.disparity.at<float>(0, 0) = 0;
  p.seconds = 1.5;
  return p;
}

// Makes the archive and returns its entries.
std::map<std::string, std::string> archive_of(const SubmissionOptions& options, float value) {
  TempFolder work;
  const auto items = plan_submission(options);
  for (const auto& item : items) {
    EXPECT_FALSE(submission_item_done(work.path(), item));
    write_submission_item(work.path(), item, options, prediction_for(item, value));
    EXPECT_TRUE(submission_item_done(work.path(), item));
  }
  build_submission(work / "out.zip", work.path(), items);
  const ZipReader zip(map_weight_file(work / "out.zip"));
  std::map<std::string, std::string> entries;
  for (const auto& entry : zip.entries()) {
    EXPECT_EQ(entry.method, 0);
    const auto bytes = zip.read(entry);
    entries[entry.name] = std::string(bytes.begin(), bytes.end());
  }
  return entries;
}

cv::Mat decode_png(const std::string& bytes) {
  Image image = formats::decode_png(bytes, "an entry").image;
  return mat(image).clone();
}

// The float at x, y of a little-endian PFM file, its rows counted from the top.
float pfm_value(const std::string& bytes, int width, int height, int x, int y) {
  float value;
  const std::size_t at = bytes.size() - static_cast<std::size_t>(width * height) * 4 +
                         static_cast<std::size_t>((height - 1 - y) * width + x) * 4;
  std::memcpy(&value, bytes.data() + at, 4);
  return value;
}

void put_kitti(const fs::path& root, const char* left, const char* right, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string name = fmt::format("{:06}_10.png", i);
    // The sizes differ from image to image, as the real ones do.
    put_image(root / "testing" / left / name, 1, 40 + i % 3, 20 + i % 2);
    put_image(root / "testing" / right / name, 2, 40 + i % 3, 20 + i % 2);
  }
  // The later moment, which is not part of the benchmark.
  put_image(root / "testing" / left / "000000_11.png", 1, 40, 20);
  put_image(root / "testing" / right / "000000_11.png", 1, 40, 20);
}

TEST(Submission, Kitti2015) {
  TempFolder root;
  put_kitti(root.path(), "image_2", "image_3", 200);
  SubmissionOptions options;
  options.benchmark = "kitti2015";
  options.root = root.path().string();
  const auto entries = archive_of(options, 12.25f);
  ASSERT_EQ(entries.size(), 200u);
  int i = 0;
  for (const auto& [name, bytes] : entries) {
    EXPECT_EQ(name, fmt::format("disp_0/{:06}_10.png", i));
    const cv::Mat map = decode_png(bytes);
    ASSERT_EQ(map.type(), CV_16UC1);
    EXPECT_EQ(map.size(), cv::Size(40 + i % 3, 20 + i % 2));
    EXPECT_EQ(map.at<std::uint16_t>(3, 3), 12.25 * 256);
    EXPECT_EQ(map.at<std::uint16_t>(0, 0), 1);  // 0 would mean invalid
    ++i;
  }
}

TEST(Submission, Kitti2012LiesInTheRoot) {
  TempFolder root;
  put_kitti(root / "KITTI_2012", "colored_0", "colored_1", 195);
  SubmissionOptions options;
  options.benchmark = "kitti2012";
  options.root = root.path().string();
  const auto entries = archive_of(options, 3);
  ASSERT_EQ(entries.size(), 195u);
  int i = 0;
  for (const auto& [name, bytes] : entries) {
    EXPECT_EQ(name, fmt::format("{:06}_10.png", i));
    const cv::Mat map = decode_png(bytes);
    ASSERT_EQ(map.type(), CV_16UC1);
    EXPECT_EQ(map.size(), cv::Size(40 + i % 3, 20 + i % 2));
    EXPECT_EQ(map.at<std::uint16_t>(3, 3), 3 * 256);
    EXPECT_EQ(map.at<std::uint16_t>(0, 0), 1);
    ++i;
  }
}

TEST(Submission, MissingPairsAreNamed) {
  TempFolder root;
  put_kitti(root.path(), "image_2", "image_3", 198);
  SubmissionOptions options;
  options.benchmark = "kitti2015";
  options.root = root.path().string();
  std::string message = error_of(ErrorKind::kInput, [&] { plan_submission(options); });
  EXPECT_TRUE(contains(message, "2 of 200"));
  EXPECT_TRUE(contains(message, "000198_10, 000199_10"));
  options.partial = true;
  test::Warnings warnings;
  EXPECT_EQ(plan_submission(options).size(), 198u);
  EXPECT_EQ(warnings.texts().size(), 1u);
}

TEST(Submission, UnknownPairsAndSizes) {
  TempFolder root;
  put_kitti(root.path(), "image_2", "image_3", 201);
  SubmissionOptions options;
  options.benchmark = "kitti2015";
  options.root = root.path().string();
  EXPECT_TRUE(
      contains(error_of(ErrorKind::kInput, [&] { plan_submission(options); }), "000200_10"));
  options.partial = true;
  put_image(root / "testing/image_3/000007_10.png", 1, 39, 20);
  EXPECT_TRUE(contains(error_of(ErrorKind::kInput, [&] { plan_submission(options); }), "39x20"));
}

const char* const kTraining[] = {"Adirondack", "ArtL",    "Jadeplant", "Motorcycle", "MotorcycleE",
                                 "Piano",      "PianoL",  "Pipes",     "Playroom",   "Playtable",
                                 "PlaytableP", "Recycle", "Shelves",   "Teddy",      "Vintage"};
const char* const kTest[] = {"Australia", "AustraliaP", "Bicycle2", "Classroom2", "Classroom2E",
                             "Computer",  "Crusade",    "CrusadeP", "Djembe",     "DjembeL",
                             "Hoops",     "Livingroom", "Newkuba",  "Plants",     "Staircase"};

TEST(Submission, Middlebury) {
  TempFolder root;
  const fs::path base = root / "MiddEval3";
  int size = 0;
  for (const char* scene : kTraining) {
    put_image(base / "trainingQ" / scene / "im0.png", 1, 30 + size, 20);
    put_image(base / "trainingQ" / scene / "im1.png", 2, 30 + size++, 20);
    // A submission needs no truth: half of the scenes have none.
    if (size % 2) test::put_pfm(base / "trainingQ" / scene / "disp0GT.pfm", 4, 30 + size - 1, 20);
  }
  for (const char* scene : kTest) {
    put_image(base / "testQ" / scene / "im0.png", 1, 33, 21);
    put_image(base / "testQ" / scene / "im1.png", 2, 33, 21);
  }
  SubmissionOptions options;
  options.benchmark = "middlebury";
  options.root = root.path().string();
  options.resolution = "Q";
  const auto entries = archive_of(options, 7.125f);
  ASSERT_EQ(entries.size(), 60u);
  size = 0;
  for (const char* scene : kTraining) {
    const std::string folder = std::string("trainingQ/") + scene;
    const std::string& map = entries.at(folder + "/disp0NMRF.pfm");
    EXPECT_TRUE(map.starts_with(fmt::format("Pf\n{} 20\n-1", 30 + size))) << map.substr(0, 20);
    EXPECT_EQ(pfm_value(map, 30 + size, 20, 5, 5), 7.125f);
    EXPECT_EQ(pfm_value(map, 30 + size, 20, 0, 0), 0);
    EXPECT_EQ(entries.at(folder + "/timeNMRF.txt"), "1.500\n");
    ++size;
  }
  for (const char* scene : kTest) {
    const std::string& map = entries.at(std::string("testQ/") + scene + "/disp0NMRF.pfm");
    EXPECT_TRUE(map.starts_with("Pf\n33 21\n-1")) << scene;
    EXPECT_EQ(pfm_value(map, 33, 21, 32, 20), 7.125f) << scene;
    EXPECT_EQ(entries.at(std::string("testQ/") + scene + "/timeNMRF.txt"), "1.500\n") << scene;
  }
  options.resolution = "H";
  EXPECT_TRUE(
      contains(error_of(ErrorKind::kInput, [&] { plan_submission(options); }), "trainingH"));
}

TEST(Submission, Eth3d) {
  TempFolder root;
  for (int i = 0; i < 27; ++i) {
    const std::string scene = fmt::format("train_{}", i);
    put_image(root / ("two_view_training/" + scene) / "im0.png", 1, 30, 20);
    put_image(root / ("two_view_training/" + scene) / "im1.png", 2, 30, 20);
    if (i % 2)  // a submission needs no truth
      test::put_pfm(root / ("two_view_training_gt/" + scene) / "disp0GT.pfm", 4, 30, 20);
  }
  for (int i = 0; i < 20; ++i) {
    const std::string scene = fmt::format("lake_{}", i);
    put_image(root / ("two_view_testing/" + scene) / "im0.png", 1, 31, 22);
    put_image(root / ("two_view_testing/" + scene) / "im1.png", 2, 31, 22);
  }
  SubmissionOptions options;
  options.benchmark = "eth3d";
  options.root = root.path().string();
  const auto entries = archive_of(options, 2.5f);
  ASSERT_EQ(entries.size(), 2u * 47);
  for (int i = 0; i < 47; ++i) {
    const bool training = i < 27;
    const std::string name = "low_res_two_view/" + (training ? fmt::format("train_{}", i)
                                                             : fmt::format("lake_{}", i - 27));
    const int width = training ? 30 : 31, height = training ? 20 : 22;
    const std::string& map = entries.at(name + ".pfm");
    EXPECT_TRUE(map.starts_with(fmt::format("Pf\n{} {}\n-1", width, height))) << name;
    EXPECT_EQ(pfm_value(map, width, height, 7, 9), 2.5f) << name;
    EXPECT_EQ(entries.at(name + ".txt"), "runtime 1.500\n") << name;
  }
  fs::remove_all(root / "two_view_testing/lake_3");
  EXPECT_TRUE(contains(error_of(ErrorKind::kInput, [&] { plan_submission(options); }),
                       "there are 19 pairs; the benchmark has 20"));
}

TEST(Submission, BadMapsAreRefused) {
  TempFolder work;
  SubmissionItem item;
  item.width = 10;
  item.height = 5;
  item.map_entry = "disp_0/000000_10.png";
  SubmissionOptions options;
  options.benchmark = "kitti2015";
  Prediction p = prediction_for(item, 4);
  p.disparity.at<float>(2, 2) = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(contains(
      error_of(ErrorKind::kFailure, [&] { write_submission_item(work.path(), item, options, p); }),
      "without a disparity"));
  p.disparity = cv::Mat(5, 9, CV_32FC1, cv::Scalar(3));
  EXPECT_TRUE(contains(
      error_of(ErrorKind::kFailure, [&] { write_submission_item(work.path(), item, options, p); }),
      "9x5"));
  EXPECT_FALSE(fs::exists(work / "disp_0"));
}

TEST(Submission, ChangedFilesAreNotTaken) {
  TempFolder work;
  SubmissionItem item;
  item.width = 10;
  item.height = 5;
  item.map_entry = "000000_10.png";
  SubmissionOptions options;
  options.benchmark = "kitti2012";
  write_submission_item(work.path(), item, options, prediction_for(item, 4));
  SubmissionItem larger = item;
  larger.width = 11;
  EXPECT_FALSE(submission_item_done(work.path(), larger));
  EXPECT_TRUE(contains(error_of(ErrorKind::kFailure,
                                [&] { build_submission(work / "out.zip", work.path(), {larger}); }),
                       "000000_10.png"));
  EXPECT_FALSE(fs::exists(work / "out.zip"));
  const std::string bytes = read_file(work / "000000_10.png");
  write_file(work / "000000_10.png", bytes.substr(0, bytes.size() - 20));
  EXPECT_FALSE(submission_item_done(work.path(), item));
}

TEST(Submission, Settings) {
  SubmissionOptions options;
  options.benchmark = "kitti";
  EXPECT_TRUE(contains(error_of(ErrorKind::kUsage, [&] { options.validate(); }), "kitti2012"));
  options.benchmark = "middlebury";
  options.resolution = "X";
  error_of(ErrorKind::kUsage, [&] { options.validate(); });
  options.resolution = "Q";
  for (const char* method : {"", "a/b", "../x", "my method", "name_s"}) {
    options.method = method;
    error_of(ErrorKind::kUsage, [&] { options.validate(); });
  }
}

}  // namespace
}  // namespace nmrf
