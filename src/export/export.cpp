#include "export/export.h"

#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <set>

#include "core/check.h"
#include "core/fields.h"
#include "core/file.h"
#include "export/stages.h"
#include "network/network.h"
#include "nmrf/version.h"

namespace nmrf {
namespace {

// The parameters a graph has asked for.
class Counted : public Parameters {
 public:
  explicit Counted(Parameters& from) : from_(from) {}
  std::vector<float> take(const std::string& name, std::vector<std::int64_t> shape) override {
    taken_[name] = shape;
    return from_.take(name, std::move(shape));
  }
  // The graph has the parameters of the network, no more and no fewer, in the same shapes.
  void compare_with(const ModelOptions& options) const {
    std::map<std::string, std::vector<std::int64_t>> expected;
    for (const auto& spec : parameters_of(options)) expected[spec.name] = spec.shape;
    for (const auto& [name, shape] : expected)
      check(taken_.contains(name) && taken_.at(name) == shape, ErrorKind::kFailure,
            "the ONNX graph does not use the parameter {} as the network does", name);
    for (const auto& [name, shape] : taken_)
      check(expected.contains(name), ErrorKind::kFailure,
            "the ONNX graph uses {}, which is no parameter of the network", name);
  }

 private:
  Parameters& from_;
  std::map<std::string, std::vector<std::int64_t>> taken_;
};

void set_metadata(onnx::ModelProto& model, const ModelOptions& options, const ExportOptions& how,
                  std::map<std::string, std::string> metadata) {
  metadata["format"] = "nmrf";
  metadata["options"] = to_json_object(options).dump();
  metadata["size"] = fmt::format("{}x{}", how.width, how.height);
  metadata["precision"] = how.half ? "float16" : "float32";
  for (const auto& [key, value] : metadata) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
}

constexpr int kSwinOpset = 16;  // has GridSample

constexpr const char* kConventions =
    "A rectified stereo pair to the disparity of its left view. left, right: RGB, 0 to 255. "
    "disparity: pixels, positive to the left. confidence: posterior probability of the winning "
    "label, 0 to 1.";

void check_model(onnx::ModelProto& model) {
  try {
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                       {/*check_type=*/true, /*strict=*/1, /*data_prop=*/true});
    onnx::checker::check_model(model);
  } catch (const std::exception& error) {
    fail(ErrorKind::kFailure, "the ONNX graph is not valid: {}", error.what());
  }
}

}  // namespace

void ExportOptions::validate() const {
  check(opset >= kOldestOpset && opset <= kNewestOpset, ErrorKind::kUsage,
        "opset is {}; it must be {} to {}", opset, kOldestOpset, kNewestOpset);
  check(width >= kLeastSide && height >= kLeastSide && width <= kMostSide && height <= kMostSide,
        ErrorKind::kUsage, "size is {}x{}; each side must be {} to {} pixels", width, height,
        kLeastSide, kMostSide);
}

onnx::ModelProto make_onnx(Parameters& parameters, const ModelOptions& model,
                           const ExportOptions& how,
                           const std::map<std::string, std::string>& metadata) {
  using graph::Graph;
  model.validate();
  how.validate();
  check(model.backbone != BackboneKind::kSwinT || how.opset >= kSwinOpset, ErrorKind::kUsage,
        "opset is {}; a network with the backbone swin-t samples its maps, which needs {} or more",
        how.opset, kSwinOpset);
  Counted counted(parameters);
  Graph g(counted, how.opset, how.half);
  const bool fixed = !how.dynamic;
  const Graph::Axis one{1, ""}, three{3, ""}, height{fixed ? how.height : -1, "height"},
      width{fixed ? how.width : -1, "width"};
  const graph::Type type = how.byte_images ? graph::Type::kUint8 : graph::Type::kFloat;
  graph::NetworkInput input;
  input.left = g.input("left", type, {one, three, height, width});
  input.right = g.input("right", type, {one, three, height, width});
  if (model.guide && how.guide)
    input.guide = g.input("guide", graph::Type::kFloat, {one, one, height, width});
  {
    Graph::Scope scope(g, "sizes");
    input.height = fixed ? graph::Size(how.height) : g.size_of(input.left, 2);
    input.width = fixed ? graph::Size(how.width) : g.size_of(input.left, 3);
  }
  const graph::NetworkOutput output = graph::network(g, input, model);
  g.output("disparity", output.disparity, {one, one, height, width});
  g.output("confidence", output.confidence, {one, one, height, width});
  counted.compare_with(model);

  onnx::ModelProto result = g.take();
  result.set_ir_version(8);
  result.set_producer_name("nmrf");
  result.set_producer_version(NMRF_VERSION);
  result.set_doc_string(kConventions);
  result.mutable_graph()->set_name("nmrf");
  auto* opset = result.add_opset_import();
  opset->set_domain("");
  opset->set_version(how.opset);
  set_metadata(result, model, how, metadata);
  check_model(result);
  return result;
}

ExportReport export_onnx(const std::filesystem::path& path, Parameters& parameters,
                         const ModelOptions& model, const ExportOptions& how,
                         const std::map<std::string, std::string>& metadata) {
  const onnx::ModelProto made = make_onnx(parameters, model, how, metadata);
  check(made.ByteSizeLong() < (std::size_t{1} << 31), ErrorKind::kFailure,
        "{}: the model has {} bytes; an ONNX file holds less than 2 GB", path.string(),
        made.ByteSizeLong());
  write_file(path, made.SerializeAsString());
  return {std::filesystem::file_size(path), made.graph().node_size()};
}

}  // namespace nmrf
