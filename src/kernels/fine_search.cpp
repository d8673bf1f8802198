#include "kernels/fine_search.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fine_search.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kPatch = 64;

void candidates(const float* disparity, const float* score, std::int64_t cells, std::int64_t count,
                float* labels, float* log_prior) {
  const hn::CappedTag<float, kPatch> d;
  const hn::FixedTag<float, 4> four;
  using V = hn::Vec<decltype(d)>;
  HWY_ALIGN float posterior[kMostCandidates * kPatch];
  const std::int64_t row = 2 * cells * count;
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    const float *of = disparity + cell * count * kPatch, *s = score + cell * count * kPatch;
    for (std::int64_t i = 0; i < kPatch; i += hn::MaxLanes(d)) {
      V most = hn::LoadU(d, s + i), sum = hn::Zero(d);
      for (std::int64_t l = 1; l < count; ++l) most = hn::Max(most, hn::LoadU(d, s + l * 64 + i));
      for (std::int64_t l = 0; l < count; ++l) {
        const V weight = hn::Exp(d, hn::Sub(hn::LoadU(d, s + l * kPatch + i), most));
        sum = hn::Add(sum, weight);
        hn::Store(weight, d, posterior + l * kPatch + i);
      }
      const V share = hn::Div(hn::Set(d, 1.0f), sum);
      for (std::int64_t l = 0; l < count; ++l) {
        float* at = posterior + l * kPatch + i;
        hn::Store(hn::Mul(hn::Load(d, at), share), d, at);
      }
    }
    auto sum_of = [&](const float* block) HWY_ATTR {
      const auto upper = hn::Add(hn::LoadU(four, block), hn::LoadU(four, block + 8));
      const auto lower = hn::Add(hn::LoadU(four, block + 16), hn::LoadU(four, block + 24));
      return hn::GetLane(hn::SumOfLanes(four, hn::Add(upper, lower)));
    };
    for (std::int64_t block = 0; block < 4; ++block) {
      const std::int64_t at = block / 2 * row + (2 * cell + block % 2) * count;
      for (std::int64_t l = 0; l < count; ++l) {
        const std::int64_t from = l * kPatch + block / 2 * 32 + block % 2 * 4;
        labels[at + l] = sum_of(of + from) * 0.125f;
        log_prior[at + l] = std::max(sum_of(posterior + from) * 0.0625f, 1e-6f);
      }
    }
  }
  const hn::ScalableTag<float> wide;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(wide));
  std::int64_t i = 0;
  for (; i + lanes <= 2 * row; i += lanes)
    hn::StoreU(hn::Log(wide, hn::LoadU(wide, log_prior + i)), wide, log_prior + i);
  for (const hn::CappedTag<float, 1> one; i < 2 * row; ++i)
    hn::Store(hn::Log(one, hn::Load(one, log_prior + i)), one, log_prior + i);
}

void places_of(const float* logits, const float* labels, const float* log_prior, float trust,
               std::int64_t width, std::int64_t count, std::int64_t places, float* start) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> ints;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), total = width * count;
  const auto room = static_cast<std::size_t>(total + lanes);
  tokens::ScratchPieces scratch(tokens::thread_scratch(2 * room + 32));
  float *masses = scratch.take(room), *means = scratch.take(room);
  const auto last = hn::Set(ints, static_cast<std::int32_t>(total - 1));
  const auto step = hn::Set(ints, static_cast<std::int32_t>(places));
  const auto radius = static_cast<float>(places / 2);
  for (std::int64_t t = 0; t < total; t += lanes) {
    // Behind the last token, its values again.
    const auto token = hn::Min(hn::Iota(ints, static_cast<std::int32_t>(t)), last);
    const auto at = hn::Mul(token, step);
    V most = hn::GatherIndex(d, logits, at);
    for (std::int64_t i = 1; i < places; ++i)
      most = hn::Max(most, hn::GatherIndex(d, logits + i, at));
    V sum = hn::Zero(d), mean = sum;
    for (std::int64_t i = 0; i < places; ++i) {
      const V weight = hn::Exp(d, hn::Sub(hn::GatherIndex(d, logits + i, at), most));
      sum = hn::Add(sum, weight);
      mean = hn::MulAdd(weight, hn::Set(d, radius - static_cast<float>(i)), mean);
    }
    const V prior = hn::GatherIndex(d, log_prior, token);
    hn::StoreU(hn::MulAdd(hn::Set(d, trust), prior, hn::Add(most, hn::Log(d, sum))), d, masses + t);
    hn::StoreU(hn::Add(hn::GatherIndex(d, labels, token), hn::Div(mean, sum)), d, means + t);
  }
  for (std::int64_t x = 0; x < width; ++x) {
    std::int64_t best = x * count;
    for (std::int64_t t = best + 1; t < (x + 1) * count; ++t)
      if (masses[t] > masses[best]) best = t;
    start[x] = std::max(0.0f, means[best]);
  }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(candidates);
HWY_EXPORT(places_of);

void block_candidates(const float* disparity, const float* score, std::int64_t cells,
                      std::int64_t count, float* labels, float* log_prior) {
  HWY_DYNAMIC_DISPATCH(candidates)(disparity, score, cells, count, labels, log_prior);
}

void best_places(const float* logits, const float* labels, const float* log_prior, float trust,
                 std::int64_t width, std::int64_t count, std::int64_t places, float* start) {
  HWY_DYNAMIC_DISPATCH(places_of)(logits, labels, log_prior, trust, width, count, places, start);
}

}  // namespace nmrf::kernels
#endif
