#include "core/sha256.h"

#include "core/file.h"
#include "support/support.h"

namespace nmrf {
namespace {

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

// The examples of FIPS 180-4 and of NIST's test vectors.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Every length around the block borders, in pieces of every size: the same as in one piece.
TEST(Sha256, PiecesMakeNoDifference) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 37 + 11);
  for (std::size_t length : {0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 200}) {
    const std::string_view part = std::string_view(text).substr(0, length);
    const std::string whole = sha256(part);
    for (std::size_t piece : {1, 3, 55, 63, 64, 65, 130}) {
      Sha256 hash;
      for (std::size_t at = 0; at < length; at += piece) hash.update(part.substr(at, piece));
      EXPECT_EQ(hash.hex(), whole) << length << " bytes in pieces of " << piece;
    }
  }
}

TEST(Sha256, Files) {
  test::TempFolder folder;
  write_file(folder / "a", "abc");
  EXPECT_EQ(sha256_of_file(folder / "a"), sha256("abc"));
  write_file(folder / "empty", "");
  EXPECT_EQ(sha256_of_file(folder / "empty"), sha256(""));
  EXPECT_NE(
      test::error_of(ErrorKind::kModel, [&] { sha256_of_file(folder / "none"); }).find("none"),
      std::string::npos);
}

}  // namespace
}  // namespace nmrf
