#include "io/list_file.h"

#include "core/file.h"
#include "support/support.h"

namespace nmrf {
namespace {

TEST(ReadList, CommentsQuotesAndLineEnds) {
  test::TempFolder folder;
  write_file(folder / "a.txt",
             "\xef\xbb\xbf# head\r\n"
             "a b\tc\r\n"
             "\n"
             "   \"with blank.png\"  b#no  # tail\n"
             "last");
  auto lines = read_list(folder / "a.txt");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 2);
  EXPECT_EQ(lines[0].columns, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(lines[1].number, 4);
  EXPECT_EQ(lines[1].columns, (std::vector<std::string>{"with blank.png", "b#no"}));
  EXPECT_EQ(lines[2].columns, (std::vector<std::string>{"last"}));
}

TEST(ReadList, OpenQuoteNamesTheLine) {
  test::TempFolder folder;
  write_file(folder / "a.txt", "x\n\"abc\n");
  auto message = test::error_of(ErrorKind::kInput, [&] { read_list(folder / "a.txt"); });
  EXPECT_NE(message.find("line 2"), std::string::npos);
  EXPECT_NE(message.find("a.txt"), std::string::npos);
}

}  // namespace
}  // namespace nmrf
