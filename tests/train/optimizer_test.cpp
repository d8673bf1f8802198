// AdamW, schedule, averages, event files, checkpoints: against independent computations.
#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numbers>

#include "core/file.h"
#include "plot/run_log.h"
#include "support/support.h"
#include "train/checkpoint.h"
#include "train/events.h"

namespace nmrf::train {
namespace {

ModelOptions small() {
  ModelOptions o = preset_options("fast");
  o.propagation_layers = o.inference_layers = o.refinement_layers = 1;
  return o;
}

TEST(OneCycle, FollowsTheFormula) {
  OneCycle cycle{.max_lr = 1e-3, .total_steps = 1000};
  EXPECT_NEAR(cycle.at(0), 1e-3 / 25, 1e-12);
  EXPECT_NEAR(cycle.at(49), 1e-3, 1e-12);
  EXPECT_NEAR(cycle.at(999), 1e-3 / 25 / 1e4, 1e-15);
  // Half-way of each phase lies half-way between its ends.
  EXPECT_NEAR(cycle.at(524), (1e-3 + 4e-9) / 2, 1e-9);
  const double up = 4e-5 + (1e-3 - 4e-5) * (1 - std::cos(std::numbers::pi * 10 / 49)) / 2;
  EXPECT_NEAR(cycle.at(10), up, 1e-12);
  EXPECT_EQ(cycle.at(5000), cycle.at(999));
}

// libtorch's own AdamW is the independent computation.
TEST(AdamW, EqualsLibtorchs) {
  Network ours = make_network(small(), 3), theirs = make_network(small(), 3);
  AdamW optimizer(ours, {.weight_decay = 0.1});
  std::vector<torch::Tensor> tables, rest;
  for (auto& item : theirs->named_parameters())
    (item.key().find("relative_position_enc_table") != std::string::npos ? tables : rest)
        .push_back(item.value());
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(rest, std::make_unique<torch::optim::AdamWOptions>(
                                torch::optim::AdamWOptions(1e-3).weight_decay(0.1)));
  groups.emplace_back(tables, std::make_unique<torch::optim::AdamWOptions>(
                                  torch::optim::AdamWOptions(1e-3).weight_decay(0)));
  torch::optim::AdamW reference(groups, torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < 3; ++step) {
    torch::manual_seed(step);
    auto parameters = theirs->named_parameters();
    for (auto& item : ours->named_parameters()) {
      auto gradient = torch::randn_like(item.value());
      item.value().mutable_grad() = gradient;
      parameters[item.key()].mutable_grad() = gradient.clone();
    }
    optimizer.step(1e-3);
    reference.step();
  }
  auto parameters = theirs->named_parameters();
  for (auto& item : ours->named_parameters())
    EXPECT_LT((item.value() - parameters[item.key()]).abs().max().item<float>(), 1e-6)
        << item.key();
}

// A first update moves every weight by the learning rate of its group, whatever its gradient.
TEST(AdamW, SwinAndSamplingOffsetsHaveARateOfTheirOwn) {
  Network network = make_network(preset_options("swin"), 3);
  AdamW optimizer(network, {.weight_decay = 0, .swin_lr = 0.1});
  std::vector<torch::Tensor> before;
  for (const auto& [name, value] : optimizer.parameters()) {
    before.push_back(value.detach().clone());
    torch::Tensor parameter = value;
    parameter.mutable_grad() = torch::ones_like(value);
  }
  optimizer.step(1e-3);
  std::size_t i = 0, slow = 0;
  for (const auto& [name, value] : optimizer.parameters()) {
    const bool expected = name.find(".backbone.") != std::string::npos ||
                          name.find("sampling_offsets") != std::string::npos;
    slow += expected;
    const double moved = (before[i++] - value.detach()).abs().mean().item<double>();
    EXPECT_NEAR(moved, expected ? 1e-4 : 1e-3, 2e-6) << name;
  }
  EXPECT_GT(slow, 100u);
  EXPECT_LT(slow, i);
}

TEST(AdamW, ClipsAndFreezes) {
  Network network = make_network(small(), 3);
  AdamW optimizer(network, {0, {"backbone", "dpn"}});
  for (const auto& [name, value] : optimizer.parameters())
    EXPECT_TRUE(name.rfind("backbone", 0) != 0 && name.rfind("dpn", 0) != 0) << name;
  for (auto& item : optimizer.parameters()) {
    auto parameter = item.second;
    parameter.mutable_grad() = torch::ones_like(parameter);
  }
  const double norm = optimizer.clip(1);
  double left = 0;
  for (const auto& item : optimizer.parameters())
    left += item.second.grad().pow(2).sum().item<double>();
  EXPECT_GT(norm, 10);
  EXPECT_NEAR(std::sqrt(left), 1, 1e-4);
  test::error_of(ErrorKind::kUsage, [&] { AdamW(network, {0, {""}}); });
}

TEST(WeightAverage, FollowsTheWeights) {
  Network network = make_network(small(), 3);
  WeightAverage average(network, 0.9);
  auto parameter = network->named_parameters()["backbone.conv2.bias"];
  auto start = parameter.detach().clone();
  double expected = 0;  // of a weight that jumps from 0 to 1
  {
    torch::NoGradGuard no_grad;
    parameter.add_(1);
  }
  for (int n = 1; n <= 5; ++n) {
    average.update(network);
    const double decay = std::min(0.9, (1.0 + n) / (10.0 + n));
    expected = decay * expected + (1 - decay);
  }
  average.swap(network);
  EXPECT_NEAR((parameter - start).mean().item<double>(), expected, 1e-5);
  average.swap(network);
  EXPECT_NEAR((parameter - start).mean().item<double>(), 1, 1e-6);
}

TEST(Checkpoint, RoundTripAndPruning) {
  test::TempFolder folder;
  Network network = make_network(small(), 3);
  AdamW optimizer(network, {.weight_decay = 0});
  Checkpoint checkpoint{optimizer.state(), {{"step", 7}}};
  for (int step : {5, 100, 20}) write_checkpoint(checkpoint_path(folder.path(), step), checkpoint);
  write_file(folder / "step-00000100.safetensors.tmp-1-1", "left by a killed process");
  EXPECT_EQ(newest_checkpoint(folder.path())->filename(), "step-00000100.safetensors");
  prune_checkpoints(folder.path(), 2);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_path(folder.path(), 5)));
  EXPECT_FALSE(std::filesystem::exists(folder / "step-00000100.safetensors.tmp-1-1"));
  Checkpoint back = read_checkpoint(checkpoint_path(folder.path(), 20));
  EXPECT_EQ(back.state["step"], 7);
  AdamW other(network, {.weight_decay = 0});
  other.load_state(back.tensors);
  back.tensors.erase("adam_v.backbone.conv1.weight");
  test::error_of(ErrorKind::kModel, [&] { other.load_state(back.tensors); });
  write_file(folder / "x.safetensors", "junk");
  test::error_of(ErrorKind::kModel, [&] { read_checkpoint(folder / "x.safetensors"); });
}

TEST(EventFile, RecordsAreFramedAsTensorBoardReadsThem) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);  // the check value of CRC-32C
  test::TempFolder folder;
  std::string bytes;
  {
    EventFile events(folder.path());
    events.scalar(3, "train/loss", 1.5);
    events.picture(3, "pair", cv::Mat(4, 6, CV_8UC3, cv::Scalar(1, 2, 3)));
    events.flush();
    bytes = read_file(events.path());
  }
  int records = 0;
  std::string payloads;
  for (std::size_t at = 0; at < bytes.size(); ++records) {
    std::uint64_t length;
    std::uint32_t crc;
    std::memcpy(&length, &bytes[at], 8);
    std::memcpy(&crc, &bytes[at + 8], 4);
    auto masked = [](std::uint32_t value) { return ((value >> 15) | (value << 17)) + 0xa282ead8u; };
    ASSERT_EQ(crc, masked(crc32c(&bytes[at], 8)));
    ASSERT_LE(at + 16 + length, bytes.size());
    std::memcpy(&crc, &bytes[at + 12 + length], 4);
    ASSERT_EQ(crc, masked(crc32c(&bytes[at + 12], length)));
    payloads += bytes.substr(at + 12, length);
    at += 16 + length;
  }
  EXPECT_EQ(records, 3);
  EXPECT_NE(payloads.find("brain.Event:2"), std::string::npos);
  EXPECT_NE(payloads.find("train/loss"), std::string::npos);
  EXPECT_NE(payloads.find("PNG"), std::string::npos);
}

// Event files of a run that was killed and resumed twice hold every step once.
TEST(EventFile, AResumedRunDrawsNoCurveTwice) {
  test::TempFolder folder;
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto steps = [&] {
    std::string found;
    for (const auto& name : names()) {
      const std::string bytes = read_file(folder / name);
      for (std::size_t at = bytes.find("loss/"); at != std::string::npos;
           at = bytes.find("loss/", at + 1))
        found += bytes[at + 5];
    }
    return found;
  };
  const auto write = [&](std::int64_t keep, int first, int last) {
    EventFile events(folder.path(), keep);
    for (int step = first; step <= last; ++step)
      events.scalar(step, "loss/" + std::string(1, static_cast<char>('0' + step)), step);
  };
  write(0, 1, 5);
  // Killed in a record, by a process whose clock ran ahead.
  const std::string old = names()[0];
  std::ofstream(folder / old, std::ios::app | std::ios::binary) << "\x30";
  std::filesystem::rename(folder / old, folder / "events.out.tfevents.9999999990.host");
  write(3, 4, 6);
  EXPECT_EQ(steps(), "123456");
  EXPECT_GT(names()[1], "events.out.tfevents.9999999990.host") << "sorts behind the old one";
  write(4, 5, 7);
  EXPECT_EQ(steps(), "1234567");
  write(0, 1, 2);
  EXPECT_EQ(steps(), "12");
  EXPECT_EQ(names().size(), 1u) << "empty files are removed";
}

TEST(JsonLog, CutsWhatCameAfterTheCheckpoint) {
  test::TempFolder folder;
  {
    JsonLog log(folder.path(), 0);
    for (int step = 1; step <= 5; ++step) log.write({{"step", step}});
  }
  std::ofstream(folder / "log.jsonl", std::ios::app) << "{\"step\": 6, \"los";  // killed in a line
  {
    JsonLog log(folder.path(), 3);
    log.write({{"step", 4}});
  }
  EXPECT_EQ(read_file(folder / "log.jsonl"),
            "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4}\n");
}

}  // namespace
}  // namespace nmrf::train
