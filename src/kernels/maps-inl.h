// Vectors of channels: loads and stores that end inside a vector, and instance norm as it is read,
// for one instruction set.
#if defined(NMRF_OPS_KERNELS_MAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NMRF_OPS_KERNELS_MAPS_INL_H_
#undef NMRF_OPS_KERNELS_MAPS_INL_H_
#else
#define NMRF_OPS_KERNELS_MAPS_INL_H_
#endif

#include <cstring>

#include "kernels/gemm-inl.h"
#include "kernels/maps.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::conv::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace gemm = nmrf::tokens::HWY_NAMESPACE;
using gemm::Floats;
using gemm::kLanes;
using gemm::Vector;
using tokens::kPad;
using tokens::padded;
using tokens::tile_stride;

// The first `count` lanes, or all of them (kWhole). Lanes behind are zero.
template <bool kWhole>
struct Lanes {
  std::size_t count = kLanes;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // these have masked loads that do not touch what is off
  hn::Mask<Floats> mask = hn::FirstN(Floats(), count);
  HWY_INLINE Vector load(const float* from) const {
    if constexpr (kWhole) return hn::LoadU(Floats(), from);
    return hn::MaskedLoad(mask, Floats(), from);
  }
  HWY_INLINE void store(Vector v, float* to) const {
    if constexpr (kWhole)
      hn::StoreU(v, Floats(), to);
    else
      hn::BlendedStore(v, mask, Floats(), to);
  }
#else
  HWY_INLINE Vector load(const float* from) const {
    if constexpr (kWhole) return hn::LoadU(Floats(), from);
    HWY_ALIGN float part[kLanes] = {};
    for (std::size_t i = 0; i < count; ++i) part[i] = from[i];
    return hn::Load(Floats(), part);
  }
  HWY_INLINE void store(Vector v, float* to) const {
    if constexpr (kWhole) {
      hn::StoreU(v, Floats(), to);
      return;
    }
    HWY_ALIGN float part[kLanes];
    hn::Store(v, Floats(), part);
    for (std::size_t i = 0; i < count; ++i) to[i] = part[i];
  }
#endif
};

// Calls f(lanes, c) for each vector of channels.
template <class F>
HWY_INLINE void for_vectors(std::size_t channels, const F& f) {
  std::size_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) f(Lanes<true>{}, c);
  if (c < channels) f(Lanes<false>{channels - c}, c);
}

// relu(norm(x)) of one vector of channels, or x.
template <bool kActive>
struct Activation {
  Vector mean, scale;
  template <class L>
  HWY_INLINE Activation(const L& lanes, const Norm& norm, std::size_t at) {
    mean = scale = hn::Zero(Floats());
    if constexpr (kActive) {
      mean = lanes.load(norm.mean + at);
      scale = lanes.load(norm.scale + at);
    }
  }
  HWY_INLINE Vector operator()(Vector x) const {
    if constexpr (!kActive) return x;
    // The scale is positive; in this order NaN stays NaN.
    return hn::Mul(hn::Max(hn::Zero(Floats()), hn::Sub(x, mean)), scale);
  }
};

// Mean and squared distances of values seen one by one, about the first of them: nothing is lost
// when they are large and alike.
struct MomentSums {
  Vector origin, sum, squares;
  HWY_INLINE explicit MomentSums(Vector first)
      : origin(first), sum(hn::Zero(Floats())), squares(hn::Zero(Floats())) {}
  HWY_INLINE void add(Vector value) {
    const Vector off = hn::Sub(value, origin);
    sum = hn::Add(sum, off);
    squares = hn::MulAdd(off, off, squares);
  }
  // To a set of moments; rows of a set are padded.
  HWY_INLINE void write(std::size_t count, float* set, std::size_t channels, std::size_t c) const {
    const Floats d;
    const Vector off = hn::Mul(sum, hn::Set(d, 1.0f / static_cast<float>(count)));
    hn::StoreU(hn::Add(origin, off), d, set + c);
    hn::StoreU(hn::NegMulAdd(off, sum, squares), d, set + padded(channels) + c);
  }
};

}  // namespace nmrf::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
