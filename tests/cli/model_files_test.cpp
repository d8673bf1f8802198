// nmrf convert and nmrf info, and matching with what they make.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cli/run.h"
#include "core/file.h"
#include "core/sha256.h"
#include "io/npy.h"
#include "weights/safetensors.h"

namespace nmrf::test {
namespace {

TEST(Info, PresetAsTextAndJson) {
  const Outcome text = nmrf({"info", "--preset", "paper", "--size", "640x480"});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const std::string word : {"6113210", "inference.self_edges", "refinement", "GFLOP"})
    EXPECT_TRUE(contains(text.out, word)) << word;
  const Outcome run = nmrf({"info", "--preset", "paper", "--json"});
  ASSERT_EQ(run.code, 0);
  const auto object = json_lines(run.out).at(0);
  EXPECT_EQ(object["parameters"], 6113210);
  EXPECT_EQ(object["options"]["seeds"]["labels"], 4);
  EXPECT_NEAR(object["gflop"].get<double>(), 363, 5) << "the paper's network at 640x480";
  const auto fast = json_lines(nmrf({"info", "--preset", "fast", "--json"}).out).at(0);
  EXPECT_LE(fast["gflop"].get<double>(), 60);
  EXPECT_LE(fast["parameters"].get<int>(), 3000000);
  double sum = 0;
  std::int64_t parameters = 0;
  for (const auto& [name, stage] : fast["stages"].items()) {
    sum += stage.value("gflop", 0.0);
    parameters += stage.value("parameters", std::int64_t{0});
  }
  EXPECT_NEAR(sum, fast["gflop"].get<double>(), 1e-9);
  EXPECT_EQ(parameters, fast["parameters"]);
}

TEST(Info, SwitchesChangeTheCounts) {
  auto gflop = [](const std::string& setting) {
    const Outcome run = nmrf({"info", "--preset", "paper", "--json", "--set", setting});
    EXPECT_EQ(run.code, 0) << run.err;
    return json_lines(run.out).at(0)["gflop"].get<double>();
  };
  const double whole = gflop("seeds.labels=4");
  EXPECT_LT(gflop("seeds.labels=2"), whole);
  EXPECT_LT(gflop("refinement.count=0"), whole);
  EXPECT_GT(gflop("refinement.count=2"), whole);
  EXPECT_LT(gflop("inference.self_edges=none"), whole);
  EXPECT_EQ(nmrf({"info", "--preset", "paper", "--set", "seeds.labels=7"}).code, 4);
}

// A small model file of ours, made with the library's writer: formula weights are not on disk.
TEST(Convert, TheInputIsNotOverwritten) {
  TempFolder folder;
  const fs::path model = folder / "m.safetensors";
  fs::copy_file(std::string(NMRF_SOURCE_DIR) + "/models/nmrf-fast.safetensors", model);
  fs::create_symlink(model, folder / "link.safetensors");
  const std::string before = read_file(model);
  for (const fs::path& output : {model, folder / "link.safetensors", folder / "./m.safetensors"}) {
    const Outcome run = nmrf({"convert", model, output});
    EXPECT_EQ(run.code, 2) << run.err;
    EXPECT_TRUE(contains(run.err, "would be overwritten")) << run.err;
  }
  EXPECT_EQ(read_file(model), before);
}

TEST(Convert, ForeignAndDamagedFiles) {
  TempFolder folder;
  const std::string made = folder / "out.safetensors";
  write_file(made, "an older model");
  const float numbers[6] = {1, 2, 3, 4, 5, 6};
  StoredTensor tensor;
  tensor.name = "some.weight";
  tensor.shape = {2, 3};
  tensor.data = {reinterpret_cast<const std::uint8_t*>(numbers), sizeof numbers};
  write_safetensors(folder / "foreign.safetensors", std::vector{tensor}, {});
  tensor.name = "backbone.conv1.weight";
  write_safetensors(folder / "partial.safetensors", std::vector{tensor}, {});
  // Options that ask for a network far larger than the file.
  write_safetensors(
      folder / "forged.safetensors", std::vector{tensor},
      {{"options", R"({"inference": {"channels": 4096, "layers": 64}, "mlp_ratio": 16})"}});
  write_safetensors(folder / "broken.safetensors", std::vector{tensor}, {{"options", "{"}});
  write_safetensors(folder / "unknown.safetensors", std::vector{tensor},
                    {{"options", R"({"seeds": {"colour": 3}})"}});
  const std::string whole = read_file(folder / "foreign.safetensors");
  write_file(folder / "cut.safetensors", whole.substr(0, whole.size() - 4));
  std::string huge = whole;
  huge[6] = '\x7f';  // a header of 2^54 bytes
  write_file(folder / "huge.safetensors", huge);
  write_file(folder / "empty.pth", "");
  write_file(folder / "zip.pth", std::string("PK\x03\x04") + std::string(60, '\0'));
  // An old-style pickle that would run a command.
  write_file(folder / "evil.pth",
             "cos\nsystem\n(S'touch " + (folder / "owned").string() + "'\ntR.");
  std::vector<std::vector<std::string>> lines;
  for (const std::string name :
       {"foreign.safetensors", "partial.safetensors", "forged.safetensors", "broken.safetensors",
        "unknown.safetensors", "cut.safetensors", "huge.safetensors", "empty.pth", "zip.pth",
        "evil.pth", "missing.pth"}) {
    lines.push_back({"convert", folder / name, made});
    lines.push_back({"info", folder / name});
  }
  const auto runs = nmrf_all(lines);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(lines[i][0] + " " + lines[i][1]);
    // What is there of an incomplete network is shown; the report says that most is missing.
    const bool shown = lines[i][0] == "info" && contains(lines[i][1], "partial");
    EXPECT_EQ(runs[i].code, shown ? 0 : 4) << runs[i].out << runs[i].err;
    EXPECT_TRUE(contains(shown ? runs[i].out : runs[i].err, lines[i][1])) << runs[i].err;
  }
  EXPECT_EQ(read_file(made), "an older model");
  EXPECT_FALSE(fs::exists(folder / "owned"));
}

TEST(Convert, ThePublishedNetworkGivesItsNumbers) {
  NMRF_NEED_SHARED("golden/nmrf_random.pth");
  TempFolder folder;
  const fs::path golden = shared_folder() / "golden";
  const std::string model = folder / "random.safetensors";
  Outcome run = nmrf({"convert", golden / "nmrf_random.pth", model, "--list", "--trained-on",
                      "nothing", "--licence", "none"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "340 tensors used, 0 missing, 0 unexpected")) << run.out;
  std::size_t used = 0;
  for (std::size_t at = 0; (at = run.out.find("used        ", at)) != std::string::npos; ++at)
    ++used;
  EXPECT_EQ(used, 340u);

  run = nmrf({"info", model, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto info = json_lines(run.out).at(0);
  EXPECT_EQ(info["sha256"], sha256_of_file(model));
  EXPECT_EQ(info["parameters"], 6113210);
  EXPECT_EQ(info["metadata"]["trained_on"], "nothing");
  EXPECT_EQ(info["metadata"]["source_sha256"], sha256_of_file(golden / "nmrf_random.pth"));
  run = nmrf({"info", golden / "nmrf_random.pth"});
  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(contains(run.out, "340 tensors used")) << run.out;

  // The map equals the one that PyTorch computed from the .pth, through either file.
  const NpyArray disp = read_npy(golden / "96x160/disp.npy");
  FloatMap expected(160, 96);
  std::copy_n(disp.data<float>(), expected.size(), expected.data());
  for (const std::string& weights : {model, (golden / "nmrf_random.pth").string()}) {
    run = nmrf({"match", golden / "96x160/left.png", golden / "96x160/right.png", "--model",
                weights, "-o", folder / "d.pfm"});
    ASSERT_EQ(run.code, 0) << run.err;
    const FloatMap ours = read_disparity(folder / "d.pfm");
    expect_good_map(ours, 160, 96);
    const double largest = largest_difference(ours, expected);
    std::cout << "  disparity of nmrf match: largest difference " << largest << " px\n";
    EXPECT_LT(largest, 5e-3);
  }
  // Half precision: a smaller file that still loads.
  const std::string half = folder / "half.safetensors";
  ASSERT_EQ(nmrf({"convert", model, half, "--half"}).code, 0);
  EXPECT_LT(fs::file_size(half), fs::file_size(model) * 6 / 10);
  run = nmrf({"info", half});
  EXPECT_EQ(run.code, 0) << run.err;
  // Sizes that are not those of the file are refused with the shapes.
  run = nmrf({"convert", model, folder / "k.safetensors", "--set", "gamma1.channels=32"});
  EXPECT_EQ(run.code, 4);
  EXPECT_TRUE(contains(run.out, "in the network")) << run.out;
  EXPECT_FALSE(fs::exists(folder / "k.safetensors"));
}

}  // namespace
}  // namespace nmrf::test
