#include "matching/frame_motion.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace nmrf {
namespace {

constexpr int kBlock = FrameMotion::kBlock;

void to_grey(const Image& image, ByteMap& grey, ThreadPool& pool) {
  grey.resize(image.width(), image.height());
  pool.share(image.height(), 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (int y = static_cast<int>(begin); y < end; ++y) {
      const std::uint8_t* from = image.row(y);
      std::uint8_t* to = grey.row(y);
      for (int x = 0; x < image.width(); ++x, from += 3)
        to[x] = static_cast<std::uint8_t>((77 * from[0] + 150 * from[1] + 29 * from[2] + 128) >> 8);
    }
  });
}

void halve(const ByteMap& from, ByteMap& to) {
  to.resize(std::max(1, from.width() / 2), std::max(1, from.height() / 2));
  for (int y = 0; y < to.height(); ++y) {
    const std::uint8_t *a = from.row(2 * y), *b = from.row(std::min(2 * y + 1, from.height() - 1));
    for (int x = 0; x < to.width(); ++x) {
      const int l = 2 * x, r = std::min(l + 1, from.width() - 1);
      to.row(y)[x] = static_cast<std::uint8_t>((a[l] + a[r] + b[l] + b[r] + 2) >> 2);
    }
  }
}

// Sum of differences between the block at (x, y) and the one moved by (u, v), of the pixels that
// lie inside both images; scaled to a whole block. Far more than any sum when few do.
int block_cost(const ByteMap& now, const ByteMap& before, int y, int x, int v, int u) {
  const int width = now.width(), height = now.height();
  const int left = std::max(x, -u), right = std::min({x + kBlock, width, width - u}),
            top = std::max(y, -v), bottom = std::min({y + kBlock, height, height - v});
  if (right - left < kBlock / 2 || bottom - top < kBlock / 2) return 1 << 24;
  int sum = 0;
  if (right - left == kBlock && bottom - top == kBlock) {  // nearly all of them
    for (int row = 0; row < kBlock; ++row) {
      const std::uint8_t *a = now.row(y + row) + x, *b = before.row(y + row + v) + x + u;
      for (int column = 0; column < kBlock; ++column) sum += std::abs(a[column] - b[column]);
    }
    return sum;
  }
  for (int row = top; row < bottom; ++row) {
    const std::uint8_t *a = now.row(row), *b = before.row(row + v) + u;
    for (int column = left; column < right; ++column) sum += std::abs(a[column] - b[column]);
  }
  return sum * kBlock * kBlock / ((right - left) * (bottom - top));
}

}  // namespace

void FrameMotion::next(const Image& frame, ThreadPool& pool) {
  if (frames_ > 0 && (now_[0].width() != frame.width() || now_[0].height() != frame.height()))
    frames_ = 0;
  std::swap(now_, before_);
  to_grey(frame, now_[0], pool);
  for (std::size_t i = 1; i < now_.size(); ++i) halve(now_[i - 1], now_[i]);
  frames_ = std::min(frames_ + 1, 2);
  if (!known()) return;
  columns_ = rows_ = 0;
  for (int level = static_cast<int>(now_.size()) - 1; level >= 0; --level) search(level, pool);
  correlate();
  compare_neighbours();
}

// A block starts from the motion of the coarser blocks around it, twice as large, and looks about
// by a pixel; at the top it looks everywhere within reach.
void FrameMotion::search(int level, ThreadPool& pool) {
  constexpr int kReach = 4;  // px of the coarsest level: 32 of the images
  constexpr int kRest = 32;  // what a motion must gain, summed over a block, to be preferred
  const ByteMap &now = now_[static_cast<std::size_t>(level)],
                &before = before_[static_cast<std::size_t>(level)];
  std::swap(motion_, coarser_);
  const int old_columns = columns_, old_rows = rows_;
  columns_ = (now.width() + kBlock - 1) / kBlock;
  rows_ = (now.height() + kBlock - 1) / kBlock;
  motion_.resize(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_));
  pool.share(rows_, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (int row = static_cast<int>(begin); row < end; ++row)
      for (int column = 0; column < columns_; ++column) {
        const int y = row * kBlock, x = column * kBlock;
        Vector best;
        int least = block_cost(now, before, y, x, 0, 0) - kRest;
        auto offer = [&](int v, int u) {
          if (v == best.y && u == best.x) return;  // neighbours mostly moved alike
          const int cost = block_cost(now, before, y, x, v, u);
          if (cost >= least) return;
          least = cost;
          best = {static_cast<std::int16_t>(u), static_cast<std::int16_t>(v)};
        };
        if (old_columns == 0) {
          for (int v = -kReach; v <= kReach; ++v)
            for (int u = -kReach; u <= kReach; ++u) offer(v, u);
        } else {
          constexpr int kAround[5][2] = {{0, 0}, {0, -1}, {0, 1}, {-1, 0}, {1, 0}};
          for (const auto& step : kAround) {
            const int r = std::clamp(row / 2 + step[0], 0, old_rows - 1),
                      c = std::clamp(column / 2 + step[1], 0, old_columns - 1);
            const Vector start = coarser_[static_cast<std::size_t>(r * old_columns + c)];
            offer(2 * start.y, 2 * start.x);
          }
          const Vector centre = best;
          for (int v = -1; v <= 1; ++v)
            for (int u = -1; u <= 1; ++u)
              if (v != 0 || u != 0) offer(centre.y + v, centre.x + u);
        }
        motion_[static_cast<std::size_t>(row * columns_ + column)] = best;
      }
  });
}

int FrameMotion::difference(int y, int x) const {
  const ByteMap &now = now_[0], &before = before_[0];
  const Vector move = at(y, x);
  int sum = 0;
  for (int v = -1; v <= 1; ++v) {
    const int row = std::clamp(y + v, 0, now.height() - 1),
              old = std::clamp(row + move.y, 0, now.height() - 1);
    for (int u = -1; u <= 1; ++u) {
      const int column = std::clamp(x + u, 0, now.width() - 1),
                from = std::clamp(column + move.x, 0, now.width() - 1);
      sum += std::abs(now.at(row, column) - before.at(old, from));
    }
  }
  return sum / 9;
}

void FrameMotion::differences(int y, int x, BlockDifferences& result) const {
  constexpr int kAround = kBlock + 2;  // the block and a pixel on every side
  const ByteMap &now = now_[0], &before = before_[0];
  const Vector move = at(y, x);
  const int width = now.width(), height = now.height();
  std::array<std::array<int, kBlock>, kAround> rows;  // sums of three pixels of a row
  std::array<int, kAround> apart;
  const int least = std::min(x - 1, x - 1 + move.x), most = std::max(x, x + move.x) + kBlock;
  const bool inside = least >= 0 && most < width;
  for (int i = 0; i < kAround; ++i) {
    const int row = std::clamp(y - 1 + i, 0, height - 1),
              old = std::clamp(row + move.y, 0, height - 1);
    const std::uint8_t *a = now.row(row), *b = before.row(old);
    for (int j = 0; j < kAround; ++j) {
      const int column = inside ? x - 1 + j : std::clamp(x - 1 + j, 0, width - 1),
                from = inside ? column + move.x : std::clamp(column + move.x, 0, width - 1);
      apart[static_cast<std::size_t>(j)] = std::abs(a[column] - b[from]);
    }
    for (std::size_t j = 0; j < kBlock; ++j)
      rows[static_cast<std::size_t>(i)][j] = apart[j] + apart[j + 1] + apart[j + 2];
  }
  for (std::size_t i = 0; i < kBlock; ++i)
    for (std::size_t j = 0; j < kBlock; ++j)
      result[i][j] = (rows[i][j] + rows[i + 1][j] + rows[i + 2][j]) / 9;
}

void FrameMotion::compare_neighbours() {
  constexpr int kAlike = 2;  // px
  int alike = 0, all = 0;
  auto compare = [&](int a, int b) {
    const Vector p = motion_[static_cast<std::size_t>(a)], q = motion_[static_cast<std::size_t>(b)];
    alike += std::abs(p.x - q.x) + std::abs(p.y - q.y) <= kAlike;
    ++all;
  };
  for (int row = 0; row < rows_; ++row)
    for (int column = 0; column < columns_; ++column) {
      const int at = row * columns_ + column;
      if (column > 0) compare(at, at - 1);
      if (row > 0) compare(at, at - columns_);
    }
  coherence_ = all > 0 ? static_cast<double>(alike) / all : 1;
}

void FrameMotion::correlate() {
  // Every fourth pixel of every fourth row tells enough.
  double n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0;
  const ByteMap &now = now_[0], &before = before_[0];
  for (int y = 0; y < now.height(); y += 4)
    for (int x = 0; x < now.width(); x += 4) {
      const Vector move = at(y, x);
      const int v = y + move.y, u = x + move.x;
      if (v < 0 || u < 0 || v >= now.height() || u >= now.width()) continue;
      const double p = now.at(y, x), q = before.at(v, u);
      n += 1, a += p, b += q, aa += p * p, bb += q * q, ab += p * q;
    }
  const double spread = std::sqrt(std::max(0.0, (n * aa - a * a) * (n * bb - b * b)));
  // Two plain frames are alike.
  correlation_ = spread > 0 ? (n * ab - a * b) / spread : n > 0 ? 1 : 0;
}

}  // namespace nmrf
