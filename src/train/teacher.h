// A frozen network that sees the clean pair while the student sees the augmented one: it keeps what
// was learned before, on new data (labels where truth is missing) or under disturbances (features).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "train/batch.h"
#include "train/losses.h"
#include "train/model/nmrf.h"

namespace nmrf::train {

struct TeacherOptions {
  std::string model;    // weights; empty: no teacher
  double features = 1;  // weight of 1 - cosine between the feature maps of both
  double labels = 0;    // weight of the distance from the teacher's map where truth is unknown

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("model", self.model,
          "weights of the frozen teacher (.safetensors or .pth); empty = none");
    visit("features", self.features, "weight of the cosine distance between feature maps");
    visit("labels", self.labels, "weight of the teacher's map where truth is missing");
  }
};

class Teacher {
 public:
  // Throws Error(kModel) for a file that cannot be read, Error(kUsage) when features are asked for
  // and those of the student have another number of channels.
  Teacher(const TeacherOptions& options, const ModelOptions& student, torch::Device device);

  struct Lesson {
    // Weighted sum, a scalar with gradient; undefined when nothing was taught.
    torch::Tensor total;
    std::vector<std::pair<std::string, torch::Tensor>> terms;  // unweighted, detached
  };
  // `out`: what the student made of batch.left and right, feature maps included.
  Lesson teach(const Batch& batch, const NetworkOutput& out, const LossOptions& loss);

 private:
  TeacherOptions options_;
  Network network_{nullptr};
};

// Mean of 1 - cosine over all pixels. a, b: [B, C, h, w].
torch::Tensor cosine_distance(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace nmrf::train
