// Deformable attention: every query reads a few places of another grid that it chooses itself.
#pragma once

#include <cstdint>

namespace nmrf::kernels {

// Queries of a fine grid read values of a level whose grid covers the same image.
struct Deformable {
  std::int64_t query_height = 0, query_width = 0;
  std::int64_t height = 0, width = 0;  // of the level
  std::int64_t heads = 0, points = 0;  // heads * points <= kMostSamples
  std::int64_t depth = 0;              // channels of a head

  static constexpr std::int64_t kMostSamples = 64;
  std::int64_t samples() const { return heads * points; }
  std::int64_t channels() const { return heads * depth; }
};

// value: [height, width, channels]. Of a query: offsets [heads, points, (x, y)] in pixels of the
// level, weights [heads, points] before their softmax. out[q, head] = sum over the points of weight
// times the value at the query's place plus the offset: bilinear, taps outside are zero. Rows
// [begin, end) of the queries; out: [query_height, query_width, channels].
void deformable_forward(const Deformable& op, const float* value, const float* offsets,
                        const float* weights, float* out, std::int64_t begin, std::int64_t end);

}  // namespace nmrf::kernels
