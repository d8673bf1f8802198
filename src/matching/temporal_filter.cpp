#include "matching/temporal_filter.h"

#include <algorithm>
#include <cmath>

#include "core/quantile.h"

namespace nmrf {
namespace {

constexpr int kMostDifference = 10;      // grey levels: the same point of a surface looks alike
constexpr int kMostFrames = 4;           // of a mean
constexpr float kSameSurface = 1;        // px
constexpr float kTrendRange = 2;         // px: greater differences are errors, not motion
constexpr int kTrendBlock = 32;          // px
constexpr std::size_t kTrendLeast = 32;  // differences that a trend rests on
constexpr float kAging = 1.03f;          // of an expected error, per frame

}  // namespace

const FloatMap& TemporalFilter::moved(const FrameMotion& motion, ThreadPool& pool) {
  constexpr int kBlock = FrameMotion::kBlock;
  const int width = before_.map.width(), height = before_.map.height();
  moved_.resize(width, height);
  from_.resize(width, height);
  pool.share((height + kBlock - 1) / kBlock, 1, [&](std::int64_t begin, std::int64_t end, int) {
    FrameMotion::BlockDifferences differences;
    for (int y = kBlock * static_cast<int>(begin); y < kBlock * end; y += kBlock)
      for (int x = 0; x < width; x += kBlock) {
        const auto move = motion.at(y, x);
        motion.differences(y, x, differences);
        for (int i = 0; i < std::min(kBlock, height - y); ++i)
          for (int j = 0; j < std::min(kBlock, width - x); ++j) {
            const int v = y + i + move.y, u = x + j + move.x;
            const bool inside = v >= 0 && u >= 0 && v < height && u < width;
            const int difference =
                differences[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
            moved_.at(y + i, x + j) =
                before_.map.at(std::clamp(v, 0, height - 1), std::clamp(u, 0, width - 1));
            from_.at(y + i, x + j) = inside && difference <= kMostDifference ? v * width + u : -1;
          }
      }
  });
  return moved_;
}

// Medians of blocks, then means of 3 x 3 of them.
void TemporalFilter::measure_trend(const Disparity& result, ThreadPool& pool) {
  const int width = result.map.width(), height = result.map.height(),
            columns = (width + kTrendBlock - 1) / kTrendBlock,
            rows = (height + kTrendBlock - 1) / kTrendBlock;
  raw_trend_.resize(columns, rows);
  trend_.resize(columns, rows);
  differences_.resize(static_cast<std::size_t>(pool.threads()));
  for (auto& values : differences_) values.reserve(kTrendBlock * kTrendBlock / 4);
  pool.share(rows, 1, [&](std::int64_t begin, std::int64_t end, int slot) {
    auto& differences = differences_[static_cast<std::size_t>(slot)];
    for (int row = static_cast<int>(begin); row < end; ++row)
      for (int column = 0; column < columns; ++column) {
        differences.clear();
        for (int y = row * kTrendBlock; y < std::min((row + 1) * kTrendBlock, height); y += 2)
          for (int x = column * kTrendBlock; x < std::min((column + 1) * kTrendBlock, width);
               x += 2) {
            const float difference = moved_.at(y, x) - result.map.at(y, x);
            if (from_.at(y, x) >= 0 && std::abs(difference) < kTrendRange)
              differences.push_back(difference);
          }
        raw_trend_.at(row, column) =
            differences.size() < kTrendLeast ? kInvalidDisparity : quantile(differences, 0.5);
      }
  });
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      float sum = 0;
      int count = 0;
      for (int y = std::max(row - 1, 0); y <= std::min(row + 1, rows - 1); ++y)
        for (int x = std::max(column - 1, 0); x <= std::min(column + 1, columns - 1); ++x)
          if (std::isfinite(raw_trend_.at(y, x))) {
            sum += raw_trend_.at(y, x);
            ++count;
          }
      trend_.at(row, column) = count > 0 ? sum / static_cast<float>(count) : 0;
    }
}

void TemporalFilter::trend_of_row(int y, float* trend) const {
  const int columns = trend_.width(), width = moved_.width();
  const float v = (static_cast<float>(y) + 0.5f) / kTrendBlock - 0.5f;
  const int top = static_cast<int>(std::floor(v));
  const float down = v - static_cast<float>(top);
  const float *above = trend_.row(std::clamp(top, 0, trend_.height() - 1)),
              *below = trend_.row(std::clamp(top + 1, 0, trend_.height() - 1));
  auto at = [&](int column) {
    const int c = std::clamp(column, 0, columns - 1);
    return above[c] + down * (below[c] - above[c]);
  };
  // From the middle of one block to that of the next.
  for (int column = -1; column < columns; ++column) {
    const float left = at(column), step = (at(column + 1) - left) / kTrendBlock;
    const int middle = column * kTrendBlock + kTrendBlock / 2;
    for (int x = std::max(middle, 0); x < std::min(middle + kTrendBlock, width); ++x)
      trend[x] = left + step * (static_cast<float>(x - middle) + 0.5f);
  }
}

void TemporalFilter::apply(Disparity& result, ThreadPool& pool, float least) {
  const int width = result.map.width(), height = result.map.height();
  measure_trend(result, pool);
  next_averaged_.resize(width, height);
  const auto room = static_cast<std::size_t>(width);
  trend_rows_.resize(room * static_cast<std::size_t>(pool.threads()));
  pool.share(height, 8, [&](std::int64_t begin, std::int64_t end, int slot) {
    apply_rows(result, least, static_cast<int>(begin), static_cast<int>(end),
               trend_rows_.data() + room * static_cast<std::size_t>(slot));
  });
  std::swap(averaged_, next_averaged_);
}

void TemporalFilter::apply_rows(Disparity& result, float least, int begin, int end, float* trend) {
  const int width = result.map.width();
  const bool known_errors =
      result.expected_error.same_size(result.map) && before_.expected_error.same_size(result.map);
  for (int y = begin; y < end; ++y) {
    trend_of_row(y, trend);
    for (int x = 0; x < width; ++x) {
      std::uint8_t& frames = next_averaged_.at(y, x);
      frames = 1;
      const std::int32_t from = from_.at(y, x);
      if (from < 0) continue;
      const float old = std::max(least, moved_.at(y, x) - trend[x]);
      float& own = result.map.at(y, x);
      const float difference = old - own;
      if (!std::isfinite(difference)) continue;
      if (std::abs(difference) <= kSameSurface) {
        const int count = std::min<int>(averaged_.data()[from] + 1, kMostFrames);
        own += difference * static_cast<float>(count - 1) / static_cast<float>(count);
        frames = static_cast<std::uint8_t>(count);
      } else if (known_errors) {
        const float aged = kAging * before_.expected_error.data()[from];
        if (!(aged < result.expected_error.at(y, x))) continue;
        own = old;
        frames = averaged_.data()[from];
        result.expected_error.at(y, x) = aged;
        result.confidence.at(y, x) = before_.confidence.data()[from];
        result.confidence3.at(y, x) = before_.confidence3.data()[from];
      }
    }
  }
}

void TemporalFilter::remember(const Disparity& result) {
  if (!averaged_.same_size(result.map) || !before_.map.same_size(result.map)) {
    averaged_.resize(result.map.width(), result.map.height());
    std::fill(averaged_.begin(), averaged_.end(), std::uint8_t{1});
  }
  before_.map = result.map;
  before_.confidence = result.confidence;
  before_.confidence3 = result.confidence3;
  before_.expected_error = result.expected_error;
}

}  // namespace nmrf
