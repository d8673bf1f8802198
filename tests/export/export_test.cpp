// Exported networks on ONNX Runtime, compared with the runtime.
#include "export/export.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <set>

#include "core/fields.h"
#include "core/file.h"
#include "export/onnx_runtime.h"
#include "kernels/modals.h"
#include "network/formula.h"
#include "network/formula_images.h"
#include "network/model_file.h"
#include "network/network_run.h"
#include "nmrf/files.h"
#include "support/support.h"
#include "weights/tensor_file.h"

namespace nmrf {
namespace {

using test::OnnxInput;

template <class T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

OnnxInput image_input(const std::string& name, const Image& image, bool byte_image) {
  const int width = image.width(), height = image.height();
  std::vector<std::uint8_t> planes;
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) planes.push_back(image.row(y)[3 * x + c]);
  OnnxInput input{name, byte_image ? "uint8" : "float32", {1, 3, height, width}, planes};
  if (!byte_image) input.bytes = bytes_of(std::vector<float>(planes.begin(), planes.end()));
  return input;
}

// The k best modals of every cell as the runtime picks them, and where the choice is free because
// two of the k + 1 best are equal: there ONNX takes the lower plane, the runtime what the published
// code takes.
struct Modals {
  std::vector<std::int64_t> planes;
  std::vector<bool> tied;
};

Modals modals_of(const test::KeptTrace& trace, int labels) {
  const auto& entry = trace.entries.at("prob");
  const auto planes = static_cast<std::size_t>(entry.shape.channels);
  const auto k = static_cast<std::size_t>(labels);
  kernels::ModalPicker picker(entry.shape.channels);
  Modals result;
  for (std::size_t cell = 0; cell < entry.values.size() / planes; ++cell) {
    const float* p = entry.values.data() + cell * planes;
    std::vector<float> values;
    for (std::size_t z = 0; z < planes; ++z) {
      const float peak =
          std::max({p[z], z > 0 ? p[z - 1] : p[z], z + 1 < planes ? p[z + 1] : p[z]});
      values.push_back(p[z] == peak ? p[z] : std::min(p[z], 1e-3f));
    }
    result.planes.resize((cell + 1) * k);
    picker.pick(values.data(), labels, result.planes.data() + cell * k);
    std::sort(values.rbegin(), values.rend());
    bool tie = false;
    for (std::size_t i = 0; i < k && i + 1 < planes; ++i) tie = tie || values[i] == values[i + 1];
    result.tied.push_back(tie);
  }
  return result;
}

// Messages carry a choice among equals far across the image. So that all pixels can be compared,
// the seeds become an input, and those that the graph finds an output.
void open_seeds(onnx::ModelProto& model) {
  auto* graph = model.mutable_graph();
  std::string found;
  for (const auto& node : graph->node())
    if (node.name() == "cost_volume/TopK") found = node.output(1);
  ASSERT_FALSE(found.empty());
  for (auto& node : *graph->mutable_node())
    for (auto& input : *node.mutable_input())
      if (input == found) input = "seeds";
  auto free_matrix = [](onnx::ValueInfoProto& info, const char* name, int type) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    for (const char* axis : {"cells", "labels"})
      tensor->mutable_shape()->add_dim()->set_dim_param(axis);
  };
  free_matrix(*graph->add_input(), "seeds", onnx::TensorProto::INT64);
  free_matrix(*graph->add_output(), "found", onnx::TensorProto::FLOAT);
  auto* cast = graph->add_node();
  cast->set_op_type("Cast");
  cast->add_input(found);
  cast->add_output("found");
  auto* to = cast->add_attribute();
  to->set_name("to");
  to->set_type(onnx::AttributeProto::INT);
  to->set_i(onnx::TensorProto::FLOAT);
}

struct Difference {
  double median = 0, within = 0, largest = 0, confidence = 0;
  double untied = 0, same_seeds = 0;  // share of cells, and of those, share with the same seeds
};

Difference difference(const std::vector<float>& theirs, const std::vector<float>& confidence,
                      const test::NetworkRun& ours, int width, int height) {
  std::vector<double> apart;
  Difference result;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const auto i = static_cast<std::size_t>(y * width + x);
      apart.push_back(std::abs(theirs[i] - ours.disparity.at(y, x)));
      result.confidence =
          std::max(result.confidence, double(std::abs(confidence[i] - ours.confidence.at(y, x))));
      result.within += apart.back() <= 0.05;
      result.largest = std::max(result.largest, apart.back());
    }
  result.within /= double(apart.size());
  std::nth_element(apart.begin(), apart.begin() + long(apart.size() / 2), apart.end());
  result.median = apart[apart.size() / 2];
  return result;
}

void compare_seeds(const std::vector<float>& found, const Modals& modals, Difference& result) {
  const std::size_t k = modals.planes.size() / modals.tied.size();
  double untied = 0, same = 0;
  for (std::size_t cell = 0; cell < modals.tied.size(); ++cell) {
    if (modals.tied[cell]) continue;
    ++untied;
    bool equal = true;
    for (std::size_t i = cell * k; i < (cell + 1) * k; ++i)
      equal = equal && std::int64_t(found[i]) == modals.planes[i];
    same += equal;
  }
  result.untied = untied / double(modals.tied.size());
  result.same_seeds = untied > 0 ? same / untied : 1;
}

struct Case {
  std::string name, preset = "paper";
  std::vector<std::string> set;
  ExportOptions how;
  int width = 104, height = 72;
  bool guided = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class OnnxParity : public testing::TestWithParam<Case> {};

// Exports, runs both on the same images and compares. own_seeds: the graph uses its own.
Difference compare_both(const std::filesystem::path& runtime, Parameters& parameters,
                        const ModelOptions& options, const ExportOptions& how, const Image& left,
                        const Image& right, const FloatMap& guide, bool own_seeds = false) {
  const Network network(parameters, options);
  test::KeptTrace trace;
  const auto ours = test::run_network(network, left, right, 1, &trace, guide);
  const Modals modals = modals_of(trace, options.labels);

  test::TempFolder folder;
  onnx::ModelProto model = make_onnx(parameters, options, how);
  std::vector<OnnxInput> inputs{image_input("left", left, how.byte_images),
                                image_input("right", right, how.byte_images)};
  std::vector<std::string> outputs{"disparity", "confidence"};
  if (!own_seeds) {
    open_seeds(model);
    inputs.push_back({"seeds",
                      "int64",
                      {static_cast<int>(modals.tied.size()), options.labels},
                      bytes_of(modals.planes)});
    outputs.push_back("found");
  }
  write_file(folder / "model.onnx", model.SerializeAsString());
  if (options.guide && how.guide) {
    std::vector<float> values(static_cast<std::size_t>(left.width() * left.height()), -1.0f);
    if (!guide.empty())
      for (int y = 0; y < left.height(); ++y)
        std::copy_n(guide.row(y), left.width(), values.begin() + y * left.width());
    inputs.push_back({"guide", "float32", {1, 1, left.height(), left.width()}, bytes_of(values)});
  }
  const auto theirs = test::run_onnx(runtime, folder / "model.onnx", inputs, outputs);
  if (theirs.outputs.empty()) return {};
  Difference result = difference(theirs.outputs.at("disparity"), theirs.outputs.at("confidence"),
                                 ours, left.width(), left.height());
  if (!own_seeds) compare_seeds(theirs.outputs.at("found"), modals, result);
  return result;
}

void print_difference(const Difference& d) {
  std::cout << "  median " << d.median << " px, within 0.05 px " << 100 * d.within << " %, largest "
            << d.largest << " px; confidence " << d.confidence << "; cells without ties "
            << 100 * d.untied << " %, of these with the same seeds " << 100 * d.same_seeds
            << " %\n";
}

TEST_P(OnnxParity, FormulaWeights) {
  NMRF_NEED_ONNX_RUNTIME(runtime);
  const Case& c = GetParam();
  ModelOptions options = preset_options(c.preset);
  options.max_disp = 96;
  // The highest frequencies of the encoding turn a rounding error into another winner: they stay in
  // the cases that name none of the switches.
  if (!c.set.empty()) options.encoding_frequencies = 9;
  for (const auto& assignment : c.set) set_field(options, assignment);
  FormulaParameters formula;
  const auto [left, right] = test::formula_images(c.width, c.height);
  ExportOptions how = c.how;
  how.width = c.width;
  how.height = c.height;
  FloatMap guide;
  if (c.guided) {
    guide = FloatMap((c.width + 7) / 8 * 8, (c.height + 7) / 8 * 8);
    for (int y = 0; y < guide.height(); ++y)
      for (int x = 0; x < guide.width(); ++x)
        guide.row(y)[x] = float(8 + 8 * (std::min(y, c.height - 1) / 16 % 3)) +
                          0.1f * float(std::min(x, c.width - 1) % 7);
  }
  const Difference d = compare_both(runtime, formula, options, how, left, right, guide);
  print_difference(d);
  EXPECT_GT(d.untied, 0.2);
  EXPECT_GE(d.same_seeds, c.how.half ? 0.5 : 0.99);
  EXPECT_LE(d.median, c.how.half ? 0.05 : 1e-3);
  EXPECT_GE(d.within, c.how.half ? 0.5 : 0.99);
  EXPECT_LE(d.confidence, c.how.half ? 1 : 0.05);
}

ExportOptions dynamic_size() {
  ExportOptions how;
  how.dynamic = true;
  return how;
}
ExportOptions with(int opset, bool half, bool byte_images) {
  ExportOptions how;
  how.opset = opset;
  how.half = half;
  how.byte_images = byte_images;
  return how;
}

std::vector<Case> cases() {
  std::vector<Case> all{
      {"Paper", "paper", {}, {}},
      {"PaperDynamic", "paper", {}, dynamic_size(), 101, 75},
      {"OddSize", "paper", {}, {}, 99, 67},
      {"Opset13", "paper", {}, with(13, false, false)},
      {"Bytes", "paper", {}, with(17, false, true)},
      {"Half", "paper", {"encoding.frequencies=9"}, with(17, true, false)},
      {"NoSelfEdges", "paper", {"inference.self_edges=none"}, {}},
      {"SharedSelfEdges", "paper", {"inference.self_edges=shared"}, {}},
      {"FixedBias", "paper", {"inference.adaptive_bias=false"}, {}},
      {"NoPosition",
       "paper",
       {"inference.adaptive_bias=false", "inference.position_aggregation=false"},
       {}},
      {"NoAggregation", "paper", {"inference.position_aggregation=false"}, {}},
      {"Local", "paper", {"propagation.neighbourhood=local"}, {}},
      {"LocalDynamic", "paper", {"propagation.neighbourhood=local"}, dynamic_size(), 88, 101},
      {"NoRefinement", "paper", {"refinement.count=0"}, {}},
      {"TwoRefinements", "paper", {"refinement.count=2"}, {}},
      {"Fast", "fast", {}, {}},
      {"FastGuided", "fast", {}, {}, 104, 72, true},
      {"FastGuidedDynamic", "fast", {}, dynamic_size(), 90, 70, true},
      {"FastTwoRefinements", "fast", {"refinement.count=2"}, {}},
      {"FastHalf", "fast", {}, with(17, true, true)},
      {"Swin", "swin", {"encoding.frequencies=9"}, {}},
      {"SwinDynamic", "swin", {"encoding.frequencies=9"}, dynamic_size(), 101, 75},
      {"FewPlanes", "fast", {"seeds.max_disp=32"}, {}},
      {"MorePlanesThanColumns", "paper", {"seeds.max_disp=192"}, {}},
  };
  for (int k : {1, 2, 3, 5, 6})
    for (const char* preset : {"paper", "fast"})
      all.push_back({std::string("Labels") + std::to_string(k) + (preset[0] == 'p' ? "" : "Fast"),
                     preset,
                     {"seeds.labels=" + std::to_string(k)},
                     {}});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Switches, OnnxParity, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// The shipped model on the bundled pair.
TEST(Onnx, ShippedModelOnTheBundledPair) {
  NMRF_NEED_ONNX_RUNTIME(runtime);
  const std::string path = NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors";
  const TensorFile file = read_tensor_file(path);
  const ModelOptions options = options_of(file, path);
  StoredParameters stored(file, path);
  const Image left = read_image(NMRF_SOURCE_DIR "/examples/pair/left.png"),
              right = read_image(NMRF_SOURCE_DIR "/examples/pair/right.png");
  ExportOptions how;
  how.width = left.width();
  how.height = left.height();
  const Difference d = compare_both(runtime, stored, options, how, left, right, {});
  print_difference(d);
  EXPECT_LE(d.median, 1e-3);
  EXPECT_GE(d.within, 0.99);
  EXPECT_GE(d.same_seeds, 0.99);
  std::cout << "  with the seeds of the graph, ties to the lower plane:\n";
  print_difference(compare_both(runtime, stored, options, how, left, right, {}, true));
  std::cout << "  in 16 bits:\n";
  how.half = true;
  const Difference half = compare_both(runtime, stored, options, how, left, right, {});
  print_difference(half);
  EXPECT_LE(half.median, 5e-3);
  EXPECT_GE(half.within, 0.98);
}

TEST(Onnx, FileIsSmallAndSaysWhatItIs) {
  FormulaParameters formula;
  ExportOptions how;
  how.width = 1248;
  how.height = 376;
  const onnx::ModelProto model =
      make_onnx(formula, preset_options("paper"), how, {{"trained_on", "formula"}});
  std::cout << "  " << model.ByteSizeLong() / 1e6 << " MB, " << model.graph().node_size()
            << " nodes\n";
  EXPECT_LE(model.ByteSizeLong(), 30'000'000u);
  std::map<std::string, std::string> metadata;
  for (const auto& entry : model.metadata_props()) metadata[entry.key()] = entry.value();
  EXPECT_EQ(metadata["format"], "nmrf");
  EXPECT_EQ(metadata["trained_on"], "formula");
  EXPECT_EQ(metadata["size"], "1248x376");
  EXPECT_NE(metadata["options"].find("\"max_disp\":320"), std::string::npos);
  std::set<std::string> stages, read;
  for (const auto& output : model.graph().output()) read.insert(output.name());
  for (const auto& node : model.graph().node())
    read.insert(node.input().begin(), node.input().end());
  for (const auto& tensor : model.graph().initializer())
    EXPECT_TRUE(read.contains(tensor.name())) << tensor.name();
  for (const auto& node : model.graph().node()) {
    EXPECT_EQ(node.domain(), "") << node.name();
    EXPECT_TRUE(std::any_of(node.output().begin(), node.output().end(), [&](const auto& output) {
      return read.contains(output);
    })) << node.name();
    stages.insert(node.name().substr(0, node.name().find('/')));
  }
  for (const char* stage : {"backbone", "cost_volume", "propagation", "gamma_coarse", "inference",
                            "gamma_fine", "refinement", "heads"})
    EXPECT_TRUE(stages.contains(stage)) << stage;
  how.half = true;
  const onnx::ModelProto narrow = make_onnx(formula, preset_options("paper"), how);
  EXPECT_LE(narrow.ByteSizeLong(), 16'000'000u);
}

TEST(Onnx, OptionsWithoutSense) {
  FormulaParameters formula;
  auto message = [&](const ExportOptions& how) {
    return test::error_of(ErrorKind::kUsage,
                          [&] { make_onnx(formula, preset_options("fast"), how); });
  };
  ExportOptions how;
  how.opset = 12;
  EXPECT_NE(message(how).find("13 to 17"), std::string::npos);
  how.opset = 15;
  EXPECT_NE(
      test::error_of(ErrorKind::kUsage, [&] { make_onnx(formula, preset_options("swin"), how); })
          .find("16 or more"),
      std::string::npos);
  how = {};
  how.width = 31;
  EXPECT_NE(message(how).find("32 to 16384"), std::string::npos);
  how = {};
  how.height = 20000;
  EXPECT_NE(message(how).find("32 to 16384"), std::string::npos);
}

}  // namespace
}  // namespace nmrf
