// Corners of an image and distances of their descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nmrf::kernels {

// FAST-9: columns begin to end (not included) of a row of 8-bit grey values around which at least 9
// neighbours of a circle of 16 are all brighter, or all darker, by more than `threshold`. The three
// rows above and below must be readable, from three columns before `begin` to three behind `end`,
// and 64 behind `begin` where there are fewer columns. Writes the columns to `found`, in order, and
// returns their number.
int fast_corners(const std::uint8_t* row, std::ptrdiff_t stride, int begin, int end, int threshold,
                 std::int32_t* found);

// How strong a corner at `pixel` is: the smallest threshold with which it is none.
int fast_score(const std::uint8_t* pixel, std::ptrdiff_t stride);

// Descriptors of 256 bits by word: bit 64 k + i of descriptor j is bit i of words[k * step + j].
// step: a multiple of 8 and at least the count; what is behind the count is not looked at.
struct Descriptors {
  const std::uint64_t* words = nullptr;
  std::size_t step = 0, count = 0;
};

// For each descriptor its nearest one in the other set by Hamming distance, the first of several:
// distance << 32 | index. Both spans have room for the step of their set.
void nearest_descriptors(const Descriptors& left, const Descriptors& right,
                         std::span<std::int64_t> left_nearest,
                         std::span<std::int64_t> right_nearest);

}  // namespace nmrf::kernels
