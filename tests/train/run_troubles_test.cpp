// Training runs in trouble and in other places: diverging, a full disk, real pairs, other hosts.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>

#include "core/file.h"
#include "io/formats.h"
#include "support/support.h"
#include "train/runs.h"
#include "train/toy_pairs.h"

namespace nmrf::train {
namespace {

namespace fs = std::filesystem;
using test::finish, test::kShort, test::Launch, test::log_of, test::run, test::start, test::weights,
    test::write_config;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<fs::path> files_in(const fs::path& folder, const std::string& part) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (contains(entry.path().filename().string(), part)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// A run ends with advice once nothing but broken updates comes.
TEST(TrainTroubles, DivergedRunStopsWithAdvice) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 3, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  const int code =
      run({"train", "-c", folder / "c.toml", "-o", folder / "run", "--set", "stage1.lr=1e30",
           "--set", "stage1.steps=100", "--set", "train.bad_steps=4"},
          {.output = folder / "out.txt"});
  const std::string out = read_file(folder / "out.txt");
  EXPECT_EQ(code, 1) << out;
  EXPECT_TRUE(contains(out, "skipped (3 in all)")) << out;
  EXPECT_TRUE(contains(out, "4 updates in a row")) << out;
  EXPECT_TRUE(contains(out, "lower learning rate (stageN.lr)")) << out;
}

// A loss that jumps is skipped and counted, and the run goes on; pictures are in the event file.
TEST(TrainTroubles, JumpsAreSkippedAndPicturesKept) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 3, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  ASSERT_EQ(run({"train", "-c", folder / "c.toml", "-o", folder / "run", "--set",
                 "train.explode=1.0001", "--set", "train.picture_every=5"}),
            0);
  const auto lines = log_of(folder / "run");
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_GT(lines.back()["skipped"].get<int>(), 0);
  EXPECT_LT(lines.back()["skipped"].get<int>(), 12);

  const auto events = files_in(folder / "run", "tfevents");
  ASSERT_EQ(events.size(), 1u);
  const std::string bytes = read_file(events[0]);
  std::vector<Image> pictures;
  for (auto at = bytes.find("\x89PNG"); at != std::string::npos;
       at = bytes.find("\x89PNG", at + 1)) {
    const auto end = bytes.find("IEND", at) + 8;
    pictures.push_back(formats::decode_png(bytes.substr(at, end - at), "a picture").image);
  }
  ASSERT_EQ(pictures.size(), 3u) << "updates 0, 5 and 10";
  for (const auto& picture : pictures) {
    EXPECT_EQ(picture.width(), 64);
    EXPECT_EQ(picture.height(), 3 * 64) << "left view, truth, prediction";
  }
}

// No file may grow beyond `bytes`, as on a disk that is full.
Launch on_full_disk(const fs::path& output, std::size_t bytes) {
  return {.output = output, .in_child = [bytes] {
            const rlimit limit{bytes, bytes};
            ::setrlimit(RLIMIT_FSIZE, &limit);
            ::signal(SIGXFSZ, SIG_IGN);  // an error of write() instead
          }};
}

TEST(TrainTroubles, FullDiskLeavesTheLastCheckpoint) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 3, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  const std::vector<std::string> line = {"train", "-c",           folder / "c.toml",
                                         "-o",    folder / "run", "--resume"};
  ASSERT_EQ(run(line), 0);
  const auto whole = weights(folder / "run/last.safetensors");
  // As if the run had just come past update 6.
  const fs::path kept = folder / "run/step-00000006.safetensors";
  ASSERT_TRUE(fs::exists(kept));
  fs::remove(folder / "run/step-00000009.safetensors");
  fs::remove(folder / "run/step-00000012.safetensors");
  const std::string before = read_file(kept);

  const int code = run(line, on_full_disk(folder / "out.txt", before.size() / 2));
  const std::string out = read_file(folder / "out.txt");
  EXPECT_EQ(code, 1) << out;
  EXPECT_TRUE(contains(out, "step-00000009.safetensors: writing failed")) << out;
  EXPECT_TRUE(contains(out, "step-00000006.safetensors is intact")) << out;
  EXPECT_TRUE(contains(out, "--resume")) << out;
  EXPECT_EQ(files_in(folder / "run", "step-"), std::vector<fs::path>{kept}) << "no half files";
  EXPECT_EQ(read_file(kept), before);

  ASSERT_EQ(run(line), 0) << "with room again";
  EXPECT_EQ(weights(folder / "run/last.safetensors"), whole) << "bit for bit";
}

void flip_bit(const fs::path& path, std::size_t at) {
  std::string bytes = read_file(path);
  bytes.at(at) = static_cast<char>(bytes[at] ^ 0x40);
  write_file(path, bytes);
}

// A damaged newest checkpoint is passed over for the one before it, and the result is the same.
TEST(TrainTroubles, DamagedCheckpointFallsBackToTheOneBefore) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 3, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  const std::vector<std::string> line = {"train", "-c",           folder / "c.toml",
                                         "-o",    folder / "run", "--resume"};
  ASSERT_EQ(run(line), 0);
  const auto whole = weights(folder / "run/last.safetensors");
  const fs::path newest = folder / "run/step-00000012.safetensors";
  const std::string sound = read_file(newest);
  const std::map<std::string, std::function<void()>> damages = {
      {"flipped bit in a weight", [&] { flip_bit(newest, sound.size() / 2); }},
      {"flipped bit in the header", [&] { flip_bit(newest, 300); }},
      {"cut short", [&] { write_file(newest, sound.substr(0, sound.size() / 2)); }},
      {"empty", [&] { write_file(newest, ""); }}};
  for (const auto& [name, damage] : damages) {
    damage();
    EXPECT_EQ(run(line, {.output = folder / "out.txt"}), 0) << name;
    const std::string out = read_file(folder / "out.txt");
    EXPECT_TRUE(contains(out, "Trying the checkpoint before it")) << name << out;
    EXPECT_TRUE(contains(out, "going on from " + (folder / "run/step-00000009").string()))
        << name << out;
    EXPECT_EQ(weights(folder / "run/last.safetensors"), whole) << name;
    EXPECT_EQ(read_file(newest), sound) << name;
    EXPECT_EQ(files_in(folder / "run", ".damaged").size(), 1u) << name;
  }
  for (const auto& path : files_in(folder / "run", "step-"))
    if (path.extension() == ".safetensors") write_file(path, "");
  EXPECT_EQ(run(line, {.output = folder / "out.txt"}), 4);
  EXPECT_TRUE(contains(read_file(folder / "out.txt"), "none of its 3 checkpoints can be read"));
}

// Weights that give no finite loss: the run has failed, though it is over.
TEST(TrainTroubles, ARunThatEndsWithSkippedUpdatesHasFailed) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 3, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  EXPECT_EQ(run({"train", "-c", folder / "c.toml", "-o", folder / "run", "--set", "stage1.lr=1e30",
                 "--set", "stage2.steps=12"},
                {.output = folder / "out.txt"}),
            1);
  const std::string out = read_file(folder / "out.txt");
  EXPECT_TRUE(contains(out, "updates were all skipped")) << out;
  EXPECT_FALSE(contains(out, "finished after")) << out;
  EXPECT_FALSE(fs::exists(folder / "run/last.safetensors"));
}

TEST(TrainTroubles, ResumeNamesTheFolderThatIsNotThere) {
  test::TempFolder folder;
  EXPECT_EQ(run({"train", "--resume", "-o", folder / "nowhere"}, {.output = folder / "out.txt"}),
            2);
  const std::string out = read_file(folder / "out.txt");
  EXPECT_TRUE(contains(out, (folder / "nowhere").string() + ": is not the folder of a run")) << out;
}

// Superpixels are computed once and found by the next run.
TEST(TrainTroubles, SuperpixelsAreKept) {
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 2, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  std::map<fs::path, fs::file_time_type> first;
  for (const char* name : {"a", "b"}) {
    ASSERT_EQ(run({"train", "-c", folder / "c.toml", "-o", folder / name, "--set",
                   "loss.modals=superpixel", "--cache", folder / "cache", "--set", "stage1.steps=2",
                   "--set", "stage2.steps=2"}),
              0);
    std::map<fs::path, fs::file_time_type> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "cache"))
      if (entry.is_regular_file()) found[entry.path()] = entry.last_write_time();
    EXPECT_EQ(found.size(), 2u) << "one a pair";
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << "not written again";
    EXPECT_FALSE(fs::exists(folder / name / "superpixels"));
  }
  EXPECT_EQ(weights(folder / "a/last.safetensors"), weights(folder / "b/last.safetensors"));
}

// 20 updates of the paper's fine-tuning on real pairs, with a small network and small crops.
TEST(TrainTroubles, KittiFineTuneLowersTheLoss) {
  NMRF_NEED_SHARED("data/KITTI");
  test::TempFolder folder;
  std::vector<std::string> line = {
      "train", "-c", std::string(NMRF_SOURCE_DIR) + "/configs/kitti.toml", "-o", folder / "run"};
  for (const std::string& setting :
       {std::string("model.preset=fast"),
        "data1.root=" + (test::shared_folder() / "data/KITTI").string(),
        std::string("data1.split=all"), std::string("validation.name="),
        std::string("loss.modals=dense"), std::string("stage1.steps=20"),
        std::string("stage1.batch=1"), std::string("stage1.crop_height=96"),
        std::string("stage1.crop_width=256"), std::string("stage1.lr=1e-3"),
        std::string("train.log_every=1")})
    line.insert(line.end(), {"--set", setting});
  ASSERT_EQ(run(line, {.output = folder / "out.txt"}), 0) << read_file(folder / "out.txt");
  const auto lines = log_of(folder / "run");
  ASSERT_EQ(lines.size(), 20u);
  double first = 0, last = 0;
  for (int i = 0; i < 5; ++i) {
    first += lines[static_cast<std::size_t>(i)]["loss"].get<double>() / 5;
    last += lines[static_cast<std::size_t>(15 + i)]["loss"].get<double>() / 5;
  }
  std::cout << "  mean loss of updates 1 to 5: " << first << ", of 16 to 20: " << last << "\n";
  EXPECT_LT(last, first);
}

// The two recipes of the Swin-T network, on a toy pair instead of their data sets.
TEST(TrainTroubles, SwinRecipesMakeUpdates) {
  test::TempFolder folder;
  const fs::path list = test::write_toy_list(folder.path(), 2, 96, 128);
  for (const std::string name : {"sceneflow-swin", "kitti-swin"}) {
    std::vector<std::string> line = {"train", "-c",
                                     std::string(NMRF_SOURCE_DIR) + "/configs/" + name + ".toml",
                                     "-o", folder / name};
    for (const std::string& setting :
         {std::string("data1.name=list"), "data1.list=" + list.string(), std::string("data1.root="),
          std::string("data1.split="), std::string("validation.name="),
          std::string("stage1.steps=2"), std::string("stage1.batch=1"),
          std::string("stage1.crop_height=64"), std::string("stage1.crop_width=96"),
          std::string("train.log_every=1")})
      line.insert(line.end(), {"--set", setting});
    ASSERT_EQ(run(line, {.output = folder / "out.txt"}), 0) << read_file(folder / "out.txt");
    const auto lines = log_of(folder / name);
    ASSERT_EQ(lines.size(), 2u);
    for (const auto& entry : lines) EXPECT_GT(entry["loss"].get<double>(), 0) << entry;
    EXPECT_TRUE(weights(folder / name / "last.safetensors")
                    .contains("image_encoder.backbone.patch_embed.proj.weight"));
  }
}

bool quietly(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Two network namespaces joined by a cable, each with an address of its own.
class TwoHosts {
 public:
  TwoHosts() : tag_(std::to_string(::getpid() % 100000)) {
    const std::string a = "nmrfa" + tag_, b = "nmrfb" + tag_;
    ready_ = quietly("ip netns add " + a) && quietly("ip netns add " + b) &&
             quietly("ip link add va" + tag_ + " netns " + a + " type veth peer name vb" + tag_ +
                     " netns " + b) &&
             up(a, "va" + tag_, "10.77.0.1/24") && up(b, "vb" + tag_, "10.77.0.2/24");
  }
  ~TwoHosts() {
    quietly("ip netns del nmrfa" + tag_);
    quietly("ip netns del nmrfb" + tag_);
  }
  bool ready() const { return ready_; }
  std::vector<std::string> inside(int host) const {
    return {"ip", "netns", "exec", (host == 0 ? "nmrfa" : "nmrfb") + tag_};
  }

 private:
  static bool up(const std::string& host, const std::string& link, const std::string& address) {
    const std::string in = "ip -n " + host;
    return quietly(in + " addr add " + address + " dev " + link) &&
           quietly(in + " link set " + link + " up") && quietly(in + " link set lo up");
  }
  std::string tag_;
  bool ready_ = false;
};

TEST(TrainTroubles, TwoHostsEqualOne) {
  TwoHosts hosts;
  if (!hosts.ready())
    GTEST_SKIP() << "skipped: network namespaces cannot be made here (needs root and iproute2)";
  test::TempFolder folder;
  fs::path list = test::write_toy_list(folder.path(), 5, 64, 96);
  write_config(folder / "c.toml", list, kShort);
  ASSERT_EQ(run({"train", "-c", folder / "c.toml", "-o", folder / "one"}), 0);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < 2; ++rank)
    processes.push_back(start({"train", "-c", folder / "c.toml", "-o", folder / "two"},
                              {.output = folder / ("out" + std::to_string(rank)),
                               .before = hosts.inside(rank),
                               .in_child = [rank] {
                                 ::setenv("MASTER_ADDR", "10.77.0.1", 1);
                                 ::setenv("MASTER_PORT", "29555", 1);
                                 ::setenv("WORLD_SIZE", "2", 1);
                                 ::setenv("RANK", std::to_string(rank).c_str(), 1);
                               }}));
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(finish(processes[static_cast<std::size_t>(rank)]), 0)
        << read_file(folder / ("out" + std::to_string(rank)));
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

}  // namespace
}  // namespace nmrf::train
