#include "weights/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "support/support.h"
#include "weights/pth_builder.h"

namespace nmrf {
namespace {

using test::expect_contains;
using test::file_of;

std::string make(const std::string& header, const std::string& arrays) {
  return test::le<std::uint64_t>(header.size()) + header + arrays;
}

std::string refusal(const std::string& bytes) {
  return test::error_of(ErrorKind::kModel, [&] { read_safetensors(file_of(bytes, "m.st")); });
}
std::string refusal(const std::string& header, std::size_t bytes) {
  return refusal(make(header, std::string(bytes, 'x')));
}

std::span<const std::uint8_t> bytes_in(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(Safetensors, ReadsByTheBook) {
  const std::string header = R"({"__metadata__":{"a":"b","name":"{\"k\":1}"},)"
                             R"("second":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
                             R"("first":{"data_offsets":[0,3],"dtype":"U8","shape":[1,3]},)"
                             R"("none":{"dtype":"F16","shape":[0,7],"data_offsets":[3,3]},)"
                             R"("scalar":{"dtype":"I64","shape":[],"data_offsets":[11,19]}}   )";
  const std::string arrays = "abc" + test::floats({1.5f, -2}) + test::le<std::int64_t>(-7);
  const TensorFile file = read_tensor_file(file_of(make(header, arrays)));
  EXPECT_EQ(file.format, "safetensors");
  EXPECT_EQ(file.metadata.at("a"), "b");
  EXPECT_EQ(file.metadata.at("name"), "{\"k\":1}");
  ASSERT_EQ(file.tensors.size(), 4u);
  EXPECT_EQ(file.tensors[0].name, "second") << "the header's order";
  EXPECT_EQ(to_floats(file.tensors[0]), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(file.find("first")->shape, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(file.find("none")->elements(), 0);
  EXPECT_EQ(file.find("scalar")->elements(), 1);
  EXPECT_EQ(load_le<std::int64_t>(file.find("scalar")->data.data()), -7);
}

TEST(Safetensors, WithoutTensorsOrMetadata) {
  const TensorFile file = read_safetensors(file_of(make("{}", "")));
  EXPECT_TRUE(file.tensors.empty());
  EXPECT_TRUE(file.metadata.empty());
}

TEST(Safetensors, HostileLengthsAreRefused) {
  expect_contains(refusal(""), "too few");
  expect_contains(refusal("1234567"), "too few");
  expect_contains(refusal(test::le<std::uint64_t>(~0ull) + "{}"), "over 100 MB");
  expect_contains(refusal(test::le<std::uint64_t>(100'000'001) + "{}"), "over 100 MB");
  expect_contains(refusal(test::le<std::uint64_t>(100'000'000) + "{}"), "does not fit");
  expect_contains(refusal(test::le<std::uint64_t>(3) + "{}"), "does not fit");
  expect_contains(refusal(make("", "")), "does not start with '{'");
  expect_contains(refusal(make(" {}", "")), "does not start with '{'");
  expect_contains(refusal(make("[]", "")), "does not start with '{'");
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const std::string f32 = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  auto entry = [](const std::string& fields) { return R"({"w":{)" + fields + "}}"; };
  EXPECT_EQ(read_safetensors(file_of(make(entry(f32), "12345678"))).tensors.size(), 1u);

  expect_contains(refusal("{", 0), "not JSON");
  expect_contains(refusal("{}x", 0), "not JSON");
  expect_contains(refusal("{} {}", 0), "not JSON");
  expect_contains(refusal("{\"\xff\":1}", 0), "not JSON");
  expect_contains(refusal(R"({"w":1})", 0), "a number where none belongs");
  expect_contains(refusal(R"({"w":[]})", 0), "a list where none belongs");
  expect_contains(refusal(R"({"w":null})", 0), "null where none belongs");
  expect_contains(refusal(R"({"w":"x"})", 0), "a string where none belongs");
  expect_contains(refusal(R"({"w":{}})", 0), "'w' needs");
  expect_contains(refusal(entry(R"("dtype":"F32","shape":[2])"), 0), "'w' needs");
  expect_contains(refusal(entry(f32 + R"(,"more":1)"), 8), "'more'");
  expect_contains(refusal(entry(f32 + R"(,"shape":[2])"), 8), "repeated key 'shape'");
  expect_contains(refusal(entry(R"("dtype":{"x":1})"), 0), "an object where none belongs");
  expect_contains(refusal(entry(R"("dtype":["F32"])"), 0), "a list where none belongs");
  expect_contains(refusal(entry(R"("dtype":1)"), 0), "a number where none belongs");
  expect_contains(refusal(entry(R"("shape":2)"), 0), "a number where none belongs");
  expect_contains(refusal(entry(R"("shape":[[2]])"), 0), "a list where none belongs");
  expect_contains(refusal(entry(R"("shape":[true])"), 0), "a boolean where none belongs");
  expect_contains(refusal(entry(R"("shape":["2"])"), 0), "a string where none belongs");
  expect_contains(refusal(entry(R"("shape":[-1])"), 0), "-1 is negative");
  expect_contains(refusal(entry(R"("shape":[1.5])"), 0), "1.5");
  expect_contains(refusal(entry(R"("shape":[1e3])"), 0), "1e3");
  expect_contains(refusal(entry(R"("shape":[99999999999999999999])"), 0), "too large");
  expect_contains(refusal(entry(R"("shape":[9223372036854775808])"), 0), "too large");
  expect_contains(refusal("{\"w\":" + std::string(100'000, '['), 0), "a list where");
  std::string nested;
  for (int i = 0; i < 10'000; ++i) nested += "{\"a\":";
  expect_contains(refusal(nested, 0), "unknown or repeated key 'a'");

  expect_contains(refusal("{\"w\":{" + f32 + "},\"w\":{" + f32 + "}}", 8),
                  "'w' stands there twice");
  expect_contains(refusal(R"({"__metadata__":{},"__metadata__":{}})", 0), "twice");
  expect_contains(refusal(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "'a' of the metadata");
  expect_contains(refusal(R"({"__metadata__":{"a":1}})", 0), "a number where none belongs");
  expect_contains(refusal(R"({"__metadata__":{"a":{}}})", 0), "an object where none belongs");
  expect_contains(refusal(R"({"__metadata__":"a"})", 0), "a string where none belongs");
}

TEST(Safetensors, HostileTensorsAreRefused) {
  auto one = [](const char* dtype, const char* shape, const char* offsets) {
    return std::string(R"({"w":{"dtype":")") + dtype + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}}";
  };
  expect_contains(refusal(one("F8_E4M3", "[8]", "[0,8]"), 8), "'F8_E4M3'");
  expect_contains(refusal(one("f32", "[2]", "[0,8]"), 8), "'f32'");
  expect_contains(refusal(one("F32", "[2]", "[0]"), 8), "offsets of 'w'");
  expect_contains(refusal(one("F32", "[2]", "[0,8,8]"), 8), "offsets of 'w'");
  expect_contains(refusal(one("F32", "[2]", "[8,0]"), 8), "offsets of 'w'");
  expect_contains(refusal(one("F32", "[2]", "[0,8]"), 7), "offsets of 'w'");
  expect_contains(refusal(one("F32", "[2]", "[0,9223372036854775807]"), 8), "offsets of 'w'");
  expect_contains(refusal(one("F32", "[3]", "[0,8]"), 8), "shape [3] and type F32 has 8 bytes");
  expect_contains(refusal(one("F64", "[2]", "[0,8]"), 8), "type F64 has 8 bytes");
  expect_contains(refusal(one("F32", "[]", "[0,0]"), 0), "has 0 bytes");
  // Products that wrap round to the right size in 64 bits.
  expect_contains(refusal(one("F32", "[4294967296,4294967296]", "[0,0]"), 0), "has 0 bytes");
  expect_contains(refusal(one("F32", "[4611686018427387904]", "[0,0]"), 0), "has 0 bytes");
  expect_contains(refusal(one("U8", "[4294967297,4294967297]", "[0,1]"), 1), "has 1 bytes");
  // Holes and overlaps.
  expect_contains(refusal(one("F32", "[1]", "[4,8]"), 8), "there is a hole");
  expect_contains(refusal(one("F32", "[1]", "[0,4]"), 8), "8 bytes follow the header");
  const std::string a = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)";
  expect_contains(refusal(a + R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6),
                  "overlap");
  expect_contains(refusal(a + R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4),
                  "overlap");
  expect_contains(refusal(a + R"("b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})", 4),
                  "overlap");
  expect_contains(refusal(a + R"("b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})", 6),
                  "hole");
  expect_contains(refusal("{}", 1), "1 bytes follow");
}

struct Sample {
  std::vector<std::string> contents;
  std::vector<StoredTensor> tensors;
};

// One tensor of each type, of awkward sizes and names, not in the order of names.
Sample sample() {
  Sample made;
  const std::vector<std::pair<std::string, DType>> list = {
      {"z.weight", DType::kF32},   {"flag", DType::kBool}, {"h", DType::kF16},
      {"a\"quoted\\", DType::kU8}, {"bf", DType::kBF16},   {"long", DType::kI64},
      {"\xc3\xa4", DType::kF64},   {"i32", DType::kI32},   {"i16", DType::kI16},
      {"i8", DType::kI8}};
  for (const auto& [name, dtype] : list) {
    std::string content(15 * dtype_size(dtype), '\0');
    for (std::size_t i = 0; i < content.size(); ++i)
      content[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(dtype) * 7);
    made.contents.push_back(content);
  }
  for (std::size_t i = 0; i < list.size(); ++i)
    made.tensors.push_back({list[i].first, list[i].second, {3, 1, 5}, bytes_in(made.contents[i])});
  made.tensors.push_back({"empty", DType::kF32, {0}, {}});
  made.contents.push_back("word");
  made.tensors.push_back({"scalar", DType::kF32, {}, bytes_in(made.contents.back())});
  return made;
}

TEST(Safetensors, RoundTripIsExact) {
  test::TempFolder folder;
  const Sample made = sample();
  const std::map<std::string, std::string> metadata = {
      {"options", "{\"k\": 4}\n"}, {"", "empty key"}, {"licence", "MIT \xe2\x9c\x93"}};
  write_safetensors(folder / "a.safetensors", made.tensors, metadata);
  const TensorFile file = read_tensor_file(folder / "a.safetensors");
  EXPECT_EQ(file.metadata, metadata);
  ASSERT_EQ(file.tensors.size(), made.tensors.size());
  for (std::size_t i = 1; i < file.tensors.size(); ++i)
    EXPECT_LT(file.tensors[i - 1].name, file.tensors[i].name);
  for (const StoredTensor& tensor : made.tensors) {
    const StoredTensor* found = file.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_TRUE(
        std::equal(found->data.begin(), found->data.end(), tensor.data.begin(), tensor.data.end()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->data.data()) % dtype_size(found->dtype), 0u)
        << tensor.name << " is aligned in the mapped file";
  }
  // What was read is written the same again.
  write_safetensors(folder / "b.safetensors", file.tensors, file.metadata);
  EXPECT_EQ(read_file(folder / "a.safetensors"), read_file(folder / "b.safetensors"));
}

TEST(Safetensors, WrittenHeaderKeepsTheRules) {
  test::TempFolder folder;
  write_safetensors(folder / "a", sample().tensors, {});
  const std::string bytes = read_file(folder / "a");
  const auto length = load_le<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(bytes.data()));
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes[8], '{');
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["__metadata__"].size(), 1u) << "the checksum alone";
  EXPECT_EQ(header["h"]["dtype"], "F16");
  EXPECT_EQ(header["h"]["shape"], nlohmann::json({3, 1, 5}));
  EXPECT_EQ(header["scalar"]["shape"], nlohmann::json::array());
}

TEST(Safetensors, WriterRefusesWhatCannotBeRead) {
  test::TempFolder folder;
  const std::string four = "1234";
  auto write = [&](std::vector<StoredTensor> tensors, std::map<std::string, std::string> metadata) {
    const auto message = test::error_of(
        ErrorKind::kModel, [&] { write_safetensors(folder / "x.safetensors", tensors, metadata); });
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    expect_contains(message, "x.safetensors");
    return message;
  };
  const StoredTensor good{"a", DType::kF32, {1}, bytes_in(four)};
  expect_contains(write({good, good}, {}), "'a' is used twice");
  expect_contains(write({{"__metadata__", DType::kF32, {1}, bytes_in(four)}}, {}), "reserved");
  expect_contains(write({{"a", DType::kF32, {2}, bytes_in(four)}}, {}), "has 4 bytes");
  expect_contains(write({{"a", DType::kF32, {-1}, {}}}, {}), "has 0 bytes");
  expect_contains(write({{"\xff", DType::kF32, {1}, bytes_in(four)}}, {}), "not UTF-8");
  expect_contains(write({good}, {{"key", "\xc3"}}), "not UTF-8");
}

// Every bit of a file written here counts, but for the checksum's own key.
TEST(Safetensors, AFlippedBitIsFound) {
  test::TempFolder folder;
  const std::string values = test::floats({1, 2, 3, 4});
  const std::vector<StoredTensor> tensors = {{"w", DType::kF32, {4}, bytes_in(values)}};
  write_safetensors(folder / "m.safetensors", tensors, {{"step", "12"}});
  const std::string sound = read_file(folder / "m.safetensors");
  const TensorFile file = read_safetensors(file_of(sound));
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"step", "12"}}));
  const std::size_t key = sound.find("nmrf_crc32");
  ASSERT_NE(key, std::string::npos);
  for (std::size_t at = 0; at < sound.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      if (at >= key && at < key + 10) continue;
      std::string bytes = sound;
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
      refusal(bytes);
    }
  std::string changed = sound;
  changed.back() ^= 1;
  expect_contains(refusal(changed), "is damaged");
  changed.replace(key, 10, "some_notes");
  EXPECT_NO_THROW(read_safetensors(file_of(changed))) << "files of other programs have none";
}

}  // namespace
}  // namespace nmrf
