#include "train/model/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "io/npy.h"
#include "network/formula.h"

namespace nmrf::test {

torch::Tensor load_npy(const std::filesystem::path& path) {
  NpyArray array = read_npy(path);
  auto type = torch::kFloat;
  switch (array.type) {
    case NpyType::kFloat32:
      type = torch::kFloat;
      break;
    case NpyType::kFloat64:
      type = torch::kDouble;
      break;
    case NpyType::kInt32:
      type = torch::kInt;
      break;
    case NpyType::kInt64:
      type = torch::kLong;
      break;
    case NpyType::kUint8:
      type = torch::kByte;
      break;
  }
  auto tensor = torch::empty(array.shape, type);
  std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
  return type == torch::kInt ? tensor.to(torch::kLong) : tensor;
}

torch::Tensor to_images(const torch::Tensor& pixels) {
  return pixels.permute({0, 3, 1, 2}).to(torch::kFloat).contiguous();
}

Image to_image(const torch::Tensor& pixels) {  // [H, W, 3] bytes
  Image image(static_cast<int>(pixels.size(1)), static_cast<int>(pixels.size(0)));
  std::copy_n(pixels.contiguous().data_ptr<std::uint8_t>(),
              static_cast<std::size_t>(pixels.numel()), image.data());
  return image;
}

torch::Tensor as_module(const std::string& name, const KeptTrace::Entry& entry,
                        const torch::Tensor& like) {
  const auto& s = entry.shape;
  auto values = torch::from_blob(const_cast<float*>(entry.values.data()),
                                 {s.height, s.width, std::max<int64_t>(s.count, 1), s.channels})
                    .clone();
  if (name == "cost_volume") return values.permute({3, 2, 0, 1}).unsqueeze(0);
  if (s.count > 0) return values.unsqueeze(0).reshape(like.sizes());
  if (like.dim() == 4 && like.size(1) == s.channels && like.size(2) == s.height &&
      like.size(3) == s.width)
    return values.squeeze(2).permute({2, 0, 1}).unsqueeze(0);
  return values.reshape(like.sizes());
}

double report_difference(const std::string& name, const torch::Tensor& ours,
                         const torch::Tensor& theirs) {
  EXPECT_EQ(ours.sizes(), theirs.sizes()) << name;
  if (ours.sizes() != theirs.sizes()) return 1e30;
  double largest = (ours.to(torch::kDouble) - theirs.to(torch::kDouble)).abs().max().item<double>();
  std::cout << "  " << name << ": largest difference " << largest << "\n";
  return largest;
}

torch::Tensor label_order(const torch::Tensor& ours, const torch::Tensor& theirs) {
  auto [sorted_ours, order_ours] = ours.sort(-1);
  auto [sorted_theirs, order_theirs] = theirs.sort(-1);
  int64_t differing = (sorted_ours != sorted_theirs).any(-1).sum().item<int64_t>();
  EXPECT_EQ(differing, 0) << "cells whose seed sets differ";
  // theirs[i] is the rank-th smallest; ours has that rank at order_ours[rank].
  return order_ours.gather(-1, std::get<1>(order_theirs.sort(-1)));
}

torch::Tensor reorder_labels(const torch::Tensor& tensor, const torch::Tensor& order) {
  if (tensor.dim() == 4) return tensor.gather(3, order);
  auto index = order.unsqueeze(-1).expand({-1, -1, -1, -1, tensor.size(4)});
  return tensor.gather(3, index);
}

torch::Tensor winner_lead(const torch::Tensor& score) {
  const auto best = std::get<0>(score.topk(2, 3));  // [B, h, w, 2, 64]
  const auto b = score.size(0), h = score.size(1), w = score.size(2);
  return (best.select(3, 0) - best.select(3, 1))
      .view({b, h, w, 8, 8})
      .permute({0, 1, 3, 2, 4})
      .reshape({b, 8 * h, 8 * w});
}

void expect_equal_but_for_ties(const std::string& name, const MapWithStart& ours,
                               const MapWithStart& theirs, const torch::Tensor& lead) {
  constexpr double kTie = 1e-4;
  // Five layers of windows of four cells: a change reaches three cells further with every layer.
  constexpr int64_t kReach = 15;
  const auto flipped = (ours.start - theirs.start).abs() > 1e-3;
  const auto tied = torch::max_pool2d((lead < kTie).to(torch::kFloat), 4) > 0;
  EXPECT_EQ((flipped & ~tied).sum().item<int64_t>(), 0)
      << name << ": winners that differ without a near-tie";
  const auto reached = torch::max_pool2d(flipped.to(torch::kFloat), 2 * kReach + 1, 1, kReach)
                           .repeat_interleave(4, 1)
                           .repeat_interleave(4, 2)
                           .narrow(1, 0, theirs.map.size(1))
                           .narrow(2, 0, theirs.map.size(2)) > 0;
  const auto difference = (ours.map - theirs.map).abs().masked_select(~reached);
  const double largest = difference.numel() ? difference.max().item<double>() : 0;
  const double median = difference.numel() ? difference.median().item<double>() : 0;
  std::cout << "  " << name << ": " << (lead < kTie).sum().item<int64_t>() << " near-ties, "
            << flipped.sum().item<int64_t>() << " cells fell the other way; elsewhere ("
            << 100.0 * static_cast<double>(difference.numel()) /
                   static_cast<double>(theirs.map.numel())
            << " % of the pixels) largest difference " << largest << " px, median " << median
            << "\n";
  EXPECT_LT(largest, 5e-3) << name;
  EXPECT_LT(median, 2e-4) << name;
}

std::pair<torch::Tensor, torch::Tensor> formula_pair(int64_t height, int64_t width) {
  auto hash = [](uint64_t a, uint64_t b, uint64_t s) {
    return formula_mix((a * 73856093ull) ^ (b * 19349663ull) ^ s) >> 56;
  };
  auto texture = [&](uint64_t x, uint64_t y, uint64_t c) {
    return (2 * hash(x >> 3, y >> 3, c) + hash(x >> 1, y >> 1, c + 8) + hash(x, y, c + 16)) >> 2;
  };
  auto left = torch::empty({1, 3, height, width}), right = torch::empty({1, 3, height, width});
  auto l = left.accessor<float, 4>(), r = right.accessor<float, 4>();
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const int64_t shift = 8 + 8 * ((y / 16) % 3);
        l[0][c][y][x] = static_cast<float>(texture(x, y, c));
        r[0][c][y][x] = static_cast<float>(texture(x + shift, y, c));
      }
  return {left, right};
}

}  // namespace nmrf::test
