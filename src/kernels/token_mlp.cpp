#include "kernels/token_mlp.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/token_mlp.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>

#include "kernels/pointwise-inl.h"
#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::tokens::HWY_NAMESPACE {

// u = x + W_e message + b_e of one tile
HWY_INLINE void enter(const TokenMlp& m, const float* x, std::size_t x_stride, const float* message,
                      std::size_t message_stride, std::size_t rows, float* u,
                      std::size_t u_stride) {
  const float* pointers[kMostRows];
  Sink sink{.out = u, .stride = u_stride, .bias = m.entry_bias};
  sink.add = row_pointers(x, x_stride, rows, pointers);
  multiply({.first = message, .stride = message_stride, .k = m.message_width}, rows,
           m.entry_forward, m.width[0], sink);
}

void mlp_forward(const TokenMlp& m, InputRows x, InputRows message, OutputRows y, std::size_t begin,
                 std::size_t end) {
  const std::size_t stride = tile_stride(m.width[0]);
  std::size_t widest = 0;
  for (int i = 1; i < m.layers; ++i) widest = std::max(widest, tile_stride(m.width[i]));
  ScratchPieces scratch(thread_scratch(2 * kMostRows * (stride + widest + 1)));
  float* entered = scratch.take(kMostRows * stride);
  float* normed = scratch.take(kMostRows * stride);
  float* hidden[2] = {scratch.take(kMostRows * widest), scratch.take(kMostRows * widest)};
  float* means = scratch.take(kMostRows);
  float* scales = scratch.take(kMostRows);
  const float* pointers[kMostRows];

  for (std::size_t t = begin; t < end; t += kMostRows) {
    const std::size_t rows = std::min(kMostRows, end - t);
    const float* u = x.data + t * x.stride;
    std::size_t u_stride = x.stride;
    if (m.message_width > 0) {
      enter(m, u, x.stride, message.data + t * message.stride, message.stride, rows, entered,
            stride);
      u = entered;
      u_stride = stride;
    }
    Rows input{.first = u, .stride = u_stride, .k = m.width[0]};
    if (m.norm_weight) {
      normalise_rows(u, u_stride, rows, m.width[0], m.norm_weight, m.norm_bias, m.norm_eps, normed,
                     stride, means, scales);
      input.first = normed;
      input.stride = stride;
    }
    for (int i = 0; i < m.layers; ++i) {
      const std::size_t columns = m.width[i + 1];
      Sink sink{.out = hidden[i % 2], .stride = tile_stride(columns), .bias = m.bias[i]};
      if (i + 1 == m.layers) {
        sink.out = y.data + t * y.stride;
        sink.stride = y.stride;
        if (m.residual) sink.add = row_pointers(u, u_stride, rows, pointers);
      } else {
        sink.relu = m.activation == Activation::kRelu;
      }
      multiply(input, rows, m.forward[i], columns, sink);
      if (i + 1 < m.layers && m.activation == Activation::kGelu)
        gelu_rows(sink.out, sink.stride, rows, columns);
      input = {.first = sink.out, .stride = sink.stride, .k = columns};
    }
  }
}

void mlp_backward(const TokenMlp& m, InputRows x, InputRows message, InputRows dy, OutputRows dx,
                  OutputRows d_message, float* sums, std::size_t begin, std::size_t end) {
  const TokenMlpSums at(m);
  const bool gelu = m.activation == Activation::kGelu;
  const bool enters = m.message_width > 0;
  const bool descends = dx.data || (sums && m.norm_weight);  // below the first layer
  const std::size_t stride = tile_stride(m.width[0]);
  const std::size_t message_stride = enters ? tile_stride(m.message_width) : 0;
  std::size_t widest = 0, all = 0;
  for (int i = 1; i < m.layers; ++i) {
    widest = std::max(widest, tile_stride(m.width[i]));
    all += tile_stride(m.width[i]);
  }
  ScratchPieces scratch(
      thread_scratch(kMostRows * (3 * stride + message_stride + 2 * widest + 2 * all + 2)));
  float* entered = scratch.take(kMostRows * stride);
  float* first = scratch.take(kMostRows * stride);    // what the first layer read
  float* d_first = scratch.take(kMostRows * stride);  // its gradient
  float* heard = scratch.take(kMostRows * message_stride);
  float* gradient[2] = {scratch.take(kMostRows * widest), scratch.take(kMostRows * widest)};
  float* activation[TokenMlp::kMostLayers] = {first};
  float* slope[TokenMlp::kMostLayers] = {};
  for (int i = 1; i < m.layers; ++i) {
    activation[i] = scratch.take(kMostRows * tile_stride(m.width[i]));
    slope[i] = scratch.take(kMostRows * tile_stride(m.width[i]));
  }
  float* means = scratch.take(kMostRows);
  float* scales = scratch.take(kMostRows);
  const float* pointers[kMostRows];

  for (std::size_t t = begin; t < end; t += kMostRows) {
    const std::size_t rows = std::min(kMostRows, end - t);
    const float* u = x.data + t * x.stride;
    std::size_t u_stride = x.stride;
    if (enters) {
      copy_rows(message.data + t * message.stride, message.stride, rows, m.message_width, heard,
                message_stride);
      enter(m, u, x.stride, heard, message_stride, rows, entered, stride);
      u = entered;
      u_stride = stride;
    }
    if (m.norm_weight)
      normalise_rows(u, u_stride, rows, m.width[0], m.norm_weight, m.norm_bias, m.norm_eps, first,
                     stride, means, scales);
    else
      copy_rows(u, u_stride, rows, m.width[0], first, stride);
    for (int i = 0; i + 1 < m.layers; ++i) {
      const std::size_t columns = m.width[i + 1], wide = tile_stride(columns);
      multiply({.first = activation[i], .stride = tile_stride(m.width[i]), .k = m.width[i]}, rows,
               m.forward[i], columns,
               {.out = activation[i + 1], .stride = wide, .bias = m.bias[i], .relu = !gelu});
      if (gelu) gelu_rows_with_slope(activation[i + 1], slope[i + 1], wide, rows, columns);
    }

    const float* above = dy.data + t * dy.stride;
    Rows g{.first = above, .stride = dy.stride, .k = m.width[m.layers]};
    for (int i = m.layers - 1; i >= 0; --i) {
      const std::size_t wide = tile_stride(m.width[i]);
      if (sums) {
        multiply_outer(g.first, g.stride, g.k, activation[i], wide, m.width[i], rows,
                       sums + at.weight[i], padded(m.width[i]));
        add_column_sums(g.first, g.stride, rows, g.k, sums + at.bias[i]);
      }
      if (i == 0) break;
      float* below = gradient[i % 2];
      multiply(g, rows, m.backward[i], m.width[i], {.out = below, .stride = wide});
      if (gelu)
        multiply_rows(below, slope[i], wide, rows, m.width[i]);
      else
        cut_rows(below, activation[i], wide, rows, m.width[i]);
      g = {.first = below, .stride = wide, .k = m.width[i]};
    }
    if (!descends) continue;

    float* du = dx.data ? dx.data + t * dx.stride : nullptr;
    if (m.norm_weight) {
      multiply(g, rows, m.backward[0], m.width[0], {.out = d_first, .stride = stride});
      normalise_rows_backward(u, u_stride, d_first, stride, rows, m.width[0], m.norm_weight, means,
                              scales, m.residual ? above : nullptr, dy.stride, du, dx.stride,
                              sums ? sums + at.norm_weight : nullptr,
                              sums ? sums + at.norm_bias : nullptr);
    } else {
      Sink sink{.out = du, .stride = dx.stride};
      if (m.residual) sink.add = row_pointers(above, dy.stride, rows, pointers);
      multiply(g, rows, m.backward[0], m.width[0], sink);
    }
    if (!enters) continue;
    if (sums) {
      multiply_outer(du, dx.stride, m.width[0], heard, message_stride, m.message_width, rows,
                     sums + at.entry_weight, padded(m.message_width));
      add_column_sums(du, dx.stride, rows, m.width[0], sums + at.entry_bias);
    }
    if (d_message.data)
      multiply({.first = du, .stride = dx.stride, .k = m.width[0]}, rows, m.entry_backward,
               m.message_width,
               {.out = d_message.data + t * d_message.stride, .stride = d_message.stride});
  }
}

}  // namespace nmrf::tokens::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::tokens {

HWY_EXPORT(mlp_forward);
HWY_EXPORT(mlp_backward);

TokenMlpSums::TokenMlpSums(const TokenMlp& m) : total(0) {
  auto take = [&](std::size_t floats) {
    const std::size_t at = total;
    total += floats;
    return at;
  };
  for (int i = 0; i < m.layers; ++i) {
    weight[i] = take(m.width[i + 1] * padded(m.width[i]));
    bias[i] = take(padded(m.width[i + 1]));
  }
  norm_weight = take(padded(m.width[0]));
  norm_bias = take(padded(m.width[0]));
  entry_weight = take(m.width[0] * padded(m.message_width));
  entry_bias = take(padded(m.width[0]));
}

void token_mlp_forward(const TokenMlp& mlp, InputRows x, InputRows message, OutputRows y,
                       std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(mlp_forward)(mlp, x, message, y, begin, end);
}

void token_mlp_backward(const TokenMlp& mlp, InputRows x, InputRows message, InputRows dy,
                        OutputRows dx, OutputRows d_message, float* sums, std::size_t begin,
                        std::size_t end) {
  HWY_DYNAMIC_DISPATCH(mlp_backward)(mlp, x, message, dy, dx, d_message, sums, begin, end);
}

}  // namespace nmrf::tokens
#endif
