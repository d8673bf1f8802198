// Reads a Python pickle into a tree of plain values, running nothing that it asks for.
//
// A pickle is a program for a small stack machine that may name and call any function of Python.
// Here a name is only ever a string, accepted from a short list that a state dict needs, and a call
// only records the name with its arguments. Any other name ends the reading with an Error that says
// which it was.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nmrf::pickle {

enum class Kind {
  kNone,
  kBool,        // integer is 0 or 1
  kInt,         // integer
  kBigInt,      // does not fit into 64 bits; the value is not kept
  kFloat,       // real
  kString,      // text
  kBytes,       // text
  kTuple,       // items
  kList,        // items
  kSet,         // items
  kDict,        // items: key, value, key, value, ...
  kGlobal,      // text is "module.name", from the list
  kPersistent,  // items[0] is the tuple that describes a storage outside of the pickle
  kCall,        // text is the function's "module.name", items are its arguments
};

// "a dict", for messages.
const char* kind_name(Kind kind);

// Values may be shared and may contain themselves: do not walk the tree without a bound.
struct Value {
  Kind kind = Kind::kNone;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<const Value*> items;

  bool is(Kind other) const { return kind == other; }
  // The value under a string key of a dict, the last one when there are several, or null.
  const Value* find(std::string_view key) const;
};

// A tree and the memory that it stands in.
struct Tree {
  std::deque<Value> nodes;
  const Value* root = nullptr;
};

// The limits set for hostile files; a state dict with its optimiser is far below them.
inline constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxValues = 2'000'000;
inline constexpr std::size_t kMaxDepth = 1000;

// Interprets protocols 2 to 5. `what` names the file in messages. Everything that is wrong is an
// Error of kind kModel.
Tree read(std::span<const std::uint8_t> bytes, const std::string& what);

}  // namespace nmrf::pickle
