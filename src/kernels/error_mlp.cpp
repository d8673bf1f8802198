#include "kernels/error_mlp.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/error_mlp.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void row(const ErrorMlp& mlp, const float* features, std::size_t width, float* below1,
         float* below3, float* expected) {
  constexpr std::size_t kF = ErrorMlp::kFeatures, kH = ErrorMlp::kHidden, kR = ErrorMlp::kRanges;
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<decltype(d)>;
  const std::size_t lanes = hn::Lanes(d), stride = error_row(width);
  HWY_ALIGN float input[kF * 16], hidden[kH * 16], logit[kR * 16];
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  for (std::size_t x = 0; x < width; x += lanes) {
    for (std::size_t f = 0; f < kF; ++f)
      hn::Store(hn::Log(d, hn::Add(one, hn::LoadU(d, features + f * stride + x))), d,
                input + f * lanes);
    for (std::size_t h = 0; h < kH; ++h) {
      V sum = hn::Set(d, mlp.bias1[h]);
      for (std::size_t f = 0; f < kF; ++f)
        sum = hn::MulAdd(hn::Set(d, mlp.weight1[h][f]), hn::Load(d, input + f * lanes), sum);
      hn::Store(hn::Max(zero, sum), d, hidden + h * lanes);
    }
    V most = hn::Set(d, -1e30f);
    for (std::size_t r = 0; r < kR; ++r) {
      V sum = hn::Set(d, mlp.bias2[r]);
      for (std::size_t h = 0; h < kH; ++h)
        sum = hn::MulAdd(hn::Set(d, mlp.weight2[r][h]), hn::Load(d, hidden + h * lanes), sum);
      hn::Store(sum, d, logit + r * lanes);
      most = hn::Max(most, sum);
    }
    V total = zero, mean = zero, within1 = zero, within3 = zero;
    for (std::size_t r = 0; r < kR; ++r) {
      const V weight = hn::Exp(d, hn::Sub(hn::Load(d, logit + r * lanes), most));
      total = hn::Add(total, weight);
      mean = hn::MulAdd(weight, hn::Set(d, mlp.mean[r]), mean);
      if (r < ErrorMlp::kBelow1) within1 = total;
      if (r < ErrorMlp::kBelow3) within3 = total;
    }
    hn::StoreU(hn::Div(within1, total), d, below1 + x);
    hn::StoreU(hn::Div(within3, total), d, below3 + x);
    hn::StoreU(hn::Div(mean, total), d, expected + x);
  }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(row);

void error_mlp(const ErrorMlp& mlp, const float* features, std::size_t width, float* below1,
               float* below3, float* expected) {
  HWY_DYNAMIC_DISPATCH(row)(mlp, features, width, below1, below3, expected);
}

}  // namespace nmrf::kernels
#endif
