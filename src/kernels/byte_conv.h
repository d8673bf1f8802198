// Convolutions on 8-bit integers: every row of the input is rounded to 256 levels of its own, the
// weights of every result channel to signed bytes (bytes.h). Maps have their channels last.
#pragma once

#include <cstddef>

#include "kernels/direct_conv.h"

namespace nmrf::conv {

// Floats of packed weights. w: [out, in, kernel, kernel].
std::size_t byte_weights_size(const Direct& op);
void byte_weights(const Direct& op, const float* w, float* packed);

// As direct_forward(), for a batch of one.
void byte_forward(const Direct& op, const Source& x, const float* packed, const float* bias,
                  float* out, float* moments, std::size_t begin, std::size_t end);

// The same results, one number at a time and from the weights as they are. bias: may be null.
void byte_forward_plain(const Direct& op, const Source& x, const float* w, const float* bias,
                        int weight_levels, float* out);

}  // namespace nmrf::conv
