// Weights in the order in which the matrix products read them.
#pragma once

#include <cstddef>

#include "kernels/tiles.h"

namespace nmrf::tokens {

// A packed matrix B[k, n] is a sequence of panels of columns; in each, row follows row. Panel
// widths depend on the instruction set in use when it was packed.
inline std::size_t packed_size(std::size_t k, std::size_t n) { return k * padded(n); }

// B[offset .. offset + k, 0 .. n] of a matrix of `depth` rows = W^T, for W: [n, k] with row stride
// `stride`.
void pack_transposed(const float* w, std::size_t stride, std::size_t k, std::size_t n,
                     std::size_t depth, std::size_t offset, float* packed);
// B = W, for W: [k, n] with row stride `stride`.
void pack_rows(const float* w, std::size_t stride, std::size_t k, std::size_t n, float* packed);
// padded(n) floats: the bias, or zeros when it is null.
void pack_bias(const float* bias, std::size_t n, float* packed);

}  // namespace nmrf::tokens
