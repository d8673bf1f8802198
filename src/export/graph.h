// Builds an ONNX graph node by node. Sizes are numbers where the export fixes them and values of
// the graph where it does not, so that one description of a stage serves both.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "network/parameters.h"

namespace onnx {
class ModelProto;
}

namespace nmrf::graph {

class Graph;

// The numbers of ONNX's TensorProto.DataType.
enum class Type : int { kFloat = 1, kUint8 = 2, kInt64 = 7, kBool = 9, kHalf = 10 };

// A size of a tensor: a number or, with a name, an int64 [1] that the graph computes.
struct Size {
  Size(std::int64_t number = 0) : value(number) {}  // NOLINT(google-explicit-constructor)
  bool fixed() const { return name.empty(); }

  std::int64_t value = 0;
  std::string name;
  Graph* graph = nullptr;
};
Size operator+(const Size& a, const Size& b);
Size operator-(const Size& a, const Size& b);
Size operator*(const Size& a, const Size& b);
Size operator/(const Size& a, const Size& b);  // rounded down; neither is negative
Size operator%(const Size& a, const Size& b);
// What makes `size` a multiple of `unit`.
Size missing_to_multiple(const Size& size, std::int64_t unit);

struct Value {
  std::string name;
  Type type = Type::kFloat;
};

using Attribute = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>>;
using Attributes = std::vector<std::pair<const char*, Attribute>>;

class Graph {
 public:
  // half: parameters, and what is computed with them, are 16-bit floats.
  Graph(Parameters& parameters, int opset, bool half);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Nodes made while it lives are named "stage/...".
  class Scope {
   public:
    Scope(Graph& graph, const std::string& stage);
    ~Scope() { graph_.scope_.resize(length_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::size_t length_;
  };

  int opset() const { return opset_; }
  // Of parameters and what is computed with them.
  Type working() const { return half_ ? Type::kHalf : Type::kFloat; }

  // ---- Ends of the graph. A negative size is free and has the name beside it.
  struct Axis {
    std::int64_t size;
    const char* free_name;
  };
  Value input(const std::string& name, Type type, const std::vector<Axis>& shape);
  void output(const std::string& name, const Value& value, const std::vector<Axis>& shape);
  // Of a value, as a size of the graph.
  Size size_of(const Value& value, std::int64_t axis);

  // ---- Constants; a parameter that two parts share and equal constants are stored once.
  Value parameter(const std::string& name, std::vector<std::int64_t> shape, Type type);
  Value parameter(const std::string& name, std::vector<std::int64_t> shape) {
    return parameter(name, std::move(shape), working());
  }
  std::vector<float> parameter_values(const std::string& name, std::vector<std::int64_t> shape);
  Value floats(const std::vector<float>& values, const std::vector<std::int64_t>& shape,
               Type type = Type::kFloat);
  Value scalar(float value, Type type = Type::kFloat) { return floats({value}, {}, type); }
  Value ints(const std::vector<std::int64_t>& values);
  Value integer(std::int64_t value);      // of no axis
  Value sizes(const std::vector<Size>&);  // int64 [n]
  // 0, 1, ... count - 1
  Value range(const Size& count);

  // ---- Nodes.
  Value node(const char* op, const std::vector<Value>& inputs, Type type,
             const Attributes& attributes = {});
  std::vector<Value> nodes(const char* op, const std::vector<Value>& inputs,
                           const std::vector<Type>& types, const Attributes& attributes = {});

  Value cast(const Value& x, Type type);
  Value full(const Value& x) { return cast(x, Type::kFloat); }
  Value work(const Value& x) { return cast(x, working()); }
  Value add(const Value& a, const Value& b) { return node("Add", {a, b}, a.type); }
  Value sub(const Value& a, const Value& b) { return node("Sub", {a, b}, a.type); }
  Value mul(const Value& a, const Value& b) { return node("Mul", {a, b}, a.type); }
  Value add(const Value& a, float b) { return add(a, scalar(b, a.type)); }
  Value mul(const Value& a, float b) { return mul(a, scalar(b, a.type)); }
  Value div(const Value& a, float b) { return node("Div", {a, scalar(b, a.type)}, a.type); }
  Value relu(const Value& x) { return node("Relu", {x}, x.type); }
  Value abs(const Value& x) { return node("Abs", {x}, x.type); }
  Value floor(const Value& x) { return node("Floor", {x}, x.type); }
  Value at_least(const Value& x, float least) {
    return node("Max", {x, scalar(least, x.type)}, x.type);
  }
  // Between 0 and `most`, of x's type and no axis.
  Value clamp(const Value& x, const Value& most);
  Value matmul(const Value& a, const Value& b) { return node("MatMul", {a, b}, a.type); }
  Value softmax(const Value& x, std::int64_t axis) {
    return node("Softmax", {x}, x.type, {{"axis", axis}});
  }
  Value equal(const Value& a, const Value& b) { return node("Equal", {a, b}, Type::kBool); }
  Value less(const Value& a, const Value& b) { return node("Less", {a, b}, Type::kBool); }
  Value less(const Value& a, float b) { return less(a, scalar(b, a.type)); }
  Value both(const Value& a, const Value& b) { return node("And", {a, b}, Type::kBool); }
  Value either(const Value& a, const Value& b) { return node("Or", {a, b}, Type::kBool); }
  Value negate(const Value& a) { return node("Not", {a}, Type::kBool); }
  Value where(const Value& condition, const Value& yes, const Value& no) {
    return node("Where", {condition, yes, no}, yes.type);
  }

  Value reshape(const Value& x, const std::vector<Size>& shape);
  Value unsqueeze(const Value& x, std::vector<std::int64_t> axes) {
    return node("Unsqueeze", {x, ints(axes)}, x.type);
  }
  Value expand(const Value& x, const std::vector<Size>& shape) {
    return node("Expand", {x, sizes(shape)}, x.type);
  }
  Value transpose(const Value& x, std::vector<std::int64_t> order) {
    return node("Transpose", {x}, x.type, {{"perm", std::move(order)}});
  }
  // [begin, end) of an axis.
  Value slice(const Value& x, std::int64_t axis, const Size& begin, const Size& end);
  Value reverse(const Value& x, std::int64_t axis);
  Value concat(const std::vector<Value>& parts, std::int64_t axis) {
    return node("Concat", parts, parts[0].type, {{"axis", axis}});
  }
  std::vector<Value> split(const Value& x, std::int64_t axis,
                           const std::vector<std::int64_t>& parts);
  // before, after: one per axis. mode: constant (zeros) or edge.
  Value pad(const Value& x, const std::vector<Size>& before, const std::vector<Size>& after,
            const char* mode);
  Value gather(const Value& x, const Value& index, std::int64_t axis) {
    return node("Gather", {x, index}, x.type, {{"axis", axis}});
  }
  Value gather_elements(const Value& x, const Value& index, std::int64_t axis) {
    return node("GatherElements", {x, index}, x.type, {{"axis", axis}});
  }
  // reduce: ReduceSum, ReduceMean, ReduceMax or ReduceMin.
  Value reduce(const char* op, const Value& x, std::vector<std::int64_t> axes, bool keep = false);
  Value arg_max(const Value& x, std::int64_t axis, bool keep) {
    return node("ArgMax", {x}, Type::kInt64, {{"axis", axis}, {"keepdims", std::int64_t{keep}}});
  }

  // The finished model, without what no output depends on; the graph is empty afterwards.
  onnx::ModelProto take();

 private:
  friend Size operator+(const Size&, const Size&);
  friend Size operator-(const Size&, const Size&);
  friend Size operator*(const Size&, const Size&);
  friend Size operator/(const Size&, const Size&);
  friend Size operator%(const Size&, const Size&);
  friend class Scope;

  Size arithmetic(const char* op, const Size& a, const Size& b);
  Size computed(const std::string& name);
  std::string unique(const std::string& name);
  Value store(const std::string& name, Type type, const std::vector<std::int64_t>& shape,
              std::string bytes);
  Value shared_constant(Type type, const std::vector<std::int64_t>& shape, std::string bytes);

  Parameters& parameters_;
  int opset_;
  bool half_;
  std::unique_ptr<onnx::ModelProto> model_;
  std::string scope_;
  std::map<std::string, int> names_;        // how often each was asked for
  std::map<std::string, Value> stored_;     // parameters
  std::map<std::string, Value> constants_;  // by content
  std::map<std::string, Value> sizes_;      // by what they are computed from
};

}  // namespace nmrf::graph
