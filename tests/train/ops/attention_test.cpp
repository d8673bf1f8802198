// The three attentions: the plain form against loops written from the definition, and the fast form
// against the plain one in double precision, on every SIMD target this machine has.
#include "train/ops/attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/peak.h"
#include "train/ops/dispatch.h"

namespace nmrf::ops {
namespace {

using torch::Tensor;

constexpr double kTolerance = 1e-4;  // of the largest value of a tensor

// SIMD targets to try, best first.
std::vector<int64_t> targets() {
  std::vector<int64_t> found;
  for (int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_NEON})
    if (hwy::SupportedTargets() & target) found.push_back(target);
  return found;
}

// Restricts the kernels to one SIMD target for a scope.
class TargetGuard {
 public:
  explicit TargetGuard(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~TargetGuard() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

class ThreadsGuard {
 public:
  explicit ThreadsGuard(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~ThreadsGuard() { at::set_num_threads(before_); }

 private:
  int before_;
};

using Inputs = std::vector<Tensor>;
using Operator = std::function<Tensor(const Inputs&)>;

// The result of `op`, then its gradients with respect to every defined input, for the cotangent
// made by `seed`.
std::vector<Tensor> value_and_gradients(const Operator& op, const Inputs& inputs, torch::Dtype type,
                                        bool fast, const Tensor& cotangent) {
  FastGuard guard(fast);
  Inputs leaves;
  for (const auto& x : inputs) {
    if (!x.defined()) {
      leaves.emplace_back();
    } else {
      // Keeps the strides of a view.
      auto leaf = x.detach().to(type);
      if (!x.is_contiguous()) {
        auto storage = torch::empty_strided(x.sizes(), x.strides(), leaf.options());
        leaf = storage.copy_(leaf);
      }
      leaves.push_back(leaf.requires_grad_());
    }
  }
  auto out = op(leaves);
  out.backward(cotangent.to(type));
  std::vector<Tensor> all = {out.detach()};
  for (auto& leaf : leaves)
    if (leaf.defined()) all.push_back(leaf.grad());
  return all;
}

// Largest difference of two lists of tensors, each relative to the largest value of its tensor (or,
// where all of that is a difference of larger numbers, to a hundredth of the largest value of all).
double difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0, all = 0;
  for (const auto& x : b) all = std::max(all, x.abs().max().item<double>());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].sizes(), b[i].sizes());
    auto reference = b[i].to(torch::kDouble);
    const double scale = std::max(reference.abs().max().item<double>(), all / 100);
    const double d = (a[i].to(torch::kDouble) - reference).abs().max().item<double>() / scale;
    if (!(d <= largest)) largest = d;  // NaN counts
  }
  return largest;
}

double worst = 0;  // over the whole run, printed at the end

class Report : public ::testing::Environment {
  void TearDown() override { std::printf("largest relative difference: %.2g\n", worst); }
};
const auto* report = ::testing::AddGlobalTestEnvironment(new Report);

// Fast against plain (in double) on every target.
void expect_same(const Operator& op, const Inputs& inputs, const std::string& what) {
  SCOPED_TRACE(what);
  Tensor sample;
  {
    torch::NoGradGuard no_grad;
    sample = op(inputs);  // the fast form without gradients
  }
  torch::manual_seed(99);
  auto cotangent = torch::randn(sample.sizes());
  const auto expected = value_and_gradients(op, inputs, torch::kDouble, false, cotangent);
  EXPECT_LT(difference({sample}, {expected[0]}), kTolerance);
  for (int64_t target : targets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    TargetGuard guard(target);
    ASSERT_EQ(kernels::simd_target(), hwy::TargetName(target));
    const auto found = value_and_gradients(op, inputs, torch::kFloat, true, cotangent);
    const double d = difference(found, expected);
    EXPECT_LT(d, kTolerance);
    if (!(d <= worst)) worst = d;
  }
}

Tensor random(at::IntArrayRef sizes, double scale = 1.0) { return torch::randn(sizes) * scale; }

// ---- Definitions, in loops ---------------------------------------------------------------------

int64_t region(int64_t at, int64_t size, int64_t window, int64_t shift) {
  return at < size - window ? 0 : at < size - shift ? 1 : 2;
}

TEST(Attention, PlainWindowIsTheDefinition) {
  torch::manual_seed(1);
  const int64_t B = 2, H = 6, W = 9, k = 2, heads = 2, D = 4, M = 3, C = heads * D;
  const int64_t positions = (2 * M - 1) * (2 * M - 1);
  auto options = torch::TensorOptions(torch::kDouble);
  auto qkv = torch::randn({B, H, W, k, 3 * C}, options);
  RelativePosition position;
  position.query = torch::randn({positions, heads, D}, options);
  position.key = torch::randn({positions, heads, D}, options);
  position.value = torch::randn({positions, heads, D}, options);
  position.bias = torch::randn({positions, heads}, options);
  auto a = qkv.accessor<double, 5>();
  auto rq = position.query.accessor<double, 3>(), rk = position.key.accessor<double, 3>(),
       rv = position.value.accessor<double, 3>();
  auto bias = position.bias.accessor<double, 2>();
  for (int64_t shift : {0, 1}) {
    for (OwnPixel own : {OwnPixel::kItself, OwnPixel::kAll}) {
      auto found = window_attention(qkv, heads, M, shift, position, own);
      auto out = found.accessor<double, 5>();
      // Coordinates y, x are those of the shifted grid; its pixel (y, x) is pixel (y + shift, x +
      // shift).
      for (int64_t b = 0; b < B; ++b)
        for (int64_t y = 0; y < H; ++y)
          for (int64_t x = 0; x < W; ++x)
            for (int64_t l = 0; l < k; ++l)
              for (int64_t h = 0; h < heads; ++h) {
                auto channel = [&](int64_t part, int64_t d) { return part * C + h * D + d; };
                auto query = a[b][(y + shift) % H][(x + shift) % W][l];
                std::vector<double> weights;
                std::vector<std::vector<double>> values;
                double sum = 0;
                for (int64_t v = y / M * M; v < y / M * M + M; ++v)
                  for (int64_t u = x / M * M; u < x / M * M + M; ++u)
                    for (int64_t n = 0; n < k; ++n) {
                      auto key = a[b][(v + shift) % H][(u + shift) % W][n];
                      const int64_t row = (y - v + M - 1) * (2 * M - 1) + (x - u + M - 1);
                      double logit = 0;
                      std::vector<double> value;
                      for (int64_t d = 0; d < D; ++d) {
                        logit += query[channel(0, d)] * (key[channel(1, d)] + rk[row][h][d]) +
                                 key[channel(1, d)] * rq[row][h][d];
                        value.push_back(key[channel(2, d)] + rv[row][h][d]);
                      }
                      logit = logit / std::sqrt(static_cast<double>(D)) + bias[row][h];
                      const bool rival = own == OwnPixel::kItself && v == y && u == x && n != l;
                      const bool foreign =
                          shift > 0 && (region(v, H, M, shift) != region(y, H, M, shift) ||
                                        region(u, W, M, shift) != region(x, W, M, shift));
                      weights.push_back(rival || foreign ? 0 : std::exp(logit));
                      values.push_back(value);
                      sum += weights.back();
                    }
                for (int64_t d = 0; d < D; ++d) {
                  double message = 0;
                  for (size_t i = 0; i < weights.size(); ++i)
                    message += weights[i] / sum * values[i][d];
                  ASSERT_NEAR(out[b][(y + shift) % H][(x + shift) % W][l][h * D + d], message,
                              1e-10);
                }
              }
    }
  }
}

TEST(Attention, PlainStripesAreTheDefinition) {
  torch::manual_seed(2);
  const int64_t B = 2, H = 3, W = 5, k = 3, heads = 4, D = 3, C = heads * D;
  auto options = torch::TensorOptions(torch::kDouble);
  auto qt = torch::randn({B, H, W, k, C}, options), kt = torch::randn({B, H, W, k, C}, options),
       vt = torch::randn({B, H, W, k, C}, options);
  auto column_filter = torch::randn({C / 2, 3}, options),
       row_filter = torch::randn({C / 2, 3}, options);
  auto found = stripe_attention(qt, kt, vt, heads, column_filter, row_filter);
  auto q = qt.accessor<double, 5>(), key = kt.accessor<double, 5>(), v = vt.accessor<double, 5>(),
       out = found.accessor<double, 5>();
  for (int64_t b = 0; b < B; ++b)
    for (int64_t y = 0; y < H; ++y)
      for (int64_t x = 0; x < W; ++x)
        for (int64_t l = 0; l < k; ++l)
          for (int64_t h = 0; h < heads; ++h) {
            const bool column = h < heads / 2;
            const int64_t length = column ? H : W, here = column ? y : x;
            auto at = [&](auto& tensor, int64_t p, int64_t n) {
              return column ? tensor[b][p][x][n] : tensor[b][y][p][n];
            };
            std::vector<double> message(D);
            double sum = 0;
            for (int64_t p = 0; p < length; ++p)
              for (int64_t n = 0; n < k; ++n) {
                if (p == here && n != l) continue;
                double logit = 0;
                for (int64_t d = 0; d < D; ++d)
                  logit += q[b][y][x][l][h * D + d] * at(key, p, n)[h * D + d];
                const double weight = std::exp(logit / std::sqrt(static_cast<double>(D)));
                sum += weight;
                for (int64_t d = 0; d < D; ++d) message[d] += weight * at(v, p, n)[h * D + d];
              }
            for (int64_t d = 0; d < D; ++d) {
              const int64_t c = h * D + d, half = column ? c : c - C / 2;
              auto taps = (column ? column_filter : row_filter)[half];
              double term = taps[1].item<double>() * v[b][y][x][l][c];
              for (int64_t n = 0; n < k; ++n) {
                if (here > 0) term += taps[0].item<double>() * at(v, here - 1, n)[c];
                if (here + 1 < length) term += taps[2].item<double>() * at(v, here + 1, n)[c];
              }
              ASSERT_NEAR(out[b][y][x][l][c], message[d] / sum + term, 1e-10);
            }
          }
}

TEST(Attention, PlainLabelsAreTheDefinition) {
  torch::manual_seed(3);
  const int64_t pixels = 6, k = 3, heads = 2, D = 5, C = heads * D;
  auto options = torch::TensorOptions(torch::kDouble);
  auto qt = torch::randn({1, 2, 3, k, C}, options), kt = torch::randn({1, 2, 3, k, C}, options),
       vt = torch::randn({1, 2, 3, k, C}, options);
  auto found = label_attention(qt, kt, vt, heads).view({pixels, k, C});
  qt = qt.view({pixels, k, C}), kt = kt.view({pixels, k, C}), vt = vt.view({pixels, k, C});
  auto q = qt.accessor<double, 3>(), key = kt.accessor<double, 3>(), v = vt.accessor<double, 3>(),
       out = found.accessor<double, 3>();
  for (int64_t p = 0; p < pixels; ++p)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t h = 0; h < heads; ++h) {
        std::vector<double> message(D);
        double sum = 0;
        for (int64_t n = 0; n < k; ++n) {
          double logit = 0;
          for (int64_t d = 0; d < D; ++d) logit += q[p][l][h * D + d] * key[p][n][h * D + d];
          const double weight = std::exp(logit / std::sqrt(static_cast<double>(D)));
          sum += weight;
          for (int64_t d = 0; d < D; ++d) message[d] += weight * v[p][n][h * D + d];
        }
        for (int64_t d = 0; d < D; ++d) ASSERT_NEAR(out[p][l][h * D + d], message[d] / sum, 1e-10);
      }
}

// ---- Fast against plain ------------------------------------------------------------------------

struct WindowCase {
  int64_t batch, rows, columns, labels, heads, depth, window, shift;
  OwnPixel own = OwnPixel::kItself;
  std::string parts = "qkvb";  // of the position: query, key, value encodings, bias

  std::string name() const {
    return fmt::format("batch {} windows {}x{} k {} heads {} D {} M {} shift {} own {} parts '{}'",
                       batch, rows, columns, labels, heads, depth, window, shift,
                       own == OwnPixel::kItself, parts);
  }
};

Operator window_operator(const WindowCase& c) {
  return [c](const Inputs& x) {
    return window_attention(x[0], c.heads, c.window, c.shift, {x[1], x[2], x[3], x[4]}, c.own);
  };
}

Inputs window_inputs(const WindowCase& c) {
  torch::manual_seed(7);
  const int64_t positions = (2 * c.window - 1) * (2 * c.window - 1);
  auto has = [&](char part) { return c.parts.find(part) != std::string::npos; };
  auto table = [&](char part) {
    return has(part) ? random({positions, c.heads, c.depth}, 0.7) : Tensor();
  };
  return {
      random({c.batch, c.rows * c.window, c.columns * c.window, c.labels, 3 * c.heads * c.depth}),
      table('q'), table('k'), table('v'), has('b') ? random({positions, c.heads}) : Tensor()};
}

void expect_window(const WindowCase& c) {
  expect_same(window_operator(c), window_inputs(c), c.name());
}

TEST(WindowAttention, LabelsWindowsAndShifts) {
  for (int64_t labels = 1; labels <= 6; ++labels)
    for (int64_t window : {4, 6})
      for (int64_t shift : {int64_t{0}, window / 2})
        expect_window({1, 2, 2, labels, 2, 16, window, shift});
  for (int64_t labels : {1, 3, 4})
    for (int64_t shift : {0, 4}) expect_window({1, 1, 2, labels, 1, 32, 8, shift});
}

TEST(WindowAttention, OddWindowsAndShifts) {
  expect_window({1, 3, 2, 3, 1, 16, 3, 1});
  expect_window({1, 1, 3, 1, 1, 8, 5, 4});
  expect_window({2, 1, 1, 7, 1, 8, 1, 0});
}

TEST(WindowAttention, DepthsAndHeads) {
  for (int64_t depth : {4, 8, 13, 16, 20, 32})
    expect_window({1, 1, 2, 4, depth == 13 ? 3 : 2, depth, 4, 2});
}

TEST(WindowAttention, PaperSizes) {
  expect_window({1, 2, 3, 4, 4, 32, 6, 0});
  expect_window({1, 2, 3, 4, 4, 32, 6, 3});
  expect_window({2, 3, 2, 1, 4, 32, 4, 2, OwnPixel::kAll});
  expect_window({2, 2, 2, 4, 4, 16, 6, 3});
}

TEST(WindowAttention, OneWindowASide) {
  for (int64_t shift : {0, 3}) {
    expect_window({2, 1, 1, 4, 2, 32, 6, shift});
    expect_window({1, 1, 3, 2, 2, 16, 6, shift});
    expect_window({1, 3, 1, 2, 2, 16, 6, shift});
  }
}

TEST(WindowAttention, OwnPixelAndPositionParts) {
  for (OwnPixel own : {OwnPixel::kItself, OwnPixel::kAll})
    for (const char* parts : {"", "q", "k", "v", "b", "qk", "qkv", "bv"})
      for (int64_t labels : {1, 4}) expect_window({1, 2, 1, labels, 2, 16, 4, 2, own, parts});
}

TEST(WindowAttention, ViewsAreReadInPlace) {
  WindowCase c{2, 2, 2, 3, 2, 16, 4, 2};
  auto inputs = window_inputs(c);
  const int64_t channels = 3 * c.heads * c.depth;
  // Channels cut from wider tokens; a transposed grid; tables cut from one parameter.
  auto wide = random({2, 8, 8, 3, channels + 5});
  inputs[0] = wide.narrow(4, 3, channels).transpose(1, 2);
  auto parts = random({49, c.heads, 3, c.depth});
  for (int i = 0; i < 3; ++i) inputs[1 + i] = parts.select(2, i);
  expect_same(window_operator(c), inputs, "strided tokens");
  // Channels that are not side by side have to be copied.
  inputs[0] = random({channels, 2, 8, 8, 3}).permute({1, 2, 3, 4, 0});
  expect_same(window_operator(c), inputs, "channels first");
}

TEST(WindowAttention, LargeLogitsAndSparseMasks) {
  WindowCase c{1, 1, 1, 4, 2, 16, 4, 2};
  auto inputs = window_inputs(c);
  inputs[0] = inputs[0] * 12;
  torch::NoGradGuard no_grad;
  auto plain = [&] {
    FastGuard off(false);
    Inputs wide;
    for (auto& x : inputs) wide.push_back(x.to(torch::kDouble));
    return window_operator(c)(wide);
  }();
  for (int64_t target : targets()) {
    TargetGuard guard(target);
    EXPECT_LT(difference({window_operator(c)(inputs)}, {plain}), 1e-3);
  }
}

TEST(WindowAttention, NanReachesTheResult) {
  WindowCase c{1, 2, 2, 4, 2, 16, 4, 0};
  auto inputs = window_inputs(c);
  for (int64_t channel : {0, 40, 80}) {  // of q, k and v
    auto qkv = inputs[0].clone();
    qkv[0][1][1][2][channel] = std::numeric_limits<float>::quiet_NaN();
    for (int64_t target : targets()) {
      TargetGuard guard(target);
      auto out = window_attention(qkv, c.heads, c.window, c.shift, {}, c.own);
      EXPECT_TRUE(out[0][1][1].isnan().any().item<bool>());
      EXPECT_FALSE(out[0][6][6].isnan().any().item<bool>());  // another window
    }
  }
}

TEST(WindowAttention, ThreadsDoNotMatter) {
  WindowCase c{2, 4, 4, 4, 2, 16, 4, 2};
  const auto inputs = window_inputs(c);
  auto cotangent = random({2, 16, 16, 4, 32});
  auto run = [&](int threads) {
    ThreadsGuard guard(threads);
    return value_and_gradients(window_operator(c), inputs, torch::kFloat, true, cotangent);
  };
  const auto one = run(1), two = run(2), again = run(2);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(torch::equal(two[i], again[i]));
    EXPECT_TRUE(torch::allclose(one[i], two[i], 1e-6, 1e-6));
  }
}

TEST(WindowAttention, RefusesWhatItCannotDo) {
  WindowCase c{1, 2, 2, 2, 2, 16, 4, 0};
  auto inputs = window_inputs(c);
  EXPECT_THROW(window_attention(inputs[0], 2, 3, 0, {}, c.own), c10::Error);
  EXPECT_THROW(window_attention(inputs[0], 5, 4, 0, {}, c.own), c10::Error);
  RelativePosition wrong;
  wrong.query = torch::zeros({48, 2, 16});
  EXPECT_THROW(window_attention(inputs[0], 2, 4, 0, wrong, c.own), c10::Error);
  // A second derivative would be silently wrong.
  auto leaf = inputs[0].clone().requires_grad_();
  auto sum = window_attention(leaf, 2, 4, 0, {}, c.own).sum();
  EXPECT_THROW(torch::autograd::grad({sum}, {leaf}, {}, true, true), c10::Error);
}

TEST(WindowAttention, WideHeadsTakeThePlainForm) {
  torch::manual_seed(11);
  auto qkv = random({1, 4, 4, 2, 3 * 40});
  auto fast = window_attention(qkv, 1, 4, 2, {}, OwnPixel::kItself);
  FastGuard off(false);
  EXPECT_TRUE(torch::equal(fast, window_attention(qkv, 1, 4, 2, {}, OwnPixel::kItself)));
}

Inputs stripe_inputs(int64_t batch, int64_t height, int64_t width, int64_t labels,
                     int64_t channels) {
  torch::manual_seed(8);
  auto tokens = [&] { return random({batch, height, width, labels, channels}); };
  return {tokens(), tokens(), tokens(), random({channels / 2, 3}), random({channels / 2, 3})};
}

Operator stripe_operator(int64_t heads) {
  return [heads](const Inputs& x) { return stripe_attention(x[0], x[1], x[2], heads, x[3], x[4]); };
}

TEST(StripeAttention, LabelsAndSizes) {
  for (int64_t labels = 1; labels <= 6; ++labels)
    expect_same(stripe_operator(2), stripe_inputs(1, 7, 13, labels, 32),
                fmt::format("k {}", labels));
  for (auto [height, width] : {std::pair{1, 1}, {1, 9}, {11, 1}, {5, 50}, {47, 3}})
    expect_same(stripe_operator(4), stripe_inputs(2, height, width, 4, 64),
                fmt::format("{}x{}", height, width));
}

TEST(StripeAttention, DepthsAndLongStripes) {
  for (int64_t depth : {3, 8, 16, 24, 32})
    expect_same(stripe_operator(2), stripe_inputs(1, 3, 10, 3, 2 * depth),
                fmt::format("D {}", depth));
  expect_same(stripe_operator(2), stripe_inputs(1, 2, 156, 4, 64), "624 tokens");
  expect_same(stripe_operator(2), stripe_inputs(1, 2, 83, 5, 32), "415 tokens");
}

TEST(StripeAttention, ViewsAreReadInPlace) {
  torch::manual_seed(9);
  auto all = random({2, 6, 5, 3, 3 * 32 + 7});
  Inputs inputs = {all.narrow(4, 2, 32), all.narrow(4, 34, 32), all.narrow(4, 66, 32),
                   random({3, 16}).t(), random({16, 5}).narrow(1, 1, 3)};
  expect_same(stripe_operator(2), inputs, "parts of one tensor");
  inputs[1] = random({2, 32, 6, 5, 3}).permute({0, 2, 3, 4, 1});
  inputs[2] = random({2, 5, 6, 3, 32}).transpose(1, 2);
  expect_same(stripe_operator(2), inputs, "channels first");
}

TEST(StripeAttention, LargeLogits) {
  auto inputs = stripe_inputs(1, 3, 60, 4, 32);
  inputs[0] = inputs[0] * 40;
  torch::NoGradGuard no_grad;
  Inputs wide;
  for (auto& x : inputs) wide.push_back(x.to(torch::kDouble));
  const auto plain = stripe_operator(2)(wide);
  for (int64_t target : targets()) {
    TargetGuard guard(target);
    EXPECT_LT(difference({stripe_operator(2)(inputs)}, {plain}), 1e-3);
  }
}

TEST(StripeAttention, ThreadsDoNotMatter) {
  const auto inputs = stripe_inputs(2, 9, 11, 4, 64);
  auto cotangent = random({2, 9, 11, 4, 64});
  auto run = [&](int threads) {
    ThreadsGuard guard(threads);
    return value_and_gradients(stripe_operator(4), inputs, torch::kFloat, true, cotangent);
  };
  const auto one = run(1), two = run(2), again = run(2);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(torch::equal(two[i], again[i]));
    EXPECT_TRUE(torch::allclose(one[i], two[i], 1e-6, 1e-6));
  }
}

TEST(LabelAttention, LabelsAndDepths) {
  Operator op = [](const Inputs& x) { return label_attention(x[0], x[1], x[2], 2); };
  torch::manual_seed(10);
  for (int64_t labels = 1; labels <= 6; ++labels)
    for (int64_t depth : {5, 8, 16, 32}) {
      auto tokens = [&] { return random({2, 3, 7, labels, 2 * depth}); };
      expect_same(op, {tokens(), tokens(), tokens()}, fmt::format("k {} D {}", labels, depth));
    }
  auto all = random({2, 3, 5, 4, 3 * 32 + 3});
  expect_same(op,
              {all.narrow(4, 3, 32), all.narrow(4, 35, 32),
               all.narrow(4, 67, 32).transpose(1, 2).contiguous().transpose(1, 2)},
              "views");
}

TEST(Attention, SwitchChoosesTheForm) {
  // The two forms differ in their last bits, which tells them apart.
  auto inputs = stripe_inputs(1, 16, 16, 4, 64);
  auto run = [&](bool fast) {
    FastGuard guard(fast);
    return stripe_operator(4)(inputs);
  };
  EXPECT_TRUE(torch::equal(run(true), run(true)));
  EXPECT_FALSE(torch::equal(run(true), run(false)));
}

}  // namespace
}  // namespace nmrf::ops
