#include "matching/error_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace nmrf {
namespace {

constexpr int kRadius = 2;         // of the windows in which the views are compared
constexpr float kFixedPoint = 64;  // units per grey level
// Grey levels of a row are repeated at its ends as far as any match looks.
constexpr int kBeyond = 4;
constexpr int kNear = 2, kFar = 6;  // px: steps of the map are looked for at these distances

float grey(const std::uint8_t* rgb) {
  return 0.299f * static_cast<float>(rgb[0]) + 0.587f * static_cast<float>(rgb[1]) +
         0.114f * static_cast<float>(rgb[2]);
}

std::uint16_t fixed(float difference) {
  return static_cast<std::uint16_t>(std::abs(difference) * kFixedPoint + 0.5f);
}

template <std::size_t N>
void read(const nlohmann::json& json, std::array<float, N>& values) {
  if (json.size() != N) throw std::range_error("wrong number of values");
  for (std::size_t i = 0; i < N; ++i) {
    values[i] = json.at(i).get<float>();
    if (!std::isfinite(values[i])) throw std::range_error("a value is not finite");
  }
}

}  // namespace

const std::array<const char*, ErrorMlp::kFeatures> kErrorFeatures{
    "doubt",       "spread", "refined", "guided",      "finished", "step_x2",
    "step_y2",     "step_6", "cost",    "cost_beside", "contrast", "occluded",
    "out_of_view", "filled", "scale",   "disparity"};

nlohmann::json to_json(const ErrorMlp& mlp) {
  return {{"features", kErrorFeatures}, {"weight1", mlp.weight1}, {"bias1", mlp.bias1},
          {"weight2", mlp.weight2},     {"bias2", mlp.bias2},     {"mean", mlp.mean}};
}

std::optional<ErrorMlp> error_model_of(const std::map<std::string, std::string>& metadata,
                                       const std::string& path) {
  const auto found = metadata.find(kErrorModelKey);
  if (found == metadata.end()) return {};
  try {
    const auto json = nlohmann::json::parse(found->second);
    check(json.at("features") == nlohmann::json(kErrorFeatures), ErrorKind::kModel,
          "{}: its error model was fitted to other features; fit it again with nmrf eval "
          "--confidence --fit",
          path);
    ErrorMlp mlp;
    const auto &first = json.at("weight1"), &second = json.at("weight2");
    if (first.size() != mlp.weight1.size() || second.size() != mlp.weight2.size())
      throw std::range_error("wrong number of rows");
    for (std::size_t i = 0; i < mlp.weight1.size(); ++i) read(first.at(i), mlp.weight1[i]);
    for (std::size_t i = 0; i < mlp.weight2.size(); ++i) read(second.at(i), mlp.weight2[i]);
    read(json.at("bias1"), mlp.bias1);
    read(json.at("bias2"), mlp.bias2);
    read(json.at("mean"), mlp.mean);
    return mlp;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(ErrorKind::kModel, "{}: the error model in its metadata is damaged: {}", path,
         error.what());
  }
}

void ErrorEstimate::compare_views(const ErrorInput& input, ThreadPool& pool) {
  const int width = input.map->width(), height = input.map->height();
  const auto wide = static_cast<std::size_t>(width);
  std::uint16_t* planes = planes_;
  const std::size_t room = wide + 2 * kBeyond;
  pool.share(height, 8, [&](std::int64_t begin, std::int64_t end, int slot) {
    float* own = greys_ + 2 * room * static_cast<std::size_t>(slot) + kBeyond;
    float* seen = own + room;
    for (int y = static_cast<int>(begin); y < end; ++y) {
      for (const auto& [image, row] : {std::pair{input.left, own}, {input.right, seen}}) {
        const std::uint8_t* rgb = image->row(y);
        for (int x = 0; x < width; ++x) row[x] = grey(rgb + 3 * x);
        std::fill(row - kBeyond, row, row[0]);
        std::fill(row + width, row + width + kBeyond, row[width - 1]);
      }
      const float* map = input.map->row(y);
      std::uint16_t* to = planes + static_cast<std::size_t>(y) * wide;
      std::uint16_t *here = to + kHere * plane_, *nearer = to + kNearer * plane_,
                    *farther = to + kFarther * plane_, *contrast = to + kContrast * plane_;
      for (int x = 0; x < width; ++x) {
        const float d = std::isfinite(map[x]) ? std::clamp(map[x], 0.0f, 65536.0f) : 0;
        const float at = static_cast<float>(x) - d;
        const int cut = static_cast<int>(at),
                  lower = cut - static_cast<int>(at < static_cast<float>(cut));
        const float part = at - static_cast<float>(lower), level = own[x];
        const float* match = seen + std::max(lower, 1 - kBeyond);
        const float a = match[-1], b = match[0], c = match[1], e = match[2];
        here[x] = fixed(b + part * (c - b) - level);
        nearer[x] = fixed(a + part * (b - a) - level);
        farther[x] = fixed(c + part * (e - c) - level);
        contrast[x] = fixed(own[x + 1] - level);
      }
    }
  });
}

void ErrorEstimate::fill_row(const ErrorInput& input, int y, float* rows,
                             std::uint32_t* sums) const {
  const int width = input.map->width(), height = input.map->height();
  const auto wide = static_cast<std::size_t>(width);
  const std::size_t stride = kernels::error_row(wide);
  auto feature = [&](std::size_t i) { return rows + i * stride; };
  const float *map = input.map->row(y), *posterior = input.posterior->row(y),
              *network = input.network->row(y);
  const PassEvidence& evidence = *input.evidence;
  const std::uint8_t* mask = input.mask->row(y);
  auto row = [&](int distance) { return input.map->row(std::clamp(y + distance, 0, height - 1)); };
  const float *up = row(-kNear), *down = row(kNear), *top = row(-kFar), *bottom = row(kFar);
  // What is no number (an untrained network) counts as no difference.
  auto apart = [](float a, float b) {
    const float difference = std::abs(a - b);
    return difference < 65536.0f ? difference : 0.0f;
  };
  auto finite = [](float value) { return value >= 0 && value < 65536.0f ? value : 0.0f; };
  // One loop per feature, so that each is a simple one.
  auto each = [&](std::size_t i, const auto& value) {
    float* to = feature(i);
    for (int x = 0; x < width; ++x) to[x] = value(x);
  };
  // inner(x) where columns x - reach to x + reach exist, else outer(x).
  auto split = [&](std::size_t i, int reach, const auto& inner, const auto& outer) {
    float* to = feature(i);
    const int first = std::min(reach, width), last = std::max(first, width - reach);
    for (int x = 0; x < first; ++x) to[x] = outer(x);
    for (int x = first; x < last; ++x) to[x] = inner(x);
    for (int x = last; x < width; ++x) to[x] = outer(x);
  };
  auto column = [&](int x) { return std::clamp(x, 0, width - 1); };
  auto beside = [&](int x, int l, int r) { return apart(map[x], map[l]) + apart(map[x], map[r]); };
  each(0, [&](int x) { return 1 / (1.0001f - std::min(finite(posterior[x]), 1.0f)); });
  std::size_t next = 1;
  for (const FloatMap* noted : {&evidence.spread, &evidence.refined, &evidence.guided})
    each(next++, [&, from = noted->row(y)](int x) { return finite(from[x]); });
  each(4, [&](int x) { return apart(map[x], network[x]); });
  split(
      5, kNear, [&](int x) { return beside(x, x - kNear, x + kNear); },
      [&](int x) { return beside(x, column(x - kNear), column(x + kNear)); });
  each(6, [&](int x) { return apart(map[x], up[x]) + apart(map[x], down[x]); });
  auto around = [&](int x, int l, int r) {
    return beside(x, l, r) + apart(map[x], top[x]) + apart(map[x], bottom[x]);
  };
  split(
      7, kFar, [&](int x) { return around(x, x - kFar, x + kFar); },
      [&](int x) { return around(x, column(x - kFar), column(x + kFar)); });
  next = 11;
  for (const int bit : {int{kOccluded}, int{kOutOfView}, int{kFilled}})
    each(next++, [&, bit](int x) { return mask[x] & bit ? 1.0f : 0.0f; });
  each(14, [&](int) { return input.scale; });
  each(15, [&](int x) { return finite(map[x]); });
  // Means over windows, cut at the borders.
  const int first = std::max(y - kRadius, 0), last = std::min(y + kRadius, height - 1);
  auto mean = [&](Plane plane, std::size_t i) {
    std::fill(sums, sums + width, 0u);
    for (int v = first; v <= last; ++v) {
      const std::uint16_t* from = planes_ + plane * plane_ + static_cast<std::size_t>(v) * wide;
      for (int x = 0; x < width; ++x) sums[x] += from[x];
    }
    auto share = [&](std::uint32_t sum, int columns) {
      return static_cast<float>(static_cast<std::int32_t>(sum)) /
             (kFixedPoint * static_cast<float>(columns * (last - first + 1)));
    };
    static_assert(kRadius == 2);
    split(
        i, kRadius,
        [&](int x) {
          return share(sums[x - 2] + sums[x - 1] + sums[x] + sums[x + 1] + sums[x + 2], 5);
        },
        [&](int x) {
          const int l = column(x - kRadius), r = column(x + kRadius);
          std::uint32_t sum = 0;
          for (int u = l; u <= r; ++u) sum += sums[u];
          return share(sum, r - l + 1);
        });
  };
  mean(kHere, 8);
  mean(kNearer, 9);
  mean(kFarther, 10);
  each(9, [&, nearer = feature(9), farther = feature(10)](int x) {
    return std::min(nearer[x], farther[x]);
  });
  mean(kContrast, 10);
  for (std::size_t i = 0; i < ErrorMlp::kFeatures; ++i)
    std::fill(feature(i) + width, feature(i) + stride, 0.0f);
}

template <class Use>
void ErrorEstimate::each_row(const ErrorInput& input, ThreadPool& pool, const Use& use) {
  const auto threads = static_cast<std::size_t>(pool.threads()),
             width = static_cast<std::size_t>(input.map->width());
  // Three rows of results follow the features.
  const std::size_t room = (ErrorMlp::kFeatures + 3) * kernels::error_row(width);
  plane_ = input.map->size();
  workspace_.lay_out(wanted(planes_, kPlanes * plane_), wanted(rows_, threads * room),
                     wanted(greys_, threads * 2 * (width + 2 * kBeyond)),
                     wanted(sums_, threads * width));
  compare_views(input, pool);
  pool.share(input.map->height(), 4, [&](std::int64_t begin, std::int64_t end, int slot) {
    float* rows = rows_ + static_cast<std::size_t>(slot) * room;
    for (std::int64_t y = begin; y < end; ++y) {
      fill_row(input, static_cast<int>(y), rows, sums_ + static_cast<std::size_t>(slot) * width);
      use(static_cast<int>(y), rows);
    }
  });
}

void ErrorEstimate::apply(const ErrorMlp& mlp, const ErrorInput& input, ThreadPool& pool,
                          Disparity& result) {
  const int width = input.map->width(), height = input.map->height();
  const auto wide = static_cast<std::size_t>(width);
  const std::size_t stride = kernels::error_row(wide);
  for (FloatMap* map : {&result.confidence, &result.confidence3, &result.expected_error})
    map->resize(width, height);
  each_row(input, pool, [&](int y, float* rows) {
    float* found = rows + ErrorMlp::kFeatures * stride;
    kernels::error_mlp(mlp, rows, wide, found, found + stride, found + 2 * stride);
    std::copy_n(found, wide, result.confidence.row(y));
    std::copy_n(found + stride, wide, result.confidence3.row(y));
    std::copy_n(found + 2 * stride, wide, result.expected_error.row(y));
  });
}

void ErrorEstimate::features(const ErrorInput& input, ThreadPool& pool,
                             std::vector<float>& result) {
  constexpr std::size_t kCount = ErrorMlp::kFeatures;
  const auto width = static_cast<std::size_t>(input.map->width());
  result.resize(input.map->size() * kCount);
  each_row(input, pool, [&](int y, const float* rows) {
    float* to = result.data() + static_cast<std::size_t>(y) * width * kCount;
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t i = 0; i < kCount; ++i)
        to[x * kCount + i] = rows[i * kernels::error_row(width) + x];
  });
}

}  // namespace nmrf
