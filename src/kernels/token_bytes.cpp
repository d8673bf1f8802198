#include "kernels/bytes.h"

// Products of bytes with their sums in one instruction (VNNI) are worth a target of their own.
#define HWY_WANT_AVX3_DL
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/token_bytes.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>

#include "kernels/bytes-inl.h"
#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::tokens::HWY_NAMESPACE {

ByteArithmetic byte_levels() {
  constexpr bool kVnni = HWY_TARGET == HWY_AVX3_DL;
  return {kWeightLevels, kVnni || HWY_TARGET == HWY_AVX2, kVnni};
}

void pack_columns(const float* w, std::size_t stride, std::size_t k, std::size_t n, float* packed) {
  const std::size_t groups = (k + 3) / 4, wide = padded(n);
  float *scales = packed, *sums = packed + wide;
  auto* bytes = reinterpret_cast<std::int8_t*>(packed + 2 * wide);
  std::fill(packed, packed + 2 * wide, 0.0f);
  std::fill(bytes, bytes + 4 * groups * wide, std::int8_t{0});
  for (std::size_t begin = 0; begin < n; begin += kPanel) {
    const std::size_t width = panel_width(n, begin), valid = std::min(width, n - begin);
    std::int8_t* panel = bytes + 4 * begin * groups;
    for (std::size_t c = 0; c < valid; ++c) {
      const float* column = w + (begin + c) * stride;
      float most = 0;
      for (std::size_t i = 0; i < k; ++i) most = std::max(most, std::abs(column[i]));
      const float scale = most / static_cast<float>(kWeightLevels);
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < k; ++i) {
        const auto value =
            scale > 0 ? static_cast<std::int32_t>(std::nearbyint(column[i] / scale)) : 0;
        panel[(i / 4 * width + c) * 4 + i % 4] = static_cast<std::int8_t>(value);
        sum += value;
      }
      scales[begin + c] = scale;
      sums[begin + c] = scale * static_cast<float>(sum);
    }
  }
}

// Room for bytes of `k` channels of a tile, in floats.
HWY_INLINE std::size_t byte_room(std::size_t k) { return kMostRows * byte_stride(k) / 4; }

HWY_INLINE ByteRows take_byte_rows(ScratchPieces& scratch, std::size_t k) {
  auto* data = reinterpret_cast<std::uint8_t*>(scratch.take(byte_room(k)));
  return {data, byte_stride(k), k, scratch.take(kMostRows), scratch.take(kMostRows)};
}

// Rows of a tile as bytes. `copy`: a tile's memory, for rows that end inside a vector.
HWY_INLINE void round_tile(const float* x, std::size_t stride, std::size_t rows, float* copy,
                           const ByteRows& to) {
  if (to.k % kLanes == 0) {
    round_rows(x, stride, rows, to);
    return;
  }
  const std::size_t copy_stride = tile_stride(to.k);
  for (std::size_t r = 0; r < rows; ++r) {
    if (copy != x) std::memcpy(copy + r * copy_stride, x + r * stride, to.k * sizeof(float));
    fill_vector(copy + r * copy_stride, to.k);
  }
  round_rows(copy, copy_stride, rows, to);
}

void byte_mlp_forward(const TokenMlp& m, InputRows x, InputRows message, OutputRows y,
                      std::size_t begin, std::size_t end) {
  const std::size_t stride = tile_stride(m.width[0]);
  std::size_t widest = tile_stride(m.message_width),
              deepest = std::max(m.width[0], m.message_width);
  for (int i = 1; i < m.layers; ++i) {
    widest = std::max(widest, tile_stride(m.width[i]));
    deepest = std::max(deepest, m.width[i]);
  }
  ScratchPieces scratch(
      thread_scratch(2 * kMostRows * (stride + widest + 2) + byte_room(deepest) + 4 * kPad));
  float* entered = scratch.take(kMostRows * stride);
  float* normed = scratch.take(kMostRows * stride);
  float* hidden[2] = {scratch.take(kMostRows * widest), scratch.take(kMostRows * widest)};
  float* means = scratch.take(kMostRows);
  float* scales = scratch.take(kMostRows);
  ByteRows bytes = take_byte_rows(scratch, deepest);
  const float* pointers[kMostRows];
  auto as_bytes = [&](std::size_t k) {
    bytes.k = k;
    bytes.stride = byte_stride(k);
  };

  for (std::size_t t = begin; t < end; t += kMostRows) {
    const std::size_t rows = std::min(kMostRows, end - t);
    const float* u = x.data + t * x.stride;
    std::size_t u_stride = x.stride;
    if (m.message_width > 0) {
      as_bytes(m.message_width);
      round_tile(message.data + t * message.stride, message.stride, rows, hidden[0], bytes);
      Sink sink{.out = entered, .stride = stride, .bias = m.entry_bias};
      sink.add = row_pointers(u, u_stride, rows, pointers);
      multiply_rows_of_bytes(bytes, rows, m.entry_bytes, m.width[0], sink);
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
    bool rounded = false;
    for (int i = 0; i < m.layers; ++i) {
      const std::size_t columns = m.width[i + 1];
      const bool last = i + 1 == m.layers;
      Sink sink{.out = hidden[i % 2], .stride = tile_stride(columns), .bias = m.bias[i]};
      if (last) {
        sink.out = y.data + t * y.stride;
        sink.stride = y.stride;
        if (m.residual) sink.add = row_pointers(u, u_stride, rows, pointers);
      } else {
        sink.relu = m.activation == Activation::kRelu;
      }
      if (m.bytes[i]) {
        if (!rounded) {
          as_bytes(input.k);
          round_tile(input.first, input.stride, rows, i == 0 ? normed : hidden[(i + 1) % 2], bytes);
        }
        multiply_rows_of_bytes(bytes, rows, m.bytes[i], columns, sink);
      } else {
        multiply(input, rows, m.forward[i], columns, sink);
      }
      rounded = false;
      if (!last && m.activation == Activation::kGelu) {
        if (m.bytes[i + 1]) {
          as_bytes(columns);
          for (std::size_t r = 0; r < rows; ++r) fill_vector(sink.out + r * sink.stride, columns);
          gelu_and_round_rows(sink.out, sink.stride, rows, bytes);
          rounded = true;
        } else {
          gelu_rows(sink.out, sink.stride, rows, columns);
        }
      }
      input = {.first = sink.out, .stride = sink.stride, .k = columns};
    }
  }
}

void byte_projection_forward(const TokenProjection& p, InputRows x, InputRows extra,
                             InputRows residual, const OutputRows* y, std::size_t begin,
                             std::size_t end) {
  const std::size_t tile = kMostRows / p.labels * p.labels;
  const bool joined = p.labels == 1 && p.extra > 0;
  const std::size_t depth = p.channels + (joined ? p.extra : 0);
  const std::size_t stride = tile_stride(depth), extra_stride = tile_stride(p.extra);
  std::size_t widest = 0;
  for (int b = 0; b < p.blocks; ++b) widest = std::max(widest, tile_stride(p.block[b].out));
  ScratchPieces scratch(thread_scratch(kMostRows * (stride + extra_stride + widest + 6) +
                                       byte_room(depth) + byte_room(p.extra) + 6 * kPad));
  float* own = scratch.take(kMostRows * stride);
  float* further_copy = scratch.take(kMostRows * extra_stride);
  float* shared = scratch.take(kMostRows * widest);  // W_extra extra + b, a row per pixel
  float* means = scratch.take(kMostRows);
  float* scales = scratch.take(kMostRows);
  const ByteRows bytes = take_byte_rows(scratch, depth);
  const ByteRows extra_bytes = take_byte_rows(scratch, p.extra);
  const float* pointers[kMostRows];

  for (std::size_t t = begin; t < end; t += tile) {
    const std::size_t rows = std::min(tile, end - t), pixels = rows / p.labels;
    const float* further = extra.data ? extra.data + t / p.labels * extra.stride : nullptr;
    const float* from = x.data + t * x.stride;
    std::size_t from_stride = x.stride;
    if (p.norm_weight || joined) {
      if (p.norm_weight)
        normalise_rows(from, x.stride, rows, p.channels, p.norm_weight, p.norm_bias, p.norm_eps,
                       own, stride, means, scales);
      else
        copy_rows(from, x.stride, rows, p.channels, own, stride);
      if (joined) copy_rows(further, extra.stride, rows, p.extra, own + p.channels, stride);
      from = own;
      from_stride = stride;
    }
    round_tile(from, from_stride, rows, own, bytes);
    if (!joined && p.extra > 0)
      round_tile(further, extra.stride, pixels, further_copy, extra_bytes);
    for (int b = 0; b < p.blocks; ++b) {
      const auto& block = p.block[b];
      ByteRows input = bytes;
      input.k = p.channels + (joined && block.uses_extra ? p.extra : 0);
      Sink sink{.out = y[b].data + t * y[b].stride, .stride = y[b].stride, .bias = block.bias};
      if (block.uses_extra && !joined) {
        const std::size_t wide = tile_stride(block.out);
        multiply_rows_of_bytes(extra_bytes, pixels, block.extra_bytes, block.out,
                               {.out = shared, .stride = wide, .bias = block.bias});
        for (std::size_t r = 0; r < rows; ++r) pointers[r] = shared + r / p.labels * wide;
        sink.bias = nullptr;
        sink.add = pointers;
      }
      if (residual.data && b == 0)
        sink.add =
            row_pointers(residual.data + t * residual.stride, residual.stride, rows, pointers);
      multiply_rows_of_bytes(input, rows, block.bytes, block.out, sink);
    }
  }
}

void byte_product(const float* x, std::size_t rows, std::size_t k, const float* packed,
                  std::size_t n, const float* bias, float* y) {
  const std::size_t stride = tile_stride(k);
  ScratchPieces scratch(thread_scratch(kMostRows * (stride + 2) + byte_room(k) + 2 * kPad));
  float* copy = scratch.take(kMostRows * stride);
  const ByteRows bytes = take_byte_rows(scratch, k);
  for (std::size_t t = 0; t < rows; t += kMostRows) {
    const std::size_t count = std::min(kMostRows, rows - t);
    round_tile(x + t * k, k, count, copy, bytes);
    multiply_rows_of_bytes(bytes, count, packed, n, {.out = y + t * n, .stride = n, .bias = bias});
  }
}

}  // namespace nmrf::tokens::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::tokens {

HWY_EXPORT(byte_levels);
HWY_EXPORT(pack_columns);
HWY_EXPORT(byte_mlp_forward);
HWY_EXPORT(byte_projection_forward);
HWY_EXPORT(byte_product);

ByteArithmetic byte_arithmetic() { return HWY_DYNAMIC_DISPATCH(byte_levels)(); }

std::size_t packed_bytes_size(std::size_t k, std::size_t n) {
  return (2 + (k + 3) / 4) * padded(n);
}

void pack_bytes(const float* w, std::size_t stride, std::size_t k, std::size_t n, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_columns)(w, stride, k, n, packed);
}

void token_mlp_forward_bytes(const TokenMlp& mlp, InputRows x, InputRows message, OutputRows y,
                             std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(byte_mlp_forward)(mlp, x, message, y, begin, end);
}

void token_projection_forward_bytes(const TokenProjection& map, InputRows x, InputRows extra,
                                    InputRows residual, const OutputRows* y, std::size_t begin,
                                    std::size_t end) {
  HWY_DYNAMIC_DISPATCH(byte_projection_forward)(map, x, extra, residual, y, begin, end);
}

void multiply_bytes(const float* x, std::size_t rows, std::size_t k, const float* packed,
                    std::size_t n, const float* bias, float* y) {
  HWY_DYNAMIC_DISPATCH(byte_product)(x, rows, k, packed, n, bias, y);
}

void multiply_bytes_plain(const float* x, std::size_t rows, std::size_t k, const float* w,
                          std::size_t n, const float* bias, int weight_levels, float* y) {
  auto rounded = [](float value) { return static_cast<double>(std::nearbyint(value)); };
  for (std::size_t r = 0; r < rows; ++r) {
    const auto [low, high] = std::minmax_element(x + r * k, x + (r + 1) * k);
    const float range = *high - *low, by = range > 0 ? 255.0f / range : 0.0f;
    for (std::size_t c = 0; c < n; ++c) {
      float most = 0;
      for (std::size_t i = 0; i < k; ++i) most = std::max(most, std::abs(w[c * k + i]));
      const float scale = most / static_cast<float>(weight_levels);
      double sum = 0, weights = 0;
      for (std::size_t i = 0; i < k; ++i) {
        const double weight = scale > 0 ? rounded(w[c * k + i] / scale) : 0.0;
        sum += weight * rounded((x[r * k + i] - *low) * by);
        weights += weight;
      }
      y[r * n + c] = static_cast<float>(
          static_cast<double>(scale) *
              (static_cast<double>(range / 255.0f) * sum + static_cast<double>(*low) * weights) +
          static_cast<double>(bias[c]));
    }
  }
}

}  // namespace nmrf::tokens
#endif
