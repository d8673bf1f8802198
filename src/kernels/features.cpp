#include "kernels/features.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>
#include <array>
#include <limits>

#ifndef NMRF_FEATURES_ONCE
#define NMRF_FEATURES_ONCE
namespace nmrf::kernels {

// The circle of radius 3, clockwise from the bottom.
struct CirclePoint {
  int x, y;
};
inline constexpr std::array<CirclePoint, 16> kCircle{{{0, 3},
                                                      {1, 3},
                                                      {2, 2},
                                                      {3, 1},
                                                      {3, 0},
                                                      {3, -1},
                                                      {2, -2},
                                                      {1, -3},
                                                      {0, -3},
                                                      {-1, -3},
                                                      {-2, -2},
                                                      {-3, -1},
                                                      {-3, 0},
                                                      {-3, 1},
                                                      {-2, 2},
                                                      {-1, 3}}};
inline constexpr int kArc = 9;

}  // namespace nmrf::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Bytes = hn::ScalableTag<std::uint8_t>;
using Signed = hn::RebindToSigned<Bytes>;

int FastCorners(const std::uint8_t* row, std::ptrdiff_t stride, int begin, int end, int threshold,
                std::int32_t* found) {
  const Bytes bytes;
  const Signed ints;
  const int lanes = static_cast<int>(hn::Lanes(bytes));
  const auto step = hn::Set(bytes, static_cast<std::uint8_t>(threshold));
  const auto top = hn::Set(bytes, std::uint8_t{0x80});
  // Signed, as that is what can be compared everywhere.
  auto as_signed = [&](auto v) HWY_ATTR { return hn::BitCast(ints, hn::Xor(v, top)); };
  std::array<std::ptrdiff_t, 16> offsets;
  for (std::size_t i = 0; i < 16; ++i) offsets[i] = kCircle[i].y * stride + kCircle[i].x;
  int count = 0;
  for (int x = begin; x < end; x += lanes) {
    // The last vector ends at the last column, so that nothing behind the row is read.
    const int at = end - begin >= lanes ? std::min(x, end - lanes) : x;
    const std::uint8_t* pixel = row + at;
    const auto own = hn::LoadU(bytes, pixel);
    const auto high = as_signed(hn::SaturatedAdd(own, step));
    const auto low = as_signed(hn::SaturatedSub(own, step));
    auto load = [&](std::size_t i)
                    HWY_ATTR { return as_signed(hn::LoadU(bytes, pixel + offsets[i & 15])); };
    // Any arc of 9 covers two neighbours of the four at the compass points.
    const auto s = load(0), e = load(4), n = load(8), w = load(12);
    auto two = [&](auto as, auto ae, auto an, auto aw)
                   HWY_ATTR { return hn::And(hn::Or(as, an), hn::Or(ae, aw)); };
    const auto candidates =
        hn::Or(two(hn::Gt(s, high), hn::Gt(e, high), hn::Gt(n, high), hn::Gt(w, high)),
               two(hn::Lt(s, low), hn::Lt(e, low), hn::Lt(n, low), hn::Lt(w, low)));
    if (hn::AllFalse(ints, candidates)) continue;
    auto bright = hn::Zero(ints), dark = bright, most = bright;
    for (std::size_t i = 0; i < 16 + kArc - 1; ++i) {
      const auto v = load(i);
      const auto above = hn::VecFromMask(ints, hn::Gt(v, high));
      const auto below = hn::VecFromMask(ints, hn::Lt(v, low));
      bright = hn::And(hn::Sub(bright, above), above);
      dark = hn::And(hn::Sub(dark, below), below);
      most = hn::Max(most, hn::Max(bright, dark));
    }
    const auto corners = hn::Gt(most, hn::Set(ints, static_cast<std::int8_t>(kArc - 1)));
    std::uint8_t bits[64] = {};
    const std::size_t size = hn::StoreMaskBits(ints, corners, bits);
    for (std::size_t i = 0; i < size; ++i)
      for (unsigned rest = bits[i]; rest != 0; rest &= rest - 1) {
        const int column = at + static_cast<int>(8 * i) + __builtin_ctz(rest);
        if (column >= x && column < end) found[count++] = column;
      }
  }
  return count;
}

void NearestDescriptors(const Descriptors& left, const Descriptors& right,
                        std::span<std::int64_t> left_nearest,
                        std::span<std::int64_t> right_nearest) {
  using Longs = hn::CappedTag<std::int64_t, 8>;
  const Longs longs;
  const hn::RebindToUnsigned<Longs> words;
  const std::size_t lanes = hn::Lanes(longs);
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::fill(right_nearest.begin(), right_nearest.end(), kNone);
  for (std::size_t i = 0; i < left.count; ++i) {
    const auto a0 = hn::Set(words, left.words[i]);
    const auto a1 = hn::Set(words, left.words[left.step + i]);
    const auto a2 = hn::Set(words, left.words[2 * left.step + i]);
    const auto a3 = hn::Set(words, left.words[3 * left.step + i]);
    const auto own = hn::Set(longs, static_cast<std::int64_t>(i));
    auto best = hn::Set(longs, kNone);
    for (std::size_t j = 0; j < right.count; j += lanes) {
      const std::uint64_t* b = right.words + j;
      auto differing = [&](auto a, std::size_t k) HWY_ATTR {
        return hn::PopulationCount(hn::Xor(a, hn::LoadU(words, b + k * right.step)));
      };
      const auto distance = hn::BitCast(
          longs, hn::ShiftLeft<32>(hn::Add(hn::Add(differing(a0, 0), differing(a1, 1)),
                                           hn::Add(differing(a2, 2), differing(a3, 3)))));
      const auto index = hn::Iota(longs, static_cast<std::int64_t>(j));
      const auto inside = hn::Lt(index, hn::Set(longs, static_cast<std::int64_t>(right.count)));
      best = hn::IfThenElse(inside, hn::Min(best, hn::Or(distance, index)), best);
      std::int64_t* theirs = right_nearest.data() + j;
      hn::StoreU(hn::Min(hn::LoadU(longs, theirs), hn::Or(distance, own)), longs, theirs);
    }
    left_nearest[i] = hn::GetLane(hn::MinOfLanes(longs, best));
  }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {
namespace {

HWY_EXPORT(FastCorners);
HWY_EXPORT(NearestDescriptors);

}  // namespace

int fast_corners(const std::uint8_t* row, std::ptrdiff_t stride, int begin, int end, int threshold,
                 std::int32_t* found) {
  return HWY_DYNAMIC_DISPATCH(FastCorners)(row, stride, begin, end, threshold, found);
}

int fast_score(const std::uint8_t* pixel, std::ptrdiff_t stride) {
  int differences[16 + kArc - 1];
  for (std::size_t i = 0; i < 16 + kArc - 1; ++i) {
    const auto& point = kCircle[i & 15];
    differences[i] = pixel[point.y * stride + point.x] - pixel[0];
  }
  int score = 0;
  for (int first = 0; first < 16; ++first) {
    int least = differences[first], most = least;
    for (int i = first + 1; i < first + kArc; ++i) {
      least = std::min(least, differences[i]);
      most = std::max(most, differences[i]);
    }
    score = std::max({score, least, -most});
  }
  return score;
}

void nearest_descriptors(const Descriptors& left, const Descriptors& right,
                         std::span<std::int64_t> left_nearest,
                         std::span<std::int64_t> right_nearest) {
  HWY_DYNAMIC_DISPATCH(NearestDescriptors)(left, right, left_nearest, right_nearest);
}

}  // namespace nmrf::kernels
#endif
