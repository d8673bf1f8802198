#include "kernels/window_median.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/window_median.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#ifndef NMRF_WINDOW_MEDIAN_ONCE
#define NMRF_WINDOW_MEDIAN_ONCE
namespace nmrf::kernels {

// By the sum of the differences of three channels. Integers, so that sums do not depend on the
// order they are taken in.
using ColourWeights = std::array<std::uint32_t, 3 * 255 + 1>;

// By the bits of a mask: the lanes that are set, in order, then any.
template <std::size_t kLanes>
using PackTable = std::array<std::array<std::int32_t, kLanes>, std::size_t{1} << kLanes>;
template <std::size_t kLanes>
constexpr PackTable<kLanes> pack_table() {
  PackTable<kLanes> table{};
  for (std::size_t bits = 0; bits < table.size(); ++bits) {
    std::size_t count = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      if (bits >> lane & 1) table[bits][count++] = static_cast<std::int32_t>(lane);
  }
  return table;
}
alignas(64) inline constexpr auto kPack4 = pack_table<4>();
alignas(64) inline constexpr auto kPack8 = pack_table<8>();

}  // namespace nmrf::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
// Wider vectors would be mostly empty, and gather slowly: a window's rows are 11 pixels long, as a
// rule.
using Floats = hn::CappedTag<float, 8>;
using Ints = hn::RebindToSigned<Floats>;
using Words = hn::RebindToUnsigned<Floats>;
using Bytes = hn::Repartition<std::uint8_t, Words>;
using Vector = hn::Vec<Floats>;
using Mask = hn::Mask<Floats>;

// Moves the lanes of a mask to the front. As hn::Compress, whose tables GCC 12 copies to the stack
// at each call where there is no instruction for it.
class Packer {
 public:
  explicit HWY_INLINE Packer(Mask mask) : mask_(mask) {
    if constexpr (!kNative) {
      std::uint8_t bits[8] = {};
      hn::StoreMaskBits(Floats(), mask, bits);
      const std::int32_t* order =
          hn::MaxLanes(Floats()) == 8 ? kPack8[bits[0]].data() : kPack4[bits[0] & 15].data();
      order_ = hn::LoadU(Ints(), order);
    }
  }
  HWY_INLINE Vector operator()(Vector v) const {
    if constexpr (kNative)
      return hn::Compress(v, mask_);
    else
      return hn::TableLookupLanes(v, hn::IndicesFromVec(Floats(), order_));
  }
  HWY_INLINE hn::Vec<Words> operator()(hn::Vec<Words> v) const {
    return hn::BitCast(Words(), (*this)(hn::BitCast(Floats(), v)));
  }

 private:
  static constexpr bool kNative = hn::MaxLanes(Floats()) != 4 && hn::MaxLanes(Floats()) != 8;
  Mask mask_;
  hn::Vec<Ints> order_ = hn::Zero(Ints());
};

// The values of one window that vote, and their weighted median.
class Voters {
 public:
  explicit Voters(const ColourWeights& weights) : table_(weights.data()) {}

  void start(std::uint32_t colour) {
    own_ = colour;
    count_ = 0;
    totals_ = hn::Zero(Words());
  }

  HWY_INLINE void add(Vector values, Mask votes, const std::uint32_t* colours) {
    const Floats f;
    const Words words;
    const Bytes bytes;
    const auto theirs = hn::BitCast(bytes, hn::LoadU(words, colours));
    const auto mine = hn::BitCast(bytes, hn::Set(words, own_));
    const auto apart =
        hn::BitCast(words, hn::Or(hn::SaturatedSub(theirs, mine), hn::SaturatedSub(mine, theirs)));
    const auto low = hn::Set(words, 0xffu);
    const auto difference =
        hn::Add(hn::Add(hn::And(apart, low), hn::And(hn::ShiftRight<8>(apart), low)),
                hn::And(hn::ShiftRight<16>(apart), low));
    const auto weights = hn::GatherIndex(words, table_, hn::BitCast(Ints(), difference));
    const auto word_votes = hn::RebindMask(words, votes);
    totals_ = hn::Add(totals_, hn::IfThenElseZero(word_votes, weights));
    const Packer packed(votes);
    hn::StoreU(packed(values), f, values_ + count_);
    hn::StoreU(packed(weights), words, weights_ + count_);
    count_ += hn::CountTrue(f, votes);
  }

  // Quickselect by weight with several pivots per round; NaN without voters.
  HWY_INLINE float median() {
    if (count_ == 0) return std::numeric_limits<float>::quiet_NaN();
    const Words words;
    const std::uint32_t total = hn::GetLane(hn::SumOfLanes(words, totals_));
    std::uint32_t before = 0;  // the weight of what is known to be less
    while (count_ > kFew) {
      float pivots[kPivots];
      choose_pivots(pivots);
      std::uint32_t less[kPivots];
      weigh(pivots, less);
      // Between this pivot and the next, the first included.
      float low = -kInfinity, high = kInfinity;
      std::uint32_t below = 0;
      for (int i = 0; i < kPivots; ++i) {
        const bool passed = 2 * (before + less[i]) < total;
        low = passed ? pivots[i] : low;
        below = passed ? less[i] : below;
        high = passed ? high : std::min(high, pivots[i]);
      }
      before += below + keep_between(low, high);
      if (2 * before >= total) return low;
    }
    return median_of_few(before, total);
  }

 private:
  static constexpr std::size_t kFew = 16;
  static constexpr int kPivots = 4;
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  // Values from all over the window, in ascending order.
  HWY_INLINE void choose_pivots(float* pivots) const {
    for (std::size_t i = 0; i < kPivots; ++i)
      pivots[i] = values_[(2 * i + 1) * count_ / (2 * kPivots)];
    auto order = [&](int i, int j) {
      const float a = pivots[i], b = pivots[j];
      pivots[i] = std::min(a, b);
      pivots[j] = std::max(a, b);
    };
    order(0, 1), order(2, 3), order(0, 2), order(1, 3), order(1, 2);
  }

  // The weight of the values below each pivot.
  HWY_INLINE void weigh(const float* pivots, std::uint32_t* less) {
    const Floats f;
    const Words words;
    // What a last vector reads behind the values must not be less.
    hn::StoreU(hn::Set(f, kInfinity), f, values_ + count_);
    const auto p0 = hn::Set(f, pivots[0]), p1 = hn::Set(f, pivots[1]);
    const auto p2 = hn::Set(f, pivots[2]), p3 = hn::Set(f, pivots[3]);
    auto s0 = hn::Zero(words), s1 = s0, s2 = s0, s3 = s0;
    for (std::size_t i = 0; i < count_; i += hn::Lanes(f)) {
      const auto v = hn::LoadU(f, values_ + i);
      const auto w = hn::LoadU(words, weights_ + i);
      s0 = hn::Add(s0, hn::IfThenElseZero(hn::RebindMask(words, hn::Lt(v, p0)), w));
      s1 = hn::Add(s1, hn::IfThenElseZero(hn::RebindMask(words, hn::Lt(v, p1)), w));
      s2 = hn::Add(s2, hn::IfThenElseZero(hn::RebindMask(words, hn::Lt(v, p2)), w));
      s3 = hn::Add(s3, hn::IfThenElseZero(hn::RebindMask(words, hn::Lt(v, p3)), w));
    }
    less[0] = hn::GetLane(hn::SumOfLanes(words, s0));
    less[1] = hn::GetLane(hn::SumOfLanes(words, s1));
    less[2] = hn::GetLane(hn::SumOfLanes(words, s2));
    less[3] = hn::GetLane(hn::SumOfLanes(words, s3));
  }

  // Drops what is not between the two; returns the weight of what equals `low`. Infinite values are
  // padding.
  HWY_INLINE std::uint32_t keep_between(float low, float high) {
    const Floats f;
    const Words words;
    const auto l = hn::Set(f, low), h = hn::Set(f, high);
    auto equal = hn::Zero(words);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; i += hn::Lanes(f)) {
      const auto v = hn::LoadU(f, values_ + i);
      const auto w = hn::LoadU(words, weights_ + i);
      equal = hn::Add(equal, hn::IfThenElseZero(hn::RebindMask(words, hn::Eq(v, l)), w));
      const auto mask = hn::And(hn::Gt(v, l), hn::Lt(v, h));
      const Packer packed(mask);
      hn::StoreU(packed(v), f, values_ + kept);
      hn::StoreU(packed(w), words, weights_ + kept);
      kept += hn::CountTrue(f, mask);
    }
    count_ = kept;
    return hn::GetLane(hn::SumOfLanes(words, equal));
  }

  // Each value with the weight of all up to it: no branch depends on the values.
  HWY_INLINE float median_of_few(std::uint32_t before, std::uint32_t total) {
    const Floats f;
    const Ints ints;
    const Words words;
    hn::StoreU(hn::Set(f, kInfinity), f, values_ + count_);
    const auto missing = hn::Set(ints, static_cast<std::int32_t>((total - 1) / 2 - before));
    auto best = hn::Set(f, kInfinity);
    for (std::size_t i = 0; i < count_; i += hn::Lanes(f)) {
      const auto v = hn::LoadU(f, values_ + i);
      auto sum = hn::Zero(words);
      for (std::size_t j = 0; j < count_; ++j) {
        const auto counts = hn::RebindMask(words, hn::Ge(v, hn::Set(f, values_[j])));
        sum = hn::Add(sum, hn::IfThenElseZero(counts, hn::Set(words, weights_[j])));
      }
      const auto enough = hn::Gt(hn::BitCast(ints, sum), missing);
      best = hn::Min(best, hn::IfThenElse(hn::RebindMask(f, enough), v, hn::Set(f, kInfinity)));
    }
    return hn::GetLane(hn::MinOfLanes(f, best));
  }

  static constexpr std::size_t kSide = 2 * kMostMedianRadius + 1, kRoom = kSide * kSide + 32;
  alignas(64) float values_[kRoom];
  alignas(64) std::uint32_t weights_[kRoom];
  const std::uint32_t* table_;
  std::uint32_t own_ = 0;
  std::size_t count_ = 0;
  hn::Vec<Words> totals_ = hn::Zero(Words());
};

// The columns of the right view that show column x if its disparities are `values`; `outside` where
// they lie beyond an edge, or are not known. Halves are rounded up, as std::lround does.
HWY_INLINE hn::Vec<Ints> partners(Vector x, Vector values, Vector last, hn::Vec<Ints> outside) {
  const Floats f;
  const Ints ints;
  const auto at = hn::Sub(x, values);
  const auto inside = hn::And(hn::Ge(at, hn::Zero(f)), hn::Le(at, last));
  const auto safe = hn::IfThenElseZero(inside, at);
  const auto column = hn::ConvertTo(ints, safe);
  const auto rest = hn::Sub(safe, hn::ConvertTo(f, column));
  const auto up = hn::RebindMask(ints, hn::Ge(rest, hn::Set(f, 0.5f)));
  const auto rounded = hn::Add(column, hn::IfThenElseZero(up, hn::Set(ints, 1)));
  return hn::IfThenElse(hn::RebindMask(ints, inside), rounded, outside);
}

int LookFromRight(const float* row, int width, float* nearest, float* hider) {
  const Floats f;
  const Ints ints;
  const int lanes = static_cast<int>(hn::Lanes(f));
  const auto last = hn::Set(f, static_cast<float>(width - 1));
  // Behind the row, for what is outside: never nearer than anything.
  const auto outside = hn::Set(ints, width);
  const auto infinity = hn::Set(f, std::numeric_limits<float>::infinity());
  auto load = [&](int x) HWY_ATTR {
    return x + lanes <= width
               ? hn::LoadU(f, row + x)
               : hn::MaskedLoad(hn::FirstN(f, static_cast<std::size_t>(width - x)), f, row + x);
  };
  std::fill(nearest, nearest + width + 1, 0.0f);
  alignas(64) std::int32_t columns[hn::MaxLanes(f)];
  int inside = 0;
  for (int x = 0; x < width; x += lanes) {
    const auto values = load(x);
    const auto own = hn::Iota(f, static_cast<float>(x));
    hn::Store(partners(own, values, last, outside), ints, columns);
    const auto beyond = hn::And(hn::Lt(own, values), hn::Lt(values, infinity));
    if (HWY_UNLIKELY(!hn::AllFalse(f, beyond)))
      for (int i = x; i < std::min(x + lanes, width); ++i)
        if (static_cast<float>(i) < row[i] && std::isfinite(row[i])) inside = i + 1;
    for (int i = x; i < std::min(x + lanes, width); ++i) {
      float& shown = nearest[columns[i - x]];
      shown = shown < row[i] ? row[i] : shown;
    }
    nearest[width] = 0;
  }
  nearest[width] = -std::numeric_limits<float>::infinity();
  for (int x = 0; x < width; x += lanes) {
    const auto values = load(x);
    const auto own = hn::Iota(f, static_cast<float>(x));
    const auto shown = hn::GatherIndex(f, nearest, partners(own, values, last, outside));
    const auto hidden = hn::Gt(shown, hn::Add(values, hn::Set(f, kSurfaceStep)));
    hn::StoreU(hn::IfThenElse(hidden, shown, infinity), f, hider + x);
  }
  return inside;
}

// Whether the right view would not show column x if it had these values (finite where it matters).
class Unseen {
 public:
  // nearest: of the pixel's row, by look_from_right().
  Unseen(int x, int width, const float* nearest)
      : x_(static_cast<float>(x)), width_(width), nearest_(nearest) {}

  HWY_INLINE Mask operator()(Vector values) const {
    const Floats f;
    const auto last = hn::Set(f, static_cast<float>(width_ - 1));
    const auto columns = partners(hn::Set(f, x_), values, last, hn::Set(Ints(), width_));
    const auto nearest = hn::GatherIndex(f, nearest_, columns);
    const auto hidden = hn::Gt(nearest, hn::Add(values, hn::Set(f, kSurfaceStep)));
    return hn::Or(hidden, hn::Gt(values, hn::Set(f, x_ - kSurfaceStep)));
  }

 private:
  float x_;
  int width_;
  const float* nearest_;
};

// The median of columns left to right (of the pixel's window) that votes(values, mask, at, u)
// leaves in the mask; `at` is the place of column u in the planes.
template <class Votes>
HWY_INLINE float window_median(const MedianPlanes& planes, MedianPixel pixel, int left, int right,
                               Voters& voters, const Votes& votes) {
  const Floats f;
  const int lanes = static_cast<int>(hn::Lanes(f));
  const auto infinity = hn::Set(f, std::numeric_limits<float>::infinity());
  voters.start(planes.colours[pixel.y * planes.stride + pixel.x]);
  const int bottom = std::min(planes.height - 1, pixel.y + planes.radius);
  for (int y = std::max(0, pixel.y - planes.radius); y <= bottom; ++y)
    for (int x = left; x <= right; x += lanes) {
      const std::ptrdiff_t at = y * planes.stride + x;
      const auto values = hn::LoadU(f, planes.values + at);
      auto mask = hn::And(hn::FirstN(f, static_cast<std::size_t>(right - x + 1)),
                          hn::Lt(hn::Abs(values), infinity));
      mask = votes(values, mask, at, x);
      if (!hn::AllFalse(f, mask)) voters.add(values, mask, planes.colours + at);
    }
  return voters.median();
}

void WeightedMedians(const MedianPlanes& planes, const ColourWeights& weights,
                     std::span<const MedianPixel> pixels, float* results) {
  Voters voters(weights);
  for (const MedianPixel& pixel : pixels)
    *results++ =
        window_median(planes, pixel, pixel.x - planes.radius, pixel.x + planes.radius, voters,
                      [](auto, auto mask, std::ptrdiff_t, int) HWY_ATTR { return mask; });
}

void BorderMedians(const MedianPlanes& planes, const RightViewPlanes& right,
                   const ColourWeights& weights, std::span<const MedianPixel> pixels,
                   float* results) {
  Voters voters(weights);
  for (const MedianPixel& pixel : pixels) {
    const Unseen unseen(pixel.x, planes.width, right.nearest + pixel.y * planes.stride);
    *results++ = window_median(planes, pixel, pixel.x + 1, pixel.x + planes.radius, voters,
                               [&](auto values, auto mask, std::ptrdiff_t, int)
                                   HWY_ATTR { return hn::And(mask, unseen(values)); });
  }
}

void OcclusionMedians(const MedianPlanes& planes, const RightViewPlanes& right,
                      const ColourWeights& weights, std::span<const MedianPixel> pixels,
                      float* results) {
  const Floats f;
  const Ints ints;
  Voters voters(weights);
  for (const MedianPixel& pixel : pixels) {
    const Unseen unseen(pixel.x, planes.width, right.nearest + pixel.y * planes.stride);
    const auto infinity = hn::Set(f, std::numeric_limits<float>::infinity());
    const auto limit = hn::Set(f, right.hider[pixel.y * planes.stride + pixel.x] - kSurfaceStep);
    const auto own = hn::Set(ints, pixel.x);
    *results++ =
        window_median(planes, pixel, pixel.x - planes.radius, pixel.x + planes.radius, voters,
                      [&](auto values, auto mask, std::ptrdiff_t at, int x) HWY_ATTR {
                        const auto before = hn::RebindMask(f, hn::Lt(hn::Iota(ints, x), own));
                        const auto seen = hn::Eq(hn::LoadU(f, right.hider + at), infinity);
                        mask = hn::And(mask, hn::And(hn::Le(values, limit), hn::Or(before, seen)));
                        return hn::AllFalse(f, mask) ? mask : hn::And(mask, unseen(values));
                      });
  }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {
namespace {

HWY_EXPORT(LookFromRight);
HWY_EXPORT(WeightedMedians);
HWY_EXPORT(BorderMedians);
HWY_EXPORT(OcclusionMedians);

constexpr double kColour = 10;  // grey levels per channel at which the weight falls to 1/e
constexpr int kWholeWeight = 1 << 12;

const ColourWeights& colour_weights() {
  static const ColourWeights table = [] {
    ColourWeights made{};
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = static_cast<std::uint32_t>(std::max(
          1L, std::lround(kWholeWeight * std::exp(-static_cast<double>(i) / (3 * kColour)))));
    return made;
  }();
  return table;
}

}  // namespace

int look_from_right(const float* row, int width, float* nearest, float* hider) {
  return HWY_DYNAMIC_DISPATCH(LookFromRight)(row, width, nearest, hider);
}

void weighted_medians(const MedianPlanes& planes, std::span<const MedianPixel> pixels,
                      float* results) {
  HWY_DYNAMIC_DISPATCH(WeightedMedians)(planes, colour_weights(), pixels, results);
}

void border_medians(const MedianPlanes& planes, const RightViewPlanes& right,
                    std::span<const MedianPixel> pixels, float* results) {
  HWY_DYNAMIC_DISPATCH(BorderMedians)(planes, right, colour_weights(), pixels, results);
}

void occlusion_medians(const MedianPlanes& planes, const RightViewPlanes& right,
                       std::span<const MedianPixel> pixels, float* results) {
  HWY_DYNAMIC_DISPATCH(OcclusionMedians)(planes, right, colour_weights(), pixels, results);
}

}  // namespace nmrf::kernels
#endif
