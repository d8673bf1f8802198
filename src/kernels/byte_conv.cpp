#include "kernels/byte_conv.h"

// Products of bytes with their sums in one instruction (VNNI) are worth a target of their own.
#define HWY_WANT_AVX3_DL
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/byte_conv.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/bytes-inl.h"
#include "kernels/maps-inl.h"
#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::conv::HWY_NAMESPACE {

using gemm::kPanel;
using tokens::ScratchPieces;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr int kConvRows = 6;
#else
constexpr int kConvRows = 3;
#endif

// Packed weights: scales of the channels, their sums for each row of the kernel, then panel by
// panel the bytes, row of the kernel by row; in each, four values of a channel side by side.
struct Layout {
  explicit Layout(const Direct& op)
      : run(op.kernel * op.in), groups((run + 3) / 4), wide(padded(op.out)), kernel(op.kernel) {}
  std::size_t run;     // bytes of the input under a row of the kernel: they lie side by side
  std::size_t groups;  // of four
  std::size_t wide, kernel;
  std::size_t floats() const { return wide * (1 + kernel + kernel * groups); }
  const float* sums(const float* packed, std::size_t row) const {
    return packed + wide * (1 + row);
  }
  template <class Packed>
  auto* bytes(Packed* packed) const {
    using Word = std::conditional_t<std::is_const_v<Packed>, const std::int32_t, std::int32_t>;
    return reinterpret_cast<Word*>(packed + wide * (1 + kernel));
  }
};

void byte_pack(const Direct& op, const float* w, float* packed) {
  const Layout at(op);
  std::fill(packed, packed + at.floats(), 0.0f);
  const std::size_t taps = op.kernel * op.kernel;
  auto* bytes = reinterpret_cast<std::int8_t*>(at.bytes(packed));
  for (std::size_t begin = 0; begin < op.out; begin += kPanel) {
    const std::size_t width = gemm::panel_width(op.out, begin);
    std::int8_t* panel = bytes + 4 * begin * at.groups * op.kernel;
    for (std::size_t c = begin; c < std::min(begin + width, op.out); ++c) {
      const float* own = w + c * op.in * taps;
      float most = 0;
      for (std::size_t i = 0; i < op.in * taps; ++i) most = std::max(most, std::abs(own[i]));
      const float scale = most / static_cast<float>(gemm::kWeightLevels);
      packed[c] = scale;
      for (std::size_t y = 0; y < op.kernel; ++y) {
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < at.run; ++i) {
          const float value = own[i % op.in * taps + y * op.kernel + i / op.in];
          const auto level =
              scale > 0 ? static_cast<std::int32_t>(std::nearbyint(value / scale)) : 0;
          panel[((y * at.groups + i / 4) * width + c - begin) * 4 + i % 4] =
              static_cast<std::int8_t>(level);
          sum += level;
        }
        packed[at.wide * (1 + y) + c] = static_cast<float>(sum);
      }
    }
  }
}

// A row of the input as bytes q that stand for scale * (q - zero), with the columns around it.
struct ByteRow {
  std::uint8_t* data = nullptr;
  float scale = 0, zero = 0;
  std::ptrdiff_t row = -1;  // of the map
};

// The floats of a row that are read: as they are, or through the norm into `copy`.
HWY_INLINE const float* active_row(const Direct& op, const Source& x, std::size_t row,
                                   float* copy) {
  const float* from = x.data + row * op.width * op.in;
  if (!x.norm.mean && (op.width * op.in) % kLanes == 0) return from;
  if (x.norm.mean) {
    for (std::size_t p = 0; p < op.width; ++p)
      for_vectors(op.in, [&](const auto& lanes, std::size_t c) HWY_ATTR {
        const Activation<true> activate(lanes, x.norm, c);
        lanes.store(activate(lanes.load(from + p * op.in + c)), copy + p * op.in + c);
      });
  } else {
    std::memcpy(copy, from, op.width * op.in * sizeof(float));
  }
  for (std::size_t i = op.width * op.in; i % kLanes != 0; ++i) copy[i] = 0;
  return copy;
}

HWY_INLINE void round_row(const Direct& op, const Source& x, std::size_t row, float* copy,
                          ByteRow& to) {
  const Floats d;
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const std::size_t count = op.width * op.in, border = op.padding * op.in;
  const float* values = active_row(op, x, row, copy);
  Vector low = hn::Zero(d), high = low;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const Vector v = hn::LoadU(d, values + i);
    low = hn::Min(low, v);
    high = hn::Max(high, v);
  }
  const float least = hn::GetLane(hn::MinOfLanes(d, low)),
              range = hn::GetLane(hn::MaxOfLanes(d, high)) - least;
  const float by = range > 0 ? 255.0f / range : 0.0f;
  to.row = static_cast<std::ptrdiff_t>(row);
  to.scale = range / 255.0f;
  to.zero = std::nearbyint(-least * by);
  const Vector factor = hn::Set(d, by), zero = hn::Set(d, to.zero);
  std::uint8_t* out = to.data + border;
  for (std::size_t i = 0; i < count; i += kLanes)
    hn::StoreU(
        hn::DemoteTo(bytes, hn::NearestInt(hn::MulAdd(hn::LoadU(d, values + i), factor, zero))),
        bytes, out + i);
  std::memset(to.data, static_cast<int>(to.zero), border);
  std::memset(out + count, static_cast<int>(to.zero), border);
}

// What a tile of results needs: the rows under the kernel that are inside the map.
struct ConvTile {
  const ByteRow* rows[16];  // null: outside
  std::size_t step;         // bytes from one result to the next
};

template <int kRows, int kVectors>
HWY_NOINLINE void conv_block(const ConvTile& tile, const Layout& at, const float* packed,
                             const std::int32_t* panel, const gemm::Sink& sink, std::size_t row,
                             std::size_t column, std::size_t valid) {
  const gemm::Words dw;
  const Floats d;
  Vector value[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) value[r][v] = hn::Zero(d);
  for (std::size_t y = 0; y < at.kernel; ++y, panel += at.groups * kVectors * kLanes) {
    if (!tile.rows[y]) continue;
    gemm::WordVector sum[kRows][kVectors];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(dw);
    const std::uint8_t* from = tile.rows[y]->data + row * tile.step;
    const std::int32_t* columns = panel;
    for (std::size_t k = 0; k < at.groups; ++k) {
      gemm::WordVector b[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) b[v] = hn::LoadU(dw, columns + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        std::int32_t four;
        std::memcpy(&four, from + static_cast<std::size_t>(r) * tile.step, sizeof four);
        const gemm::WordVector scalar = hn::Set(dw, four);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[r][v] = gemm::dot4(sum[r][v], scalar, b[v]);
      }
      from += 4;
      columns += kVectors * kLanes;
    }
    const Vector scale = hn::Set(d, tile.rows[y]->scale);
    if (HWY_LIKELY(tile.rows[y]->zero == 0)) {  // as behind every ReLU
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r)
          value[r][v] = hn::MulAdd(hn::ConvertTo(d, sum[r][v]), scale, value[r][v]);
      continue;
    }
    const Vector zero = hn::Set(d, tile.rows[y]->zero);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Vector sums = hn::LoadU(d, at.sums(packed, y) + column + v * kLanes);
      const Vector shift = hn::Mul(zero, sums);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
        value[r][v] = hn::MulAdd(hn::Sub(hn::ConvertTo(d, sum[r][v]), shift), scale, value[r][v]);
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const Vector scale = hn::LoadU(d, packed + column + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) value[r][v] = hn::Mul(value[r][v], scale);
  }
  gemm::finish<kRows, kVectors>(value, sink, row, column, valid);
}

template <int kVectors>
HWY_INLINE void conv_panel(const ConvTile& tile, const Layout& at, const float* packed,
                           const std::int32_t* panel, const gemm::Sink& sink, std::size_t rows,
                           std::size_t column, std::size_t valid) {
  std::size_t row = 0;
  auto block = [&]<int kRows>() HWY_ATTR {
    conv_block<kRows, kVectors>(tile, at, packed, panel, sink, row, column, valid);
    row += kRows;
  };
  while (row + kConvRows <= rows) block.template operator()<kConvRows>();
  if constexpr (kConvRows > 4)
    if (row + 4 <= rows) block.template operator()<4>();
  if (row + 2 <= rows) block.template operator()<2>();
  if (row < rows) block.template operator()<1>();
}

// Moments of a finished row of results.
HWY_INLINE void row_moments(const float* row, std::size_t pixels, std::size_t channels,
                            float* set) {
  for_vectors(channels, [&](const auto& lanes, std::size_t c) HWY_ATTR {
    MomentSums sums(lanes.load(row + pixels / 2 * channels + c));
    for (std::size_t i = 0; i < pixels; ++i) sums.add(lanes.load(row + i * channels + c));
    sums.write(pixels, set, channels, c);
  });
}

void byte_rows(const Direct& op, const Source& x, const float* packed, const float* bias,
               float* out, float* moments, std::size_t begin, std::size_t end) {
  const Layout at(op);
  const std::size_t room = ((op.width + 2 * op.padding) * op.in + 128 + 63) / 64 * 16;
  const std::size_t kept = op.kernel + op.stride - 1;
  ScratchPieces scratch(tokens::thread_scratch(kept * (room + 16) + op.width * op.in + 2 * kPad));
  ByteRow rows[16 + 16];
  for (std::size_t i = 0; i < kept; ++i)
    rows[i].data = reinterpret_cast<std::uint8_t*>(scratch.take(room));
  float* copy = scratch.take(op.width * op.in + kPad);
  const auto height = static_cast<std::ptrdiff_t>(op.height);
  ConvTile tile{{}, op.stride * op.in};
  for (std::size_t unit = begin; unit < end; ++unit) {
    for (std::size_t y = 0; y < op.kernel; ++y) {
      const auto row = static_cast<std::ptrdiff_t>(unit * op.stride + y) -
                       static_cast<std::ptrdiff_t>(op.padding);
      tile.rows[y] = nullptr;
      if (row < 0 || row >= height) continue;
      ByteRow& own = rows[static_cast<std::size_t>(row) % kept];
      if (own.row != row) round_row(op, x, static_cast<std::size_t>(row), copy, own);
      tile.rows[y] = &own;
    }
    float* to = out + unit * op.out_width * op.out;
    for (std::size_t n = 0; n < op.out; n += kPanel) {
      const std::size_t width = gemm::panel_width(op.out, n), valid = std::min(width, op.out - n);
      const std::int32_t* panel = at.bytes(packed) + n * at.groups * op.kernel;
      const gemm::Sink sink{.out = to, .stride = op.out, .bias = bias};
      if (width == kPanel)
        conv_panel<2>(tile, at, packed, panel, sink, op.out_width, n, valid);
      else
        conv_panel<1>(tile, at, packed, panel, sink, op.out_width, n, valid);
    }
    if (moments) row_moments(to, op.out_width, op.out, moments + unit * moments_size(op.out));
  }
}

}  // namespace nmrf::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::conv {

HWY_EXPORT(byte_pack);
HWY_EXPORT(byte_rows);

std::size_t byte_weights_size(const Direct& op) {
  const std::size_t groups = (op.kernel * op.in + 3) / 4;
  return tokens::padded(op.out) * (1 + op.kernel + op.kernel * groups);
}

void byte_weights(const Direct& op, const float* w, float* packed) {
  HWY_DYNAMIC_DISPATCH(byte_pack)(op, w, packed);
}

void byte_forward(const Direct& op, const Source& x, const float* packed, const float* bias,
                  float* out, float* moments, std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(byte_rows)(op, x, packed, bias, out, moments, begin, end);
}

void byte_forward_plain(const Direct& op, const Source& x, const float* w, const float* bias,
                        int weight_levels, float* out) {
  const std::size_t taps = op.kernel * op.kernel;
  auto read = [&](std::size_t y, std::size_t i) {
    const float value = x.data[y * op.width * op.in + i];
    if (!x.norm.mean) return value;
    return std::max(0.0f, value - x.norm.mean[i % op.in]) * x.norm.scale[i % op.in];
  };
  std::vector<float> rounded(op.height * op.width * op.in);
  for (std::size_t y = 0; y < op.height; ++y) {
    float low = 0, high = 0;
    for (std::size_t i = 0; i < op.width * op.in; ++i) {
      low = std::min(low, read(y, i));
      high = std::max(high, read(y, i));
    }
    const float range = high - low, by = range > 0 ? 255.0f / range : 0.0f;
    const float zero = std::nearbyint(-low * by);
    for (std::size_t i = 0; i < op.width * op.in; ++i)
      rounded[y * op.width * op.in + i] =
          range / 255.0f *
          (std::clamp(std::nearbyint(std::fma(read(y, i), by, zero)), 0.0f, 255.0f) - zero);
  }
  for (std::size_t c = 0; c < op.out; ++c) {
    const float* own = w + c * op.in * taps;
    float most = 0;
    for (std::size_t i = 0; i < op.in * taps; ++i) most = std::max(most, std::abs(own[i]));
    const float scale = most / static_cast<float>(weight_levels);
    for (std::size_t p = 0; p < op.out_height * op.out_width; ++p) {
      double sum = 0;
      for (std::size_t t = 0; t < taps; ++t) {
        const std::size_t y = p / op.out_width * op.stride + t / op.kernel,
                          column = p % op.out_width * op.stride + t % op.kernel;
        if (y < op.padding || y >= op.height + op.padding || column < op.padding ||
            column >= op.width + op.padding)
          continue;
        const float* from =
            rounded.data() + ((y - op.padding) * op.width + column - op.padding) * op.in;
        for (std::size_t i = 0; i < op.in; ++i)
          sum += static_cast<double>(from[i]) *
                 (scale > 0 ? static_cast<double>(std::nearbyint(own[i * taps + t] / scale)) : 0.0);
      }
      out[p * op.out + c] = static_cast<float>(sum * static_cast<double>(scale) +
                                               (bias ? static_cast<double>(bias[c]) : 0.0));
    }
  }
}

}  // namespace nmrf::conv
#endif
