#include "train/teacher.h"

#include "core/check.h"
#include "train/model/weights.h"

namespace nmrf::train {

torch::Tensor cosine_distance(const torch::Tensor& a, const torch::Tensor& b) {
  return 1 - torch::cosine_similarity(a, b, 1).mean();
}

Teacher::Teacher(const TeacherOptions& options, const ModelOptions& student, torch::Device device)
    : options_(options), network_(load_model(options.model).network) {
  const int own = network_->options().feature_channels;
  check(options.features == 0 || own == student.feature_channels, ErrorKind::kUsage,
        "{}: its feature maps have {} channels, those of the network in training {}; set "
        "teacher.features=0, or take a teacher of the same backbone.features",
        options.model, own, student.feature_channels);
  network_->to(device);
  network_->eval();
  for (auto& parameter : network_->parameters()) parameter.set_requires_grad(false);
}

Teacher::Lesson Teacher::teach(const Batch& batch, const NetworkOutput& out,
                               const LossOptions& loss) {
  Lesson lesson;
  auto add = [&](const char* name, double weight, const torch::Tensor& term) {
    lesson.terms.emplace_back(name, term.detach());
    lesson.total = lesson.total.defined() ? lesson.total + weight * term : weight * term;
  };
  if (options_.features > 0) {
    std::pair<FeatureMaps, FeatureMaps> wanted;
    {
      torch::NoGradGuard no_grad;
      wanted = network_->features(batch.clean_left, batch.clean_right);
    }
    add("teacher_features", options_.features,
        0.5 * (cosine_distance(out.left_features, wanted.first.fine) +
               cosine_distance(out.right_features, wanted.second.fine)));
  }
  if (options_.labels > 0 && out.disparity.defined()) {
    Truth truth;
    torch::Tensor counted;
    {
      torch::NoGradGuard no_grad;
      ForwardOptions how;
      how.lean = true;
      how.guide = half_size_map(network_, batch.clean_left, batch.clean_right);
      truth.disparity = network_->forward(batch.clean_left, batch.clean_right, how).disparity;
      truth.valid = batch.truth.valid.logical_not();
      counted = counted_pixels(truth, loss.max_disp);
    }
    add("teacher_labels", options_.labels,
        fine_loss(out.disparity, truth, counted, loss.error_form()));
  }
  return lesson;
}

}  // namespace nmrf::train
