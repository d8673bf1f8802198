// Token layers on 8-bit integers: rows of activations are rounded to 256 levels between their own
// least and greatest value, columns of weights to signed bytes with a scale each; sums are exact.
#pragma once

#include <cstddef>

#include "kernels/token_mlp.h"
#include "kernels/token_projection.h"

namespace nmrf::tokens {

// Weights hold 8 bits where products of bytes are summed in 32 bits by one instruction, and 7 bits
// elsewhere, where pairs of them meet in 16.
struct ByteArithmetic {
  int weight_levels = 0;      // greatest magnitude of a weight: 127 or 63
  bool fast = false;          // clearly faster than float
  bool convolutions = false;  // these too: without VNNI, Winograd's in float are faster
};
ByteArithmetic byte_arithmetic();

// Floats that pack_bytes() writes: the scales of the columns, their sums, then the bytes. In every
// column four rows lie side by side; panels are as wide as in pack.h.
std::size_t packed_bytes_size(std::size_t k, std::size_t n);
// B = W^T, for W: [n, k] with row stride `stride`.
void pack_bytes(const float* w, std::size_t stride, std::size_t k, std::size_t n, float* packed);

// As token_mlp_forward(); layers (and the entry) that have bytes use them.
void token_mlp_forward_bytes(const TokenMlp& mlp, InputRows x, InputRows message, OutputRows y,
                             std::size_t begin, std::size_t end);
// As token_projection_forward(); blocks that have bytes use them.
void token_projection_forward_bytes(const TokenProjection& map, InputRows x, InputRows extra,
                                    InputRows residual, const OutputRows* y, std::size_t begin,
                                    std::size_t end);

// The product of rows x [rows, k] and packed bytes with a bias [padded n]: the plain form, one
// number at a time. The fast one differs by float rounding alone.
void multiply_bytes_plain(const float* x, std::size_t rows, std::size_t k, const float* w,
                          std::size_t n, const float* bias, int weight_levels, float* y);
// The fast form of the same product.
void multiply_bytes(const float* x, std::size_t rows, std::size_t k, const float* packed,
                    std::size_t n, const float* bias, float* y);

}  // namespace nmrf::tokens
