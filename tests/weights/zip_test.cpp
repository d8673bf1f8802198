#include "weights/zip.h"

#include <sys/mman.h>

#include "support/support.h"
#include "weights/pth_builder.h"

namespace nmrf {
namespace {

using test::expect_contains;
using test::file_of;
using test::make_zip;

std::string text_of(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

std::string refusal(const std::string& zip) {
  return test::error_of(ErrorKind::kModel, [&] { ZipReader reader(file_of(zip)); });
}

std::string with(std::string bytes, std::size_t at, std::string_view patch) {
  return bytes.replace(at, patch.size(), patch);
}

// Where the directory and the end record stand in an archive without zip64 or comment.
std::size_t end_of(const std::string& zip) { return zip.size() - 22; }
std::size_t directory_of(const std::string& zip) {
  return load_le<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(&zip[end_of(zip) + 16]));
}

TEST(Crc32, PublishedValueAndPieces) {
  const std::string text = "123456789";
  const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(text.data()), 9);
  EXPECT_EQ(crc32(bytes), 0xcbf43926u);  // the check value in the catalogues of CRCs
  EXPECT_EQ(crc32({}), 0u);
  for (std::size_t cut = 0; cut <= 9; ++cut)
    EXPECT_EQ(crc32(bytes.subspan(cut), crc32(bytes.first(cut))), 0xcbf43926u);
}

TEST(ZipReader, ReadsEveryStyle) {
  const std::vector<test::MadeEntry> entries = {
      {"a/x", "first"}, {"a/empty", ""}, {"a/y", std::string(1000, 'q')}};
  for (bool descriptors : {false, true})
    for (bool zip64_end : {false, true})
      for (bool zip64_sizes : {false, true})
        for (const char* comment : {"", "a comment PK\5\6 with a false end record inside"}) {
          ZipReader zip(file_of(make_zip(entries, {descriptors, zip64_end, zip64_sizes, comment})));
          ASSERT_EQ(zip.entries().size(), 3u);
          for (const auto& entry : entries) {
            ASSERT_NE(zip.find(entry.name), nullptr);
            EXPECT_EQ(text_of(zip.read(*zip.find(entry.name))), entry.content);
          }
          EXPECT_EQ(zip.find("a"), nullptr);
        }
}

TEST(ZipReader, EmptyArchive) { EXPECT_TRUE(ZipReader(file_of(make_zip({}))).entries().empty()); }

TEST(ZipReader, RefusesEntriesByName) {
  auto read = [](test::MadeEntry entry) {
    return test::error_of(ErrorKind::kModel, [&] {
      ZipReader zip(file_of(make_zip({entry})));
      zip.read(zip.entries()[0]);
    });
  };
  expect_contains(read({"deflated.bin", "abc", 8}), "'deflated.bin' is compressed");
  expect_contains(read({"secret", "abc", 0, 1}), "'secret' is encrypted");
  expect_contains(read({"damaged", "abc", 0, 0, true}), "'damaged' does not match its checksum");
  expect_contains(read({"\x1b[31mred", "abc", 8}), "'\\x1b[31mred' is compressed");
}

TEST(ZipReader, RefusesBrokenArchives) {
  const std::string zip = make_zip({{"one", "1111"}, {"two", "2222"}});
  const std::size_t end = end_of(zip), directory = directory_of(zip);
  const std::size_t second = directory + 46 + 3;
  expect_contains(refusal(""), "too few");
  expect_contains(refusal(zip.substr(0, zip.size() - 1)), "cut short");
  expect_contains(refusal(make_zip({{"same", "1"}, {"same", "2"}})), "two entries called 'same'");
  expect_contains(refusal(make_zip({{"", "1"}})), "no name");
  expect_contains(refusal(with(zip, end + 4, "\1")), "one part of several");
  expect_contains(refusal(with(zip, end + 8, test::le<std::uint16_t>(1))), "one part of several");
  expect_contains(refusal(with(zip, end + 8, "\xff\xff\xff\xff")), "65535 entries do not fit");
  expect_contains(refusal(with(zip, end + 12, "\xff\xff\xff\x7f")), "does not fit");
  expect_contains(refusal(with(zip, end + 16, "\xff\xff\xff\xff")), "does not fit");
  expect_contains(refusal(with(zip, directory, "XX")), "cut short or overwritten");
  expect_contains(refusal(with(zip, directory + 28, "\xff\xff")), "cut short");
  // The second record's comment reaches beyond the directory.
  expect_contains(refusal(with(zip, second + 32, "\1")), "cut short");
  expect_contains(refusal(with(zip, directory + 20, "\xff\xff\xff\x7f\xff\xff\xff\x7f")),
                  "does not fit into the file");
  expect_contains(refusal(with(zip, directory + 20, "\3")), "two sizes");
  expect_contains(refusal(with(zip, directory + 42, "\1")), "not where the directory says");
  expect_contains(refusal(with(zip, directory + 42, "\xff\xff\xff\xff")),
                  "not where the directory says");
  expect_contains(refusal(with(zip, directory + 46, "0")), "called or packed otherwise");
  expect_contains(refusal(with(zip, 8, "\x8")), "called or packed otherwise");
  expect_contains(refusal(with(zip, 26, "\xff\xff")), "does not fit into the file");
  // The first entry claims the bytes of the second as well.
  const std::string longer = test::le<std::uint32_t>(20);
  expect_contains(refusal(with(zip, directory + 20, longer + longer)), "overlap");
}

TEST(ZipReader, RefusesBrokenZip64) {
  const std::string zip = make_zip({{"one", "1111"}}, {.zip64_sizes = true});
  const std::size_t end = end_of(zip), locator = end - 20, wide = locator - 56;
  const std::size_t directory = 30 + 3 + 7 + 4;
  const std::size_t extra = directory + 46 + 3;
  ASSERT_EQ(zip.substr(directory, 4), "PK\1\2");
  const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\xff";
  expect_contains(refusal(with(zip, locator + 8, huge)), "zip64 end record");
  expect_contains(refusal(with(zip, wide, "X")), "zip64 end record");
  expect_contains(refusal(with(zip, wide + 32, huge)), "one part of several");
  expect_contains(refusal(with(zip, wide + 24, huge + huge)), "entries do not fit");
  expect_contains(refusal(with(zip, wide + 40, huge)), "does not fit");
  expect_contains(refusal(with(zip, wide + 48, huge)), "does not fit");
  expect_contains(refusal(with(zip, end + 10, test::le<std::uint16_t>(9))), "contradict");
  expect_contains(refusal(with(zip, extra + 2, "\xff\xff")), "broken extra field");
  expect_contains(refusal(with(zip, extra + 7, "\x7")), "broken zip64 field");
  expect_contains(refusal(with(zip, extra + 9, huge)), "two sizes");
  expect_contains(refusal(with(zip, extra + 9, huge + huge)), "does not fit into the file");
  expect_contains(refusal(with(zip, extra + 25, huge)), "not where the directory says");
}

TEST(ZipWriter, WritesWhatTheReaderReads) {
  test::TempFolder folder;
  const std::filesystem::path path = folder / "out.zip";
  {
    ZipWriter writer(path);
    writer.add("disp_0/000000_10.png", "content");
    writer.add("empty.txt", "");
    writer.add("\xc3\xa4.bin", std::string(70'000, '\x7f'));
    EXPECT_FALSE(std::filesystem::exists(path)) << "nothing under the name before commit";
    writer.commit();
  }
  ZipReader zip(map_weight_file(path));
  ASSERT_EQ(zip.entries().size(), 3u);
  EXPECT_EQ(zip.entries()[0].name, "disp_0/000000_10.png");
  EXPECT_EQ(text_of(zip.read(zip.entries()[0])), "content");
  EXPECT_EQ(text_of(zip.read(zip.entries()[1])), "");
  EXPECT_EQ(zip.read(*zip.find("\xc3\xa4.bin")).size(), 70'000u);
}

// The checksum and sizes are also those of the independent builder of the tests.
TEST(ZipWriter, SameEntriesGiveTheSameBytes) {
  test::TempFolder folder;
  for (const char* name : {"a.zip", "b.zip"}) {
    ZipWriter writer(folder / name);
    writer.add("x", "123");
    writer.commit();
  }
  const std::string zip = read_file(folder / "a.zip");
  EXPECT_EQ(zip, read_file(folder / "b.zip"));
  const std::string made = make_zip({{"x", "123"}});
  EXPECT_EQ(zip.substr(14, 12), made.substr(14, 12)) << "checksum and sizes of the local header";
  EXPECT_EQ(zip.substr(directory_of(zip) + 16, 12), made.substr(directory_of(made) + 16, 12));
  EXPECT_EQ(zip.substr(10, 4), std::string("\0\0\x21\0", 4)) << "1980-01-01 00:00";
}

TEST(ZipWriter, UncommittedLeavesNothing) {
  test::TempFolder folder;
  { ZipWriter(folder / "x.zip").add("a", "b"); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ZipWriter, RefusesBadNamesAndSizes) {
  test::TempFolder folder;
  ZipWriter writer(folder / "x.zip");
  for (const char* name : {"", "/etc/passwd", "../up", "a/../../b", "a\\b"})
    expect_contains(test::error_of(ErrorKind::kUsage, [&] { writer.add(name, "x"); }), "x.zip");
  writer.add("..a/b..", "dots within a name are fine");
  expect_contains(test::error_of(ErrorKind::kUsage, [&] { writer.add("..a/b..", "x"); }), "twice");
  // 4 GB of address space that is never touched: the size is refused first.
  const std::size_t size = 0xffffffff;
  void* room = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  for (std::size_t bytes : {size, size - 100})
    expect_contains(
        test::error_of(ErrorKind::kFailure,
                       [&] {
                         writer.add("big", {static_cast<const std::uint8_t*>(room), bytes});
                       }),
        "4 GB");
  ::munmap(room, size);
}

TEST(ZipWriter, RefusesTooManyEntries) {
  test::TempFolder folder;
  ZipWriter writer(folder / "x.zip");
  for (int i = 0; i < 65534; ++i) writer.add(std::to_string(i), "");
  expect_contains(test::error_of(ErrorKind::kFailure, [&] { writer.add("last", ""); }), "65534");
  writer.commit();
  EXPECT_EQ(ZipReader(map_weight_file(folder / "x.zip")).entries().size(), 65534u);
}

}  // namespace
}  // namespace nmrf
