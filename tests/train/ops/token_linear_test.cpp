// The token operators: fast form against the plain one in double precision, forward and backward.
#include "train/ops/token_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fast_and_plain.h"
#include "train/ops/dispatch.h"
#include "train/ops/token_mlp.h"

namespace nmrf::ops {
namespace {

using test::compare;
using test::on_every_target;
using test::random;
using test::Tensors;
using torch::Tensor;

LinearWeights random_linear(int64_t in, int64_t out, bool bias = true) {
  const double scale = 1 / std::sqrt(static_cast<double>(in));
  return {random({out, in}, scale), bias ? random({out}, 0.3) : Tensor()};
}

NormWeights random_norm(int64_t channels) {
  return {random({channels}, 0.3) + 1, random({channels}, 0.3)};
}

struct ProjectionCase {
  int64_t pixels, labels, channels, extra;
  bool shared, bias, norm;
};

void check_projection(const ProjectionCase& c) {
  SCOPED_TRACE("pixels " + std::to_string(c.pixels) + " labels " + std::to_string(c.labels) +
               " channels " + std::to_string(c.channels) + " extra " + std::to_string(c.extra));
  const int64_t out = c.channels + 3;  // ends inside a vector
  auto q = random_linear(c.channels + c.extra, c.channels, c.bias),
       k = random_linear(c.channels + c.extra, out, c.bias),
       v = random_linear(c.channels, c.channels, c.bias);
  auto norm = c.norm ? random_norm(c.channels) : NormWeights{};
  auto extra = c.extra > 0 ? random({1, c.pixels, c.shared ? 1 : c.labels, c.extra}) : Tensor();
  compare({random({1, c.pixels, c.labels, c.channels}) + 0.5, norm.weight, norm.bias, extra,
           q.weight, q.bias, k.weight, k.bias, v.weight, v.bias},
          [](const Tensors& t) {
            return norm_linear(t[0], {t[1], t[2]}, t[3],
                               {{t[4], t[5]}, {t[6], t[7]}, {t[8], t[9], false}});
          });
}

TEST(NormLinear, OwnExtraChannels) {
  torch::manual_seed(1);
  for (int64_t tokens : {1, 7, 33, 1003}) check_projection({tokens, 1, 128, 31, false, true, true});
  for (int64_t channels : {16, 64, 96})
    check_projection({37, 3, channels, 31, false, channels != 64, true});
  check_projection({29, 2, 20, 5, false, true, true});  // no multiple of any vector
  check_projection({41, 2, 64, 0, false, true, true});
  check_projection({41, 2, 64, 31, false, false, false});
  check_projection({19, 2, 300, 31, false, false, false});  // deeper than one pass of a product
}

TEST(NormLinear, ExtraSharedByTheLabelsOfAPixel) {
  torch::manual_seed(2);
  for (int64_t labels = 1; labels <= 6; ++labels)
    check_projection({67, labels, labels % 2 ? 128 : 64, labels % 2 ? 64 : 32, true, true, true});
  check_projection({1, 4, 96, 32, true, true, true});
  check_projection({353, 4, 16, 33, true, false, false});
  check_projection({3, 50, 16, 8, true, true, true});  // more labels than a tile has rows
}

TEST(NormLinear, GradientsOnlyWhereWanted) {
  torch::manual_seed(3);
  auto map = random_linear(64 + 31, 96), other = random_linear(64, 64);
  auto norm = random_norm(64);
  const Tensors inputs{random({2, 5, 4, 64}), norm.weight, norm.bias,
                       random({2, 5, 4, 31}), map.weight,  map.bias,
                       other.weight,          other.bias};
  auto call = [](const Tensors& t) {
    return norm_linear(t[0], {t[1], t[2]}, t[3], {{t[4], t[5]}, {t[6], t[7], false}});
  };
  compare(inputs, call, {3});                    // an encoding
  compare(inputs, call, {1, 2, 3, 4, 5, 6, 7});  // frozen parameters
  compare(inputs, call, {0, 3});                 // the first layer of all
  compare(inputs, call, {0, 1, 2, 4, 5, 6, 7});  // extra alone
}

TEST(LinearResidual, MatchesThePlainForm) {
  torch::manual_seed(4);
  for (int64_t tokens : {1, 7, 33, 1003})
    for (int64_t channels : {16, 64, 96, 128}) {
      auto map = random_linear(channels, channels, tokens != 33);
      compare({random({tokens, channels}), map.weight, map.bias, random({tokens, channels})},
              [](const Tensors& t) {
                return Tensors{linear_residual(t[0], {t[1], t[2]}, t[3])};
              });
    }
  auto map = random_linear(24, 40);
  compare({random({3, 5, 24}), map.weight, map.bias, random({3, 5, 40})}, [](const Tensors& t) {
    return Tensors{linear_residual(t[0], {t[1], t[2]}, t[3])};
  });
}

TEST(Mlp, MatchesThePlainForm) {
  torch::manual_seed(5);
  struct Case {
    int64_t tokens, in, hidden, out;
    bool bias;
  };
  for (const Case& c :
       {Case{1, 128, 512, 128, true}, Case{7, 160, 128, 128, true}, Case{33, 36, 64, 96, false},
        Case{1003, 64, 192, 64, true}, Case{50, 17, 23, 5, true}}) {
    auto fc1 = random_linear(c.in, c.hidden, c.bias), fc2 = random_linear(c.hidden, c.out, c.bias);
    compare({random({c.tokens, c.in}), fc1.weight, fc1.bias, fc2.weight, fc2.bias},
            [](const Tensors& t) {
              return Tensors{mlp(t[0], {t[1], t[2]}, {t[3], t[4]})};
            });
  }
}

TEST(Mlp, ResidualWithNorm) {
  torch::manual_seed(6);
  for (int64_t tokens : {1, 7, 33, 1003}) {
    const int64_t channels = tokens == 33 ? 96 : tokens == 1003 ? 16 : 128;
    auto fc1 = random_linear(channels, 4 * channels), fc2 = random_linear(4 * channels, channels);
    auto norm = random_norm(channels);
    compare({random({1, tokens, channels}), norm.weight, norm.bias, fc1.weight, fc1.bias,
             fc2.weight, fc2.bias},
            [](const Tensors& t) {
              return Tensors{mlp_residual(t[0], {t[1], t[2]}, {t[3], t[4]}, {t[5], t[6]})};
            });
  }
}

TEST(Mlp, MessageThenMlp) {
  torch::manual_seed(7);
  for (int64_t tokens : {1, 7, 33, 1003}) {
    const int64_t channels = tokens == 33 ? 20 : tokens == 1003 ? 64 : 128;
    const int64_t heard = tokens == 7 ? 96 : channels;
    auto entry = random_linear(heard, channels, tokens != 1);
    auto norm = random_norm(channels);
    auto fc1 = random_linear(channels, 3 * channels), fc2 = random_linear(3 * channels, channels);
    compare({random({1, tokens, channels}), random({1, tokens, heard}), entry.weight, entry.bias,
             norm.weight, norm.bias, fc1.weight, fc1.bias, fc2.weight, fc2.bias},
            [](const Tensors& t) {
              return Tensors{message_mlp_residual(t[0], t[1], {t[2], t[3]}, {t[4], t[5]},
                                                  {t[6], t[7]}, {t[8], t[9]})};
            });
  }
}

TEST(Mlp, ReluHeads) {
  torch::manual_seed(8);
  for (int64_t out : {1, 16, 64}) {
    auto a = random_linear(96, 96), b = random_linear(96, 96), c = random_linear(96, out);
    compare({random({3, 67, 96}), a.weight, a.bias, b.weight, b.bias, c.weight, c.bias},
            [](const Tensors& t) {
              return Tensors{relu_mlp(t[0], {t[1], t[2]}, {t[3], t[4]}, {t[5], t[6]})};
            });
  }
}

// GELU and its slope through a network that is nothing but GELU.
TEST(Mlp, GeluIsExact) {
  on_every_target([] {
    const int64_t count = 160'000;
    auto x = torch::linspace(-12, 12, count, torch::kDouble).to(torch::kFloat).view({-1, 16});
    x.requires_grad_(true);
    auto same = torch::eye(16);
    auto y = mlp(x, {same, {}}, {same, {}});
    y.sum().backward();
    auto exact = x.detach().to(torch::kDouble);
    auto normal = 0.5 * torch::erfc(exact * -std::sqrt(0.5));
    auto density = (-0.5 * exact * exact).exp() / std::sqrt(2 * M_PI);
    auto error = (y.detach().to(torch::kDouble) - exact * normal).abs() / exact.abs().clamp_min(1);
    EXPECT_LT(error.max().item<double>(), 2e-7);
    auto slope_error = (x.grad().to(torch::kDouble) - (normal + exact * density)).abs();
    EXPECT_LT(slope_error.max().item<double>(), 4e-7);
  });
}

TEST(Tokens, ViewsAndExpandedGradients) {
  torch::manual_seed(9);
  auto map = random_linear(32, 48), fc1 = random_linear(32, 64), fc2 = random_linear(64, 32);
  auto norm = random_norm(32);
  auto whole = random({4, 6, 5, 80});
  auto part = whole.narrow(3, 16, 32), turned = whole.narrow(3, 0, 32).transpose(0, 1);
  for (const Tensor& view : {part, turned}) {
    auto ours = norm_linear(view, norm, {}, {map})[0];
    auto copied = norm_linear(view.contiguous(), norm, {}, {map})[0];
    EXPECT_TRUE(torch::equal(ours, copied));
    EXPECT_TRUE(torch::equal(mlp_residual(view, norm, fc1, fc2),
                             mlp_residual(view.contiguous(), norm, fc1, fc2)));
  }
  // The gradient of a sum is one number expanded to the result's size.
  auto x = random({7, 32}).requires_grad_(true), same = x.detach().clone().requires_grad_(true);
  mlp_residual(x, norm, fc1, fc2).sum().backward();
  (mlp_residual(same, norm, fc1, fc2) * torch::ones({7, 32})).sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), same.grad()));
}

TEST(Tokens, RepeatExactly) {
  torch::manual_seed(10);
  const int threads = at::get_num_threads();
  auto fc1 = random_linear(64, 256), fc2 = random_linear(256, 64);
  auto norm = random_norm(64);
  auto x = random({777, 64});
  auto run = [&](Tensor& gradient) {
    auto weight = fc1.weight.detach().clone().requires_grad_(true);
    auto y = mlp_residual(x, norm, {weight, fc1.bias}, fc2);
    (y * y).sum().backward();
    gradient = weight.grad();
    return y.detach();
  };
  Tensor first, second;
  at::set_num_threads(2);
  auto y1 = run(first), y2 = run(second);
  EXPECT_TRUE(torch::equal(y1, y2));
  EXPECT_TRUE(torch::equal(first, second));
  at::set_num_threads(1);  // results, unlike sums over all tokens, do not depend on the split
  EXPECT_TRUE(torch::equal(y1, run(first)));
  at::set_num_threads(threads);
}

TEST(Tokens, TheSwitchChooses) {
  auto fc1 = random_linear(16, 32), fc2 = random_linear(32, 16);
  auto x = random({3, 16}).requires_grad_(true);
  auto fast = [&] {
    auto name =
        mlp(x, fc1, fc2).grad_fn()->name() + norm_linear(x, {}, {}, {fc1})[0].grad_fn()->name();
    return name.find("MlpFunction") != std::string::npos &&
           name.find("ProjectionFunction") != std::string::npos;
  };
  EXPECT_TRUE(fast());
  FastGuard plain(false);
  EXPECT_FALSE(fast());
}

TEST(Tokens, NothingAndNotANumber) {
  torch::manual_seed(11);
  auto fc1 = random_linear(16, 32), fc2 = random_linear(32, 16), last = random_linear(16, 1);
  auto norm = random_norm(16);
  EXPECT_EQ(mlp_residual(torch::empty({0, 16}), norm, fc1, fc2).numel(), 0);
  auto x = random({50, 16});
  x[20][3] = NAN;
  auto bad = torch::arange(50) == 20;
  for (const Tensor& y : {mlp_residual(x, norm, fc1, fc2), norm_linear(x, norm, {}, {fc1})[0],
                          relu_mlp(x, fc1, fc2, last)}) {
    EXPECT_TRUE(y.isnan().all(1).equal(bad));
    EXPECT_TRUE(y.isnan().any(1).equal(bad));
  }
}

TEST(Tokens, RefuseWhatDoesNotFit) {
  auto x = random({2, 3, 4, 16});
  auto norm = random_norm(16);
  auto map = random_linear(20, 8), square = random_linear(16, 16);
  EXPECT_THROW(norm_linear(x, norm, random({2, 3, 2, 4}), {map}), c10::Error);
  EXPECT_THROW(norm_linear(x, norm, random({2, 1, 4, 4}), {map}), c10::Error);
  EXPECT_THROW(norm_linear(x, norm, {}, {map}), c10::Error);
  EXPECT_THROW(norm_linear(x, norm, {}, {}), c10::Error);
  EXPECT_THROW(linear_residual(random({2, 3, 1, 16}), square, x), c10::Error);
  EXPECT_THROW(mlp_residual(x, norm, square, random_linear(16, 8)), c10::Error);
  EXPECT_THROW(mlp(x, square, map), c10::Error);
}

}  // namespace
}  // namespace nmrf::ops
