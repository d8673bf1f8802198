// Measuring a network during training, with the metrics of the evaluation.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>

#include "data/dataset.h"
#include "train/batch.h"
#include "train/config.h"
#include "train/distributed.h"
#include "train/model/nmrf.h"

namespace nmrf::train {

struct ValidationResult {
  double epe = 0;          // mean over the pairs
  nlohmann::json metrics;  // epe, bad1, bad3, d1
  std::string line;        // for a person
};

class Validation {
 public:
  Validation(std::shared_ptr<const Dataset> dataset, int pairs, double max_disp);
  // Every process measures its share; all get the result.
  ValidationResult run(const Network& network, ProcessGroup& group) const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::size_t pairs_;
  double max_disp_;
};

// Nothing when the config names no validation data.
std::unique_ptr<Validation> make_validation(const TrainConfig& config);

// Left view, truth and prediction of the first pair of a batch, above each other.
cv::Mat training_picture(const NetworkOutput& out, const Batch& batch);

}  // namespace nmrf::train
