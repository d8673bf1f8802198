// Runs the network without a matcher around it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "network/network.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf::test {

// Keeps copies of everything.
class KeptTrace : public Trace {
 public:
  struct Entry {
    TraceShape shape;
    std::vector<float> values;
  };
  void record(const std::string& name, const TraceShape& shape, const float* values) override {
    const auto count = static_cast<std::size_t>(
        shape.height * shape.width * std::max<std::int64_t>(shape.count, 1) * shape.channels);
    entries[name] = {shape, {values, values + count}};
  }
  std::map<std::string, Entry> entries;
};

struct NetworkRun {
  FloatMap disparity, confidence;  // of the padded size
  std::vector<std::int64_t> seeds;
  std::vector<float> labels;
};

// image: replicate-padded to the sizes the network takes. guide: of the padded size, or empty.
NetworkRun run_network(const Network& network, const Image& left, const Image& right,
                       int threads = 1, Trace* trace = nullptr, const FloatMap& guide = {});

// A place of the map that a network gives for images by formula (formula_images.h).
struct Spot {
  int height, width, row, column;
  double disparity;
};
// Expects every spot within 5e-3 px and prints the largest difference. Spots of one size lie side
// by side.
void expect_spots(const Network& network, const std::vector<Spot>& spots);

}  // namespace nmrf::test
