// Golden tensors: what the modules on plain operators compute for weights and images by formula,
// stage by stage, kept in tests/network/golden. Of each stage at most kGoldenValues evenly spaced
// values are kept; the maps of winners and of disparities are whole.
//
// NMRF_RECORD=1 nmrf_test_model --gtest_filter='Golden.*' writes them anew.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/fields.h"
#include "network/options.h"

namespace nmrf::test {

struct GoldenCase {
  std::string name;
  ModelOptions options;
  int width = 0, height = 0;
  double refinement = 5e-4;  // how far the stages of refinement may be off
};

inline std::vector<GoldenCase> golden_cases() {
  // With all 15 frequencies the encoding of a start label turns a rounding into 400 times as much;
  // with four, every stage can be held to the same tolerance.
  ModelOptions few = preset_options("paper"), fast = preset_options("fast");
  few.encoding_frequencies = fast.encoding_frequencies = 4;
  return {{"paper_96x64", preset_options("paper"), 96, 64, 5e-3},
          {"paper_131x50", few, 131, 50},
          {"fast_75x50", fast, 75, 50}};
}

inline std::filesystem::path golden_file(const GoldenCase& one) {
  return std::filesystem::path(NMRF_SOURCE_DIR) / "tests/network/golden" /
         (one.name + ".safetensors");
}

constexpr std::size_t kGoldenValues = 1000;

// The values of a stage that are kept.
inline std::vector<float> golden_values(const std::string& stage, const float* values,
                                        std::size_t count) {
  const bool whole = stage == "coarse_disp8" || stage == "disparity" || stage == "seeds";
  const std::size_t step = whole ? 1 : (count + kGoldenValues - 1) / kGoldenValues;
  std::vector<float> kept;
  for (std::size_t i = 0; i < count; i += step) kept.push_back(values[i]);
  return kept;
}

// How far a stage may be from its golden values. Beyond the winners only a map without flips is
// compared.
inline double golden_tolerance(const GoldenCase& one, const std::string& stage) {
  if (stage == "disparity") return 5e-3;
  if (stage.starts_with("refine_")) return one.refinement;
  return stage.starts_with("infer_score") ? 1e-3 : 5e-4;
}
inline bool behind_winners(const std::string& stage) {
  return stage.starts_with("refine_") || stage == "disp_curr" || stage == "disparity";
}

}  // namespace nmrf::test
