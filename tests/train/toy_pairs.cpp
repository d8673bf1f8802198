#include "train/toy_pairs.h"

#include <opencv2/imgproc.hpp>
#include <string>

#include "core/file.h"
#include "core/rng.h"
#include "data/mats.h"
#include "nmrf/disparity.h"

namespace nmrf::test {

Sample toy_pair(int height, int width, unsigned seed) {
  constexpr int kMargin = 64;  // so that matches beyond the left border exist
  Rng rng(seed);
  cv::Mat texture(height, width + kMargin, CV_8UC3),
      coarse(height / 8, (width + kMargin) / 8, CV_8UC3);
  cv::RNG noise(seed + 1);
  noise.fill(texture, cv::RNG::UNIFORM, 0, 256);
  noise.fill(coarse, cv::RNG::UNIFORM, 0, 256);
  cv::Mat smooth;
  cv::resize(coarse, smooth, texture.size(), 0, 0, cv::INTER_CUBIC);
  cv::GaussianBlur(texture, texture, {}, 1.0);
  cv::addWeighted(texture, 0.5, smooth, 0.5, 0, texture);

  Sample sample;
  sample.name = "toy" + std::to_string(seed);
  sample.disparity.create(height, width, CV_32FC1);
  sample.objects = cv::Mat(height, width, CV_32SC1, cv::Scalar(0));
  const double far = rng.uniform(3, 8), near = rng.uniform(16, 26);
  const int top = height / 4, left_edge = width / 3;
  cv::Mat from_x(height, width, CV_32FC1), from_y(height, width, CV_32FC1);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const bool front = y >= top && y < height - top && x >= left_edge && x < width - width / 6;
      const double d = front ? near + 0.02 * (y - top) : far + 0.03 * y + 0.01 * x;
      sample.disparity.at<float>(y, x) = static_cast<float>(d);
      sample.objects.at<int>(y, x) = front ? 1 : 0;
      from_x.at<float>(y, x) = static_cast<float>(x - d + kMargin);
      from_y.at<float>(y, x) = static_cast<float>(y);
    }
  cv::remap(texture, sample.left, from_x, from_y, cv::INTER_CUBIC);
  sample.right = texture.colRange(kMargin, kMargin + width).clone();
  return sample;
}

std::filesystem::path write_toy_list(const std::filesystem::path& folder, int count, int height,
                                     int width) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    Sample sample = toy_pair(height, width, static_cast<unsigned>(i + 1));
    const std::string stem = "toy" + std::to_string(i);
    write_mat(folder / (stem + "_l.png"), sample.left);
    write_mat(folder / (stem + "_r.png"), sample.right);
    write_disparity_mat(folder / (stem + ".pfm"), sample.disparity);
    list += stem + "_l.png " + stem + "_r.png " + stem + ".pfm\n";
  }
  write_file(folder / "pairs.txt", list);
  return folder / "pairs.txt";
}

}  // namespace nmrf::test
