#include "matching/alignment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/quantile.h"
#include "kernels/remap.h"

namespace nmrf {
namespace {

constexpr int kRadius = 5;              // px, of the patch that places a match
constexpr double kMostMoved = 2.5;      // working px from the corner match
constexpr double kLeastAlike = 0.85;    // correlation of the two patches
constexpr double kMostUncertain = 0.1;  // working px, vertical, of one match
constexpr int kLeastMatches = 50;
constexpr double kMostSpread = 0.7;   // working px, of the matches about the model
constexpr double kMostError = 0.25;   // px, at the worst corner of the image
constexpr double kLeastEffect = 0.2;  // px: root mean square of a term that is worth correcting
constexpr double kLeastRatio = 5;     // of a term to its standard error
// Deviation of the matches' places, in halves of the image; scenes are wider than they are high.
constexpr double kLeastCover = 0.2, kLeastCoverDown = 0.1;
constexpr double kMostShare = 0.05;  // of the height, vertical error of a nearly rectified pair
constexpr double kMostSlope = 0.05;  // turn and scale of one

// The grey image after a 3 x 3 binomial filter: derivatives and places between pixels mean more.
struct Smooth {
  int width, height;
  std::vector<float> values;
  explicit Smooth(const Grey& image)
      : width(image.width), height(image.height), values(image.values.size()) {
    std::vector<float> row(static_cast<std::size_t>(width));
    for (int y = 0; y < height; ++y) {
      const std::uint8_t *above = image.row(std::max(y - 1, 0)), *middle = image.row(y),
                         *below = image.row(std::min(y + 1, height - 1));
      for (int x = 0; x < width; ++x)
        row[static_cast<std::size_t>(x)] = static_cast<float>(above[x] + 2 * middle[x] + below[x]);
      float* to = values.data() + static_cast<std::ptrdiff_t>(y) * width;
      for (int x = 0; x < width; ++x)
        to[x] = (row[static_cast<std::size_t>(std::max(x - 1, 0))] +
                 2 * row[static_cast<std::size_t>(x)] +
                 row[static_cast<std::size_t>(std::min(x + 1, width - 1))]) /
                16;
    }
  }
  const float* at(int x, int y) const {
    return values.data() + static_cast<std::ptrdiff_t>(y) * width + x;
  }
};

// Moves the right end of a match until the patches fit, up to brightness and contrast (Lucas and
// Kanade, the form of Baker and Matthews that keeps the derivatives of the left patch). False for a
// patch that does not fit or does not tell its row.
bool place(const Smooth& left, const Smooth& right, PointMatch& match) {
  constexpr int kSide = 2 * kRadius + 1, kCount = kSide * kSide;
  const int x = static_cast<int>(std::lround(match.x)), y = static_cast<int>(std::lround(match.y));
  auto inside = [](double u, double v, const Smooth& image) {
    return u >= kRadius + 1 && v >= kRadius + 1 && u < image.width - kRadius - 2 &&
           v < image.height - kRadius - 2;
  };
  if (!inside(x, y, left)) return false;
  std::array<float, kCount> patch, gx, gy, seen;
  auto centre = [](std::array<float, kCount>& values) {
    float mean = 0;
    for (float value : values) mean += value;
    mean /= kCount;
    for (float& value : values) value -= mean;
  };
  for (int v = -kRadius, i = 0; v <= kRadius; ++v)
    for (int u = -kRadius; u <= kRadius; ++u, ++i) {
      const float* p = left.at(x + u, y + v);
      const auto k = static_cast<std::size_t>(i);
      patch[k] = p[0];
      gx[k] = (p[1] - p[-1]) / 2;
      gy[k] = (p[left.width] - p[-left.width]) / 2;
    }
  centre(patch);
  centre(gx);
  centre(gy);
  double xx = 0, xy = 0, yy = 0, own = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    xx += gx[i] * gx[i];
    xy += gx[i] * gy[i];
    yy += gy[i] * gy[i];
    own += patch[i] * patch[i];
  }
  const double determinant = xx * yy - xy * xy;
  if (determinant <= 1e-3 * (xx + yy) * (xx + yy) || own <= 0) return false;

  const double start_x = x - match.dx, start_y = y - match.dy;
  double u0 = start_x, v0 = start_y;
  for (int round = 0; round < 12; ++round) {
    if (!inside(u0, v0, right)) return false;
    const int left_column = static_cast<int>(u0), top = static_cast<int>(v0);
    const auto fx = static_cast<float>(u0 - left_column), fy = static_cast<float>(v0 - top);
    for (int v = -kRadius, i = 0; v <= kRadius; ++v) {
      const float *p = right.at(left_column - kRadius, top + v), *q = p + right.width;
      for (int u = 0; u < kSide; ++u, ++i) {
        const float above = p[u] + fx * (p[u + 1] - p[u]), below = q[u] + fx * (q[u + 1] - q[u]);
        seen[static_cast<std::size_t>(i)] = above + fy * (below - above);
      }
    }
    centre(seen);
    double other = 0, both = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      other += seen[i] * seen[i];
      both += seen[i] * patch[i];
    }
    if (other <= 0 || both <= 0) return false;
    const auto gain = static_cast<float>(both / other);
    double bx = 0, by = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      const float error = gain * seen[i] - patch[i];
      bx += gx[i] * error;
      by += gy[i] * error;
    }
    const double step_x = (bx * yy - by * xy) / determinant,
                 step_y = (by * xx - bx * xy) / determinant;
    u0 -= step_x;
    v0 -= step_y;
    if (std::hypot(u0 - start_x, v0 - start_y) > kMostMoved) return false;
    if (std::hypot(step_x, step_y) > 0.02) continue;
    const double alike = both / std::sqrt(own * other);
    const double noise = own * (1 - alike * alike) / kCount;
    if (alike < kLeastAlike || noise * xx / determinant > kMostUncertain * kMostUncertain)
      return false;
    match = {static_cast<double>(x), static_cast<double>(y), x - u0, y - v0};
    return true;
  }
  return false;
}

// The terms 1, x, y, x y with coordinates -1 to 1, and which of them are in use.
constexpr std::size_t kTerms = 4;
using Terms = std::array<double, kTerms>;
using Use = std::array<bool, kTerms>;

struct Row {
  Terms terms;
  double value;   // px: how much lower the right image shows the point
  double weight;  // 0 to 1
};

struct Fit {
  Terms values{};
  std::array<Terms, kTerms> inverse{};  // of the weighted normal matrix
};

// Weighted least squares; false when the rows do not determine the terms.
bool solve(const std::vector<Row>& rows, const Use& use, Fit& fit) {
  std::array<std::array<double, 2 * kTerms + 1>, kTerms> m{};  // matrix, right side, identity
  for (const Row& row : rows)
    for (std::size_t i = 0; i < kTerms; ++i) {
      for (std::size_t j = 0; j < kTerms; ++j)
        if (use[i] && use[j]) m[i][j] += row.weight * row.terms[i] * row.terms[j];
      if (use[i]) m[i][kTerms] += row.weight * row.terms[i] * row.value;
    }
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (!use[i]) m[i][i] = 1;
    m[i][kTerms + 1 + i] = use[i] ? 1 : 0;
  }
  for (std::size_t i = 0; i < kTerms; ++i) {  // positive definite: needs no pivoting
    if (m[i][i] < 1e-6) return false;
    const double scale = 1 / m[i][i];
    for (double& value : m[i]) value *= scale;
    for (std::size_t j = 0; j < kTerms; ++j) {
      if (j == i) continue;
      const double factor = m[j][i];
      for (std::size_t k = 0; k < m[j].size(); ++k) m[j][k] -= factor * m[i][k];
    }
  }
  for (std::size_t i = 0; i < kTerms; ++i) {
    fit.values[i] = m[i][kTerms];
    for (std::size_t j = 0; j < kTerms; ++j) fit.inverse[i][j] = m[i][kTerms + 1 + j];
  }
  return true;
}

double product(const Terms& a, const Terms& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kTerms; ++i) sum += a[i] * b[i];
  return sum;
}

// The spread of the residuals; weights by Tukey's biweight of it.
double reweigh(std::vector<Row>& rows, const Fit& fit) {
  constexpr double kLeastSpread = 0.03, kReach = 4.7;
  std::vector<double> deviations;
  for (const Row& row : rows)
    deviations.push_back(std::abs(row.value - product(row.terms, fit.values)));
  const double spread = std::max(kLeastSpread, 1.48 * quantile(deviations, 0.5));
  for (Row& row : rows) {
    const double share = (row.value - product(row.terms, fit.values)) / (kReach * spread);
    row.weight = std::abs(share) < 1 ? (1 - share * share) * (1 - share * share) : 0;
  }
  return spread;
}

// The largest standard error over the corners of the image.
double corner_error(const Fit& fit, double spread) {
  double worst = 0;
  for (double x : {-1.0, 1.0})
    for (double y : {-1.0, 1.0}) {
      const Terms at{1, x, y, x * y};
      double variance = 0;
      for (std::size_t i = 0; i < kTerms; ++i) variance += at[i] * product(fit.inverse[i], at);
      worst = std::max(worst, spread * std::sqrt(std::max(variance, 0.0)));
    }
  return worst;
}

// Of a term over the matches in use.
double deviation(const std::vector<Row>& rows, std::size_t term) {
  double weight = 0, sum = 0, square = 0;
  for (const Row& row : rows) {
    weight += row.weight;
    sum += row.weight * row.terms[term];
    square += row.weight * row.terms[term] * row.terms[term];
  }
  const double mean = sum / weight;
  return std::sqrt(std::max(square / weight - mean * mean, 0.0));
}

// The least significant of the terms that do not matter, the offset excepted; 0: all do.
std::size_t superfluous(const Fit& fit, const Use& use, double spread) {
  constexpr Terms kRms{1, 0.577, 0.577, 0.333};  // of the terms over the image
  std::size_t found = 0;
  double least = kLeastRatio;
  for (std::size_t i = 1; i < kTerms; ++i) {
    if (!use[i]) continue;
    const double ratio = std::abs(fit.values[i]) / (spread * std::sqrt(fit.inverse[i][i]));
    const double effect = std::abs(fit.values[i]) * kRms[i];
    // The fourth is hardest to tell from lenses and from depth that differs between the corners.
    const double counts = effect < (i < 3 ? 1 : 4) * kLeastEffect ? 0 : ratio;
    if (counts < least) {
      least = counts;
      found = i;
    }
  }
  return found;
}

}  // namespace

double Alignment::vertical_rms(int width, int height) const {
  const double x = width * width / 12.0, y = height * height / 12.0;
  return std::sqrt(offset * offset + turn * turn * x + scale * scale * y +
                   keystone * keystone * x * y);
}

AlignmentEstimate estimate_alignment(const Grey& left, const Grey& right,
                                     const std::vector<PointMatch>& matches, int width,
                                     int height) {
  AlignmentEstimate result;
  const double sx = static_cast<double>(width) / left.width,
               sy = static_cast<double>(height) / left.height;
  const double half_width = width / 2.0, half_height = height / 2.0;
  std::vector<PointMatch> placed;
  {
    const Smooth smooth_left(left), smooth_right(right);
    for (PointMatch match : matches)
      if (place(smooth_left, smooth_right, match)) placed.push_back(match);
  }
  result.matches = static_cast<int>(placed.size());
  if (result.matches < kLeastMatches) return result;

  Use use{true, true, true, true};
  Fit fit;
  Alignment& found = result.alignment;
  std::vector<Row> rows(placed.size());
  for (bool settled = false; !settled;) {
    // The terms hold at the corrected place, which takes the correction to know.
    for (int round = 0; round < 8; ++round) {
      for (std::size_t i = 0; i < placed.size(); ++i) {
        const PointMatch& match = placed[i];
        const double y = (match.y + 0.5) * sy - half_height;
        const double seen = (match.x - match.dx + 0.5) * sx - half_width;
        const double x = (seen + found.turn * y) / (1 + found.scale);
        const double u = x / half_width, v = y / half_height;
        const double weight = round == 0 ? 1 : rows[i].weight;
        rows[i] = {{1, u, v, u * v}, -match.dy * sy, weight};
      }
      if (!solve(rows, use, fit)) return result;
      result.spread = reweigh(rows, fit);
      found = {fit.values[0], fit.values[1] / half_width, fit.values[2] / half_height,
               fit.values[3] / (half_width * half_height)};
    }
    const std::size_t drop = superfluous(fit, use, result.spread);
    settled = drop == 0;
    if (!settled) use[drop] = false;
  }
  result.matches = static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.weight > 0; }));
  // Of a whole plane, whatever was dropped: matches in one corner leave the others unknown.
  Fit plane;
  Use whole = use;
  whole[1] = whole[2] = true;
  if (!solve(rows, whole, plane)) return result;
  result.error = corner_error(plane, result.spread);
  const double size = found.vertical_rms(width, height);
  const bool covered = deviation(rows, 1) >= kLeastCover && deviation(rows, 2) >= kLeastCoverDown;
  result.sure = result.matches >= kLeastMatches && covered &&
                2 * result.matches >= std::ssize(rows) && result.spread <= kMostSpread * sy &&
                result.error <= kMostError * sy && size <= kMostShare * height &&
                std::abs(found.turn) <= kMostSlope && std::abs(found.scale) <= kMostSlope;
  return result;
}

void align(const Image& image, const Alignment& alignment, ThreadPool& pool,
           std::vector<float>& work, Image& result) {
  const int width = image.width(), height = image.height();
  check(std::isfinite(alignment.vertical_rms(width, height)), ErrorKind::kUsage,
        "the alignment is not finite");
  result.resize(width, height);
  const auto room = static_cast<std::size_t>(width);
  work.resize(std::max(work.size(), 2 * room * static_cast<std::size_t>(pool.threads())));
  const double mx = (width - 1) / 2.0, my = (height - 1) / 2.0;
  const kernels::RemapSource source{image.data(), static_cast<std::ptrdiff_t>(image.row_bytes()),
                                    width, height};
  pool.share(height, 4, [&](std::int64_t begin, std::int64_t end, int slot) {
    float *xs = work.data() + 2 * room * static_cast<std::size_t>(slot), *ys = xs + room;
    for (int row = static_cast<int>(begin); row < end; ++row) {
      const double y = row - my;
      for (int column = 0; column < width; ++column) {
        const double x = column - mx;
        xs[column] = static_cast<float>(column - alignment.turn * y + alignment.scale * x);
        ys[column] = static_cast<float>(row + alignment.offset + alignment.turn * x +
                                        alignment.scale * y + alignment.keystone * x * y);
      }
      kernels::remap(source, xs, ys, width, kernels::RemapBorder::kReplicate, result.row(row));
    }
  });
}

Image aligned(const ImageView& right, const Alignment& alignment) {
  const Image image = to_rgb8(right, "the right image");
  Image result;
  std::vector<float> work;
  ThreadPool pool(1);
  align(image, alignment, pool, work, result);
  return result;
}

}  // namespace nmrf
