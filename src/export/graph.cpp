#include "export/graph.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/check.h"
#include "weights/tensor_file.h"

namespace nmrf::graph {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string bytes_of(const std::vector<float>& values, Type type) {
  if (type == Type::kFloat) return bytes_of(values);
  std::vector<std::uint16_t> halves(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) halves[i] = to_half(values[i]);
  return bytes_of(halves);
}

void set_shape(onnx::ValueInfoProto& info, Type type, const std::vector<Graph::Axis>& shape) {
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(static_cast<int>(type));
  for (const auto& axis : shape) {
    auto* dimension = tensor->mutable_shape()->add_dim();
    if (axis.size >= 0)
      dimension->set_dim_value(axis.size);
    else
      dimension->set_dim_param(axis.free_name);
  }
}

struct SetAttribute {
  onnx::AttributeProto& to;
  void operator()(std::int64_t value) const {
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(value);
  }
  void operator()(float value) const {
    to.set_type(onnx::AttributeProto::FLOAT);
    to.set_f(value);
  }
  void operator()(const std::string& value) const {
    to.set_type(onnx::AttributeProto::STRING);
    to.set_s(value);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    to.set_type(onnx::AttributeProto::INTS);
    for (std::int64_t value : values) to.add_ints(value);
  }
};

Graph& graph_of(const Size& a, const Size& b) { return a.graph ? *a.graph : *b.graph; }

}  // namespace

Size operator+(const Size& a, const Size& b) {
  if (a.fixed() && b.fixed()) return a.value + b.value;
  return graph_of(a, b).arithmetic("Add", a, b);
}
Size operator-(const Size& a, const Size& b) {
  if (a.fixed() && b.fixed()) return a.value - b.value;
  return graph_of(a, b).arithmetic("Sub", a, b);
}
Size operator*(const Size& a, const Size& b) {
  if (a.fixed() && b.fixed()) return a.value * b.value;
  return graph_of(a, b).arithmetic("Mul", a, b);
}
Size operator/(const Size& a, const Size& b) {
  if (a.fixed() && b.fixed()) return a.value / b.value;
  return graph_of(a, b).arithmetic("Div", a, b);
}
Size operator%(const Size& a, const Size& b) {
  if (a.fixed() && b.fixed()) return a.value % b.value;
  return graph_of(a, b).arithmetic("Mod", a, b);
}
Size missing_to_multiple(const Size& size, std::int64_t unit) {
  return (Size(unit) - size % unit) % unit;
}

Graph::Graph(Parameters& parameters, int opset, bool half)
    : parameters_(parameters),
      opset_(opset),
      half_(half),
      model_(std::make_unique<onnx::ModelProto>()) {
  model_->mutable_graph();
}

Graph::~Graph() = default;

onnx::ModelProto Graph::take() {
  // Nodes are in the order of their making: what no later one reads, and no output, is left out.
  auto* graph = model_->mutable_graph();
  std::set<std::string> read;
  for (const auto& output : graph->output()) read.insert(output.name());
  std::vector<onnx::NodeProto> kept;
  for (int i = graph->node_size() - 1; i >= 0; --i) {
    auto& made = *graph->mutable_node(i);
    bool used = false;
    for (const auto& output : made.output()) used = used || read.contains(output);
    if (!used) continue;
    for (const auto& input : made.input()) read.insert(input);
    kept.push_back(std::move(made));
  }
  graph->clear_node();
  for (auto node = kept.rbegin(); node != kept.rend(); ++node)
    *graph->add_node() = std::move(*node);
  auto* constants = graph->mutable_initializer();
  constants->erase(
      std::remove_if(constants->begin(), constants->end(),
                     [&](const auto& tensor) { return !read.contains(tensor.name()); }),
      constants->end());
  return std::move(*model_);
}

Graph::Scope::Scope(Graph& graph, const std::string& stage)
    : graph_(graph), length_(graph.scope_.size()) {
  graph.scope_ += stage + "/";
}

std::string Graph::unique(const std::string& name) {
  const int before = names_[name]++;
  return before == 0 ? name : unique(name + "_" + std::to_string(before));
}

// ---- Ends
// ----------------------------------------------------------------------------------------

Value Graph::input(const std::string& name, Type type, const std::vector<Axis>& shape) {
  auto* info = model_->mutable_graph()->add_input();
  info->set_name(unique(name));
  set_shape(*info, type, shape);
  return {name, type};
}

void Graph::output(const std::string& name, const Value& value, const std::vector<Axis>& shape) {
  auto* info = model_->mutable_graph()->add_output();
  info->set_name(unique(name));
  set_shape(*info, value.type, shape);
  auto* last = model_->mutable_graph()->add_node();
  last->set_op_type("Identity");
  last->set_name("output/" + name);
  last->add_input(value.name);
  last->add_output(name);
}

Size Graph::size_of(const Value& value, std::int64_t axis) {
  const Value shape = node("Shape", {value}, Type::kInt64);
  return computed(gather(shape, ints({axis}), 0).name);
}

// ---- Constants
// -----------------------------------------------------------------------------------

Value Graph::store(const std::string& name, Type type, const std::vector<std::int64_t>& shape,
                   std::string bytes) {
  auto* tensor = model_->mutable_graph()->add_initializer();
  tensor->set_name(unique(name));
  tensor->set_data_type(static_cast<int>(type));
  for (std::int64_t size : shape) tensor->add_dims(size);
  tensor->set_raw_data(std::move(bytes));
  return {tensor->name(), type};
}

Value Graph::shared_constant(Type type, const std::vector<std::int64_t>& shape, std::string bytes) {
  const std::string key = bytes_of(std::vector<int>{static_cast<int>(type)}) +
                          bytes_of(std::vector<std::size_t>{shape.size()}) + bytes_of(shape) +
                          bytes;
  const auto found = constants_.find(key);
  if (found != constants_.end()) return found->second;
  const std::string name = "constants/" + std::to_string(constants_.size());
  return constants_.emplace(key, store(name, type, shape, std::move(bytes))).first->second;
}

std::vector<float> Graph::parameter_values(const std::string& name,
                                           std::vector<std::int64_t> shape) {
  return parameters_.take(name, std::move(shape));
}

Value Graph::parameter(const std::string& name, std::vector<std::int64_t> shape, Type type) {
  const auto found = stored_.find(name);
  if (found != stored_.end()) return found->second;
  const std::vector<float> values = parameter_values(name, shape);
  return stored_.emplace(name, store(name, type, shape, bytes_of(values, type))).first->second;
}

Value Graph::floats(const std::vector<float>& values, const std::vector<std::int64_t>& shape,
                    Type type) {
  return shared_constant(type, shape, bytes_of(values, type));
}

Value Graph::ints(const std::vector<std::int64_t>& values) {
  return shared_constant(Type::kInt64, {static_cast<std::int64_t>(values.size())},
                         bytes_of(values));
}

Value Graph::integer(std::int64_t value) {
  return shared_constant(Type::kInt64, {}, bytes_of(std::vector<std::int64_t>{value}));
}

// ---- Sizes
// ---------------------------------------------------------------------------------------

Size Graph::computed(const std::string& name) {
  Size size;
  size.name = name;
  size.graph = this;
  return size;
}

Value Graph::sizes(const std::vector<Size>& all) {
  std::vector<std::int64_t> numbers;
  std::string key = "[";
  for (const Size& size : all) {
    if (size.fixed()) numbers.push_back(size.value);
    key += (size.fixed() ? std::to_string(size.value) : size.name) + ",";
  }
  if (numbers.size() == all.size()) return ints(numbers);
  if (all.size() == 1) return {all[0].name, Type::kInt64};
  if (const auto found = sizes_.find(key); found != sizes_.end()) return found->second;
  std::vector<Value> parts;
  for (const Size& size : all)
    parts.push_back(size.fixed() ? ints({size.value}) : Value{size.name, Type::kInt64});
  return sizes_.emplace(key, concat(parts, 0)).first->second;
}

Size Graph::arithmetic(const char* op, const Size& a, const Size& b) {
  auto value = [&](const Size& size) {
    return size.fixed() ? ints({size.value}) : Value{size.name, Type::kInt64};
  };
  const Value left = value(a), right = value(b);
  const std::string key = op + (" " + left.name + " " + right.name);
  auto found = sizes_.find(key);
  if (found == sizes_.end())
    found = sizes_.emplace(key, node(op, {left, right}, Type::kInt64)).first;
  return computed(found->second.name);
}

Value Graph::range(const Size& count) {
  Value end = integer(count.value);
  if (!count.fixed()) end = node("Squeeze", {sizes({count}), ints({0})}, Type::kInt64);
  return node("Range", {integer(0), end, integer(1)}, Type::kInt64);
}

// ---- Nodes
// ---------------------------------------------------------------------------------------

std::vector<Value> Graph::nodes(const char* op, const std::vector<Value>& inputs,
                                const std::vector<Type>& types, const Attributes& attributes) {
  auto* made = model_->mutable_graph()->add_node();
  const std::string name = unique(scope_ + op);
  made->set_op_type(op);
  made->set_name(name);
  for (const Value& input : inputs) made->add_input(input.name);
  std::vector<Value> results;
  for (std::size_t i = 0; i < types.size(); ++i) {
    results.push_back({types.size() == 1 ? name : name + ":" + std::to_string(i), types[i]});
    made->add_output(results.back().name);
  }
  for (const auto& [key, value] : attributes) {
    auto* attribute = made->add_attribute();
    attribute->set_name(key);
    std::visit(SetAttribute{*attribute}, value);
  }
  return results;
}

Value Graph::node(const char* op, const std::vector<Value>& inputs, Type type,
                  const Attributes& attributes) {
  return nodes(op, inputs, {type}, attributes)[0];
}

Value Graph::cast(const Value& x, Type type) {
  if (x.type == type) return x;
  return node("Cast", {x}, type, {{"to", static_cast<std::int64_t>(type)}});
}

Value Graph::clamp(const Value& x, const Value& most) {
  const Value least = x.type == Type::kInt64 ? integer(0) : scalar(0, x.type);
  return node("Min", {node("Max", {x, least}, x.type), most}, x.type);
}

Value Graph::reshape(const Value& x, const std::vector<Size>& shape) {
  // One unknown size follows from the others.
  std::vector<Size> plain = shape;
  Size* unknown = nullptr;
  int count = 0;
  for (Size& size : plain)
    if (!size.fixed()) {
      unknown = &size;
      ++count;
    }
  if (count == 1) *unknown = Size(-1);
  return node("Reshape", {x, sizes(plain)}, x.type);
}

Value Graph::slice(const Value& x, std::int64_t axis, const Size& begin, const Size& end) {
  return node("Slice", {x, sizes({begin}), sizes({end}), ints({axis})}, x.type);
}

Value Graph::reverse(const Value& x, std::int64_t axis) {
  constexpr std::int64_t kBeforeFirst = INT64_MIN + 1;
  return node("Slice", {x, ints({-1}), ints({kBeforeFirst}), ints({axis}), ints({-1})}, x.type);
}

std::vector<Value> Graph::split(const Value& x, std::int64_t axis,
                                const std::vector<std::int64_t>& parts) {
  return nodes("Split", {x, ints(parts)}, std::vector<Type>(parts.size(), x.type),
               {{"axis", axis}});
}

Value Graph::pad(const Value& x, const std::vector<Size>& before, const std::vector<Size>& after,
                 const char* mode) {
  std::vector<Size> amounts = before;
  amounts.insert(amounts.end(), after.begin(), after.end());
  bool any = false;
  for (const Size& size : amounts) any = any || !size.fixed() || size.value != 0;
  if (!any) return x;
  return node("Pad", {x, sizes(amounts)}, x.type, {{"mode", std::string(mode)}});
}

Value Graph::reduce(const char* op, const Value& x, std::vector<std::int64_t> axes, bool keep) {
  const Attribute kept = std::int64_t{keep};
  // From opset 13 on, the axes of a sum are an input; those of the others still are not.
  if (std::strcmp(op, "ReduceSum") == 0)
    return node(op, {x, ints(axes)}, x.type, {{"keepdims", kept}});
  return node(op, {x}, x.type, {{"axes", std::move(axes)}, {"keepdims", kept}});
}

}  // namespace nmrf::graph
