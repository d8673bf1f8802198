// Small operators on whole maps: layout, encodings, winners, medians, patches.
#pragma once

#include <cstdint>

namespace nmrf::kernels {

// to[x, c] = from[c, x]: from has unit stride in x and `stride` floats from channel to channel.
void transpose_map(const float* from, std::int64_t stride, std::int64_t channels,
                   std::int64_t width, float* to);

// to[y, x, c] = the mean of from[2 y .. 2 y + 1, 2 x .. 2 x + 1, c]; from: [.., width, channels],
// an even width. Rows [begin, end) of to.
void average_2x2(const float* from, std::int64_t width, std::int64_t channels, float* to,
                 std::int64_t begin, std::int64_t end);

constexpr std::int64_t kMaxFrequencies = 15;
// Encodings (ops/encoding.h) of labels [begin, end): 2 * frequencies + 1 floats each.
void encode_labels(const float* labels, float range, std::int64_t frequencies, float* out,
                   std::int64_t begin, std::int64_t end);

// Winner takes all over patches of 8 x 8 (model/inference.h).
struct WinnersIn {
  std::int64_t height = 0, width = 0, labels = 0;  // of the coarse grid
  const float* score = nullptr;                    // [B, h, w, k, 64]
  const float* disparity = nullptr;                // [B, h, w, k, 64]
};
struct WinnersOut {
  float* disparity = nullptr;     // [B, 8 h, 8 w]
  float* confidence = nullptr;    // [B, 8 h, 8 w]
  std::int64_t* index = nullptr;  // [B, 8 h, 8 w], or null
  // [B, 8 h, 8 w], or null: the mean distance of the hypotheses from the winner's, weighted by
  // their posterior.
  float* spread = nullptr;
};
// Rows [begin, end) of the B * h rows of patches.
void pick_winners(const WinnersIn& in, const WinnersOut& out, std::int64_t begin, std::int64_t end);

// out[y, x] = the 8th smallest of the 4 x 4 block of `map`: [B * 4 h, 4 w]; NaN when
// one of them is. Rows [begin, end) of out: [B * h, w].
void median_of_blocks(const float* map, std::int64_t width, float* out, std::int64_t begin,
                      std::int64_t end);

// out[4 y + r, 4 x + c] = 4 max(0, labels[y, x] + offsets[y, x, 4 r + c]); rows [begin, end) of the
// B * h rows of labels: [B * h, w].
void unfold_offsets(const float* labels, const float* offsets, std::int64_t width, float* out,
                    std::int64_t begin, std::int64_t end);
// The gradient of the offsets from that of the map.
void unfold_offsets_backward(const float* labels, const float* offsets, const float* above,
                             std::int64_t width, float* d_offsets, std::int64_t begin,
                             std::int64_t end);

constexpr std::int64_t kPixels = 16, kAround = 9;      // of a cell, and cells around a pixel
constexpr std::int64_t kHead = kPixels * kAround + 1;  // channels of the blending head
constexpr float kColourUnit = 3 * 16;                  // of a distance summed over three channels

// Edge-aware blending of start labels (ops/patches.h). `head` holds `rows` rows per image, from
// row `first` on.
struct BlendIn {
  std::int64_t height = 0, width = 0, first = 0;  // of the fine grid
  std::int64_t rows = 0;                          // in head
  const float* head = nullptr;                    // [B, rows, w, kHead]
  const float* start = nullptr;                   // [B, h, w]
  const float* image = nullptr;                   // [B, 3, 4 h, 4 w]
  const float* colours = nullptr;                 // [B, 3, h, w]
};
// Rows [begin, end) of the B * rows of out: [B, rows, w, 16].
void blend_cells(const BlendIn& in, float* out, std::int64_t begin, std::int64_t end);
// The gradient of `head` from that of out.
void blend_cells_backward(const BlendIn& in, const float* above, float* d_head, std::int64_t begin,
                          std::int64_t end);

}  // namespace nmrf::kernels
