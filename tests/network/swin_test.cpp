// The network with a Swin-T backbone, on weights by formula.
#include <gtest/gtest.h>

#include <set>

#include "network/flops.h"
#include "network/formula.h"
#include "network/formula_images.h"
#include "network/model_file.h"
#include "network/network_run.h"
#include "support/support.h"
#include "weights/safetensors.h"

namespace nmrf {
namespace {

const Network& swin_by_formula() {
  static const Network network = [] {
    FormulaParameters formula;
    return Network(formula, preset_options("swin"));
  }();
  return network;
}

TEST(Swin, FirstFormulaValues) {
  FormulaParameters formula;
  const auto values = formula.take("image_encoder.backbone.patch_embed.proj.weight", {96, 3, 4, 4});
  EXPECT_NEAR(values[0], 0.20312080, 1e-8);
  EXPECT_NEAR(values[1], 0.18573049, 1e-8);
  EXPECT_NEAR(values[2], 0.04781124, 1e-8);
}

// Spots of maps that the modules and the runtime agree on, both of which are compared with the
// published network where its tensors are at hand. {height, width, row, column, disparity}
TEST(Swin, DisparityByFormula) {
  test::expect_spots(swin_by_formula(), {
#include "network/swin_spots.inc"
                                        });
}

TEST(Swin, ParametersOfThePublishedNetwork) {
  std::int64_t all = 0, swin = 0, neck = 0;
  const auto parameters = parameters_of(preset_options("swin"));
  std::set<std::string> names;
  for (const auto& parameter : parameters) {
    names.insert(parameter.name);
    all += parameter.elements();
    if (parameter.name.starts_with("image_encoder.backbone.")) swin += parameter.elements();
    if (parameter.name.starts_with("image_encoder.neck.")) neck += parameter.elements();
  }
  EXPECT_EQ(parameters.size(), 591u);
  EXPECT_EQ(names.size(), 591u);
  EXPECT_EQ(all, 32548116);
  EXPECT_EQ(swin, 27517818);
  EXPECT_EQ(neck, 425088);
}

TEST(Swin, OperationsOfThePublishedNetwork) {
  struct Size {
    int width, height;
    double encoder, gamma, total;
  };
  for (const Size& size :
       {Size{1248, 376, 237.5, 50.3, 578.3}, Size{640, 480, 153.5, 32.2, 369.2}}) {
    const auto stages = count_flops(preset_options("swin"), size.width, size.height);
    for (const auto& stage : stages) {
      if (stage.name == "backbone") {
        EXPECT_NEAR(stage.total() / 1e9, size.encoder, 0.1);
      }
      if (stage.name == "gamma") {
        EXPECT_NEAR(stage.total() / 1e9, size.gamma, 0.1);
      }
    }
    EXPECT_NEAR(total_flops(stages) / 1e9, size.total, 0.6);
  }
}

// Grids that pad the windows of every stage, in one window and in several.
TEST(Swin, ThreadsDoNotChangeTheMap) {
  const auto [left, right] = test::formula_images(131, 50);
  const auto expected = test::run_network(swin_by_formula(), left, right, 1);
  EXPECT_EQ(expected.disparity.width(), 160);
  EXPECT_EQ(expected.disparity.height(), 64);
  for (int threads : {2, 3, 5}) {
    const auto run = test::run_network(swin_by_formula(), left, right, threads);
    EXPECT_EQ(run.disparity, expected.disparity) << threads << " threads";
    EXPECT_EQ(run.seeds, expected.seeds);
  }
}

TEST(Swin, OptionsThatDoNotFit) {
  ModelOptions options = preset_options("swin");
  EXPECT_EQ(options.aligned(375), 384);
  options.feature_channels = 256;
  EXPECT_NE(test::error_of(ErrorKind::kModel, [&] { options.validate(); }).find("128"),
            std::string::npos);
}

// What the authors' files hold beside the parameters.
TEST(Swin, FilesAreKnownByTheirKeys) {
  test::TempFolder folder;
  const auto path = folder / "swin.safetensors";
  FormulaParameters formula;
  std::vector<std::vector<float>> values;
  std::vector<StoredTensor> tensors;
  auto add = [&](const std::string& name, std::vector<std::int64_t> shape,
                 std::vector<float> content) {
    values.push_back(std::move(content));
    tensors.push_back({name,
                       DType::kF32,
                       std::move(shape),
                       {reinterpret_cast<const std::uint8_t*>(values.back().data()),
                        values.back().size() * sizeof(float)}});
  };
  for (const auto& spec : parameters_of(preset_options("swin")))
    add(spec.name, spec.shape, formula.take(spec.name, spec.shape));
  add("image_encoder.mean", {1, 3, 1, 1}, {123.675f, 116.28f, 103.53f});
  add("image_encoder.std", {1, 3, 1, 1}, {58.395f, 57.12f, 57.375f});
  add("image_encoder.backbone.layers.0.blocks.0.attn.relative_position_index", {1}, {0});
  write_safetensors(path, tensors, {});
  const TensorFile file = read_tensor_file(path);
  const ModelOptions options = options_of(file, "swin");
  EXPECT_EQ(to_json_object(options), to_json_object(preset_options("swin")));
  const LoadReport report = check_weights(options, file, "swin");
  EXPECT_EQ(report.used.size(), 591u);
  EXPECT_TRUE(report.complete());
  EXPECT_TRUE(report.unexpected.empty());
  EXPECT_EQ(report.ignored.size(), 3u);
  EXPECT_EQ(load_model(path).network->options().backbone, BackboneKind::kSwinT);

  values[591][1] = 127.5f;  // another scaling of the images
  write_safetensors(path, tensors, {});
  EXPECT_NE(test::error_of(ErrorKind::kModel, [&] { load_model(path); }).find("mean"),
            std::string::npos);
  // A misshapen and a missing tensor are named.
  values[591][1] = 116.28f;
  tensors[0].shape = {static_cast<std::int64_t>(values[0].size())};
  const std::string gone = tensors[1].name;
  tensors.erase(tensors.begin() + 1);
  write_safetensors(path, tensors, {});
  const std::string message = test::error_of(ErrorKind::kModel, [&] { load_model(path); });
  EXPECT_NE(message.find("1 missing"), std::string::npos) << message;
  EXPECT_NE(message.find(gone), std::string::npos) << message;
  EXPECT_NE(message.find("1 of another shape"), std::string::npos) << message;
}

}  // namespace
}  // namespace nmrf
