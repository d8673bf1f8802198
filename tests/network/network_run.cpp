#include "network/network_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "network/formula_images.h"

namespace nmrf::test {
namespace {

FeatureMap padded(Context& context, const Image& image, const ModelOptions& options) {
  const int width = static_cast<int>(options.aligned(image.width())),
            height = static_cast<int>(options.aligned(image.height()));
  FeatureMap result = context.map(height, width, 3);
  context.share(1, 1, [&](std::int64_t, std::int64_t, int) {
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int c = 0; c < 3; ++c)
          result.values[static_cast<std::size_t>((y * width + x) * 3 + c)] =
              image.row(std::min(y, image.height() - 1))[3 * std::min(x, image.width() - 1) + c];
  });
  return result;
}

}  // namespace

NetworkRun run_network(const Network& network, const Image& left, const Image& right, int threads,
                       Trace* trace, const FloatMap& guide) {
  ThreadPool pool(threads);
  MemoryBlock block;
  Arena arena(block);
  NetworkRun result;
  auto forward = [&](Context& context) {
    FeatureMap a = padded(context, left, network.options()),
               b = padded(context, right, network.options());
    const int width = static_cast<int>(a.width), height = static_cast<int>(a.height);
    const NetworkOutput out =
        network.forward(context, std::move(a), std::move(b), guide.data(), !guide.empty());
    if (context.planning()) return;
    result.disparity = FloatMap(width, height);
    std::copy_n(out.disparity.data(), result.disparity.size(), result.disparity.data());
    result.confidence = FloatMap(width, height);
    std::copy_n(out.confidence.data(), result.confidence.size(), result.confidence.data());
    result.seeds.assign(out.seeds.data(), out.seeds.data() + out.seeds.size());
    result.labels.assign(out.labels.data(), out.labels.data() + out.labels.size());
  };
  arena.begin_planning();
  Context plan(arena, threads);
  forward(plan);
  const ArenaPlan planned = arena.plan();
  arena.begin(planned);
  Context run(arena, pool);
  run.trace_to(trace);
  forward(run);
  return result;
}

void expect_spots(const Network& network, const std::vector<Spot>& spots) {
  int height = 0, width = 0;
  FloatMap map;
  double largest = 0;
  for (const auto& spot : spots) {
    if (spot.height != height || spot.width != width) {
      height = spot.height, width = spot.width;
      const auto [left, right] = formula_images(width, height);
      map = run_network(network, left, right).disparity;
    }
    const double ours = map.at(spot.row, spot.column);
    largest = std::max(largest, std::abs(ours - spot.disparity));
    EXPECT_NEAR(ours, spot.disparity, 5e-3)
        << spot.height << "x" << spot.width << " at row " << spot.row << " column " << spot.column;
  }
  std::cout << "  largest difference over " << spots.size() << " spots: " << largest << " px\n";
}

}  // namespace nmrf::test
