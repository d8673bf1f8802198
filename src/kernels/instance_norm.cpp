#include "kernels/instance_norm.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/instance_norm.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>
#include <cmath>

#include "kernels/maps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::conv::HWY_NAMESPACE {

// Where a unit's values begin, how many pixels it has and which map's norm it takes.
struct Piece {
  Piece(const Pixels& size, std::size_t unit) {
    image = unit / size.units_each();
    const std::size_t first = unit % size.units_each() * Pixels::kUnit;
    count = std::min(Pixels::kUnit, size.pixels - first);
    at = (image * size.pixels + first) * size.channels;
    norm_at = image * size.channels;
  }
  std::size_t image, count, at, norm_at;
};

void activate_pieces(const Pixels& size, const Source& y, float* out, std::size_t begin,
                     std::size_t end) {
  for (std::size_t unit = begin; unit < end; ++unit) {
    const Piece piece(size, unit);
    for (std::size_t i = 0; i < piece.count; ++i) {
      const std::size_t at = piece.at + i * size.channels;
      for_vectors(size.channels, [&](const auto& lanes, std::size_t c) HWY_ATTR {
        const Activation<true> activate(lanes, y.norm, piece.norm_at + c);
        lanes.store(activate(lanes.load(y.data + at + c)), out + at + c);
      });
    }
  }
}

void add_pieces(const Pixels& size, const Source& y, const Source& shortcut, float* out,
                std::size_t begin, std::size_t end) {
  const Vector zero = hn::Zero(Floats());
  for (std::size_t unit = begin; unit < end; ++unit) {
    const Piece piece(size, unit);
    for (std::size_t i = 0; i < piece.count; ++i) {
      const std::size_t at = piece.at + i * size.channels;
      for_vectors(size.channels, [&](const auto& lanes, std::size_t c) HWY_ATTR {
        const Activation<true> activate(lanes, y.norm, piece.norm_at + c);
        Vector past = lanes.load(shortcut.data + at + c);
        if (shortcut.norm.mean)
          past = hn::Mul(hn::Sub(past, lanes.load(shortcut.norm.mean + piece.norm_at + c)),
                         lanes.load(shortcut.norm.scale + piece.norm_at + c));
        const Vector sum = hn::Add(past, activate(lanes.load(y.data + at + c)));
        lanes.store(hn::Max(zero, sum), out + at + c);
      });
    }
  }
}

// The gradient of norm(y) and y's distance from the mean, of one vector.
template <class L>
HWY_INLINE Vector masked_gradient(const NormBackward& in, const L& lanes, std::size_t at,
                                  Vector off) {
  const Vector zero = hn::Zero(Floats());
  Vector g = lanes.load(in.dz + at);
  if (in.gate) g = hn::IfThenElseZero(hn::Gt(lanes.load(in.gate + at), zero), g);
  if (in.relu) g = hn::IfThenElseZero(hn::Gt(off, zero), g);
  return g;
}

void sum_pieces(const Pixels& size, const NormBackward& in, float* sums, std::size_t begin,
                std::size_t end) {
  const Floats d;
  for (std::size_t unit = begin; unit < end; ++unit) {
    const Piece piece(size, unit);
    float* set = sums + unit * moments_size(size.channels);
    for_vectors(size.channels, [&](const auto& lanes, std::size_t c) HWY_ATTR {
      const Vector mean = lanes.load(in.y.norm.mean + piece.norm_at + c);
      Vector sum = hn::Zero(d), along = hn::Zero(d);
      for (std::size_t i = 0; i < piece.count; ++i) {
        const std::size_t at = piece.at + i * size.channels + c;
        const Vector off = hn::Sub(lanes.load(in.y.data + at), mean);
        const Vector g = masked_gradient(in, lanes, at, off);
        sum = hn::Add(sum, g);
        along = hn::MulAdd(g, off, along);
      }
      along = hn::Mul(along, lanes.load(in.y.norm.scale + piece.norm_at + c));
      hn::StoreU(sum, d, set + c);
      hn::StoreU(along, d, set + padded(size.channels) + c);
    });
  }
}

void backward_pieces(const Pixels& size, const NormBackward& in, const float* means, float* dy,
                     std::size_t begin, std::size_t end) {
  for (std::size_t unit = begin; unit < end; ++unit) {
    const Piece piece(size, unit);
    const float* shift = means + 2 * piece.norm_at;
    const float* tilt = shift + size.channels;
    for (std::size_t i = 0; i < piece.count; ++i) {
      for_vectors(size.channels, [&](const auto& lanes, std::size_t c) HWY_ATTR {
        const std::size_t at = piece.at + i * size.channels + c;
        const Vector mean = lanes.load(in.y.norm.mean + piece.norm_at + c);
        const Vector scale = lanes.load(in.y.norm.scale + piece.norm_at + c);
        const Vector off = hn::Sub(lanes.load(in.y.data + at), mean);
        const Vector g = masked_gradient(in, lanes, at, off);
        const Vector hat = hn::Mul(off, scale);
        const Vector rest =
            hn::NegMulAdd(hat, lanes.load(tilt + c), hn::Sub(g, lanes.load(shift + c)));
        lanes.store(hn::Mul(scale, rest), dy + at);
      });
    }
  }
}

void channel_pieces(const Pixels& size, const float* x, float* sums, std::size_t begin,
                    std::size_t end) {
  for (std::size_t unit = begin; unit < end; ++unit) {
    const Piece piece(size, unit);
    for_vectors(size.channels, [&](const auto& lanes, std::size_t c) HWY_ATTR {
      Vector sum = hn::Zero(Floats());
      for (std::size_t i = 0; i < piece.count; ++i)
        sum = hn::Add(sum, lanes.load(x + piece.at + i * size.channels + c));
      lanes.store(sum, sums + unit * size.channels + c);
    });
  }
}

}  // namespace nmrf::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::conv {

HWY_EXPORT(activate_pieces);
HWY_EXPORT(add_pieces);
HWY_EXPORT(sum_pieces);
HWY_EXPORT(backward_pieces);
HWY_EXPORT(channel_pieces);

void merge_moments(const float* moments, const std::size_t* counts, std::size_t units,
                   std::size_t channels, float* mean, float* scale) {
  constexpr double kEps = 1e-5;
  for (std::size_t c = 0; c < channels; ++c) {
    double count = 0, centre = 0, spread = 0;
    for (std::size_t u = 0; u < units; ++u) {
      const float* set = moments + u * moments_size(channels) + c;
      const double more = static_cast<double>(counts[u]), off = set[0] - centre;
      const double both = count + more;
      centre += off * more / both;
      spread += set[tokens::padded(channels)] + off * off * count * more / both;
      count = both;
    }
    mean[c] = static_cast<float>(centre);
    scale[c] = static_cast<float>(1 / std::sqrt(std::max(spread / count, 0.0) + kEps));
  }
}

void merge_sums(const float* sums, std::size_t units, std::size_t channels, std::size_t pixels,
                float* means) {
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (std::size_t u = 0; u < units; ++u)
        sum += sums[u * moments_size(channels) + row * tokens::padded(channels) + c];
      means[row * channels + c] = static_cast<float>(sum / static_cast<double>(pixels));
    }
}

void activate(const Pixels& size, const Source& y, float* out, std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(activate_pieces)(size, y, out, begin, end);
}

void add_residual(const Pixels& size, const Source& y, const Source& shortcut, float* out,
                  std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(add_pieces)(size, y, shortcut, out, begin, end);
}

void norm_backward_sums(const Pixels& size, const NormBackward& in, float* sums, std::size_t begin,
                        std::size_t end) {
  HWY_DYNAMIC_DISPATCH(sum_pieces)(size, in, sums, begin, end);
}

void norm_backward(const Pixels& size, const NormBackward& in, const float* means, float* dy,
                   std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(backward_pieces)(size, in, means, dy, begin, end);
}

void channel_sums(const Pixels& size, const float* x, float* sums, std::size_t begin,
                  std::size_t end) {
  HWY_DYNAMIC_DISPATCH(channel_pieces)(size, x, sums, begin, end);
}

}  // namespace nmrf::conv
#endif
