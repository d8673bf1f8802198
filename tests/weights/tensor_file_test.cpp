#include "weights/tensor_file.h"

#include <cmath>
#include <limits>

#include "core/file.h"
#include "support/support.h"
#include "weights/pth_builder.h"
#include "weights/safetensors.h"

namespace nmrf {
namespace {

using test::expect_contains;

TEST(TensorFile, FormatIsToldByContentNotByName) {
  test::TempFolder folder;
  write_file(folder / "a.safetensors",
             test::make_pth(test::state_dict_pickle({{}}), {test::floats({0, 1, 2, 3, 4, 5})}));
  EXPECT_EQ(read_tensor_file(folder / "a.safetensors").format, "pth");
  write_file(folder / "b.pth", test::le<std::uint64_t>(2) + "{}");
  EXPECT_EQ(read_tensor_file(folder / "b.pth").format, "safetensors");
}

TEST(TensorFile, OtherFilesAreExplained) {
  test::TempFolder folder;
  auto message = [&](const std::string& content) {
    write_file(folder / "w.pth", content);
    const auto text =
        test::error_of(ErrorKind::kModel, [&] { read_tensor_file(folder / "w.pth"); });
    expect_contains(text, "w.pth");
    return text;
  };
  expect_contains(message(""), "is empty");
  expect_contains(message("<!DOCTYPE html><html>"), "web page");
  expect_contains(message("version https://git-lfs.github.com/spec/v1\n"), "git lfs pull");
  expect_contains(message("\x89PNG\r\n"), "neither a PyTorch file");
  expect_contains(message("P"), "neither a PyTorch file");
  expect_contains(message("PK"), "not an archive");
  expect_contains(message("PK\3\4 and then nothing more"), "cut short");
  expect_contains(test::error_of(ErrorKind::kModel, [&] { read_tensor_file(folder / "none.pth"); }),
                  "none.pth");
  test::error_of(ErrorKind::kModel, [&] { read_tensor_file(folder.path()); });
}

std::vector<float> floats_of(DType dtype, const std::string& bytes) {
  const FileBytes file = test::file_of(bytes);
  const auto count = static_cast<std::int64_t>(bytes.size() / dtype_size(dtype));
  return to_floats({"t", dtype, {count}, file.bytes});
}

// Every half number against the definition: (-1)^s · 2^(e-15) · 1.m, or 2^-14 · 0.m for e = 0.
TEST(ToFloats, EveryHalf) {
  std::string bytes;
  for (int bits = 0; bits < 65536; ++bits) bytes += test::le(static_cast<std::uint16_t>(bits));
  const std::vector<float> found = floats_of(DType::kF16, bytes);
  ASSERT_EQ(found.size(), 65536u);
  for (int bits = 0; bits < 65536; ++bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double expected =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) {
      if (mantissa != 0) {
        ASSERT_TRUE(std::isnan(found[bits])) << bits;
        continue;
      }
      expected = std::numeric_limits<double>::infinity();
    }
    if (bits >> 15) expected = -expected;
    ASSERT_EQ(found[bits], expected) << bits;
    ASSERT_EQ(std::signbit(found[bits]), std::signbit(expected)) << bits;
  }
}

TEST(ToFloats, OtherTypes) {
  using V = std::vector<float>;
  EXPECT_EQ(floats_of(DType::kF32, test::floats({1.25f, -0.f, 3e38f})), (V{1.25f, -0.f, 3e38f}));
  EXPECT_EQ(floats_of(DType::kF64, test::le(0.1) + test::le(-4.0)), (V{0.1f, -4}));
  EXPECT_EQ(
      floats_of(DType::kBF16, test::le<std::uint16_t>(0x3fc0) + test::le<std::uint16_t>(0xc000)),
      (V{1.5f, -2}));
  EXPECT_TRUE(floats_of(DType::kF32, "").empty());
  expect_contains(test::error_of(ErrorKind::kModel, [] { floats_of(DType::kI64, "12345678"); }),
                  "'t' is of type I64");
}

TEST(ToFloats, UnalignedDataAreFine) {
  const FileBytes file = test::file_of("x" + test::le(2.5) + test::floats({7}));
  EXPECT_EQ(to_floats({"t", DType::kF64, {1}, file.bytes.subspan(1, 8)}),
            (std::vector<float>{2.5}));
  EXPECT_EQ(to_floats({"t", DType::kF32, {1}, file.bytes.subspan(9, 4)}), (std::vector<float>{7}));
}

TEST(DTypes, NamesAndSizes) {
  for (const char* name : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"}) {
    ASSERT_TRUE(dtype_from_name(name).has_value()) << name;
    EXPECT_STREQ(dtype_name(*dtype_from_name(name)), name);
  }
  EXPECT_FALSE(dtype_from_name("F8").has_value());
  const std::int64_t big = std::int64_t{1} << 31;
  EXPECT_EQ(bytes_of(DType::kI16, std::vector<std::int64_t>{2, 3}), 12u);
  EXPECT_EQ(bytes_of(DType::kF32, std::vector<std::int64_t>{}), 4u);
  EXPECT_FALSE(bytes_of(DType::kF32, std::vector<std::int64_t>{-2, -2}).has_value());
  EXPECT_FALSE(bytes_of(DType::kF32, std::vector<std::int64_t>{big, big, 4}).has_value());
  EXPECT_FALSE(bytes_of(DType::kF32, std::vector<std::int64_t>{big, big}).has_value());
}

TEST(Printable, KeepsTerminalsSafe) {
  EXPECT_EQ(printable("a\n\x1b[2J\xff"), "a\\x0a\\x1b[2J\\xff");
  EXPECT_EQ(printable(std::string(1000, 'a')), std::string(120, 'a') + "...");
}

// The first bytes of a safetensors file are a length: 0x80 looks like a pickle, "PK" like an
// archive.
TEST(TensorFile, SafetensorsOfAnyHeaderLength) {
  test::TempFolder folder;
  const float value = 2;
  StoredTensor stored{
      "w", DType::kF32, {1}, {reinterpret_cast<const std::uint8_t*>(&value), sizeof value}};
  for (std::size_t padding = 0; padding < 2100; padding += 8) {
    write_safetensors(folder / "m", std::vector{stored}, {{"p", std::string(padding, 'x')}});
    ASSERT_EQ(read_tensor_file(folder / "m").tensors.size(), 1u) << padding;
  }
  for (std::size_t padding = 0x4b50 - 160; padding < 0x4b50; padding += 8) {
    write_safetensors(folder / "m", std::vector{stored}, {{"p", std::string(padding, 'x')}});
    ASSERT_EQ(read_tensor_file(folder / "m").tensors.size(), 1u) << padding;
  }
}

}  // namespace
}  // namespace nmrf
