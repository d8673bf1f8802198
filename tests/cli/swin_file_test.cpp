// A checkpoint with a Swin-T backbone as PyTorch writes it, through the command.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "cli/run.h"
#include "core/file.h"
#include "io/npy.h"
#include "network/formula.h"
#include "network/network.h"
#include "weights/pth_builder.h"

namespace nmrf::test {
namespace {

struct Content {
  std::vector<MadeTensor> tensors;
  std::vector<std::string> storages;

  void add(const std::string& name, const std::vector<std::int64_t>& shape, std::string bytes,
           const std::string& storage = "FloatStorage") {
    MadeTensor tensor;
    tensor.name = name;
    tensor.shape = shape;
    tensor.strides.assign(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;)
      tensor.strides[i - 1] = tensor.strides[i] * shape[i];
    tensor.key = std::to_string(storages.size());
    tensor.storage = storage;
    tensor.storage_elements =
        static_cast<std::int64_t>(bytes.size()) / (storage == "FloatStorage" ? 4 : 8);
    tensors.push_back(std::move(tensor));
    storages.push_back(std::move(bytes));
  }
};

// Weights by formula, and the buffers of the authors' files.
Content swin_content() {
  Content content;
  FormulaParameters formula;
  for (const auto& spec : parameters_of(preset_options("swin"))) {
    const auto values = formula.take(spec.name, spec.shape);
    content.add(spec.name, spec.shape,
                {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  content.add("image_encoder.mean", {1, 3, 1, 1}, floats({123.675f, 116.28f, 103.53f}));
  content.add("image_encoder.std", {1, 3, 1, 1}, floats({58.395f, 57.12f, 57.375f}));
  content.add("device_indicator_tensor", {0}, "");
  content.add("image_encoder.backbone.layers.0.blocks.0.attn.relative_position_index", {2, 2},
              std::string(32, '\0'), "LongStorage");
  return content;
}

void write_pth(const fs::path& path, const Content& content) {
  write_file(path, make_pth(state_dict_pickle(content.tensors, "model"), content.storages));
}

TEST(SwinFile, MatchesAndConverts) {
  TempFolder folder;
  const std::string pth = folder / "swint.pth", converted = folder / "swint.safetensors";
  Content content = swin_content();
  write_pth(pth, content);
  Outcome run = nmrf({"convert", pth, converted});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out,
                       "591 tensors used, 0 missing, 0 unexpected, 0 of another shape, 4 "
                       "ignored"))
      << run.out;
  run = nmrf({"info", converted, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto info = json_lines(run.out).at(0);
  EXPECT_EQ(info["parameters"], 32548116);
  EXPECT_EQ(info["options"]["backbone"]["kind"], "swin-t");
  EXPECT_NEAR(info["stages"]["backbone"]["gflop"].get<double>(), 153.5, 0.1);
  EXPECT_EQ(info["stages"]["backbone"]["parameters"], 27517818 + 425088);

  // The same map through either file and from the formula.
  put_pair(folder / "left.png", folder / "right.png");
  std::vector<FloatMap> maps;
  for (const std::string& model : {pth, converted, std::string("formula:swin")}) {
    run = nmrf({"match", folder / "left.png", folder / "right.png", "--model", model, "--max-disp",
                "64", "-o", folder / "d.pfm"});
    ASSERT_EQ(run.code, 0) << model << ": " << run.err;
    maps.push_back(read_disparity(folder / "d.pfm"));
    expect_good_map(maps.back(), kWidth, kHeight);
    EXPECT_EQ(maps.back(), maps[0]) << model;
  }

  // A tensor less, one more and one of another shape are named.
  content.tensors[0].name = "image_encoder.backbone.no_such";
  auto matrix = std::find_if(content.tensors.begin(), content.tensors.end(),
                             [](const MadeTensor& tensor) { return tensor.shape.size() == 2; });
  std::reverse(matrix->shape.begin(), matrix->shape.end());
  matrix->strides[0] = matrix->shape[1];
  write_pth(pth, content);
  run = nmrf(
      {"match", folder / "left.png", folder / "right.png", "--model", pth, "-o", folder / "e.pfm"});
  EXPECT_EQ(run.code, 4);
  EXPECT_TRUE(contains(run.err, "1 missing, 1 unexpected, 1 of another shape")) << run.err;
  EXPECT_TRUE(contains(run.err, "image_encoder.backbone.no_such")) << run.err;
  EXPECT_FALSE(fs::exists(folder / "e.pfm"));
}

TEST(SwinFile, GivesThePublishedMap) {
  NMRF_NEED_SHARED("golden/swin_100x180");
  TempFolder folder;
  const fs::path golden = shared_folder() / "golden/swin_100x180";
  write_pth(folder / "swint.pth", swin_content());
  const Outcome run = nmrf({"match", golden / "left.png", golden / "right.png", "--model",
                            folder / "swint.pth", "-o", folder / "d.pfm"});
  ASSERT_EQ(run.code, 0) << run.err;
  const NpyArray disp = read_npy(golden / "disp.npy");
  FloatMap expected(180, 100);
  std::copy_n(disp.data<float>(), expected.size(), expected.data());
  const double largest = largest_difference(read_disparity(folder / "d.pfm"), expected);
  std::cout << "  disparity of nmrf match: largest difference " << largest << " px\n";
  EXPECT_LT(largest, 5e-3);
}

}  // namespace
}  // namespace nmrf::test
