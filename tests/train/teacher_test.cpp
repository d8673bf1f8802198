// The frozen teacher: what it asks of the student, and what it leaves alone.
#include "train/teacher.h"

#include <gtest/gtest.h>

#include "support/support.h"
#include "train/model/weights.h"

namespace nmrf::train {
namespace {

const std::string kFast = NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors";

Batch random_batch(bool known) {
  torch::manual_seed(5);
  Batch batch;
  batch.clean_left = torch::rand({1, 3, 64, 96}) * 255;
  batch.clean_right = batch.clean_left.roll(-6, 3);
  batch.left = batch.clean_left.clone();
  batch.right = batch.clean_right.clone();
  batch.truth.disparity = torch::full({1, 64, 96}, 6.0f);
  batch.truth.valid = torch::full({1, 64, 96}, known, torch::kBool);
  return batch;
}

NetworkOutput student_output(Network& student, const Batch& batch) {
  ForwardOptions how;
  how.every_layer = true;
  how.keep_features = true;
  how.guide = half_size_map(student, batch.left, batch.right);
  return student->forward(batch.left, batch.right, how);
}

double term(const Teacher::Lesson& lesson, const std::string& name) {
  for (const auto& [key, value] : lesson.terms)
    if (key == name) return value.item<double>();
  return -1;
}

TEST(Teacher, AgreesWithItselfOnTheCleanPair) {
  Teacher teacher({.model = kFast, .features = 1, .labels = 1}, preset_options("fast"),
                  torch::kCPU);
  Network student = load_model(kFast).network;
  const Batch batch = random_batch(false);
  const auto lesson = teacher.teach(batch, student_output(student, batch), {});
  EXPECT_NEAR(term(lesson, "teacher_features"), 0, 1e-5);
  EXPECT_NEAR(term(lesson, "teacher_labels"), 0, 1e-3);
}

TEST(Teacher, PullsADisturbedStudentTowardsItsFeatures) {
  Teacher teacher({.model = kFast, .features = 2, .labels = 0}, preset_options("fast"),
                  torch::kCPU);
  Network student = load_model(kFast).network;
  student->train();
  Batch batch = random_batch(true);
  batch.right.narrow(3, 20, 40).fill_(128);  // an erased patch
  const auto lesson = teacher.teach(batch, student_output(student, batch), {});
  const double distance = term(lesson, "teacher_features");
  EXPECT_GT(distance, 1e-3);
  EXPECT_NEAR(lesson.total.item<double>(), 2 * distance, 1e-6);
  EXPECT_EQ(term(lesson, "teacher_labels"), -1);
  lesson.total.backward();
  EXPECT_GT(student->named_parameters()["backbone.conv2.weight"].grad().abs().max().item<float>(),
            0);
  EXPECT_FALSE(student->named_parameters()["refine_head.layers.0.weight"].grad().defined());
}

TEST(Teacher, LabelsOnlyPixelsWithoutTruth) {
  Teacher teacher({.model = kFast, .features = 0, .labels = 1}, preset_options("fast"),
                  torch::kCPU);
  Network student = make_network(preset_options("fast"), 3);
  const Batch unknown = random_batch(false), known = random_batch(true);
  EXPECT_GT(term(teacher.teach(unknown, student_output(student, unknown), {}), "teacher_labels"),
            0.01);
  EXPECT_EQ(term(teacher.teach(known, student_output(student, known), {}), "teacher_labels"), 0);
}

TEST(Teacher, FeaturesOfAnotherWidthAreRefused) {
  const std::string message = test::error_of(ErrorKind::kUsage, [] {
    Teacher({.model = kFast, .features = 1, .labels = 0}, preset_options("paper"), torch::kCPU);
  });
  EXPECT_NE(message.find("teacher.features=0"), std::string::npos) << message;
}

TEST(Teacher, CosineDistanceAgainstItsDefinition) {
  const auto a = torch::tensor({1.0f, 0.0f, 3.0f, 4.0f}).reshape({1, 2, 1, 2});
  const auto b = torch::tensor({0.0f, 2.0f, 3.0f, 0.0f}).reshape({1, 2, 1, 2});
  // Pixel 0: (1, 3) and (0, 3); pixel 1: (0, 4) and (2, 0).
  EXPECT_NEAR(cosine_distance(a, b).item<double>(), 1 - (3 / std::sqrt(10.0) + 0) / 2, 1e-6);
}

}  // namespace
}  // namespace nmrf::train
