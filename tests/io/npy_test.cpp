#include "io/npy.h"

#include <cstring>

#include "core/file.h"
#include "io/maps.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

// A file as numpy.save makes it, with any header text.
std::string npy(const std::string& header, const std::string& values, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  const std::size_t length = header.size();
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    file += static_cast<char>(length >> (8 * i) & 0xFF);
  return file + header + values;
}

std::string dict(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
void expect_values(const NpyArray& array, const std::vector<std::int64_t>& shape,
                   const std::vector<T>& values) {
  EXPECT_EQ(array.shape, shape);
  ASSERT_EQ(array.count(), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(array.data<T>()[i], values[i]);
}

TEST(Npy, ReadsEveryType) {
  test::TempFolder folder;
  const auto path = folder / "a.npy";
  const std::vector<float> floats = {1.5f, -2.25f, 3e30f, 0, 5, 6};
  test::put(path, npy(dict("<f4", "(2, 3)"), bytes_of(floats)));
  expect_values(read_npy(path), {2, 3}, floats);
  const std::vector<double> doubles = {1e-300, 2};
  test::put(path, npy(dict("<f8", "(2,)"), bytes_of(doubles)));
  expect_values(read_npy(path), {2}, doubles);
  const std::vector<std::int32_t> ints = {-1, 2, 2147483647, 4, 5, 6, 7, 8};
  test::put(path, npy(dict("<i4", "(2, 2, 1, 2)"), bytes_of(ints)));
  expect_values(read_npy(path), {2, 2, 1, 2}, ints);
  const std::vector<std::int64_t> longs = {-(1LL << 60)};
  test::put(path, npy(dict("<i8", "()"), bytes_of(longs)));
  expect_values(read_npy(path), {}, longs);
  const std::vector<std::uint8_t> small = {0, 255, 7};
  test::put(path, npy(dict("|u1", "(3,)"), bytes_of(small)));
  expect_values(read_npy(path), {3}, small);
}

TEST(Npy, ReadsEveryVersionAndSpelling) {
  test::TempFolder folder;
  const auto path = folder / "a.npy";
  const std::vector<std::uint8_t> values = {1, 2};
  for (int version : {1, 2, 3}) {
    test::put(path, npy(dict("|u1", "(1, 2)"), bytes_of(values), version));
    expect_values(read_npy(path), {1, 2}, values);
  }
  for (const char* header :
       {"{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (1,2)}",
        "{'shape': (1, 2,), 'fortran_order': False, 'descr': '|u1'}    \n",
        "{ 'descr' : '|u1' , 'fortran_order' : False , 'shape' : ( 1 , 2 ) , }"}) {
    test::put(path, npy(header, bytes_of(values)));
    expect_values(read_npy(path), {1, 2}, values);
  }
}

TEST(Npy, EmptyArrays) {
  test::TempFolder folder;
  const auto path = folder / "a.npy";
  test::put(path, npy(dict("<f4", "(0,)"), ""));
  EXPECT_EQ(read_npy(path).count(), 0);
  test::put(path, npy(dict("<f4", "(9223372036854775807, 9223372036854775807, 0)"), ""));
  EXPECT_EQ(read_npy(path).count(), 0);
  write_npy(path, {3, 0, 2}, static_cast<const float*>(nullptr));
  EXPECT_EQ(read_npy(path).shape, (std::vector<std::int64_t>{3, 0, 2}));
}

TEST(Npy, RoundTrips) {
  test::TempFolder folder;
  const auto path = folder / "a.npy";
  const std::vector<float> floats = {1.5f, -0.0f, 3e-40f, 4, 5, 6};
  write_npy(path, {1, 3, 2}, floats.data());
  expect_values(read_npy(path), {1, 3, 2}, floats);
  const std::vector<std::int32_t> ints = {7};
  write_npy(path, {}, ints.data());
  expect_values(read_npy(path), {}, ints);
  const std::vector<std::uint8_t> small(1000, 200);
  write_npy(path, {1000}, small.data());
  expect_values(read_npy(path), {1000}, small);
}

// Byte for byte what NumPy 1.24 writes for numpy.arange(2, dtype='float32').
TEST(Npy, FileIsWhatNumpyWrites) {
  test::TempFolder folder;
  const std::vector<float> floats = {0, 1};
  write_npy(folder / "a.npy", {2}, floats.data());
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  header.append(128 - 10 - 1 - header.size(), ' ');
  EXPECT_EQ(read_file(folder / "a.npy"), npy(header + "\n", bytes_of(floats)));
}

TEST(Npy, RefusesOtherArrays) {
  test::TempFolder folder;
  const auto path = folder / "bad.npy";
  auto message_of = [&](const std::string& content) {
    test::put(path, content);
    const std::string message = error_of(ErrorKind::kInput, [&] { read_npy(path); });
    EXPECT_NE(message.find("bad.npy"), std::string::npos);
    return message;
  };
  EXPECT_NE(message_of(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }",
                           std::string(16, '\0')))
                .find("fortran_order"),
            std::string::npos);
  EXPECT_NE(message_of(npy(dict(">f4", "(1,)"), "1234")).find("'>f4'"), std::string::npos);
  EXPECT_NE(message_of(npy(dict("|O", "(1,)"), "1234")).find("'|O'"), std::string::npos);
  EXPECT_NE(
      message_of(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"))
          .find("several fields"),
      std::string::npos);
  EXPECT_NE(message_of(npy(dict("<f4", "(3,)"), "12345678")).find("truncated"), std::string::npos);
  EXPECT_NE(message_of(npy(dict("<f4", "(1,)"), "12345678")).find("4 bytes left over"),
            std::string::npos);
  EXPECT_NE(message_of(npy(dict("|u1", "(1,)"), "1", 9)).find("version 9"), std::string::npos);
}

TEST(Npy, RefusesHostileHeaders) {
  test::TempFolder folder;
  const auto path = folder / "bad.npy";
  for (const std::string& content :
       {std::string(),
        std::string("\x93NUMPY"),
        std::string("\x93NUMPY\1\0\xFF\xFF{", 11),
        std::string("\x93NUMPY\2\0\xFF\xFF", 10),
        std::string("\x93NUMPY\2\0\xFF\xFF\xFF\xFF{", 13),
        std::string("not numpy at all"),
        npy("", ""),
        npy("{", ""),
        npy("{}", ""),
        npy("{'descr'", ""),
        npy("{'descr': '<f4", ""),
        npy("{'descr': '<f4', 'shape': (1,), }", "1234"),
        npy("{'descr': '<f4', 'fortran_order': Fal", ""),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (", ""),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': 1, }", "1234"),
        npy("{'other': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234"),
        npy(dict("<f4", "(-1,)"), "1234"),
        npy(dict("<f4", "(1.5,)"), "1234"),
        npy(dict("<f4", "(1 1)"), "1234"),
        npy(dict("<f8", "(2305843009213693952,)"), "1234"),
        npy(dict("<f4", "(4611686018427387904, 4)"), ""),
        npy(dict("<f4", "(4294967296, 4294967296)"), ""),
        npy(dict("<f4", "(99999999999999999999,)"), "1234"),
        npy(dict(
                "<f4", "(" +
                           [] {
                             std::string s;
                             for (int i = 0; i < 40; ++i) s += "1, ";
                             return s;
                           }() +
                           ")"),
            "1234")}) {
    test::put(path, content);
    EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_npy(path); }).find("bad.npy"),
              std::string::npos);
  }
  // Every truncation of a good file.
  const std::string good = npy(dict("<i4", "(2,)"), "12345678");
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    test::put(path, good.substr(0, cut));
    error_of(ErrorKind::kInput, [&] { read_npy(path); });
  }
}

TEST(Npy, WrongTypeIsNamed) {
  test::TempFolder folder;
  const auto path = folder / "a.npy";
  test::put(path, npy(dict("|u1", "(1,)"), "1"));
  const NpyArray array = read_npy(path);
  const std::string message = error_of(ErrorKind::kInput, [&] { array.data<float>(); });
  EXPECT_NE(message.find("'|u1', expected '<f4'"), std::string::npos) << message;
  const float value = 1;
  error_of(ErrorKind::kUsage, [&] { write_npy(path, {-1}, &value); });
}

TEST(Npy, ReferenceTensors) {
  NMRF_NEED_SHARED("golden/96x160");
  const auto golden = test::shared_folder() / "golden" / "96x160";
  const NpyArray left = read_npy(golden / "left.npy");
  EXPECT_EQ(left.type, NpyType::kUint8);
  EXPECT_EQ(left.shape, (std::vector<std::int64_t>{1, 96, 160, 3}));
  const NpyArray seeds = read_npy(golden / "label_seeds.npy");
  EXPECT_EQ(seeds.type, NpyType::kInt32);
  const NpyArray volume = read_npy(golden / "cost_volume.npy");
  EXPECT_EQ(volume.type, NpyType::kFloat32);
  std::int64_t all = 1;
  for (auto size : volume.shape) all *= size;
  EXPECT_EQ(volume.count(), all);
}

}  // namespace
}  // namespace nmrf
