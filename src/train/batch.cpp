#include "train/batch.h"

#include <cmath>
#include <cstring>

#include "core/check.h"

namespace nmrf::train {
namespace {

// BGR 8-bit into planes of RGB floats.
void copy_image(const cv::Mat& image, float* planes) {
  const std::size_t area = image.total();
  for (int y = 0; y < image.rows; ++y) {
    const auto* row = image.ptr<cv::Vec3b>(y);
    float* out = planes + static_cast<std::size_t>(y) * image.cols;
    for (int x = 0; x < image.cols; ++x)
      for (int c = 0; c < 3; ++c) out[c * area + x] = row[x][2 - c];
  }
}

}  // namespace

Batch make_batch(const std::vector<Sample>& samples, ModalKind modals, torch::Device device) {
  check(!samples.empty(), ErrorKind::kFailure, "a batch without samples");
  const int64_t count = static_cast<int64_t>(samples.size()), height = samples[0].left.rows,
                width = samples[0].left.cols;
  Batch batch;
  batch.left = torch::empty({count, 3, height, width});
  batch.right = torch::empty({count, 3, height, width});
  const bool clean = !samples[0].clean_left.empty();
  if (clean) batch.clean_left = torch::empty_like(batch.left);
  if (clean) batch.clean_right = torch::empty_like(batch.right);
  batch.truth.disparity = torch::empty({count, height, width});
  std::vector<torch::Tensor> all_modals;
  for (int64_t i = 0; i < count; ++i) {
    const Sample& sample = samples[static_cast<std::size_t>(i)];
    check(sample.left.rows == height && sample.left.cols == width, ErrorKind::kFailure,
          "{}: another size than the rest of its batch", sample.name);
    copy_image(sample.left, batch.left[i].data_ptr<float>());
    copy_image(sample.right, batch.right[i].data_ptr<float>());
    if (clean) copy_image(sample.clean_left, batch.clean_left[i].data_ptr<float>());
    if (clean) copy_image(sample.clean_right, batch.clean_right[i].data_ptr<float>());
    auto truth = batch.truth.disparity[i];
    for (int y = 0; y < height; ++y)
      std::memcpy(truth.data_ptr<float>() + y * width, sample.disparity.ptr<float>(y),
                  static_cast<std::size_t>(width) * sizeof(float));
    if (modals == ModalKind::kSuperpixel) {
      check(!sample.modals.empty(), ErrorKind::kFailure, "{}: comes without modals", sample.name);
      cv::Mat found = sample.modals;
      all_modals.push_back(
          torch::from_blob(found.data, {found.rows, found.cols, 4}, torch::kFloat).clone());
    }
  }
  batch.truth.valid = torch::isfinite(batch.truth.disparity);
  batch.truth.disparity = torch::where(batch.truth.valid, batch.truth.disparity,
                                       torch::zeros_like(batch.truth.disparity));
  if (!all_modals.empty()) batch.truth.modals = torch::stack(all_modals).to(device);
  batch.left = batch.left.to(device);
  batch.right = batch.right.to(device);
  if (clean) batch.clean_left = batch.clean_left.to(device);
  if (clean) batch.clean_right = batch.clean_right.to(device);
  batch.truth.disparity = batch.truth.disparity.to(device);
  batch.truth.valid = batch.truth.valid.to(device);
  return batch;
}

Batch narrow(const Batch& batch, std::int64_t begin, std::int64_t count) {
  auto cut = [&](const torch::Tensor& t) { return t.defined() ? t.narrow(0, begin, count) : t; };
  Batch part;
  part.left = cut(batch.left);
  part.right = cut(batch.right);
  part.clean_left = cut(batch.clean_left);
  part.clean_right = cut(batch.clean_right);
  part.truth = {cut(batch.truth.disparity), cut(batch.truth.valid), cut(batch.truth.modals)};
  return part;
}

}  // namespace nmrf::train
