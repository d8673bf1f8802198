#include "network/model_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "network/formula.h"
#include "support/support.h"
#include "weights/safetensors.h"

namespace nmrf {
namespace {

// The parameters of a preset by formula.
std::vector<ParameterValues> values_of(const ModelOptions& options) {
  FormulaParameters formula;
  std::vector<ParameterValues> values;
  for (const auto& spec : parameters_of(options))
    values.push_back({spec, formula.take(spec.name, spec.shape)});
  return values;
}

TEST(ModelFile, KeepsOptionsAndWeights) {
  test::TempFolder folder;
  const auto path = folder / "model.safetensors";
  const ModelOptions options = preset_options("fast");
  for (bool half : {false, true}) {
    save_model(path, options, values_of(options), {{"author", "me"}}, half);
    const LoadedModel loaded = load_model(path);
    EXPECT_EQ(to_json_object(loaded.network->options()), to_json_object(options));
    EXPECT_EQ(loaded.metadata.at("author"), "me");
    const TensorFile file = read_tensor_file(path);
    EXPECT_TRUE(check_weights(options, file, "file").complete());
    FormulaParameters formula;
    const auto expected = formula.take("backbone.conv2.weight", {96, 64, 1, 1}),
               stored = to_floats(*file.find("backbone.conv2.weight"));
    ASSERT_EQ(stored.size(), expected.size());
    for (std::size_t i = 0; i < stored.size(); ++i)
      EXPECT_NEAR(stored[i], expected[i], half ? 5e-4 * std::abs(expected[i]) + 1e-7 : 0);
  }
}

TEST(ModelFile, BytesAreChosenByTheMark) {
  test::TempFolder folder;
  const auto path = folder / "model.safetensors";
  const ModelOptions options = preset_options("fast");
  save_model(path, options, values_of(options));
  EXPECT_FALSE(load_model(path, {}, std::nullopt).bytes);
  EXPECT_TRUE(load_model(path, {}, true).bytes);
  save_model(path, options, values_of(options), {{kBytesKey, kBytesChecked}});
  EXPECT_TRUE(load_model(path, {}, std::nullopt).bytes);
  EXPECT_FALSE(load_model(path, {}, false).bytes);
  EXPECT_FALSE(load_model("formula:fast", {}, std::nullopt).bytes);
}

TEST(ModelFile, OptionsThatWereRemovedAreDropped) {
  test::TempFolder folder;
  const auto path = folder / "model.safetensors";
  const ModelOptions options = preset_options("fast");
  save_model(path, options, values_of(options));
  TensorFile file = read_tensor_file(path);
  auto object = nlohmann::json::parse(file.metadata.at("options"));
  object["match"]["border"] = true;
  file.metadata["options"] = object.dump();
  EXPECT_EQ(to_json_object(options_of(file, "old")), to_json_object(options));
  object["match"]["boarder"] = true;
  file.metadata["options"] = object.dump();
  test::error_of(ErrorKind::kModel, [&] { options_of(file, "wrong"); });
}

TEST(ModelFile, ChangesThatNeedOtherWeightsAreRefused) {
  test::TempFolder folder;
  const auto path = folder / "model.safetensors";
  save_model(path, preset_options("fast"), values_of(preset_options("fast")));
  EXPECT_EQ(load_model(path, {"seeds.labels=3"}).network->options().labels, 3);
  EXPECT_EQ(load_model(path, {"refinement.count=0"}).network->options().refinements, 0);
  load_model(path, {"inference.self_edges=none"});
  const std::string message = test::error_of(
      ErrorKind::kModel, [&] { load_model(path, {"inference.adaptive_bias=false"}); });
  EXPECT_NE(message.find("weights of its own"), std::string::npos) << message;
}

TEST(ModelFile, WhatIsMissingIsListed) {
  test::TempFolder folder;
  const auto path = folder / "model.safetensors";
  auto values = values_of(preset_options("fast"));
  values.erase(values.begin());
  values[3].values[0] = NAN;
  save_model(path, preset_options("fast"), values);
  EXPECT_NE(test::error_of(ErrorKind::kModel, [&] { load_model(path); }).find("1 missing"),
            std::string::npos);
  values = values_of(preset_options("fast"));
  values[3].values[0] = NAN;
  save_model(path, preset_options("fast"), values);
  EXPECT_NE(test::error_of(ErrorKind::kModel, [&] { load_model(path); }).find("NaN"),
            std::string::npos);
}

TEST(ToHalf, RoundsToTheNearest) {
  auto back = [](float value) {
    const std::uint16_t bits = to_half(value);
    StoredTensor tensor{"x", DType::kF16, {}, {reinterpret_cast<const std::uint8_t*>(&bits), 2}};
    return to_floats(tensor)[0];
  };
  for (float exact : {0.0f, 1.0f, -2.5f, 65504.0f, 6.103515625e-5f, 5.9604644775390625e-8f})
    EXPECT_EQ(back(exact), exact);
  EXPECT_EQ(back(1.00048828125f), 1.0f) << "a tie goes to the even one";
  EXPECT_EQ(back(1.00146484375f), 1.001953125f);
  EXPECT_EQ(back(65520.0f), INFINITY);
  EXPECT_EQ(back(65519.0f), 65504.0f);
  EXPECT_EQ(back(1e-8f), 0.0f);
  EXPECT_TRUE(std::isnan(back(NAN)));
  EXPECT_TRUE(std::signbit(back(-0.0f)));
}

}  // namespace
}  // namespace nmrf
