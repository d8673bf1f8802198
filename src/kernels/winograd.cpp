#include "kernels/winograd.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/winograd.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>

#include "kernels/scratch.h"
#include "kernels/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::conv::HWY_NAMESPACE {

using tokens::ScratchPieces;

// The tiles of one unit of work.
struct Run {
  Run(const Winograd& op, std::size_t unit)
      : op(op),
        unit(unit),
        image(unit / op.units_each()),
        first(unit % op.units_each() * op.run),
        tiles(std::min(op.run, op.tiles_y * op.tiles_x - first)),
        pixels(op.unit_pixels(unit)) {}
  // Calls f(tile, index, inside); inside: all 6 x 6 pixels it reads are in the map.
  template <class F>
  HWY_INLINE void for_tiles(const F& f) const {
    std::size_t top = first / op.tiles_x * 4, left = first % op.tiles_x * 4;
    for (std::size_t index = 0; index < tiles; ++index) {
      const Tile tile{static_cast<std::ptrdiff_t>(top), static_cast<std::ptrdiff_t>(left),
                      std::min<std::size_t>(4, op.height - top),
                      std::min<std::size_t>(4, op.width - left)};
      f(tile, index, top > 0 && left > 0 && top + 5 <= op.height && left + 5 <= op.width);
      left += 4;
      if (left >= op.width) {
        left = 0;
        top += 4;
      }
    }
  }
  const Winograd& op;
  std::size_t unit, image, first, tiles, pixels;
};

// Distance of the 36 matrices in scratch memory: an odd number of cache lines.
HWY_INLINE std::size_t points_step(std::size_t tiles, std::size_t stride) {
  const std::size_t lines = (tiles * stride + kPad - 1) / kPad;
  return (lines + 1 - lines % 2) * kPad;
}

template <bool kActive>
HWY_INLINE void transform_run(const Run& run, const Source& x, float* to, std::size_t stride,
                              std::size_t step) {
  const Winograd& op = run.op;
  const float* map = x.data + run.image * op.height * op.width * op.in;
  run.for_tiles([&](const Tile& tile, std::size_t index, bool inside) HWY_ATTR {
    for_vectors(op.in, [&](const auto& lanes, std::size_t c) HWY_ATTR {
      const Activation<kActive> activate(lanes, x.norm, run.image * op.in + c);
      float* at = to + index * stride + c;
      if (HWY_LIKELY(inside))
        input_tile<true>(map + c, op.height, op.width, op.in, tile, lanes, activate, at, step);
      else
        input_tile<false>(map + c, op.height, op.width, op.in, tile, lanes, activate, at, step);
    });
  });
}

HWY_INLINE void transform_run(const Run& run, const Source& x, float* to, std::size_t stride,
                              std::size_t step) {
  if (x.norm.mean)
    transform_run<true>(run, x, to, stride, step);
  else
    transform_run<false>(run, x, to, stride, step);
}

// What happens to one vector of channels of a run's results; kept from tile to tile.
enum class Finish { kStore, kMoments, kBeforeNorm };

template <Finish kFinish>
struct Finisher {
  template <class L>
  HWY_INLINE void begin(const Run& run, const WinogradResult& result, const L& lanes,
                        std::size_t c) {
    first = second = third = hn::Zero(Floats());
    if constexpr (kFinish == Finish::kBeforeNorm)
      third = lanes.load(result.before.norm.mean + run.image * run.op.out + c);
  }

  template <class L>
  HWY_INLINE void tile(const Run& run, const WinogradResult& result, const L& lanes, std::size_t c,
                       const Tile& tile, std::size_t index, const float* from, std::size_t step) {
    const Vector zero = hn::Zero(Floats());
    const std::size_t pixel = run.op.out, row = run.op.width * pixel;
    const std::size_t corner = run.image * run.op.height * row +
                               static_cast<std::size_t>(tile.y) * row +
                               static_cast<std::size_t>(tile.x) * pixel + c;
    if (kFinish == Finish::kMoments && index == 0) {
      // Any value serves as the origin: no border pixel if possible.
      output_tile(from, step, tile, [&](std::size_t i, std::size_t j, Vector v) HWY_ATTR {
        if (i <= 1 && j <= 1) third = v;
      });
    }
    Vector sum = first, more = second;
    const Vector origin = third;
    output_tile(from, step, tile, [&](std::size_t i, std::size_t j, Vector v) HWY_ATTR {
      const std::size_t at = corner + i * row + j * pixel;
      if constexpr (kFinish == Finish::kMoments) {
        const Vector off = hn::Sub(v, origin);
        sum = hn::Add(sum, off);
        more = hn::MulAdd(off, off, more);
      } else if constexpr (kFinish == Finish::kBeforeNorm) {
        const Vector off = hn::Sub(lanes.load(result.before.data + at), origin);
        v = hn::IfThenElseZero(hn::Gt(off, zero), v);
        sum = hn::Add(sum, v);
        more = hn::MulAdd(v, off, more);
      } else if (result.add) {
        Vector added = lanes.load(result.add + at);
        if (result.gate)
          added = hn::IfThenElseZero(hn::Gt(lanes.load(result.gate + at), zero), added);
        v = hn::Add(v, added);
      }
      lanes.store(v, result.data + at);
    });
    first = sum;
    second = more;
  }

  template <class L>
  HWY_INLINE void end(const Run& run, const WinogradResult& result, const L& lanes,
                      std::size_t c) const {
    const std::size_t set = run.unit * moments_size(run.op.out);
    if constexpr (kFinish == Finish::kMoments) {
      MomentSums sums(third);
      sums.sum = first;
      sums.squares = second;
      sums.write(run.pixels, result.moments + set, run.op.out, c);
    } else if constexpr (kFinish == Finish::kBeforeNorm) {
      const Vector scale = lanes.load(result.before.norm.scale + run.image * run.op.out + c);
      hn::StoreU(first, Floats(), result.sums + set + c);
      hn::StoreU(hn::Mul(second, scale), Floats(), result.sums + set + padded(run.op.out) + c);
    }
  }

  // Sum and sum of squares from the origin; or gradients, gradients times values, the mean.
  Vector first, second, third;
};

// The results of channels n .. n + width, from `width` products a tile.
template <Finish kFinish>
HWY_INLINE void finish_run(const Run& run, const float* products, std::size_t width,
                           std::size_t step, const WinogradResult& result, std::size_t n) {
  Finisher<kFinish> finishers[3];
  const std::size_t valid = std::min(width, run.op.out - n);
  for_vectors(valid, [&](const auto& lanes, std::size_t c)
                         HWY_ATTR { finishers[c / kLanes].begin(run, result, lanes, n + c); });
  run.for_tiles([&](const Tile& tile, std::size_t index, bool) HWY_ATTR {
    for_vectors(valid, [&](const auto& lanes, std::size_t c) HWY_ATTR {
      finishers[c / kLanes].tile(run, result, lanes, n + c, tile, index,
                                 products + index * width + c, step);
    });
  });
  for_vectors(valid, [&](const auto& lanes, std::size_t c)
                         HWY_ATTR { finishers[c / kLanes].end(run, result, lanes, n + c); });
}

// Vectors of a panel of results: three where that leaves none over, else two and perhaps one. The
// accumulators of kTileRows rows of two vectors then are two thirds as many rows of three.
HWY_INLINE std::size_t panel_vectors(std::size_t columns) {
  const std::size_t vectors = (columns + kLanes - 1) / kLanes;
  return vectors % 3 == 0 ? 3 : 2;
}
// Of the panel that begins at column n.
HWY_INLINE std::size_t panel_width(std::size_t columns, std::size_t n) {
  return columns - n > kLanes ? panel_vectors(columns) * kLanes : kLanes;
}

// out[kRows, kVectors] = a[kRows, k] panel[k, kVectors], without the choices of gemm::multiply:
// these products are many and shallow. Rows of `a` are reached three a pointer.
template <int kRows, int kVectors>
HWY_NOINLINE void product_block(const float* a, std::size_t stride, std::size_t k,
                                const float* panel, float* out) {
  const Floats d;
  constexpr int kGroups = (kRows + 2) / 3;
  Vector sum[kRows][kVectors];
  const float* at[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) at[g] = a + 3 * g * stride;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  auto step = [&](std::size_t offset) HWY_ATTR {
    Vector b[kVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v)
      b[v] = hn::LoadU(d, panel + (offset * kVectors + v) * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vector scalar = hn::Set(d, at[r / 3][(r % 3) * stride + offset]);
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(scalar, b[v], sum[r][v]);
    }
  };
  auto advance = [&](std::size_t by) HWY_ATTR {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) at[g] += by;
    panel += by * kVectors * kLanes;
  };
  for (; k >= 4; k -= 4) {
    step(0);
    step(1);
    step(2);
    step(3);
    advance(4);
  }
  for (; k > 0; --k) {
    step(0);
    advance(1);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[r][v], d, out + (r * kVectors + v) * kLanes);
}

template <int kVectors>
HWY_INLINE void product(const float* a, std::size_t stride, std::size_t rows, std::size_t k,
                        const float* panel, float* out) {
  constexpr int kMost = kVectors == 3 ? gemm::kTileRows * 2 / 3 : gemm::kTileRows;
  std::size_t row = 0;
  auto block = [&]<int kRows>() HWY_ATTR {
    product_block<kRows, kVectors>(a + row * stride, stride, k, panel,
                                   out + row * kVectors * kLanes);
    row += kRows;
  };
  while (row + kMost <= rows) block.template operator()<kMost>();
  if constexpr (kMost > 6)
    if (row + 6 <= rows) block.template operator()<6>();
  if constexpr (kMost > 4)
    if (row + 4 <= rows) block.template operator()<4>();
  if (row + 2 <= rows) block.template operator()<2>();
  while (row < rows) block.template operator()<1>();
}

void forward(const Winograd& op, const Source& x, const float* packed, const WinogradResult& result,
             std::size_t begin, std::size_t end) {
  const std::size_t most = op.run, stride = tile_stride(op.in);
  const std::size_t panel_step = panel_vectors(op.out) * kLanes;
  const std::size_t step = points_step(most, stride), out_step = points_step(most, panel_step);
  ScratchPieces scratch(tokens::thread_scratch(kWinogradPoints * (step + out_step)));
  float* factors = scratch.take(kWinogradPoints * step);
  float* products = scratch.take(kWinogradPoints * out_step);
  for (std::size_t unit = begin; unit < end; ++unit) {
    const Run run(op, unit);
    transform_run(run, x, factors, stride, step);
    for (std::size_t n = 0; n < op.out; n += panel_step) {
      const std::size_t width = panel_width(op.out, n);
      const float* panel = packed + n * kWinogradPoints * op.in;
      const auto multiply = width == 3 * kLanes   ? product<3>
                            : width == 2 * kLanes ? product<2>
                                                  : product<1>;
      for (std::size_t p = 0; p < kWinogradPoints; ++p)
        multiply(factors + p * step, stride, run.tiles, op.in, panel + p * op.in * width,
                 products + p * out_step);
      if (result.before.data)
        finish_run<Finish::kBeforeNorm>(run, products, width, out_step, result, n);
      else if (result.moments)
        finish_run<Finish::kMoments>(run, products, width, out_step, result, n);
      else
        finish_run<Finish::kStore>(run, products, width, out_step, result, n);
    }
  }
}

void weights_gradient(const Winograd& op, const Source& x, const float* dy, float* sums,
                      std::size_t begin, std::size_t end) {
  const std::size_t most = op.run;
  const std::size_t stride = tile_stride(op.in), dy_stride = tile_stride(op.out);
  const std::size_t step = points_step(most, stride), dy_step = points_step(most, dy_stride);
  ScratchPieces scratch(tokens::thread_scratch(kWinogradPoints * (step + dy_step)));
  float* factors = scratch.take(kWinogradPoints * step);
  float* gradients = scratch.take(kWinogradPoints * dy_step);
  for (std::size_t unit = begin; unit < end; ++unit) {
    const Run run(op, unit);
    transform_run(run, x, factors, stride, step);
    const float* map = dy + run.image * op.height * op.width * op.out;
    run.for_tiles([&](const Tile& tile, std::size_t index, bool) HWY_ATTR {
      const bool whole = tile.rows == 4 && tile.columns == 4;
      for_vectors(op.out, [&](const auto& lanes, std::size_t c) HWY_ATTR {
        float* at = gradients + index * dy_stride + c;
        if (HWY_LIKELY(whole))
          gradient_tile<true>(map + c, op.width, op.out, tile, lanes, at, dy_step);
        else
          gradient_tile<false>(map + c, op.width, op.out, tile, lanes, at, dy_step);
      });
    });
    const std::size_t wide = padded(op.out);
    for (std::size_t p = 0; p < kWinogradPoints; ++p)
      gemm::multiply_outer(factors + p * step, stride, op.in, gradients + p * dy_step, dy_stride,
                           op.out, run.tiles, sums + p * op.in * wide, wide);
  }
}

// Weights of kLanes results for one input, tap by tap: [9][kLanes], transformed and stored.
HWY_INLINE void store_weights(const float (&taps)[9][kLanes], float* to, std::size_t step) {
  const Floats d;
  Vector rows[3][6];
  for (int i = 0; i < 3; ++i)
    transform_weights(hn::LoadU(d, taps[3 * i]), hn::LoadU(d, taps[3 * i + 1]),
                      hn::LoadU(d, taps[3 * i + 2]), rows[i]);
  for (int j = 0; j < 6; ++j) {
    Vector column[6];
    transform_weights(rows[0][j], rows[1][j], rows[2][j], column);
    for (int i = 0; i < 6; ++i) hn::StoreU(column[i], d, to + (6 * i + j) * step);
  }
}

// Weight of (result, input, tap) is w[result * by_result + input * by_input + tap], taps backwards
// if flipped.
void pack_weights(const float* w, std::size_t results, std::size_t by_result, std::size_t inputs,
                  std::size_t by_input, bool flipped, float* packed, std::size_t begin,
                  std::size_t end) {
  for (std::size_t n = 0; n < results; n += panel_vectors(results) * kLanes) {
    const std::size_t width = panel_width(results, n);
    float* panel = packed + n * kWinogradPoints * inputs;
    for (std::size_t v = 0; v < width; v += kLanes)
      for (std::size_t i = begin; i < end; ++i) {
        float taps[9][kLanes] = {};
        for (std::size_t l = 0; l < kLanes && n + v + l < results; ++l) {
          const float* from = w + (n + v + l) * by_result + i * by_input;
          for (int t = 0; t < 9; ++t) taps[t][l] = from[flipped ? 8 - t : t];
        }
        store_weights(taps, panel + i * width + v, inputs * width);
      }
  }
}

void finish_gradient(const float* sums, std::size_t sets, std::size_t out, std::size_t in,
                     float* dw) {
  const Floats d;
  const std::size_t wide = padded(out), step = in * wide;
  for (std::size_t i = 0; i < in; ++i)
    for (std::size_t c = 0; c < out; c += kLanes) {
      Vector rows[6][3];
      for (int y = 0; y < 6; ++y) {
        Vector row[6];
        for (int x = 0; x < 6; ++x) {
          const float* at = sums + (6 * y + x) * step + i * wide + c;
          row[x] = hn::LoadU(d, at);
          for (std::size_t set = 1; set < sets; ++set)
            row[x] = hn::Add(row[x], hn::LoadU(d, at + set * kWinogradPoints * step));
        }
        gather_weights(row, rows[y][0], rows[y][1], rows[y][2]);
      }
      float taps[9][kLanes];
      for (int x = 0; x < 3; ++x) {
        Vector column[6], w0, w1, w2;
        for (int y = 0; y < 6; ++y) column[y] = rows[y][x];
        gather_weights(column, w0, w1, w2);
        hn::StoreU(w0, d, taps[x]);
        hn::StoreU(w1, d, taps[3 + x]);
        hn::StoreU(w2, d, taps[6 + x]);
      }
      for (std::size_t l = 0; l < kLanes && c + l < out; ++l)
        for (int t = 0; t < 9; ++t) dw[((c + l) * in + i) * 9 + t] = taps[t][l];
    }
}

}  // namespace nmrf::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::conv {

constexpr std::size_t kForwardBytes = 320 << 10, kWeightsBytes = 768 << 10;

HWY_EXPORT(forward);
HWY_EXPORT(weights_gradient);
HWY_EXPORT(pack_weights);
HWY_EXPORT(finish_gradient);

Winograd::Winograd(std::size_t batch, std::size_t height, std::size_t width, std::size_t in,
                   std::size_t out, bool for_weights)
    : batch(batch), height(height), width(width), in(in), out(out) {
  tiles_y = (height + 3) / 4;
  tiles_x = (width + 3) / 4;
  // What a run makes stays in the second-level cache; the more tiles, the less often weights are
  // read. Whole register tiles, all runs of a map alike.
  const std::size_t bytes = for_weights ? kWeightsBytes : kForwardBytes;
  const std::size_t row = tokens::tile_stride(in) + (for_weights ? tokens::tile_stride(out) : 0);
  const std::size_t fit = bytes / (kWinogradPoints * sizeof(float) * row);
  const std::size_t most =
      std::clamp<std::size_t>(fit / 12 * 12, 24, for_weights ? 96 : tokens::kMostRows);
  const std::size_t tiles = std::max<std::size_t>(tiles_y * tiles_x, 1);
  const std::size_t runs = (tiles + most - 1) / most;
  run = ((tiles + runs - 1) / runs + 11) / 12 * 12;
}

std::size_t Winograd::unit_pixels(std::size_t unit) const {
  std::size_t pixels = 0, tile = unit % units_each() * run;
  const std::size_t end = std::min(tile + run, tiles_y * tiles_x);
  for (; tile < end; ++tile)
    pixels += std::min<std::size_t>(4, height - tile / tiles_x * 4) *
              std::min<std::size_t>(4, width - tile % tiles_x * 4);
  return pixels;
}

void winograd_weights(const float* w, std::size_t out, std::size_t in, float* packed,
                      std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(pack_weights)(w, out, 9 * in, in, 9, false, packed, begin, end);
}

void winograd_weights_backward(const float* w, std::size_t out, std::size_t in, float* packed,
                               std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(pack_weights)(w, in, 9, out, 9 * in, true, packed, begin, end);
}

void winograd_forward(const Winograd& op, const Source& x, const float* packed,
                      const WinogradResult& result, std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(forward)(op, x, packed, result, begin, end);
}

void winograd_weights_gradient(const Winograd& op, const Source& x, const float* dy, float* sums,
                               std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(weights_gradient)(op, x, dy, sums, begin, end);
}

void winograd_finish_gradient(const float* sums, std::size_t sets, std::size_t out, std::size_t in,
                              float* dw) {
  HWY_DYNAMIC_DISPATCH(finish_gradient)(sums, sets, out, in, dw);
}

}  // namespace nmrf::conv
#endif
