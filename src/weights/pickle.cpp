#include "weights/pickle.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <unordered_map>

#include "core/check.h"
#include "core/numbers.h"
#include "weights/file_bytes.h"

namespace nmrf::pickle {
namespace {

// What may be called, and what may only be named: the types of storages.
constexpr std::array<std::string_view, 5> kFunctions = {
    "collections.OrderedDict", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter",
    "torch.Size", "torch.device"};
constexpr std::array<std::string_view, 17> kStorages = {
    "torch.DoubleStorage",   "torch.FloatStorage",         "torch.HalfStorage",
    "torch.BFloat16Storage", "torch.LongStorage",          "torch.IntStorage",
    "torch.ShortStorage",    "torch.CharStorage",          "torch.ByteStorage",
    "torch.BoolStorage",     "torch.ComplexDoubleStorage", "torch.ComplexFloatStorage",
    "torch.QInt8Storage",    "torch.QInt32Storage",        "torch.QUInt8Storage",
    "torch.QUInt4x2Storage", "torch.QUInt2x4Storage"};

bool contains(std::span<const std::string_view> list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

class Machine {
 public:
  Machine(std::span<const std::uint8_t> bytes, const std::string& what)
      : bytes_(bytes), what_(what) {}

  Tree run() {
    if (bytes_.size() > kMaxBytes)
      broken("{} bytes are more than the {} that are read", bytes_.size(), kMaxBytes);
    while (step()) {
    }
    return std::move(tree_);
  }

 private:
  template <class... Args>
  [[noreturn]] void broken(fmt::format_string<Args...> format, Args&&... args) const {
    fail(
        ErrorKind::kModel,
        "{}: the pickle in it cannot be read (at byte {}): {}. Download or copy the file again, or "
        "save it anew with torch.save.",
        what_, opcode_at_, fmt::format(format, std::forward<Args>(args)...));
  }

  // Refuses what is no weight by the name it has in Python.
  [[noreturn]] void refuse(std::string_view name) const {
    fail(ErrorKind::kModel,
         "{}: refuses to load '{}'. A weight file holds tensors, dicts, lists, numbers and strings "
         "only; nothing in it was run. If you trust where it comes from, load it in PyTorch and "
         "save just the weights: torch.save({{'model': model.state_dict()}}, 'weights.pth').",
         what_, printable(name));
  }

  // --- bytes ---
  const std::uint8_t* take(std::uint64_t count) {
    if (count > bytes_.size() - position_)
      broken("it ends in the middle of a value ({} bytes expected, {} left)", count,
             bytes_.size() - position_);
    const std::uint8_t* at = bytes_.data() + position_;
    position_ += count;
    return at;
  }
  template <class T>
  T number() {
    return load_le<T>(take(sizeof(T)));
  }
  std::string_view text(std::uint64_t count) {
    return {reinterpret_cast<const char*>(take(count)), static_cast<std::size_t>(count)};
  }
  // The text up to the next line feed, which is consumed.
  std::string_view line() {
    const auto* begin = bytes_.data() + position_;
    const auto* end = bytes_.data() + bytes_.size();
    const auto* feed = std::find(begin, end, std::uint8_t{'\n'});
    if (feed == end) broken("it ends in the middle of a line");
    std::string_view found = text(static_cast<std::uint64_t>(feed - begin));
    ++position_;
    return found;
  }

  // --- values ---
  Value& make(Kind kind) {
    if (tree_.nodes.size() >= kMaxValues) broken("it holds more than {} values", kMaxValues);
    Value& value = tree_.nodes.emplace_back();
    value.kind = kind;
    return value;
  }
  Value& push(Kind kind) {
    Value& value = make(kind);
    stack_.push_back(&value);
    return value;
  }
  void push_int(std::int64_t integer) { push(Kind::kInt).integer = integer; }
  void push_text(Kind kind, std::string_view content) { push(kind).text = content; }

  // --- the stack: nothing below the last mark may be taken from it ---
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Value* top() const {
    if (stack_.size() <= floor()) broken("a value is missing from its stack");
    return stack_.back();
  }
  Value* pop() {
    Value* value = top();
    stack_.pop_back();
    return value;
  }
  // The values above the last mark, which go, with the mark, from the stack.
  std::vector<const Value*> pop_to_mark() {
    if (marks_.empty()) broken("a mark is missing from its stack");
    std::vector<const Value*> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                    stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  void push_tuple(std::size_t count) {
    std::vector<const Value*> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push(Kind::kTuple).items = std::move(items);
  }
  void append(Kind kind, const std::vector<const Value*>& items) {
    Value* target = top();
    if (!target->is(kind))
      broken("it adds to {} as if it were {}", kind_name(target->kind), kind_name(kind));
    if (kind == Kind::kDict && items.size() % 2 != 0) broken("a dict has a key without a value");
    target->items.insert(target->items.end(), items.begin(), items.end());
  }

  // --- the memo ---
  void put(std::uint64_t key) {
    if (memo_.size() >= kMaxValues) broken("it remembers more than {} values", kMaxValues);
    memo_[key] = top();
  }
  void get(std::uint64_t key) {
    auto found = memo_.find(key);
    if (found == memo_.end()) broken("it recalls the value {}, which it never stored", key);
    stack_.push_back(found->second);
  }
  std::uint64_t key_from(std::string_view digits) const {
    std::uint64_t key = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), key);
    if (error != std::errc() || end != digits.data() + digits.size())
      broken("'{}' is not a number", printable(digits));
    return key;
  }

  // --- numbers written in other ways ---
  void push_long(std::uint64_t count) {  // two's complement, little-endian, any length
    const std::uint8_t* at = take(count);
    if (count > 8) {
      push(Kind::kBigInt);
      return;
    }
    std::uint64_t bits = count > 0 && (at[count - 1] & 0x80) ? ~std::uint64_t{0} : 0;
    for (std::uint64_t i = count; i-- > 0;) bits = bits << 8 | at[i];
    push_int(static_cast<std::int64_t>(bits));
  }
  void push_decimal(std::string_view digits) {
    if (!digits.empty() && digits.back() == 'L') digits.remove_suffix(1);
    std::int64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) {
      push(Kind::kBigInt);
      return;
    }
    if (error != std::errc() || end != digits.data() + digits.size())
      broken("'{}' is not a whole number", printable(digits));
    push_int(value);
  }
  void push_real_text(std::string_view digits) {
    const std::optional<double> value = parse_double(digits);
    if (!value) broken("'{}' is not a number", printable(digits));
    push(Kind::kFloat).real = *value;
  }
  void push_real() {  // big-endian
    std::uint64_t bits = __builtin_bswap64(number<std::uint64_t>());
    push(Kind::kFloat).real = bit_cast<double>(bits);
  }

  // --- names and calls ---
  void push_global(std::string_view module, std::string_view name) {
    std::string full = std::string(module) + "." + std::string(name);
    if (!contains(kFunctions, full) && !contains(kStorages, full)) refuse(full);
    push(Kind::kGlobal).text = std::move(full);
  }

  void reduce() {
    const Value* arguments = pop();
    const Value* function = pop();
    if (!function->is(Kind::kGlobal) || !arguments->is(Kind::kTuple))
      broken("it calls {} with {}", kind_name(function->kind), kind_name(arguments->kind));
    if (!contains(kFunctions, function->text)) refuse(function->text);
    if (function->text == "collections.OrderedDict") {
      if (!arguments->items.empty()) broken("an OrderedDict is made from something");
      push(Kind::kDict);
    } else {
      Value& call = push(Kind::kCall);
      call.text = function->text;
      // The arguments are few; a bound keeps a hostile file from having a long tuple copied often.
      constexpr std::size_t kMaxArguments = 16;
      if (arguments->items.size() > kMaxArguments)
        broken("'{}' is called with {} arguments", function->text, arguments->items.size());
      call.items = arguments->items;
    }
  }

  // Sets attributes of an object. State dicts carry their versions in such an attribute, and
  // tensors may have some: they are dropped.
  void build() {
    pop();
    const Value* object = top();
    if (!object->is(Kind::kDict) && !object->is(Kind::kCall))
      broken("it sets attributes of {}", kind_name(object->kind));
  }

  void new_object(bool with_keywords) {
    if (with_keywords) pop();
    pop();
    const Value* type = pop();
    if (!type->is(Kind::kGlobal)) broken("it makes an object of {}", kind_name(type->kind));
    refuse(type->text);
  }

  bool step();

  std::span<const std::uint8_t> bytes_;
  const std::string& what_;
  std::size_t position_ = 0, opcode_at_ = 0;
  Tree tree_;
  std::vector<Value*> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint64_t, Value*> memo_;
};

// Executes one opcode; false at the end. The comments give the names of Python's pickletools.
bool Machine::step() {
  opcode_at_ = position_;
  const std::uint8_t opcode = *take(1);
  switch (opcode) {
    case 0x80: {  // PROTO
      int protocol = *take(1);
      if (protocol < 2 || protocol > 5) broken("protocol {} is not one of 2 to 5", protocol);
      break;
    }
    case 0x95: {  // FRAME
      auto length = number<std::uint64_t>();
      if (length > bytes_.size() - position_) broken("a frame reaches beyond its end");
      break;
    }
    case '.':  // STOP
      if (stack_.size() != 1 || !marks_.empty()) broken("it ends with a value unfinished");
      tree_.root = stack_.back();
      return false;

    case '(':  // MARK
      if (marks_.size() >= kMaxDepth) broken("its values are nested deeper than {}", kMaxDepth);
      marks_.push_back(stack_.size());
      break;
    case '0':  // POP, which also takes a mark
      if (!marks_.empty() && stack_.size() == marks_.back())
        marks_.pop_back();
      else
        pop();
      break;
    case '1':  // POP_MARK
      pop_to_mark();
      break;
    case '2':  // DUP
      stack_.push_back(top());
      break;

    case 'N':  // NONE
      push(Kind::kNone);
      break;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push(Kind::kBool).integer = opcode == 0x88;
      break;
    case 'I': {  // INT, whose 00 and 01 are booleans
      auto digits = line();
      if (digits == "00" || digits == "01")
        push(Kind::kBool).integer = digits == "01";
      else
        push_decimal(digits);
      break;
    }
    case 'L':  // LONG
      push_decimal(line());
      break;
    case 'J':  // BININT
      push_int(number<std::int32_t>());
      break;
    case 'K':  // BININT1
      push_int(number<std::uint8_t>());
      break;
    case 'M':  // BININT2
      push_int(number<std::uint16_t>());
      break;
    case 0x8a:  // LONG1
      push_long(number<std::uint8_t>());
      break;
    case 0x8b: {  // LONG4
      auto count = number<std::int32_t>();
      if (count < 0) broken("a number has a negative length");
      push_long(static_cast<std::uint64_t>(count));
      break;
    }
    case 'F':  // FLOAT
      push_real_text(line());
      break;
    case 'G':  // BINFLOAT
      push_real();
      break;

    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
      push_text(Kind::kString, text(number<std::uint32_t>()));
      break;
    case 0x8c:  // SHORT_BINUNICODE
    case 'U':   // SHORT_BINSTRING
      push_text(Kind::kString, text(number<std::uint8_t>()));
      break;
    case 0x8d:  // BINUNICODE8
      push_text(Kind::kString, text(number<std::uint64_t>()));
      break;
    case 'V':  // UNICODE
      push_text(Kind::kString, line());
      break;
    case 'C':  // SHORT_BINBYTES
      push_text(Kind::kBytes, text(number<std::uint8_t>()));
      break;
    case 'B':  // BINBYTES
      push_text(Kind::kBytes, text(number<std::uint32_t>()));
      break;
    case 0x8e:  // BINBYTES8
    case 0x96:  // BYTEARRAY8
      push_text(Kind::kBytes, text(number<std::uint64_t>()));
      break;

    case ')':  // EMPTY_TUPLE
      push(Kind::kTuple);
      break;
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      push_tuple(opcode - 0x84u);
      break;
    case 't': {  // TUPLE
      auto items = pop_to_mark();
      push(Kind::kTuple).items = std::move(items);
      break;
    }
    case ']':  // EMPTY_LIST
      push(Kind::kList);
      break;
    case 'l': {  // LIST
      auto items = pop_to_mark();
      push(Kind::kList).items = std::move(items);
      break;
    }
    case 'a': {  // APPEND
      const Value* item = pop();
      append(Kind::kList, {item});
      break;
    }
    case 'e':  // APPENDS
      append(Kind::kList, pop_to_mark());
      break;
    case '}':  // EMPTY_DICT
      push(Kind::kDict);
      break;
    case 'd': {  // DICT
      auto items = pop_to_mark();
      push(Kind::kDict);
      append(Kind::kDict, items);
      break;
    }
    case 's': {  // SETITEM
      const Value* value = pop();
      const Value* key = pop();
      append(Kind::kDict, {key, value});
      break;
    }
    case 'u':  // SETITEMS
      append(Kind::kDict, pop_to_mark());
      break;
    case 0x8f:  // EMPTY_SET
      push(Kind::kSet);
      break;
    case 0x90:  // ADDITEMS
      append(Kind::kSet, pop_to_mark());
      break;
    case 0x91: {  // FROZENSET
      auto items = pop_to_mark();
      push(Kind::kSet).items = std::move(items);
      break;
    }

    case 'q':  // BINPUT
      put(number<std::uint8_t>());
      break;
    case 'r':  // LONG_BINPUT
      put(number<std::uint32_t>());
      break;
    case 'p':  // PUT
      put(key_from(line()));
      break;
    case 0x94:  // MEMOIZE
      put(memo_.size());
      break;
    case 'h':  // BINGET
      get(number<std::uint8_t>());
      break;
    case 'j':  // LONG_BINGET
      get(number<std::uint32_t>());
      break;
    case 'g':  // GET
      get(key_from(line()));
      break;

    case 'c': {  // GLOBAL
      auto module = line();
      push_global(module, line());
      break;
    }
    case 0x93: {  // STACK_GLOBAL
      const Value* name = pop();
      const Value* module = pop();
      if (!name->is(Kind::kString) || !module->is(Kind::kString))
        broken("a name is not made of strings");
      push_global(module->text, name->text);
      break;
    }
    case 'i': {  // INST: a name and a call in one, never written for weights
      auto module = line();
      refuse(std::string(module) + "." + std::string(line()));
    }
    case 'o': {  // OBJ: likewise
      auto items = pop_to_mark();
      if (items.empty() || !items[0]->is(Kind::kGlobal)) broken("it makes an object of no type");
      refuse(items[0]->text);
    }
    case 'R':  // REDUCE
      reduce();
      break;
    case 'b':  // BUILD
      build();
      break;
    case 0x81:  // NEWOBJ
    case 0x92:  // NEWOBJ_EX
      new_object(opcode == 0x92);
      break;
    case 'Q': {  // BINPERSID
      const Value* id = pop();
      if (!id->is(Kind::kTuple)) broken("a storage is described by {}", kind_name(id->kind));
      push(Kind::kPersistent).items = {id};
      break;
    }
    default:
      broken("the opcode 0x{:02x} has no place in a weight file", opcode);
  }
  return true;
}

}  // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a boolean";
    case Kind::kInt:
    case Kind::kBigInt:
      return "a whole number";
    case Kind::kFloat:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kBytes:
      return "bytes";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kList:
      return "a list";
    case Kind::kSet:
      return "a set";
    case Kind::kDict:
      return "a dict";
    case Kind::kGlobal:
      return "a type or function";
    case Kind::kPersistent:
      return "a storage";
    case Kind::kCall:
      return "an object";
  }
  return "?";
}

const Value* Value::find(std::string_view key) const {
  const Value* found = nullptr;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i]->is(Kind::kString) && items[i]->text == key) found = items[i + 1];
  return found;
}

Tree read(std::span<const std::uint8_t> bytes, const std::string& what) {
  return Machine(bytes, what).run();
}

}  // namespace nmrf::pickle
