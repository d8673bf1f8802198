#include "weights/pth.h"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/check.h"
#include "weights/pickle.h"
#include "weights/zip.h"

namespace nmrf {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr std::array<std::pair<std::string_view, DType>, 10> kStorageTypes = {
    {{"torch.DoubleStorage", DType::kF64},
     {"torch.FloatStorage", DType::kF32},
     {"torch.HalfStorage", DType::kF16},
     {"torch.BFloat16Storage", DType::kBF16},
     {"torch.LongStorage", DType::kI64},
     {"torch.IntStorage", DType::kI32},
     {"torch.ShortStorage", DType::kI16},
     {"torch.CharStorage", DType::kI8},
     {"torch.ByteStorage", DType::kU8},
     {"torch.BoolStorage", DType::kBool}}};

constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kModulePrefix = "module.";
constexpr std::size_t kMaxRank = 64;

// What the tensors point into: the mapped file, and copies of those that were not contiguous.
struct Storage {
  std::shared_ptr<const void> file;
  std::deque<std::vector<std::uint8_t>> copies;
};

// A Parameter wraps a tensor; null when the value is neither.
const Value* tensor_call(const Value& value) {
  const Value* call = &value;
  if (call->is(Kind::kCall) && call->text == kRebuildParameter && !call->items.empty())
    call = call->items[0];
  return call->is(Kind::kCall) && call->text == kRebuildTensor ? call : nullptr;
}

// A state dict maps strings to tensors; one tensor is enough to tell it from other dicts.
bool holds_tensors(const Value& dict) {
  for (std::size_t i = 1; i < dict.items.size(); i += 2)
    if (tensor_call(*dict.items[i])) return true;
  return false;
}

std::string keys_of(const Value& dict) {
  constexpr std::size_t kShown = 8;
  std::string text;
  std::size_t count = dict.items.size() / 2;
  for (std::size_t i = 0; i < std::min(count, kShown); ++i) {
    const Value& key = *dict.items[2 * i];
    if (i > 0) text += ", ";
    text += key.is(Kind::kString) ? "'" + printable(key.text) + "'" : kind_name(key.kind);
  }
  if (count > kShown) text += ", ...";
  return count == 0 ? "nothing" : text;
}

class Reader {
 public:
  explicit Reader(const FileBytes& file)
      : file_(file), zip_(file), storage_(std::make_shared<Storage>()) {
    storage_->file = file.owner;
  }

  TensorFile read() {
    find_prefix();
    check_byte_order();
    const pickle::Tree tree = pickle::read(zip_.read(*zip_.find(prefix_ + "data.pkl")), file_.name);
    TensorFile result;
    result.format = "pth";
    const Value& state = state_dict(*tree.root, result.skipped);
    check_keys(state);
    for (std::size_t i = 0; i + 1 < state.items.size(); i += 2) {
      const Value& key = *state.items[i];
      if (const Value* call = tensor_call(*state.items[i + 1]))
        result.tensors.push_back(tensor(key.text, *call));
      else
        result.skipped.push_back(key.text);
    }
    strip_module(result.tensors);
    result.storage = storage_;
    return result;
  }

 private:
  // All entries stand in one folder, called after the file when it was saved.
  void find_prefix() {
    bool script = false;
    for (const ZipEntry& entry : zip_.entries()) {
      const auto slash = entry.name.find('/');
      if (slash == std::string::npos) continue;
      const std::string_view inside = std::string_view(entry.name).substr(slash + 1);
      script |= inside == "constants.pkl" || inside.starts_with("code/") || inside == "model.json";
      if (inside != "data.pkl") continue;
      check(prefix_.empty(), ErrorKind::kModel,
            "{}: has two 'data.pkl', so it is unclear which holds the weights. Save them anew with "
            "torch.save.",
            file_.name);
      prefix_ = entry.name.substr(0, slash + 1);
    }
    check(!script, ErrorKind::kModel,
          "{}: is a TorchScript archive (a program with its weights). Save the weights alone in "
          "PyTorch: torch.save(torch.jit.load('{}').state_dict(), 'weights.pth').",
          file_.name, file_.name);
    check(!prefix_.empty(), ErrorKind::kModel,
          "{}: is a zip archive without 'data.pkl', so not one of torch.save. If it is a download "
          "that holds the .pth file, unpack it first.",
          file_.name);
  }

  void check_byte_order() const {
    const ZipEntry* entry = zip_.find(prefix_ + "byteorder");
    if (!entry) return;  // versions before 2.1 do not write it
    const auto bytes = zip_.read(*entry);
    const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    check(order == "little", ErrorKind::kModel,
          "{}: its numbers are in the byte order '{}'; expected 'little'. Save it anew on a "
          "little-endian machine (any PC).",
          file_.name, printable(order));
  }

  // Names are strings and unique. Without this a hostile file could repeat one long name at will.
  void check_keys(const Value& dict) const {
    std::unordered_set<std::string_view> seen;
    for (std::size_t i = 0; i < dict.items.size(); i += 2) {
      const Value& key = *dict.items[i];
      check(key.is(Kind::kString), ErrorKind::kModel,
            "{}: a dict of weights has {} for a name; expected strings", file_.name,
            kind_name(key.kind));
      check(seen.insert(key.text).second, ErrorKind::kModel,
            "{}: a dict of weights has the name '{}' twice", file_.name, printable(key.text));
    }
  }

  // Finds the state dict in the outermost value; the keys beside it go to `skipped`.
  const Value& state_dict(const Value& root, std::vector<std::string>& skipped) const {
    check(root.is(Kind::kDict), ErrorKind::kModel,
          "{}: holds {}; expected a state dict, or a dict with one under 'model'. In PyTorch: "
          "torch.save({{'model': model.state_dict()}}, 'weights.pth').",
          file_.name, kind_name(root.kind));
    for (const char* name : {"model", "state_dict"}) {
      const Value* inner = root.find(name);
      if (!inner || !inner->is(Kind::kDict) || !holds_tensors(*inner)) continue;
      check_keys(root);
      for (std::size_t i = 0; i < root.items.size(); i += 2)
        if (root.items[i]->text != name) skipped.push_back(root.items[i]->text);
      return *inner;
    }
    check(holds_tensors(root), ErrorKind::kModel,
          "{}: no tensors were found: neither a state dict nor one under 'model' or 'state_dict'. "
          "The file holds {}.",
          file_.name, keys_of(root));
    return root;
  }

  std::int64_t integer(const Value& value, const std::string& name, const char* what) const {
    check(value.is(Kind::kInt) && value.integer >= 0, ErrorKind::kModel,
          "{}: the tensor '{}' has a broken {}; expected a whole number of 0 or more", file_.name,
          printable(name), what);
    return value.integer;
  }

  std::vector<std::int64_t> integers(const Value& value, const std::string& name,
                                     const char* what) const {
    const Value* list = &value;
    // torch.Size is a tuple that is made by a call.
    if (list->is(Kind::kCall) && list->text == "torch.Size" && list->items.size() == 1)
      list = list->items[0];
    check((list->is(Kind::kTuple) || list->is(Kind::kList)) && list->items.size() <= kMaxRank,
          ErrorKind::kModel, "{}: the tensor '{}' has a broken {}; expected a tuple", file_.name,
          printable(name), what);
    std::vector<std::int64_t> numbers;
    for (const Value* item : list->items) numbers.push_back(integer(*item, name, what));
    return numbers;
  }

  struct Block {
    DType dtype;
    std::uint64_t elements;
    std::span<const std::uint8_t> bytes;
  };

  // The storage that ('storage', type, key, device, elements) describes.
  Block block(const Value& value, const std::string& name) {
    const Value* id = value.is(Kind::kPersistent) ? value.items[0] : nullptr;
    check(id && id->items.size() >= 5 && id->items[0]->is(Kind::kString) &&
              id->items[0]->text == "storage" && id->items[1]->is(Kind::kGlobal) &&
              id->items[2]->is(Kind::kString),
          ErrorKind::kModel, "{}: the tensor '{}' has no storage", file_.name, printable(name));
    const std::string& type = id->items[1]->text;
    const auto* found = std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                                     [&](const auto& row) { return row.first == type; });
    check(found != kStorageTypes.end(), ErrorKind::kModel,
          "{}: the tensor '{}' is kept in a '{}'; expected floating-point numbers, integers or "
          "booleans. Convert it before saving, for example with .float().",
          file_.name, printable(name), type);
    const std::string& key = id->items[2]->text;
    Block result{found->second,
                 static_cast<std::uint64_t>(integer(*id->items[4], name, "storage size")),
                 content(key, name)};
    std::uint64_t bytes = 0;
    check(multiply_fits(result.elements, dtype_size(result.dtype), bytes) &&
              bytes == result.bytes.size(),
          ErrorKind::kModel,
          "{}: the storage '{}' of the tensor '{}' has {} bytes; expected {} elements of {} bytes. "
          "The file is damaged.",
          file_.name, printable(key), printable(name), result.bytes.size(), result.elements,
          dtype_size(result.dtype));
    return result;
  }

  // Each entry's checksum is computed once, however many tensors share it.
  std::span<const std::uint8_t> content(const std::string& key, const std::string& name) {
    auto [found, fresh] = contents_.try_emplace(key);
    if (!fresh) return found->second;
    const ZipEntry* entry = zip_.find(prefix_ + "data/" + key);
    check(entry != nullptr, ErrorKind::kModel,
          "{}: the storage '{}' of the tensor '{}' is missing from the archive. The file is "
          "damaged.",
          file_.name, printable(key), printable(name));
    return found->second = zip_.read(*entry);
  }

  // _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata]); offset and
  // strides count elements.
  StoredTensor tensor(const std::string& name, const Value& call) {
    check(call.items.size() >= 4, ErrorKind::kModel,
          "{}: the tensor '{}' is described by {} values; expected at least 4", file_.name,
          printable(name), call.items.size());
    const Block source = block(*call.items[0], name);
    const auto offset = static_cast<std::uint64_t>(integer(*call.items[1], name, "offset"));
    StoredTensor result;
    result.name = name;
    result.dtype = source.dtype;
    result.shape = integers(*call.items[2], name, "shape");
    const auto strides = integers(*call.items[3], name, "stride");
    const auto bytes = bytes_of(result.dtype, result.shape);
    check(strides.size() == result.shape.size() && bytes.has_value(), ErrorKind::kModel,
          "{}: the tensor '{}' has the shape {} with {} strides", file_.name, printable(name),
          shape_text(result.shape), strides.size());
    if (*bytes == 0) return result;

    const std::uint64_t size = dtype_size(result.dtype);
    const std::uint64_t elements = *bytes / size;
    std::uint64_t last = offset;  // the index of the last element in the storage
    bool fits = true, contiguous = true;
    std::uint64_t expected = 1;
    for (std::size_t i = strides.size(); i-- > 0;) {
      const auto dimension = static_cast<std::uint64_t>(result.shape[i]);
      const auto stride = static_cast<std::uint64_t>(strides[i]);
      std::uint64_t reach = 0;
      fits = fits && multiply_fits(dimension - 1, stride, reach) &&
             !__builtin_add_overflow(last, reach, &last);
      contiguous = contiguous && (dimension == 1 || stride == expected);
      expected *= dimension;  // at most `elements`
    }
    check(fits && last < source.elements, ErrorKind::kModel,
          "{}: the tensor '{}' of shape {} reaches beyond its storage of {} elements. The file is "
          "damaged.",
          file_.name, printable(name), shape_text(result.shape), source.elements);
    if (contiguous) {
      result.data = source.bytes.subspan(offset * size, *bytes);
      return result;
    }
    // A copy, of a size that the file must have earned: no element repeated by a stride of zero,
    // and all copies together within a few times the file.
    constexpr std::uint64_t kMaxCopies = 4;
    copied_ += *bytes;
    check(elements <= source.elements && copied_ <= kMaxCopies * file_.bytes.size(),
          ErrorKind::kModel,
          "{}: the tensor '{}' of shape {} repeats elements of its storage. Save it anew after "
          ".contiguous().",
          file_.name, printable(name), shape_text(result.shape));
    result.data = gather(source.bytes.subspan(offset * size), result.shape, strides, size, *bytes);
    return result;
  }

  // Copies a strided array into row-major order; all indices were checked to lie within `source`.
  std::span<const std::uint8_t> gather(std::span<const std::uint8_t> source,
                                       const std::vector<std::int64_t>& shape,
                                       const std::vector<std::int64_t>& strides, std::uint64_t size,
                                       std::uint64_t bytes) {
    auto& copy = storage_->copies.emplace_back(bytes);
    std::vector<std::int64_t> index(shape.size(), 0);
    std::uint64_t from = 0;
    for (std::uint64_t to = 0; to < bytes; to += size) {
      std::memcpy(&copy[to], &source[from * size], size);
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        from += static_cast<std::uint64_t>(strides[axis]);
        if (++index[axis] < shape[axis]) break;
        from -= static_cast<std::uint64_t>(strides[axis]) * static_cast<std::uint64_t>(shape[axis]);
        index[axis] = 0;
      }
    }
    return copy;
  }

  // DistributedDataParallel puts the same word before every name.
  static void strip_module(std::vector<StoredTensor>& tensors) {
    const bool all = std::all_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
      return tensor.name.starts_with(kModulePrefix) && tensor.name.size() > kModulePrefix.size();
    });
    if (!all) return;
    for (StoredTensor& tensor : tensors) tensor.name.erase(0, kModulePrefix.size());
  }

  const FileBytes& file_;
  ZipReader zip_;
  std::shared_ptr<Storage> storage_;
  std::string prefix_;  // "archive/"
  std::unordered_map<std::string, std::span<const std::uint8_t>> contents_;
  std::uint64_t copied_ = 0;
};

// Files of PyTorch before 1.6 start with a pickle of this number.
constexpr std::array<std::uint8_t, 14> kLegacyMagic = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                                       0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

}  // namespace

TensorFile read_pth(const FileBytes& file) {
  const auto& bytes = file.bytes;
  check(bytes.size() < kLegacyMagic.size() ||
            !std::equal(kLegacyMagic.begin(), kLegacyMagic.end(), bytes.begin()),
        ErrorKind::kModel,
        "{}: was saved in the format of PyTorch before 1.6. Save it anew with a recent PyTorch: "
        "torch.save(torch.load('{}', map_location='cpu'), 'weights.pth').",
        file.name, file.name);
  check(bytes.size() >= 4 && bytes[0] == 'P' && bytes[1] == 'K', ErrorKind::kModel,
        "{}: is not an archive of torch.save (PyTorch 1.6 or later). Save the weights anew: "
        "torch.save({{'model': model.state_dict()}}, 'weights.pth').",
        file.name);
  return Reader(file).read();
}

}  // namespace nmrf
