#include "train/superpixels.h"

#include <opencv2/imgproc.hpp>
#include <set>
#include <thread>

#include "data/trees.h"
#include "support/mats.h"
#include "support/support.h"

namespace nmrf::train {
namespace {

using test::same;

namespace fs = std::filesystem;

int labels_in(const cv::Mat& labels) {
  return static_cast<int>(std::set<int>(labels.begin<int>(), labels.end<int>()).size());
}

TEST(Superpixels, RepeatWithAnyNumberOfThreads) {
  cv::Mat image = test::noise_image(97, 61, 3);
  cv::GaussianBlur(image, image, {5, 5}, 0);
  const int threads = cv::getNumThreads();
  cv::setNumThreads(1);
  cv::Mat one = superpixels(image);
  cv::setNumThreads(2);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(same(one, superpixels(image)));
  EXPECT_EQ(cv::getNumThreads(), 2) << "as it was";
  cv::setNumThreads(threads);
  EXPECT_EQ(one.type(), CV_32SC1);
  EXPECT_EQ(one.size(), image.size());
  EXPECT_GT(labels_in(one), 30) << "about one a region of 10 x 10";
  EXPECT_LT(labels_in(one), 90);
}

TEST(Superpixels, KeepToTheEdgesOfTheImage) {
  cv::Mat image(60, 80, CV_8UC3, cv::Scalar(200, 60, 30));
  image.colRange(37, 80).setTo(cv::Scalar(20, 180, 220));
  cv::Mat labels = superpixels(image);
  std::set<int> left, both;
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 37; ++x) left.insert(labels.at<int>(y, x));
  for (int y = 0; y < 60; ++y)
    for (int x = 37; x < 80; ++x)
      if (left.contains(labels.at<int>(y, x))) both.insert(labels.at<int>(y, x));
  EXPECT_TRUE(both.empty()) << both.size() << " of " << left.size() << " labels cross the edge";
}

TEST(Superpixels, TakeImagesOfAnySize) {
  for (cv::Size size : {cv::Size(1, 1), {5, 3}, {9, 30}, {33, 7}, {1, 200}, {200, 2}, {10, 9}}) {
    cv::Mat labels = superpixels(test::noise_image(size.width, size.height, 5));
    EXPECT_EQ(labels.size(), size);
    EXPECT_EQ(cv::countNonZero(labels < 0), 0);
  }
  EXPECT_EQ(superpixels(cv::Mat(30, 40, CV_8UC3, cv::Scalar(0, 0, 0))).size(), cv::Size(40, 30));
  test::error_of(ErrorKind::kUsage, [] { superpixels(cv::Mat()); });
  test::error_of(ErrorKind::kUsage, [] { superpixels(cv::Mat(9, 9, CV_8UC1, cv::Scalar(1))); });
}

TEST(SuperpixelCache, FindsByContent) {
  test::TempFolder folder;
  cv::Mat image = test::noise_image(50, 40, 1);
  cv::Mat wanted = superpixels(image);
  SuperpixelCache cache(folder / "deep/er");
  EXPECT_TRUE(same(cache.get(image), wanted));
  EXPECT_TRUE(same(cache.get(image.clone()), wanted));
  // A window of a larger image: other strides, the same content.
  cv::Mat large;
  cv::copyMakeBorder(image, large, 3, 4, 5, 6, cv::BORDER_CONSTANT);
  EXPECT_TRUE(same(cache.get(large(cv::Rect(5, 3, 50, 40))), wanted));
  EXPECT_EQ(cache.computed(), 1);
  EXPECT_EQ(cache.hits(), 2);
  image.at<cv::Vec3b>(39, 49)[2] ^= 1;
  EXPECT_NE(cache.path_of(image), cache.path_of(large(cv::Rect(5, 3, 50, 40))));
  // The same bytes in another shape are another image.
  EXPECT_NE(cache.path_of(image), cache.path_of(image.reshape(3, 50)));
  SuperpixelCache again(folder / "deep/er");
  again.get(large(cv::Rect(5, 3, 50, 40)));
  EXPECT_EQ(again.hits(), 1) << "another object, the same folder";
}

TEST(SuperpixelCache, DamagedFilesAreComputedAgain) {
  test::TempFolder folder;
  test::Warnings warnings;
  SuperpixelCache cache(folder.path());
  cv::Mat image = test::noise_image(45, 37, 1), other = test::noise_image(37, 45, 2);
  cv::Mat wanted = cache.get(image);
  cache.get(other);
  const fs::path path = cache.path_of(image);
  const std::string good = read_file(path);
  std::vector<std::string> bad{"",
                               "x",
                               good.substr(0, 20),
                               good.substr(0, good.size() / 2),
                               good.substr(0, good.size() - 1),
                               good + "x",
                               read_file(cache.path_of(other))};
  for (std::size_t at : {std::size_t{0}, std::size_t{30}, std::size_t{100}, good.size() - 6}) {
    bad.push_back(good);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ 4);
  }
  for (std::size_t i = 0; i < bad.size(); ++i) {
    write_file(path, bad[i]);
    EXPECT_TRUE(same(cache.get(image), wanted)) << "case " << i;
    EXPECT_EQ(cache.damaged(), static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(read_file(path), good) << "repaired, case " << i;
  }
  ASSERT_EQ(warnings.texts().size(), bad.size());
  EXPECT_TRUE(test::contains(warnings.texts()[0], path.string()));
  EXPECT_EQ(cache.hits(), 0);
}

TEST(SuperpixelCache, WorksOnWhenItCannotKeep) {
  test::TempFolder folder;
  test::Warnings warnings;
  SuperpixelCache cache(folder.path());
  std::vector<cv::Mat> images{test::noise_image(25, 25, 1), test::noise_image(25, 25, 2)};
  for (const auto& image : images)  // files where the folders should be
    if (fs::path above = cache.path_of(image).parent_path(); !fs::exists(above))
      write_file(above, std::string("in the way"));
  for (const auto& image : images) EXPECT_TRUE(same(cache.get(image), superpixels(image)));
  EXPECT_EQ(warnings.texts().size(), 1u) << "said once";

  write_file(folder / "file", std::string("x"));
  test::error_of(ErrorKind::kFailure, [&] { SuperpixelCache(folder / "file"); });
  SuperpixelCache none("");
  EXPECT_TRUE(same(none.get(images[0]), superpixels(images[0])));
  EXPECT_TRUE(none.path_of(images[0]).empty());
}

TEST(SuperpixelCache, ManyThreadsShareAFolder) {
  test::TempFolder folder;
  test::Warnings warnings;
  std::vector<cv::Mat> images, wanted;
  for (std::uint64_t i = 0; i < 4; ++i) {
    images.push_back(test::noise_image(32, 24, i));
    wanted.push_back(superpixels(images.back()));
  }
  std::atomic<int> wrong{0};
  std::vector<std::unique_ptr<SuperpixelCache>> caches;
  for (int i = 0; i < 2; ++i) caches.push_back(std::make_unique<SuperpixelCache>(folder.path()));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 12; ++i) {
        const std::size_t which = (i + t) % images.size();
        if (!same(caches[t % 2]->get(images[which]), wanted[which])) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(warnings.texts().empty());
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file()) {
      ++files;
      EXPECT_EQ(entry.path().extension(), ".lsc") << "no temporary is left";
    }
  EXPECT_EQ(files, images.size());
}

TEST(SuperpixelCache, LabelsOfAnySizeSurviveTheFile) {
  for (int most : {1, 255, 65535, 65536, 2000000000}) {
    cv::Mat labels(11, 7, CV_32SC1);
    for (int i = 0; i < 77; ++i)
      labels.at<int>(i / 7, i % 7) = static_cast<int>(static_cast<std::int64_t>(most) * i / 76);
    auto back = decode_labels(encode_labels(labels), labels.size());
    ASSERT_TRUE(back) << most;
    EXPECT_TRUE(same(*back, labels)) << most;
    EXPECT_FALSE(decode_labels(encode_labels(labels), cv::Size(11, 7))) << "another shape";
  }
}

}  // namespace
}  // namespace nmrf::train
