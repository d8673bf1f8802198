// Linear maps of normalised tokens, with further channels read in place, a tile at a time.
#pragma once

#include <cstddef>

#include "kernels/tiles.h"

namespace nmrf::tokens {

// For each block: y = W [norm(x), extra] + b (+ residual), or W norm(x) + b for a block that does
// not use extra. `labels` consecutive rows of x share a row of extra; its product is then computed
// once. Weights packed (ops/kernels/pack.h), biases padded, never null.
struct TokenProjection {
  static constexpr int kMostBlocks = 3;
  struct Block {
    std::size_t out = 0;
    bool uses_extra = false;
    const float* forward = nullptr;        // [W_x^T; W_extra^T] or, with labels > 1, W_x^T
    const float* extra_forward = nullptr;  // with labels > 1: W_extra^T
    const float* bytes = nullptr;          // the two above as bytes (kernels/bytes.h), or null
    const float* extra_bytes = nullptr;
    const float* bias = nullptr;
    const float* backward = nullptr;        // W_x, for the backward pass alone
    const float* extra_backward = nullptr;  // W_extra
  };
  std::size_t channels = 0;
  std::size_t extra = 0;               // channels of extra
  std::size_t labels = 1;              // at most kMostRows
  const float* norm_weight = nullptr;  // null: no norm
  const float* norm_bias = nullptr;
  float norm_eps = 0;
  int blocks = 0;
  Block block[kMostBlocks];
};

// Rows [begin, end), both multiples of `labels`. The residual (may be null) is added to the first
// block, which then must not share extra.
void token_projection_forward(const TokenProjection& map, InputRows x, InputRows extra,
                              InputRows residual, const OutputRows* y, std::size_t begin,
                              std::size_t end);

// Where the gradients of the parameters lie in a block of `total` floats: W_x [out, channels] and
// W_extra [out, extra] with rows padded to kPad.
struct TokenProjectionSums {
  explicit TokenProjectionSums(const TokenProjection& map);
  std::size_t weight[TokenProjection::kMostBlocks], extra_weight[TokenProjection::kMostBlocks],
      bias[TokenProjection::kMostBlocks];
  std::size_t norm_weight, norm_bias, total;
};

// Rows [begin, end) of the backward pass. dx and d_extra are written unless null; `sums`
// (TokenProjectionSums), unless null, is added to.
void token_projection_backward(const TokenProjection& map, InputRows x, InputRows extra,
                               const InputRows* dy, OutputRows dx, OutputRows d_extra, float* sums,
                               std::size_t begin, std::size_t end);

}  // namespace nmrf::tokens
