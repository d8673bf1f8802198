#include "matching/error_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace nmrf {
namespace {

constexpr int kRadius = 2;          // of the windows in which the views are compared
constexpr float kFixedPoint = 64;   // units per grey level
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
  plane_ = input.map->size();
  std::uint16_t* planes = planes_.need(kPlanes * plane_);
  pool.share(height, 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (int y = static_cast<int>(begin); y < end; ++y) {
      const std::uint8_t *left = input.left->row(y), *right = input.right->row(y);
      const float* map = input.map->row(y);
      std::uint16_t* to = planes + static_cast<std::size_t>(y) * static_cast<std::size_t>(width);
      auto seen = [&](int x) { return grey(right + 3 * std::clamp(x, 0, width - 1)); };
      for (int x = 0; x < width; ++x) {
        const float d = std::isfinite(map[x]) ? std::clamp(map[x], 0.0f, 65536.0f) : 0;
        const float at = static_cast<float>(x) - d, base = std::floor(at), part = at - base;
        const int column = static_cast<int>(base);
        const float a = seen(column - 1), b = seen(column), c = seen(column + 1),
                    e = seen(column + 2), own = grey(left + 3 * x);
        to[kHere * plane_ + static_cast<std::size_t>(x)] = fixed(b + part * (c - b) - own);
        to[kNearer * plane_ + static_cast<std::size_t>(x)] = fixed(a + part * (b - a) - own);
        to[kFarther * plane_ + static_cast<std::size_t>(x)] = fixed(c + part * (e - c) - own);
        to[kContrast * plane_ + static_cast<std::size_t>(x)] =
            fixed(grey(left + 3 * std::min(x + 1, width - 1)) - own);
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
  const float *spread = evidence.spread.row(y), *refined = evidence.refined.row(y),
              *guided = evidence.guided.row(y);
  const std::uint8_t* mask = input.mask->row(y);
  auto row = [&](int distance) { return input.map->row(std::clamp(y + distance, 0, height - 1)); };
  const float *up = row(-kNear), *down = row(kNear), *top = row(-kFar), *bottom = row(kFar);
  // What is no number (an untrained network) counts as no difference.
  auto apart = [](float a, float b) {
    const float difference = std::abs(a - b);
    return difference < 65536.0f ? difference : 0.0f;
  };
  auto finite = [](float value) { return value >= 0 && value < 65536.0f ? value : 0.0f; };
  for (int x = 0; x < width; ++x) {
    const int l = std::max(x - kNear, 0), r = std::min(x + kNear, width - 1);
    const int ll = std::max(x - kFar, 0), rr = std::min(x + kFar, width - 1);
    const float d = map[x];
    feature(0)[x] = 1 / (1.0001f - std::clamp(finite(posterior[x]), 0.0f, 1.0f));
    feature(1)[x] = finite(spread[x]);
    feature(2)[x] = finite(refined[x]);
    feature(3)[x] = finite(guided[x]);
    feature(4)[x] = apart(d, network[x]);
    feature(5)[x] = apart(d, map[l]) + apart(d, map[r]);
    feature(6)[x] = apart(d, up[x]) + apart(d, down[x]);
    feature(7)[x] = apart(d, map[ll]) + apart(d, map[rr]) + apart(d, top[x]) + apart(d, bottom[x]);
    feature(11)[x] = mask[x] & kOccluded ? 1 : 0;
    feature(12)[x] = mask[x] & kOutOfView ? 1 : 0;
    feature(13)[x] = mask[x] & kFilled ? 1 : 0;
    feature(14)[x] = input.scale;
    feature(15)[x] = finite(d);
  }
  // Means over windows, cut at the borders.
  const int first = std::max(y - kRadius, 0), last = std::min(y + kRadius, height - 1);
  auto mean = [&](Plane plane, float* to) {
    std::fill(sums, sums + width, 0u);
    for (int v = first; v <= last; ++v) {
      const std::uint16_t* from =
          planes_.data() + plane * plane_ + static_cast<std::size_t>(v) * wide;
      for (int x = 0; x < width; ++x) sums[x] += from[x];
    }
    for (int x = 0; x < width; ++x) {
      const int l = std::max(x - kRadius, 0), r = std::min(x + kRadius, width - 1);
      std::uint32_t sum = 0;
      for (int u = l; u <= r; ++u) sum += sums[u];
      to[x] = static_cast<float>(sum) /
              (kFixedPoint * static_cast<float>((r - l + 1) * (last - first + 1)));
    }
  };
  mean(kHere, feature(8));
  mean(kNearer, feature(9));
  mean(kFarther, feature(10));
  for (int x = 0; x < width; ++x) feature(9)[x] = std::min(feature(9)[x], feature(10)[x]);
  mean(kContrast, feature(10));
  for (std::size_t i = 0; i < ErrorMlp::kFeatures; ++i)
    std::fill(feature(i) + width, feature(i) + stride, 0.0f);
}

template <class Use>
void ErrorEstimate::each_row(const ErrorInput& input, ThreadPool& pool, const Use& use) {
  compare_views(input, pool);
  const auto threads = static_cast<std::size_t>(pool.threads()),
             width = static_cast<std::size_t>(input.map->width());
  // Three rows of results follow the features.
  const std::size_t room = (ErrorMlp::kFeatures + 3) * kernels::error_row(width);
  rows_.need(threads * room);
  sums_.need(threads * width);
  pool.share(input.map->height(), 4, [&](std::int64_t begin, std::int64_t end, int slot) {
    float* rows = rows_.data() + static_cast<std::size_t>(slot) * room;
    for (std::int64_t y = begin; y < end; ++y) {
      fill_row(input, static_cast<int>(y), rows,
               sums_.data() + static_cast<std::size_t>(slot) * width);
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
