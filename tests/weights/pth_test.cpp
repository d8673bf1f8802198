#include "weights/pth.h"

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "support/support.h"
#include "weights/pth_builder.h"

namespace nmrf {
namespace {

using test::expect_contains;
using test::file_of;
using test::floats;
using test::MadeTensor;
using test::make_pth;
using test::PickleBuilder;
using test::state_dict_pickle;

const std::string kSix = floats({0, 1, 2, 3, 4, 5});

TensorFile load(const std::string& bytes) { return read_tensor_file(file_of(bytes)); }

std::string refusal(const std::string& bytes) {
  return test::error_of(ErrorKind::kModel, [&] { load(bytes); });
}
std::string refusal_of(const MadeTensor& tensor, const std::string& storage = kSix) {
  return refusal(make_pth(state_dict_pickle({tensor}), {storage}));
}

std::vector<float> values(const MadeTensor& tensor, const std::string& storage = kSix) {
  return to_floats(load(make_pth(state_dict_pickle({tensor}), {storage})).tensors.at(0));
}

TEST(Pth, BareAndWrappedStateDicts) {
  for (const char* key : {"", "model", "state_dict"}) {
    const TensorFile file =
        load(make_pth(state_dict_pickle({{}, {.name = "b", .parameter = true}}, key), {kSix}));
    EXPECT_EQ(file.format, "pth");
    ASSERT_EQ(file.tensors.size(), 2u);
    for (const StoredTensor& tensor : file.tensors) {
      EXPECT_EQ(tensor.dtype, DType::kF32);
      EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
      EXPECT_EQ(to_floats(tensor), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    }
    EXPECT_EQ(file.tensors[0].data.data(), file.tensors[1].data.data()) << "shared, not copied";
    EXPECT_NE(file.find("b"), nullptr);
    EXPECT_TRUE(file.skipped.empty());
  }
}

TEST(Pth, DataOutliveTheReader) {
  TensorFile file;
  { file = load(make_pth(state_dict_pickle({{.shape = {3, 2}, .strides = {1, 3}}}), {kSix})); }
  EXPECT_EQ(to_floats(file.tensors[0]), (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

TEST(Pth, ContiguousTensorsPointIntoTheFile) {
  const FileBytes bytes = file_of(make_pth(state_dict_pickle({{}}), {kSix}));
  const TensorFile file = read_pth(bytes);
  EXPECT_GE(file.tensors[0].data.data(), bytes.bytes.data());
  EXPECT_LE(file.tensors[0].data.data() + 24, bytes.bytes.data() + bytes.bytes.size());
}

TEST(Pth, ModulePrefixIsStripped) {
  auto names = [](std::vector<MadeTensor> tensors) {
    std::vector<std::string> found;
    for (const auto& tensor : load(make_pth(state_dict_pickle(tensors), {kSix})).tensors)
      found.push_back(tensor.name);
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({{.name = "module.a.w"}, {.name = "module.b"}}), (Names{"a.w", "b"}));
  EXPECT_EQ(names({{.name = "module.a.w"}, {.name = "b"}}), (Names{"module.a.w", "b"}));
  EXPECT_EQ(names({{.name = "module."}}), (Names{"module."}));
}

TEST(Pth, OptimiserStateIsSkipped) {
  PickleBuilder pickle;
  pickle.proto().raw("}(").text("model");
  test::put_state_dict(pickle, {{}});
  // {'state': {0: {'exp_avg': tensor}}, 'param_groups': [{'lr': 0.5, 'params': [0]}]}: its storage
  // is not even in the archive.
  pickle.text("optimizer").raw("}(").text("state").raw("}K").raw(std::string(1, '\0')).raw("}");
  pickle.text("exp_avg");
  test::put_tensor(pickle, {.key = "99"});
  pickle.raw("ss").text("param_groups").raw("]}(").text("lr").raw("F0.5\n");
  pickle.text("params").raw("]K\1auau").text("step").integer(300'000).raw("u.");
  const TensorFile file = load(make_pth(pickle.bytes, {kSix}));
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.skipped, (std::vector<std::string>{"optimizer", "step"}));
}

TEST(Pth, NonTensorsInTheStateDictAreSkipped) {
  PickleBuilder pickle;
  pickle.proto().raw("}(").text("w");
  test::put_tensor(pickle, {});
  pickle.text("epoch").integer(3).text("device").global("torch", "device").text("cuda:0");
  pickle.raw("\x85Ru.");
  const TensorFile file = load(make_pth(pickle.bytes, {kSix}));
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.skipped, (std::vector<std::string>{"epoch", "device"}));
}

TEST(Pth, Strides) {
  using V = std::vector<float>;
  EXPECT_EQ(values({.shape = {2, 3}, .strides = {1, 2}}), (V{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(values({.shape = {2, 2}, .strides = {3, 2}, .offset = 1, .storage_elements = 7},
                   kSix + floats({6})),
            (V{1, 3, 4, 6}));
  EXPECT_EQ(values({.shape = {3}, .strides = {2}}), (V{0, 2, 4}));
  EXPECT_EQ(values({.shape = {2}, .strides = {1}, .offset = 4}), (V{4, 5}));
  EXPECT_EQ(values({.shape = {}, .strides = {}, .offset = 5}), (V{5})) << "a scalar";
  EXPECT_EQ(values({.shape = {1, 3, 1}, .strides = {77, 1, 99}}), (V{0, 1, 2}))
      << "the stride of a dimension of one does not matter";
  EXPECT_EQ(values({.shape = {0, 4}, .strides = {4, 1}}), V{});
  EXPECT_EQ(values({.shape = {2, 2}, .strides = {0, 1}}), (V{0, 1, 0, 1}));

  // A permuted 4-D tensor against index arithmetic.
  std::vector<float> source(2 * 3 * 4 * 5);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
  const V permuted = values(
      {.shape = {4, 2, 5, 3}, .strides = {5, 60, 1, 20}, .storage_elements = 120}, floats(source));
  std::size_t at = 0;
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 2; ++b)
      for (int c = 0; c < 5; ++c)
        for (int d = 0; d < 3; ++d) ASSERT_EQ(permuted[at++], ((b * 3 + d) * 4 + a) * 5 + c);
}

TEST(Pth, EveryDType) {
  const std::vector<std::pair<const char*, DType>> types = {
      {"DoubleStorage", DType::kF64}, {"FloatStorage", DType::kF32},
      {"HalfStorage", DType::kF16},   {"BFloat16Storage", DType::kBF16},
      {"LongStorage", DType::kI64},   {"IntStorage", DType::kI32},
      {"ShortStorage", DType::kI16},  {"CharStorage", DType::kI8},
      {"ByteStorage", DType::kU8},    {"BoolStorage", DType::kBool}};
  for (const auto& [storage, dtype] : types) {
    const std::string content(6 * dtype_size(dtype), '\1');
    const TensorFile file = load(make_pth(state_dict_pickle({{.storage = storage}}), {content}));
    EXPECT_EQ(file.tensors[0].dtype, dtype);
    EXPECT_EQ(file.tensors[0].data.size(), content.size());
    EXPECT_EQ(file.tensors[0].elements(), 6);
  }
  expect_contains(refusal_of({.storage = "ComplexFloatStorage"}), "'torch.ComplexFloatStorage'");
}

TEST(Pth, TensorsBeyondTheirStorageAreRefused) {
  const std::int64_t big = std::int64_t{1} << 62;
  for (const MadeTensor& tensor : std::vector<MadeTensor>{
           {.shape = {2, 4}, .strides = {4, 1}},
           {.shape = {2, 3}, .strides = {3, 1}, .offset = 1},
           {.shape = {2, 3}, .strides = {3, 2}},
           {.shape = {1}, .strides = {1}, .offset = 6},
           {.shape = {2}, .strides = {big}},
           {.shape = {5, 5}, .strides = {big, big}},
           {.shape = {2, 2}, .strides = {INT64_MAX, INT64_MAX}, .offset = INT64_MAX}})
    expect_contains(refusal_of(tensor), "'w' of shape");
  expect_contains(refusal_of({.shape = {big, big}, .strides = {1, 1}}), "has the shape");
  expect_contains(refusal_of({.shape = {2, 3}, .strides = {1}}), "with 1 strides");
  expect_contains(refusal_of({.shape = {-1, 3}}), "broken shape");
  expect_contains(refusal_of({.strides = {-3, 1}}), "broken stride");
  expect_contains(refusal_of({.offset = -1}), "broken offset");
  expect_contains(refusal_of({.shape = std::vector<std::int64_t>(65, 1)}), "broken shape");
}

// A stride of zero would let a small file ask for a huge copy.
TEST(Pth, ExpandedTensorsAreRefused) {
  expect_contains(refusal_of({.shape = {1'000'000'000'000}, .strides = {0}}), "repeats elements");
  // Many transposed views of one storage, together larger than the file by far.
  std::vector<float> source(10'000);
  std::vector<MadeTensor> tensors;
  for (int i = 0; i < 100; ++i)
    tensors.push_back({.name = std::to_string(i),
                       .shape = {100, 100},
                       .strides = {1, 100},
                       .storage_elements = 10'000});
  expect_contains(refusal(make_pth(state_dict_pickle(tensors), {floats(source)})),
                  "repeats elements");
}

TEST(Pth, StoragesAreChecked) {
  expect_contains(refusal_of({.key = "7"}), "'7' of the tensor 'w' is missing");
  expect_contains(refusal_of({.key = "../version"}), "missing");
  expect_contains(refusal_of({.storage_elements = 7}), "has 24 bytes; expected 7 elements");
  expect_contains(refusal_of({.storage_elements = 5}), "has 24 bytes; expected 5 elements");
  expect_contains(refusal_of({.storage_elements = std::int64_t{1} << 62}), "has 24 bytes");
  expect_contains(refusal_of({.storage_elements = -1}), "broken storage size");
  const std::string pickle = state_dict_pickle({{}});
  expect_contains(refusal(test::make_zip({{"a/data.pkl", pickle}, {"a/data/0", kSix, 0, 0, true}})),
                  "'a/data/0' does not match its checksum");
  expect_contains(refusal(test::make_zip({{"a/data.pkl", pickle}, {"a/data/0", kSix, 8}})),
                  "'a/data/0' is compressed");
}

TEST(Pth, NamesAreChecked) {
  expect_contains(refusal(make_pth(state_dict_pickle({{}, {}}), {kSix})), "the name 'w' twice");
  PickleBuilder pickle;
  pickle.proto().raw("}(").integer(1);
  test::put_tensor(pickle, {});
  expect_contains(refusal(make_pth(pickle.raw("u.").bytes, {kSix})), "a whole number for a name");
}

TEST(Pth, OtherContentIsExplained) {
  auto message = [](const std::string& opcodes) {
    return refusal(make_pth(PickleBuilder().proto().raw(opcodes).raw(".").bytes, {}));
  };
  expect_contains(message("]"), "holds a list; expected a state dict");
  expect_contains(message("}"), "no tensors were found");
  expect_contains(message("}U\3netU\3abcs"), "'net'");
  // What a training script may leave beside the weights.
  PickleBuilder pickle;
  pickle.proto().raw("}(").text("model");
  test::put_state_dict(pickle, {{}});
  pickle.text("args").global("argparse", "Namespace").raw(")\x81}bu.");
  expect_contains(refusal(make_pth(pickle.bytes, {kSix})), "refuses to load 'argparse.Namespace'");
}

TEST(Pth, MaliciousPickleIsRefusedAndNotRun) {
  test::TempFolder folder;
  const std::string command = "touch " + (folder / "touched").string();
  PickleBuilder pickle;
  pickle.proto().raw("}").text("model");
  pickle.global("os", "system").text(command).raw("\x85Rs.");
  expect_contains(refusal(make_pth(pickle.bytes, {kSix})), "refuses to load 'os.system'");
  EXPECT_FALSE(std::filesystem::exists(folder / "touched"));
}

TEST(Pth, ArchivesThatAreNoStateDict) {
  const std::string pickle = state_dict_pickle({{}});
  expect_contains(refusal(make_pth(pickle, {kSix}, {{"archive/constants.pkl", "x", 8}})),
                  "TorchScript");
  expect_contains(refusal(make_pth(pickle, {kSix}, {{"archive/code/a.py", "x", 8}})),
                  "TorchScript");
  expect_contains(refusal(test::make_zip({{"nmrf.pth", "x"}})), "unpack it first");
  expect_contains(refusal(test::make_zip({{"a/data.pkl", pickle}, {"b/data.pkl", pickle}})),
                  "two 'data.pkl'");
  expect_contains(refusal(make_pth(pickle, {kSix}, {{"archive/byteorder", "big"}})), "'big'");
  EXPECT_EQ(load(make_pth(pickle, {kSix}, {{"archive/byteorder", "little"}})).tensors.size(), 1u);
  expect_contains(refusal("\x80\2\x8a\nl\xfc\x9c"
                          "F\xf9 j\xa8P\x19.\x80\2M\xe9\3."),
                  "PyTorch before 1.6");
  expect_contains(refusal("\x80\2}."), "not an archive of torch.save");
}

// The reference file against the list of the published parameters.
TEST(Pth, PublishedParameters) {
  NMRF_NEED_SHARED("golden/nmrf_random.pth");
  NMRF_NEED_SHARED("spec/published-parameters.txt");
  const TensorFile file = read_tensor_file(test::shared_folder() / "golden/nmrf_random.pth");
  EXPECT_EQ(file.format, "pth");
  EXPECT_TRUE(file.skipped.empty());

  std::ifstream list(test::shared_folder() / "spec/published-parameters.txt");
  std::string line;
  std::size_t parameters = 0, buffers = 0, elements = 0;
  while (std::getline(list, line)) {
    std::istringstream words(line);
    std::string name, shape, type = "torch.float32";
    words >> name;
    const bool buffer = name == "#";
    if (buffer) words >> name;
    words >> shape >> type;
    if (buffer && type.rfind("torch.", 0) != 0) continue;  // a remark
    (buffer ? buffers : parameters) += 1;
    const StoredTensor* tensor = file.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    std::string found;
    for (auto d : tensor->shape) found += (found.empty() ? "" : "x") + std::to_string(d);
    EXPECT_EQ(found, shape) << name;
    EXPECT_EQ(tensor->dtype, type == "torch.int64" ? DType::kI64 : DType::kF32) << name;
    if (buffer) continue;
    elements += static_cast<std::size_t>(tensor->elements());
    double norm = 0;
    for (float value : to_floats(*tensor)) {
      ASSERT_TRUE(std::isfinite(value)) << name;
      norm += std::abs(value);
    }
    EXPECT_GT(norm, 0) << name;
  }
  EXPECT_EQ(parameters, 340u);
  EXPECT_EQ(elements, 6'113'210u);
  EXPECT_EQ(file.tensors.size(), parameters + buffers);
  EXPECT_EQ(file.find("device_indicator_tensor")->elements(), 0);
}

}  // namespace
}  // namespace nmrf
