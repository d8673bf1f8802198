// How far a disparity is likely to be wrong: features of every pixel, and the fitted model that
// turns them into probabilities (docs/confidence.md).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "kernels/error_mlp.h"
#include "matching/engine.h"
#include "matching/workspace.h"
#include "nmrf/disparity.h"
#include "nmrf/image.h"

namespace nmrf {

using kernels::ErrorMlp;

// Of a model file: the key of its metadata, and the names of the features in order.
inline constexpr const char* kErrorModelKey = "error_model";
extern const std::array<const char*, ErrorMlp::kFeatures> kErrorFeatures;

nlohmann::json to_json(const ErrorMlp& mlp);
// What the metadata holds, if anything. Throws Error(kModel) naming `path` when it is damaged or
// made for other features.
std::optional<ErrorMlp> error_model_of(const std::map<std::string, std::string>& metadata,
                                       const std::string& path);

// What the features of a finished map are made of; all of its size.
struct ErrorInput {
  const Image* left = nullptr;  // 8-bit RGB
  const Image* right = nullptr;
  const FloatMap* network = nullptr;  // the map before hole filling and weighted median
  const FloatMap* map = nullptr;      // px
  const FloatMap* posterior = nullptr;
  const ByteMap* mask = nullptr;
  const PassEvidence* evidence = nullptr;  // in pixels of this map
  float scale = 1;                         // of the matched images over this map
};

// Keeps its working memory: nothing is allocated for a size seen before. The results do not depend
// on the number of threads.
class ErrorEstimate {
 public:
  ErrorEstimate() = default;
  // Works in this memory instead of its own.
  explicit ErrorEstimate(MemoryBlock& memory) : workspace_(memory) {}

  // Sets confidence, confidence3 and expected_error of the result.
  void apply(const ErrorMlp& mlp, const ErrorInput& input, ThreadPool& pool, Disparity& result);
  // The features themselves, [height, width, kFeatures], for fitting.
  void features(const ErrorInput& input, ThreadPool& pool, std::vector<float>& result);

 private:
  void compare_views(const ErrorInput& input, ThreadPool& pool);
  void fill_row(const ErrorInput& input, int y, float* rows, std::uint32_t* sums) const;
  // Calls use(y, rows) for the features [kFeatures, error_row(width)] of each row.
  template <class Use>
  void each_row(const ErrorInput& input, ThreadPool& pool, const Use& use);

  // How well the views agree at the disparity and a pixel to either side of it, and the horizontal
  // contrast of the left view: planes [height, width], in 64ths of a grey level.
  enum Plane { kHere, kNearer, kFarther, kContrast, kPlanes };
  Workspace workspace_;
  std::uint16_t* planes_ = nullptr;
  float* rows_ = nullptr;          // per thread
  float* greys_ = nullptr;         // per thread
  std::uint32_t* sums_ = nullptr;  // per thread
  std::size_t plane_ = 0;          // pixels
};

}  // namespace nmrf
