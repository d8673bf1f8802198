// Steps between the layers of an encoder, on maps with their channels last.
#pragma once

#include <cstddef>

namespace nmrf::conv {

// y = LayerNorm over the channels of rows [begin, end) of x; x may be y.
void layer_norm(const float* x, std::size_t channels, const float* weight, const float* bias,
                float eps, float* y, std::size_t begin, std::size_t end);

// y[r, c] = the largest of the 3 x 3 values around x[2 r, 2 c] that lie in the map, per channel. x:
// [height, width, channels]; rows [begin, end) of y: [(height + 1) / 2, (width + 1) / 2, channels].
void max_pool_3x3(const float* x, std::size_t height, std::size_t width, std::size_t channels,
                  float* y, std::size_t begin, std::size_t end);

// y = GELU(depthwise 3 x 3 convolution of x + bias), zeros around the map. x, y: [height, width,
// channels]; taps: [9, channels]. Rows [begin, end) of y, which must not be x.
void depthwise_3x3_gelu(const float* x, std::size_t height, std::size_t width, std::size_t channels,
                        const float* taps, const float* bias, float* y, std::size_t begin,
                        std::size_t end);

// to[r, c] = the pixels (2 r, 2 c), (2 r + 1, 2 c), (2 r, 2 c + 1), (2 r + 1, 2 c + 1) of `from`
// side by side. from: [.., width, channels], an even width; rows [begin, end) of to.
void gather_2x2(const float* from, std::size_t width, std::size_t channels, float* to,
                std::size_t begin, std::size_t end);

}  // namespace nmrf::conv
