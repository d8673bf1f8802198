// Whole training runs of the real command: learning, killing, resuming, several processes.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <thread>

#include "support/support.h"
#include "train/runs.h"
#include "train/toy_pairs.h"
#include "weights/tensor_file.h"

namespace nmrf::train {
namespace {

namespace fs = std::filesystem;
using test::finish, test::kShort, test::log_of, test::run, test::start, test::weights,
    test::write_config;

TEST(TrainRun, OverfitsTwoPairsFromScratch) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 2, 64, 96);
  write_config(folder / "c.toml", list, R"(
[loss]
modals = "dense"
[augment]
enabled = false
[train]
log_every = 10
checkpoint_every = 1000
validate_every = 10000
[stage1]
steps = 100
scope = "seeds"
lr = 3e-3
batch = 2
crop_height = 64
crop_width = 96
[stage2]
steps = 300
scope = "all"
lr = 3e-3
batch = 2
crop_height = 64
crop_width = 96
[validation]
name = "list"
list = ")" + list.string() + "\"\n");
  ASSERT_EQ(run({"train", "-c", folder / "c.toml", "-o", folder / "run"}), 0);
  double epe = INFINITY;
  for (const auto& line : log_of(folder / "run"))
    if (line.contains("validation")) epe = line["epe"];
  std::cout << "  EPE of the two pairs after training: " << epe << " px\n";
  EXPECT_LT(epe, 0.5);
  EXPECT_TRUE(fs::exists(folder / "run/best.safetensors"));
}

TEST(TrainRun, KilledAndResumedGivesTheSameWeights) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 5, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  ASSERT_EQ(run({"train", "-c", folder / "c.toml", "-o", folder / "whole"}), 0);
  const auto whole = weights(folder / "whole/last.safetensors");
  ASSERT_FALSE(whole.empty());

  // Kill at moments spread over the run, resume each time.
  const std::vector<std::string> resume = {"train", "-c",           folder / "c.toml",
                                           "-o",    folder / "cut", "--resume"};
  int kills = 0;
  for (int delay : {400, 700, 1100, 1500}) {
    pid_t child = start(resume);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    ::kill(child, SIGKILL);
    if (finish(child) == 128 + SIGKILL) ++kills;
  }
  EXPECT_GT(kills, 0);
  ASSERT_EQ(run(resume), 0);
  const auto cut = weights(folder / "cut/last.safetensors");
  EXPECT_EQ(whole, cut) << "bit for bit";
  // The log is that of one undisturbed run too.
  std::vector<std::int64_t> steps;
  for (const auto& line : log_of(folder / "cut")) steps.push_back(line["step"]);
  std::vector<std::int64_t> expected(12);
  for (int i = 0; i < 12; ++i) expected[i] = i + 1;
  EXPECT_EQ(steps, expected);
}

// Crops of 64 x 64 are the smallest that half of them can guide.
TEST(TrainRun, AShareOfTheUpdatesIsGuided) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 3, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  const auto trained = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"train", "-c",          folder / "c.toml",
                                          "-o",    folder / name, "--set"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(run(arguments), 0) << name;
    return weights(folder / name / "last.safetensors");
  };
  const auto never = trained("never", {"train.guide=0"});
  EXPECT_NE(trained("always", {"train.guide=1"}), never);
  EXPECT_EQ(trained("unguided", {"train.guide=1", "model.match.guide=false"}), never);
  EXPECT_EQ(run({"train", "-c", folder / "c.toml", "-o", folder / "x", "--set", "train.guide=2"}),
            2);
}

TEST(TrainRun, InterruptSavesAndStops) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 3, 64, 96);
  write_config(folder / "c.toml", list, std::string(kShort) + "\n");
  pid_t child = start(
      {"train", "-c", folder / "c.toml", "-o", folder / "run", "--set", "stage1.steps=100000"});
  for (int i = 0; i < 600 && !fs::exists(folder / "run/step-00000003.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // Nobody else may write there meanwhile.
  EXPECT_EQ(run({"train", "-c", folder / "c.toml", "-o", folder / "run", "--resume"}), 2);
  ::kill(child, SIGTERM);
  EXPECT_EQ(finish(child), 130);
  EXPECT_TRUE(fs::exists(folder / "run/last.safetensors"));
}

// The one that started the others is told, not they.
TEST(TrainRun, InterruptReachesAllProcesses) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 3, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  pid_t child = start({"train", "-c", folder / "c.toml", "-o", folder / "run", "--nproc", "2",
                       "--set", "stage1.steps=100000"});
  for (int i = 0; i < 600 && !fs::exists(folder / "run/step-00000003.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(child, SIGINT);
  EXPECT_EQ(finish(child), 130);
  EXPECT_TRUE(fs::exists(folder / "run/last.safetensors"));
}

TEST(TrainRun, TwoProcessesEqualOne) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 5, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  ASSERT_EQ(run({"train", "-c", folder / "c.toml", "-o", folder / "one"}), 0);
  const int code = run({"train", "-c", folder / "c.toml", "-o", folder / "two", "--nproc", "2"});
  ASSERT_EQ(code, 0);
  const auto one = weights(folder / "one/last.safetensors");
  const auto two = weights(folder / "two/last.safetensors");
  ASSERT_EQ(one.size(), two.size());
  double largest = 0;
  for (const auto& [name, values] : one)
    for (std::size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, static_cast<double>(std::abs(values[i] - two.at(name)[i])));
  std::cout << "  largest difference of a weight: " << largest << "\n";
  EXPECT_LT(largest, 2e-3);
}

// Several processes compute the gradient of the whole batch, but for rounding. Weights drift apart
// later: where a gradient is nearly zero, rounding decides its sign, and Adam's first steps are as
// long as the learning rate whatever the gradient's size.
TEST(TrainRun, TwoProcessesHaveTheGradientOfOne) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 5, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  const auto first_moments = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> line = {"train",          "-c",    folder / "c.toml",          "-o",
                                     folder / name,    "--set", "train.checkpoint_every=1", "--set",
                                     "stage1.steps=1", "--set", "stage1.scope=all",         "--set",
                                     "stage2.steps=0"};
    line.insert(line.end(), more.begin(), more.end());
    EXPECT_EQ(run(line), 0) << name;
    std::map<std::string, std::vector<float>> moments;
    TensorFile file = read_tensor_file(folder / name / "step-00000001.safetensors");
    for (const auto& tensor : file.tensors)
      if (tensor.name.starts_with("adam_m.")) moments[tensor.name] = to_floats(tensor);
    return moments;
  };
  const auto one = first_moments("one", {}), two = first_moments("two", {"--nproc", "2"});
  ASSERT_FALSE(one.empty());
  ASSERT_EQ(one.size(), two.size());
  double difference = 0, norm = 0;
  for (const auto& [name, values] : one)
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double a = values[i], b = two.at(name)[i];
      difference += (a - b) * (a - b);
      norm += a * a;
    }
  const double relative = std::sqrt(difference / norm);
  std::cout << "  gradients differ by " << relative << " of their length\n";
  EXPECT_GT(norm, 0);
  EXPECT_LT(relative, 1e-5);
}

TEST(TrainRun, LostPeerEndsTheOthers) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 3, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", "29631", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  const std::vector<std::string> arguments = {
      "train",           "-c",    folder / "c.toml",     "-o",
      folder / "run",    "--set", "stage1.steps=100000", "--set",
      "train.timeout=10"};
  ::setenv("RANK", "0", 1);
  pid_t chief = start(arguments);
  ::setenv("RANK", "1", 1);
  pid_t other = start(arguments);
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"}) ::unsetenv(name);
  for (int i = 0; i < 600 && !fs::exists(folder / "run/step-00000003.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(other, SIGKILL);
  finish(other);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(finish(chief), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(TrainRun, MistakesHaveTheirExitCodes) {
  test::TempFolder folder;
  EXPECT_EQ(run({"train"}), 2);
  EXPECT_EQ(run({"train", "-c", folder / "none.toml"}), 3);
  fs::path list = test::write_toy_list(folder.path(), 1, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  EXPECT_EQ(run({"train", "-c", folder / "c.toml", "--set", "stage1.lrr=1"}), 2);
  EXPECT_EQ(run({"train", "-c", folder / "c.toml", "--set", "stage1.crop_width=50"}), 2);
  EXPECT_EQ(
      run({"train", "-c", folder / "c.toml", "--init", folder / "no.pth", "-o", folder / "r"}), 4);
  EXPECT_EQ(run({"train", "-c", folder / "c.toml", "--set", "data1.list=nothing.txt", "-o",
                 folder / "r"}),
            3);
}

}  // namespace
}  // namespace nmrf::train
