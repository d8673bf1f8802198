// The methods that `eval` and `submit` run: models, their variants, baselines.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/modals.h"
#include "eval/method.h"
#include "nmrf/matcher.h"

namespace nmrf::cli {

// A model as a method. The map always has the images' size, whatever the scale.
class MatcherMethod : public Method {
 public:
  // Loads the model. Throws Error(kModel) and so on, see Matcher::load.
  MatcherMethod(std::string name, const std::string& model, const MatcherOptions& options,
                const MatchOptions& how);
  std::string name() const override { return name_; }
  std::string identity() const override { return about_.dump(); }
  Prediction predict(const cv::Mat& left, const cv::Mat& right) const override;
  // File, digest and settings, for reports.
  const nlohmann::json& about() const { return about_; }

 private:
  std::string name_;
  nlohmann::json about_;
  MatchOptions how_;
  Matcher matcher_;
};

// Superpixels with a cache in that folder (empty: none), for the recall of labels. Only nmrf-train
// has them: it sets the maker, and in the other programs has_segmenter() is false.
using SegmenterMaker = Segmenter (*)(const std::filesystem::path& cache);
void set_segmenter(SegmenterMaker maker);
bool has_segmenter();
Segmenter make_segmenter(const std::filesystem::path& cache);

// A name for tables: the file's name without folder and extension.
std::string model_name(const std::string& model);

// A change of a model's options and what to call it.
struct Variant {
  std::string name;
  std::vector<std::string> set;
};
// Paper Tables 5 and 6 and Figure 4a: every switch of the model that differs from how it is, and k
// = 1 to 6. Not all of them run on the model's weights.
std::vector<Variant> ablations(const std::string& model);

}  // namespace nmrf::cli
