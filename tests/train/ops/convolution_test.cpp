// Convolutions with instance norm: the fast form against the plain one in double precision, forward
// and backward, on every SIMD target this machine has, with one and with two threads.
#include "train/ops/convolution.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/targets.h"
#include "train/ops/dispatch.h"

// After targets.h, which says what the kernels were compiled for.
#include <hwy/highway.h>

namespace nmrf::ops {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;
using Operator = std::function<Tensor(const Tensors&)>;

constexpr double kTolerance = 3e-5;  // of the largest value of a tensor

void on_every_target(const std::function<void()>& body) {
  const int threads = at::get_num_threads();
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    for (int count : {1, 2}) {
      at::set_num_threads(count);
      SCOPED_TRACE(fmt::format("{}, threads {}", hwy::TargetName(target), count));
      body();
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  at::set_num_threads(threads);
}

// The result, then the gradients (undefined for what is frozen).
Tensors run(const Operator& op, const Tensors& inputs, torch::Dtype type,
            const std::vector<std::size_t>& frozen, const Tensor& above) {
  Tensors leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensor leaf;
    if (inputs[i].defined()) {
      // Keeps the strides of a view.
      leaf = torch::empty_strided(inputs[i].sizes(), inputs[i].strides(), type).copy_(inputs[i]);
      leaf.requires_grad_(std::find(frozen.begin(), frozen.end(), i) == frozen.end());
    }
    leaves.push_back(leaf);
  }
  Tensor result = op(leaves);
  result.backward(above.to(type));
  Tensors all{result.detach()};
  for (const auto& leaf : leaves) all.push_back(leaf.defined() ? leaf.grad() : Tensor());
  return all;
}

void compare(const Operator& op, const Tensors& inputs,
             const std::vector<std::size_t>& frozen = {}) {
  Tensor above;
  {
    torch::NoGradGuard no_grad;
    above = torch::randn(op(inputs).sizes());
  }
  const Tensors reference = run(op, inputs, torch::kDouble, frozen, above);
  double all = 0;
  for (const auto& t : reference)
    if (t.defined()) all = std::max(all, t.abs().max().item<double>());
  on_every_target([&] {
    const Tensors ours = run(op, inputs, torch::kFloat, frozen, above);
    const Tensors again = run(op, inputs, torch::kFloat, frozen, above);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].defined(), reference[i].defined()) << "tensor " << i;
      if (!ours[i].defined()) continue;
      ASSERT_EQ(ours[i].sizes(), reference[i].sizes()) << "tensor " << i;
      const double most = std::max(reference[i].abs().max().item<double>(), 1e-2 * all);
      const double off =
          (ours[i].to(torch::kDouble) - reference[i]).abs().max().item<double>() / most;
      EXPECT_LT(off, kTolerance) << (i == 0 ? "result" : fmt::format("gradient {}", i - 1));
      EXPECT_TRUE(torch::equal(ours[i], again[i])) << "not repeatable: tensor " << i;
    }
    torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::equal(op(inputs), ours[0])) << "without gradients";
  });
}

struct Size {
  int64_t batch, height, width, in, out, kernel, stride;
};

Tensor weight(int64_t out, int64_t in, int64_t kernel) {
  return torch::randn({out, in, kernel, kernel}) /
         std::sqrt(static_cast<double>(in * kernel * kernel));
}

// Channels last in memory, as the operators give their results.
Tensor maps(const Size& s) {
  return torch::randn({s.batch, s.height, s.width, s.in}).permute({0, 3, 1, 2});
}

std::string name(const Size& s) {
  return fmt::format("{} maps {}x{}, {} to {} channels, kernel {}, stride {}", s.batch, s.height,
                     s.width, s.in, s.out, s.kernel, s.stride);
}

TEST(Convolution, AloneWithAndWithoutBias) {
  torch::manual_seed(1);
  for (const Size& s :
       {Size{1, 1, 1, 3, 5, 3, 1}, Size{2, 9, 14, 8, 24, 3, 1}, Size{1, 1, 7, 17, 9, 3, 1},
        Size{3, 6, 1, 5, 16, 3, 1}, Size{2, 10, 13, 24, 40, 3, 2}, Size{1, 11, 60, 3, 24, 7, 2},
        Size{2, 5, 9, 20, 33, 1, 1}, Size{1, 4, 5, 12, 8, 1, 2}, Size{1, 3, 3, 300, 20, 3, 1},
        Size{1, 7, 7, 6, 4, 5, 3}}) {
    SCOPED_TRACE(name(s));
    for (bool bias : {false, true})
      compare(
          [&](const Tensors& t) {
            return convolve(t[0], {t[1], t[2], s.stride});
          },
          {maps(s), weight(s.out, s.in, s.kernel), bias ? torch::randn({s.out}) : Tensor()});
  }
}

TEST(Convolution, NormAndRelu) {
  torch::manual_seed(2);
  for (const Size& s : {Size{2, 13, 18, 3, 24, 7, 2}, Size{1, 1, 9, 4, 8, 3, 1},
                        Size{3, 12, 7, 16, 20, 3, 1}, Size{2, 300, 4, 3, 5, 3, 2}}) {
    SCOPED_TRACE(name(s));
    compare(
        [&](const Tensors& t) {
          return conv_norm_relu(t[0], {t[1], t[2], s.stride});
        },
        {maps(s), weight(s.out, s.in, s.kernel), torch::randn({s.out})});
  }
}

TEST(Convolution, ResidualBlock) {
  torch::manual_seed(3);
  for (const Size& s :
       {Size{2, 13, 18, 24, 24, 3, 1}, Size{1, 1, 9, 8, 8, 3, 1}, Size{3, 9, 1, 7, 7, 3, 1},
        Size{2, 16, 11, 12, 20, 3, 1}, Size{2, 17, 22, 16, 24, 3, 2}, Size{1, 5, 6, 5, 6, 3, 2},
        Size{1, 40, 70, 16, 16, 3, 1}}) {
    SCOPED_TRACE(name(s));
    const bool past = s.in != s.out || s.stride != 1;
    compare(
        [&](const Tensors& t) {
          return residual_block(t[0], {t[1], {}, s.stride}, {t[2], {}, 1}, {t[3], t[4], s.stride});
        },
        {maps(s), weight(s.out, s.in, 3), weight(s.out, s.out, 3),
         past ? weight(s.out, s.in, 1) : Tensor(), past ? torch::randn({s.out}) : Tensor()});
  }
}

TEST(Convolution, Projection) {
  torch::manual_seed(4);
  for (const Size& s :
       {Size{2, 13, 18, 24, 40, 3, 1}, Size{1, 1, 9, 96, 8, 3, 1}, Size{3, 5, 6, 7, 5, 3, 1}}) {
    SCOPED_TRACE(name(s));
    compare([&](const Tensors& t) { return conv_norm_relu_conv(t[0], {t[1]}, {t[2]}); },
            {maps(s), weight(s.out, s.in, 3), weight(s.in + 3, s.out, 1)});
  }
}

TEST(Convolution, AnyStridesAndFrozenInputs) {
  torch::manual_seed(5);
  const Size s{2, 9, 10, 8, 8, 3, 1};
  auto block = [](const Tensors& t) { return residual_block(t[0], {t[1]}, {t[2]}, {}); };
  auto w1 = weight(8, 8, 3), w2 = weight(8, 8, 3);
  auto rows_first = torch::randn({2, 8, 9, 10});
  compare(block, {rows_first, w1, w2});
  compare(block, {torch::randn({2, 9, 10, 16}).permute({0, 3, 1, 2}).narrow(1, 4, 8), w1, w2});
  compare(block, {rows_first, w1.transpose(2, 3), w2});
  compare(block, {rows_first, w1, w2}, {0});
  compare(block, {rows_first, w1, w2}, {1, 2});
  compare(block, {rows_first, w1, w2}, {0, 1});
  auto projection = [](const Tensors& t) { return conv_norm_relu_conv(t[0], {t[1]}, {t[2]}); };
  auto last = weight(6, 8, 1);
  for (std::size_t only : {0, 1, 2}) {
    std::vector<std::size_t> frozen;
    for (std::size_t i = 0; i < 3; ++i)
      if (i != only) frozen.push_back(i);
    compare(projection, {maps(s), w1, last}, frozen);
  }
}

// Values far from zero: the variance must not drown in the mean.
TEST(Convolution, StatisticsOfLargeAndConstantMaps) {
  torch::manual_seed(6);
  auto w = weight(12, 8, 1);
  auto x = torch::randn({2, 8, 31, 45}) + 200;
  auto result = conv_norm_relu(x, {w});
  auto plain = conv_norm_relu(x.to(torch::kDouble), {w.to(torch::kDouble)});
  EXPECT_LT((result.to(torch::kDouble) - plain).abs().max().item<double>(), 1e-3);

  auto constant = torch::full({1, 8, 20, 33}, 3.7f);
  EXPECT_EQ(conv_norm_relu(constant, {w}).abs().max().item<float>(), 0.0f);
  // A 3x3 kernel sees the border of a constant map.
  auto w3 = weight(12, 8, 3);
  auto near_border = conv_norm_relu(constant, {w3});
  auto expected = conv_norm_relu(constant.to(torch::kDouble), {w3.to(torch::kDouble)});
  EXPECT_LT((near_border.to(torch::kDouble) - expected).abs().max().item<double>(), 1e-4);
  // Nothing in, nothing out; NaN stays visible.
  EXPECT_EQ(residual_block(torch::zeros({1, 8, 5, 6}), {weight(8, 8, 3)}, {weight(8, 8, 3)}, {})
                .abs()
                .max()
                .item<float>(),
            0.0f);
  auto bad = torch::zeros({1, 8, 5, 6});
  bad[0][1][2][3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(conv_norm_relu(bad, {w3}).isnan().any().item<bool>());
}

// Large maps have memory of their own, used again from call to call; threads and the other maps of
// a batch do not change a result.
TEST(Convolution, LargeMapsAndBatches) {
  torch::manual_seed(7);
  auto w1 = weight(16, 16, 3), w2 = weight(16, 16, 3);
  auto x = torch::randn({3, 16, 180, 260});
  auto block = [&](const Tensor& maps) { return residual_block(maps, {w1}, {w2}, {}); };
  Tensor plain;
  {
    FastGuard guard(false);
    plain = block(x);
  }
  const int threads = at::get_num_threads();
  Tensor first;
  for (int count : {1, 2, 3}) {
    at::set_num_threads(count);
    const Tensor whole = block(x);
    EXPECT_LT((whole - plain).abs().max().item<float>(), 1e-4 * plain.abs().max().item<float>());
    if (first.defined()) {
      EXPECT_TRUE(torch::equal(whole, first)) << count << " threads";
    }
    first = whole;
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_TRUE(torch::equal(block(x.narrow(0, i, 1)), whole.narrow(0, i, 1))) << "map " << i;
  }
  at::set_num_threads(threads);
  // What was released and used again must not reach back into a living result.
  const Tensor copy = first.clone();
  block(x * 2);
  EXPECT_TRUE(torch::equal(first, copy));
}

TEST(Convolution, ResultsHaveTheirChannelsLast) {
  torch::NoGradGuard no_grad;
  auto y = convolve(torch::randn({2, 3, 8, 9}), {weight(7, 3, 3)});
  EXPECT_TRUE(y.is_contiguous(torch::MemoryFormat::ChannelsLast));
}

TEST(Convolution, MapsThatDoNotFitAreRefused) {
  auto x = torch::randn({1, 8, 5, 6});
  EXPECT_THROW(convolve(x, {weight(4, 7, 3)}), c10::Error);
  EXPECT_THROW(convolve(x[0], {weight(4, 8, 3)}), c10::Error);
  EXPECT_THROW(residual_block(x, {weight(4, 8, 3)}, {weight(4, 4, 3)}, {}), c10::Error);
}

}  // namespace
}  // namespace nmrf::ops
