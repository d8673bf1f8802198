#include "kernels/token_projection.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/token_projection.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>

#include "kernels/pointwise-inl.h"
#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::tokens::HWY_NAMESPACE {

HWY_INLINE std::size_t widest_block(const TokenProjection& p) {
  std::size_t widest = 0;
  for (int b = 0; b < p.blocks; ++b) widest = std::max(widest, tile_stride(p.block[b].out));
  return widest;
}

void projection_forward(const TokenProjection& p, InputRows x, InputRows extra, InputRows residual,
                        const OutputRows* y, std::size_t begin, std::size_t end) {
  const std::size_t tile = kMostRows / p.labels * p.labels;
  const std::size_t stride = tile_stride(p.channels), widest = widest_block(p);
  ScratchPieces scratch(thread_scratch(kMostRows * (stride + widest + 2)));
  float* normed = scratch.take(kMostRows * stride);
  float* shared = scratch.take(kMostRows * widest);  // W_extra extra + b, a row a pixel
  float* means = scratch.take(kMostRows);
  float* scales = scratch.take(kMostRows);
  const float* pointers[kMostRows];

  for (std::size_t t = begin; t < end; t += tile) {
    const std::size_t rows = std::min(tile, end - t), pixels = rows / p.labels;
    const float* further = extra.data ? extra.data + t / p.labels * extra.stride : nullptr;
    Rows tokens{.first = x.data + t * x.stride, .stride = x.stride, .k = p.channels};
    if (p.norm_weight) {
      normalise_rows(tokens.first, tokens.stride, rows, p.channels, p.norm_weight, p.norm_bias,
                     p.norm_eps, normed, stride, means, scales);
      tokens.first = normed;
      tokens.stride = stride;
    }
    for (int b = 0; b < p.blocks; ++b) {
      const auto& block = p.block[b];
      Rows input = tokens;
      Sink sink{.out = y[b].data + t * y[b].stride, .stride = y[b].stride, .bias = block.bias};
      if (block.uses_extra && p.labels > 1) {
        const std::size_t wide = tile_stride(block.out);
        multiply({.first = further, .stride = extra.stride, .k = p.extra}, pixels,
                 block.extra_forward, block.out,
                 {.out = shared, .stride = wide, .bias = block.bias});
        for (std::size_t r = 0; r < rows; ++r) pointers[r] = shared + r / p.labels * wide;
        sink.bias = nullptr;
        sink.add = pointers;
      } else if (block.uses_extra) {
        input.second = further;
        input.second_stride = extra.stride;
        input.more = p.extra;
      }
      if (residual.data && b == 0)
        sink.add =
            row_pointers(residual.data + t * residual.stride, residual.stride, rows, pointers);
      multiply(input, rows, block.forward, block.out, sink);
    }
  }
}

void projection_backward(const TokenProjection& p, InputRows x, InputRows extra,
                         const InputRows* dy, OutputRows dx, OutputRows d_extra, float* sums,
                         std::size_t begin, std::size_t end) {
  const TokenProjectionSums at(p);
  const std::size_t tile = kMostRows / p.labels * p.labels;
  const std::size_t stride = tile_stride(p.channels), widest = widest_block(p),
                    extra_stride = p.extra > 0 ? tile_stride(p.extra) : 0;
  ScratchPieces scratch(thread_scratch(kMostRows * (2 * stride + extra_stride + widest + 2)));
  float* input = scratch.take(kMostRows * stride);    // what the maps read
  float* d_input = scratch.take(kMostRows * stride);  // its gradient
  float* further = scratch.take(kMostRows * extra_stride);
  float* joined = scratch.take(kMostRows * widest);  // gradient summed over the labels of a pixel
  float* means = scratch.take(kMostRows);
  float* scales = scratch.take(kMostRows);
  const float* pointers[kMostRows];

  for (std::size_t t = begin; t < end; t += tile) {
    const std::size_t rows = std::min(tile, end - t), pixels = rows / p.labels,
                      pixel = t / p.labels;
    const float* from = x.data + t * x.stride;
    if (p.norm_weight)
      normalise_rows(from, x.stride, rows, p.channels, p.norm_weight, p.norm_bias, p.norm_eps,
                     input, stride, means, scales);
    else if (sums)
      copy_rows(from, x.stride, rows, p.channels, input, stride);
    if (sums && p.extra > 0)
      copy_rows(extra.data + pixel * extra.stride, extra.stride, pixels, p.extra, further,
                extra_stride);

    // The gradient of the input: in scratch memory below a norm, else where it belongs.
    OutputRows below{d_input, stride};
    if (!p.norm_weight) below = {dx.data ? dx.data + t * dx.stride : nullptr, dx.stride};
    if (p.norm_weight && !dx.data && !sums) below.data = nullptr;
    OutputRows beside{d_extra.data ? d_extra.data + pixel * d_extra.stride : nullptr,
                      d_extra.stride};
    bool first_use = true;
    for (int b = 0; b < p.blocks; ++b) {
      const auto& block = p.block[b];
      Rows g{.first = dy[b].data + t * dy[b].stride, .stride = dy[b].stride, .k = block.out};
      if (sums) {
        multiply_outer(g.first, g.stride, block.out, input, stride, p.channels, rows,
                       sums + at.weight[b], padded(p.channels));
        add_column_sums(g.first, g.stride, rows, block.out, sums + at.bias[b]);
      }
      if (below.data) {
        Sink sink{.out = below.data, .stride = below.stride};
        if (b > 0) sink.add = row_pointers(below.data, below.stride, rows, pointers);
        multiply(g, rows, block.backward, p.channels, sink);
      }
      if (!block.uses_extra || (!sums && !beside.data)) continue;
      if (p.labels > 1) {
        const std::size_t wide = tile_stride(block.out);
        sum_labels(g.first, g.stride, pixels, p.labels, block.out, joined, wide);
        g.first = joined;
        g.stride = wide;
      }
      if (sums)
        multiply_outer(g.first, g.stride, block.out, further, extra_stride, p.extra, pixels,
                       sums + at.extra_weight[b], padded(p.extra));
      if (beside.data) {
        Sink sink{.out = beside.data, .stride = beside.stride};
        if (!first_use) sink.add = row_pointers(beside.data, beside.stride, pixels, pointers);
        multiply(g, pixels, block.extra_backward, p.extra, sink);
        first_use = false;
      }
    }
    if (p.norm_weight && below.data)
      normalise_rows_backward(
          from, x.stride, d_input, stride, rows, p.channels, p.norm_weight, means, scales, nullptr,
          0, dx.data ? dx.data + t * dx.stride : nullptr, dx.stride,
          sums ? sums + at.norm_weight : nullptr, sums ? sums + at.norm_bias : nullptr);
  }
}

}  // namespace nmrf::tokens::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::tokens {

HWY_EXPORT(projection_forward);
HWY_EXPORT(projection_backward);

TokenProjectionSums::TokenProjectionSums(const TokenProjection& p) : total(0) {
  auto take = [&](std::size_t floats) {
    const std::size_t at = total;
    total += floats;
    return at;
  };
  for (int b = 0; b < p.blocks; ++b) {
    weight[b] = take(p.block[b].out * padded(p.channels));
    extra_weight[b] = take(p.block[b].uses_extra ? p.block[b].out * padded(p.extra) : 0);
    bias[b] = take(padded(p.block[b].out));
  }
  norm_weight = take(padded(p.channels));
  norm_bias = take(padded(p.channels));
}

void token_projection_forward(const TokenProjection& map, InputRows x, InputRows extra,
                              InputRows residual, const OutputRows* y, std::size_t begin,
                              std::size_t end) {
  HWY_DYNAMIC_DISPATCH(projection_forward)(map, x, extra, residual, y, begin, end);
}

void token_projection_backward(const TokenProjection& map, InputRows x, InputRows extra,
                               const InputRows* dy, OutputRows dx, OutputRows d_extra, float* sums,
                               std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(projection_backward)(map, x, extra, dy, dx, d_extra, sums, begin, end);
}

}  // namespace nmrf::tokens
#endif
