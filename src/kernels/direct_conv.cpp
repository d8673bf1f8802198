#include "kernels/direct_conv.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/direct_conv.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>

#include "kernels/maps-inl.h"
#include "kernels/pack.h"
#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::conv::HWY_NAMESPACE {

using tokens::kMostRows;
using tokens::ScratchPieces;

// relu(norm(x)) of one pixel.
HWY_INLINE void activate_pixel(const float* x, std::size_t channels, const Norm& norm,
                               std::size_t at, float* to) {
  for_vectors(channels, [&](const auto& lanes, std::size_t c) HWY_ATTR {
    const Activation<true> activate(lanes, norm, at + c);
    lanes.store(activate(lanes.load(x + c)), to + c);
  });
}

// Copies whole vectors: what is written behind `count` is overwritten next or never read. `end`: of
// the memory that may be read.
HWY_INLINE void copy_over(const float* from, std::size_t count, const float* end, float* to) {
  if (HWY_UNLIKELY(from + count + kLanes > end)) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < count; i += kLanes)
    hn::StoreU(hn::LoadU(Floats(), from + i), Floats(), to + i);
}

// Rows of `count` results of a row, from column `first`: the pixels under the kernel one behind the
// other, [count, kernel * kernel * in]. Up to a vector is written behind the last row.
HWY_INLINE void gather(const Direct& op, const Source& x, std::size_t image, std::size_t row,
                       std::size_t first, std::size_t count, float* to, std::size_t stride) {
  const auto width = static_cast<std::ptrdiff_t>(op.width);
  const auto height = static_cast<std::ptrdiff_t>(op.height);
  const auto kernel = static_cast<std::ptrdiff_t>(op.kernel);
  const auto padding = static_cast<std::ptrdiff_t>(op.padding);
  const float* map = x.data + image * op.height * op.width * op.in;
  const float* end = x.data + op.batch * op.height * op.width * op.in;
  const auto top = static_cast<std::ptrdiff_t>(row * op.stride) - padding;
  for (std::size_t r = 0; r < count; ++r) {
    const auto left = static_cast<std::ptrdiff_t>((first + r) * op.stride) - padding;
    const bool inside = !x.norm.mean && left >= 0 && left + kernel <= width;
    float* at = to + r * stride;
    for (std::ptrdiff_t y = top; y < top + kernel; ++y) {
      if (y < 0 || y >= height) {
        std::fill(at, at + op.kernel * op.in, 0.0f);
        at += op.kernel * op.in;
        continue;
      }
      const float* from = map + static_cast<std::size_t>(y) * op.width * op.in;
      if (inside) {
        copy_over(from + static_cast<std::size_t>(left) * op.in, op.kernel * op.in, end, at);
        at += op.kernel * op.in;
        continue;
      }
      for (std::ptrdiff_t column = left; column < left + kernel; ++column, at += op.in) {
        const float* pixel = from + column * static_cast<std::ptrdiff_t>(op.in);
        if (column < 0 || column >= width)
          std::fill(at, at + op.in, 0.0f);
        else if (x.norm.mean)
          activate_pixel(pixel, op.in, x.norm, image * op.in, at);
        else
          copy_over(pixel, op.in, end, at);
      }
    }
  }
}

// Columns of a product that fills its last vector.
HWY_INLINE std::size_t whole_vectors(std::size_t columns) {
  return (columns + kLanes - 1) / kLanes * kLanes;
}

// Whether pixels can be multiplied where they lie.
HWY_INLINE bool in_place(const Direct& op, const Source& x) {
  return op.kernel == 1 && op.stride == 1 && op.padding == 0 && !x.norm.mean;
}

// The rows to multiply: gathered into `to` (stride `wide`), or the map itself.
HWY_INLINE gemm::Rows rows_at(const Direct& op, const Source& x, std::size_t unit,
                              std::size_t first, std::size_t count, float* to, std::size_t wide) {
  if (in_place(op, x))
    return {.first = x.data + (unit * op.width + first) * op.in, .stride = op.in, .k = op.in};
  gather(op, x, unit / op.out_height, unit % op.out_height, first, count, to, wide);
  return {.first = to, .stride = wide, .k = op.depth()};
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

// Copies rows without what pads them.
HWY_INLINE void copy_out(const float* from, std::size_t stride, std::size_t rows,
                         std::size_t channels, float* to, std::size_t to_stride) {
  for (std::size_t r = 0; r < rows; ++r)
    for_vectors(channels, [&](const auto& lanes, std::size_t c) HWY_ATTR {
      lanes.store(lanes.load(from + r * stride + c), to + r * to_stride + c);
    });
}

// Pixels of a row to multiply at once: equal shares of it, whole register tiles.
HWY_INLINE std::size_t share_of(std::size_t width) {
  const std::size_t shares = (width + kMostRows - 1) / kMostRows;
  return ((width + shares - 1) / shares + 11) / 12 * 12;
}

void forward(const Direct& op, const Source& x, const float* packed, const float* bias, float* out,
             float* moments, std::size_t begin, std::size_t end) {
  const std::size_t wide = tile_stride(op.depth()), out_wide = tile_stride(op.out);
  ScratchPieces scratch(tokens::thread_scratch(kMostRows * (wide + out_wide) + kPad));
  float* gathered = scratch.take(kMostRows * wide + kPad);
  float* results = scratch.take(kMostRows * out_wide);
  const bool whole = op.out % kLanes == 0;
  const std::size_t share = share_of(op.out_width);
  for (std::size_t unit = begin; unit < end; ++unit) {
    float* row = out + unit * op.out_width * op.out;
    for (std::size_t first = 0; first < op.out_width; first += share) {
      const std::size_t count = std::min(share, op.out_width - first);
      const auto rows = rows_at(op, x, unit, first, count, gathered, wide);
      float* to = row + first * op.out;
      if (whole) {
        gemm::multiply(rows, count, packed, op.out, {.out = to, .stride = op.out, .bias = bias});
      } else {  // results that end inside a vector take a way through scratch memory
        gemm::multiply(rows, count, packed, whole_vectors(op.out),
                       {.out = results, .stride = out_wide, .bias = bias});
        copy_out(results, out_wide, count, op.out, to, op.out);
      }
    }
    if (moments) row_moments(row, op.out_width, op.out, moments + unit * moments_size(op.out));
  }
}

void backward_rows(const DirectBackward& backward, const float* dy, bool add, float* dx,
                   std::size_t begin, std::size_t end) {
  const Direct& op = backward.op;
  std::size_t deepest = 0;
  for (const auto& c : backward.classes)
    deepest = std::max(deepest, c.taps_y.size() * c.taps_x.size() * op.out);
  const std::size_t wide = tile_stride(deepest), dx_wide = tile_stride(op.in);
  ScratchPieces scratch(tokens::thread_scratch(kMostRows * (wide + dx_wide) + kPad));
  float* gathered = scratch.take(kMostRows * wide + kPad);
  float* results = scratch.take(kMostRows * dx_wide);
  const bool whole = op.in % kLanes == 0;
  const float* pointers[kMostRows];
  const float* dy_end = dy + op.batch * op.out_height * op.out_width * op.out;
  for (std::size_t unit = begin; unit < end; ++unit) {
    const std::size_t image = unit / op.height, y = unit % op.height;
    const std::size_t class_y = (y + op.padding) % op.stride;
    const float* map = dy + image * op.out_height * op.out_width * op.out;
    for (std::size_t class_x = 0; class_x < op.stride; ++class_x) {
      const auto& taps = backward.classes[class_y * op.stride + class_x];
      const std::size_t depth = taps.taps_y.size() * taps.taps_x.size() * op.out;
      // The first column x of the class: (x + padding) % stride == class_x.
      const std::size_t start = (class_x + op.stride - op.padding % op.stride) % op.stride;
      if (start >= op.width) continue;
      const std::size_t columns = (op.width - start + op.stride - 1) / op.stride;
      const std::size_t share = share_of(columns);
      for (std::size_t first = 0; first < columns; first += share) {
        const std::size_t count = std::min(share, columns - first);
        float* to = dx + (unit * op.width + start + first * op.stride) * op.in;
        const std::size_t to_stride = op.stride * op.in;
        if (depth == 0) {
          for (std::size_t r = 0; !add && r < count; ++r)
            std::fill(to + r * to_stride, to + r * to_stride + op.in, 0.0f);
          continue;
        }
        for (std::size_t r = 0; r < count; ++r) {
          float* at = gathered + r * wide;
          const std::size_t x = start + (first + r) * op.stride + op.padding;
          for (const std::size_t ky : taps.taps_y)
            for (const std::size_t kx : taps.taps_x) {
              const bool inside = y + op.padding >= ky && x >= kx &&
                                  (y + op.padding - ky) / op.stride < op.out_height &&
                                  (x - kx) / op.stride < op.out_width;
              if (inside)
                copy_over(map + ((y + op.padding - ky) / op.stride * op.out_width +
                                 (x - kx) / op.stride) *
                                    op.out,
                          op.out, dy_end, at);
              else
                std::fill(at, at + op.out, 0.0f);
              at += op.out;
            }
        }
        gemm::Sink sink{.out = to, .stride = to_stride};
        if (add) sink.add = gemm::row_pointers(to, to_stride, count, pointers);
        if (!whole) {
          sink = {.out = results, .stride = dx_wide};
          if (add) {
            // The sum is made in scratch memory: rows of dx cannot be read beyond their end.
            copy_out(to, to_stride, count, op.in, results, dx_wide);
            sink.add = gemm::row_pointers(results, dx_wide, count, pointers);
          }
        }
        gemm::multiply({.first = gathered, .stride = wide, .k = depth}, count, taps.packed.data(),
                       whole_vectors(op.in), sink);
        if (!whole) copy_out(results, dx_wide, count, op.in, to, to_stride);
      }
    }
  }
}

void weights_gradient(const Direct& op, const Source& x, const float* dy, float* sums,
                      std::size_t begin, std::size_t end) {
  const std::size_t wide = tile_stride(op.depth()), dy_wide = tile_stride(op.out);
  ScratchPieces scratch(tokens::thread_scratch(kMostRows * (wide + dy_wide) + kPad));
  float* gathered = scratch.take(kMostRows * wide + kPad);
  float* gradients = scratch.take(kMostRows * dy_wide);
  const std::size_t share = share_of(op.out_width);
  for (std::size_t unit = begin; unit < end; ++unit)
    for (std::size_t first = 0; first < op.out_width; first += share) {
      const std::size_t count = std::min(share, op.out_width - first);
      const auto rows = rows_at(op, x, unit, first, count, gathered, wide);
      copy_out(dy + (unit * op.out_width + first) * op.out, op.out, count, op.out, gradients,
               dy_wide);
      gemm::multiply_outer(rows.first, rows.stride, op.depth(), gradients, dy_wide, op.out, count,
                           sums, padded(op.out));
    }
}

}  // namespace nmrf::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::conv {

HWY_EXPORT(forward);
HWY_EXPORT(backward_rows);
HWY_EXPORT(weights_gradient);

void direct_weights(const Direct& op, const float* w, float* packed) {
  const std::size_t taps = op.kernel * op.kernel;
  std::vector<float> rows(op.depth() * op.out);
  for (std::size_t o = 0; o < op.out; ++o)
    for (std::size_t i = 0; i < op.in; ++i)
      for (std::size_t t = 0; t < taps; ++t)
        rows[(t * op.in + i) * op.out + o] = w[(o * op.in + i) * taps + t];
  tokens::pack_rows(rows.data(), op.out, op.depth(), op.out, packed);
}

void direct_forward(const Direct& op, const Source& x, const float* packed, const float* bias,
                    float* out, float* moments, std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(forward)(op, x, packed, bias, out, moments, begin, end);
}

DirectBackward::DirectBackward(const Direct& op, const float* w) : op(op) {
  const std::size_t taps = op.kernel * op.kernel;
  for (std::size_t y = 0; y < op.stride; ++y)
    for (std::size_t x = 0; x < op.stride; ++x) {
      Class c;
      for (std::size_t k = y; k < op.kernel; k += op.stride) c.taps_y.push_back(k);
      for (std::size_t k = x; k < op.kernel; k += op.stride) c.taps_x.push_back(k);
      std::vector<float> rows;
      for (const std::size_t ky : c.taps_y)
        for (const std::size_t kx : c.taps_x)
          for (std::size_t o = 0; o < op.out; ++o)
            for (std::size_t i = 0; i < op.in; ++i)
              rows.push_back(w[(o * op.in + i) * taps + ky * op.kernel + kx]);
      const std::size_t depth = c.taps_y.size() * c.taps_x.size() * op.out;
      c.packed.resize(tokens::packed_size(depth, op.in));
      if (depth > 0) tokens::pack_rows(rows.data(), op.in, depth, op.in, c.packed.data());
      classes.push_back(std::move(c));
    }
}

void direct_backward(const DirectBackward& backward, const float* dy, bool add, float* dx,
                     std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(backward_rows)(backward, dy, add, dx, begin, end);
}

void direct_weights_gradient(const Direct& op, const Source& x, const float* dy, float* sums,
                             std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(weights_gradient)(op, x, dy, sums, begin, end);
}

}  // namespace nmrf::conv
#endif
