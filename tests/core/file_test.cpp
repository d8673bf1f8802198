#include "core/file.h"

#include <fstream>

#include "core/folder_lock.h"
#include "support/support.h"

namespace nmrf {
namespace {

namespace fs = std::filesystem;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(AtomicFile, UncommittedLeavesTheOldFile) {
  test::TempFolder folder;
  write_file(folder / "a.txt", "old");
  {
    AtomicFile file(folder / "a.txt");
    file.write("half of the new");
  }
  EXPECT_EQ(read_file(folder / "a.txt"), "old");
  EXPECT_EQ(entries(folder.path()), 1u) << "the temporary must be gone";
}

TEST(AtomicFile, CommitReplaces) {
  test::TempFolder folder;
  write_file(folder / "a.txt", "old");
  write_file(folder / "a.txt", "new");
  EXPECT_EQ(read_file(folder / "a.txt"), "new");
  EXPECT_EQ(entries(folder.path()), 1u);
}

// A temporary of the same name may be another container's, whose process has the same id.
TEST(AtomicFile, TemporariesOfOthersAreLeftAlone) {
  test::TempFolder folder;
  const std::string first = AtomicFile(folder / "a.txt").temporary().string();
  const auto dash = first.rfind('-');
  const fs::path theirs =
      first.substr(0, dash + 1) + std::to_string(std::stoi(first.substr(dash + 1)) + 1);
  std::ofstream(theirs) << "theirs";
  write_file(folder / "a.txt", "ours");
  EXPECT_EQ(read_file(folder / "a.txt"), "ours");
  EXPECT_EQ(read_file(theirs), "theirs");
}

TEST(AtomicFile, FolderThatIsMissingIsNamed) {
  test::TempFolder folder;
  auto message =
      test::error_of(ErrorKind::kFailure, [&] { write_file(folder / "none/a.txt", "x"); });
  EXPECT_NE(message.find("a.txt"), std::string::npos);
}

TEST(FolderLock, OneWriterOrSeveralThatShare) {
  test::TempFolder folder;
  {
    const FolderLock lock(folder.path(), "nmrf test");
    const std::string message =
        test::error_of(ErrorKind::kUsage, [&] { FolderLock(folder.path(), "nmrf test"); });
    EXPECT_NE(message.find(folder.path().string() + ": another nmrf test"), std::string::npos);
    test::error_of(ErrorKind::kUsage, [&] { FolderLock(folder.path(), "nmrf test", true); });
  }
  const FolderLock one(folder.path(), "nmrf test", true), two(folder.path(), "nmrf test", true);
  test::error_of(ErrorKind::kUsage, [&] { FolderLock(folder.path(), "nmrf test"); });
}

TEST(ReadFile, MissingFolderAndTooLarge) {
  test::TempFolder folder;
  EXPECT_NE(test::error_of(ErrorKind::kInput, [&] { read_file(folder / "no.txt"); }).find("no.txt"),
            std::string::npos);
  test::error_of(ErrorKind::kModel, [&] { read_file(folder.path(), ErrorKind::kModel); });
  write_file(folder / "a", "12345");
  test::error_of(ErrorKind::kInput, [&] { read_file(folder / "a", ErrorKind::kInput, 4); });
  EXPECT_EQ(read_file(folder / "a", ErrorKind::kInput, 5), "12345");
}

TEST(MappedFile, MapsContentAndEmptyFiles) {
  test::TempFolder folder;
  write_file(folder / "a", "xyz");
  MappedFile map(folder / "a", ErrorKind::kInput);
  ASSERT_EQ(map.size(), 3u);
  EXPECT_EQ(map.data()[2], 'z');
  write_file(folder / "b", "");
  EXPECT_EQ(MappedFile(folder / "b", ErrorKind::kInput).size(), 0u);
}

}  // namespace
}  // namespace nmrf
