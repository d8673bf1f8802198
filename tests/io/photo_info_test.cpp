// EXIF and MPO: what cameras write, and what they never would.
#include "io/photo_info.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>

#include "core/rng.h"
#include "io/maps.h"
#include "io/pair_source.h"
#include "io/pictures.h"
#include "nmrf/log.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;
using test::picture;

// Numbers in either byte order.
std::string bytes_of(bool big, std::uint64_t value, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += static_cast<char>(value >> 8 * (big ? count - 1 - i : i) & 0xFF);
  return text;
}

struct Tag {
  unsigned tag;
  int type;             // 3, 4, 5 or 7
  std::string content;  // in the byte order of the structure
};

// One directory of TIFF that begins at `at`; `next`: where another one follows.
std::string directory(bool big, std::size_t at, const std::vector<Tag>& tags, bool next = false) {
  std::string text = bytes_of(big, tags.size(), 2), data;
  const std::size_t behind = at + 2 + 12 * tags.size() + 4;
  for (const Tag& tag : tags) {
    const std::size_t unit = tag.type == 3 ? 2 : tag.type == 4 ? 4 : tag.type == 5 ? 8 : 1;
    text += bytes_of(big, tag.tag, 2) + bytes_of(big, static_cast<std::uint64_t>(tag.type), 2) +
            bytes_of(big, tag.content.size() / unit, 4);
    if (tag.content.size() <= 4) {
      text += tag.content + std::string(4 - tag.content.size(), '\0');
    } else {
      text += bytes_of(big, behind + data.size(), 4);
      data += tag.content;
    }
  }
  return text + bytes_of(big, next ? behind + data.size() : 0, 4) + data;
}

std::string head(bool big) {
  return (big ? "MM" : "II") + bytes_of(big, 42, 2) + bytes_of(big, 8, 4);
}

std::string segment(int marker, const std::string& content) {
  return "\xFF" + std::string(1, static_cast<char>(marker)) +
         bytes_of(true, content.size() + 2, 2) + content;
}

std::string with_exif(const std::string& jpeg, bool big, int orientation,
                      const std::vector<Tag>& tags) {
  const std::string number = bytes_of(big, static_cast<std::uint64_t>(orientation), 2);
  std::string first = directory(big, 8, {{0x0112, 3, number}, {0x8769, 4, bytes_of(big, 38, 4)}});
  EXPECT_EQ(first.size(), 30u);
  return jpeg.substr(0, 2) +
         segment(0xE1, std::string("Exif\0\0", 6) + head(big) + first + directory(big, 38, tags)) +
         jpeg.substr(2);
}

std::string fraction(bool big, unsigned a, unsigned b) {
  return bytes_of(big, a, 4) + bytes_of(big, b, 4);
}

// An MPO file with an index of three pictures: left, a thumbnail, right.
std::string mpo_file(const std::string& left, const std::string& right, bool big,
                     const std::string& between = "") {
  const std::string small = test::encoded(".jpg", picture(16, 16, 3));
  auto file = [&](std::size_t thumbnail, std::size_t second) {
    std::string list;
    auto entry = [&](unsigned kind, std::size_t size, std::size_t at) {
      list += bytes_of(big, kind, 4) + bytes_of(big, size, 4) + bytes_of(big, at, 4) +
              std::string(4, '\0');
    };
    entry(0x20020002, left.size(), 0);
    entry(0x010001, small.size(), thumbnail);
    entry(0x020002, right.size(), second);
    const std::string first =
        directory(big, 8, {{0xB001, 4, bytes_of(big, 3, 4)}, {0xB002, 7, list}}, true);
    const std::string other =
        directory(big, 8 + first.size(), {{0xB206, 5, fraction(big, 77, 1000)}});
    const std::string index = segment(0xE2, std::string("MPF\0", 4) + head(big) + first + other);
    return left.substr(0, 2) + index + left.substr(2);
  };
  const std::size_t one = file(0, 0).size(), base = 2 + 4 + 4;  // SOI, segment, "MPF"
  const std::size_t two = one + between.size();
  return file(one - base, two + small.size() - base) + between + small + right;
}

TEST(PhotoInfo, FocalLength) {
  const std::string jpeg = test::encoded(".jpg", picture(400, 300, 3));
  for (bool big : {false, true}) {
    // 28 mm on film is 0.647 of the diagonal.
    PhotoInfo info = photo_info(with_exif(jpeg, big, 6, {{0xA405, 3, bytes_of(big, 28, 2)}}));
    EXPECT_EQ(info.orientation, 6);
    ASSERT_TRUE(info.focal_px(400, 300, 400));
    EXPECT_NEAR(*info.focal_px(400, 300, 400), 28 / 43.2666 * 500, 0.1);
    // 6.3 mm, 5000 pixels per cm on a sensor of 4000 columns; the image was made ten times smaller.
    info = photo_info(with_exif(jpeg, big, 1,
                                {{0x920A, 5, fraction(big, 63, 10)},
                                 {0xA002, 4, bytes_of(big, 4000, 4)},
                                 {0xA20E, 5, fraction(big, 50000, 10)},
                                 {0xA210, 3, bytes_of(big, 3, 2)}}));
    EXPECT_EQ(info.orientation, 1);
    ASSERT_TRUE(info.focal_px(400, 300, 400));
    EXPECT_NEAR(*info.focal_px(400, 300, 400), 6.3 * 500 / 10, 0.1);
    // A telescope that no camera has.
    info = photo_info(with_exif(jpeg, big, 1, {{0xA405, 3, bytes_of(big, 65535, 2)}}));
    EXPECT_FALSE(info.focal_px(400, 300, 400));
    // A division by zero.
    info = photo_info(with_exif(
        jpeg, big, 9, {{0x920A, 5, fraction(big, 63, 0)}, {0xA20E, 5, fraction(big, 0, 0)}}));
    EXPECT_EQ(info.orientation, 1);
    EXPECT_FALSE(info.focal_mm);
    EXPECT_FALSE(info.focal_px(400, 300, 400));
  }
  EXPECT_FALSE(photo_info(jpeg).focal_px(400, 300, 400));
  EXPECT_FALSE(photo_info(test::encoded(".png", picture(9, 9, 3))).focal_px(9, 9, 9));
}

// Every prefix, and thousands of files with changed bytes, in memory of exactly their length: the
// sanitizers see what is read beyond it.
TEST(PhotoInfo, HostileBytes) {
  const std::string jpeg = test::encoded(".jpg", picture(16, 16, 3));
  const std::string exif = with_exif(
      jpeg, false, 3, {{0xA405, 3, bytes_of(false, 28, 2)}, {0x920A, 5, fraction(false, 63, 10)}});
  const std::string mpo = mpo_file(exif, jpeg, true);
  auto look = [](const std::string& bytes) {
    const std::vector<char> exact(bytes.begin(), bytes.end());
    const std::string_view view(exact.data(), exact.size());
    const PhotoInfo info = photo_info(view);
    EXPECT_GE(info.orientation, 1);
    EXPECT_LE(info.orientation, 8);
    EXPECT_TRUE(std::isfinite(info.focal_px(16, 16, 16).value_or(1)));
    try {
      const MultiPicture both = multi_picture(view, "a");
      EXPECT_GT(both.right.data(), view.data());
      EXPECT_EQ(both.right.data() + both.right.size(), view.data() + view.size());
      EXPECT_LT(both.baseline.value_or(0), 100);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
    }
  };
  for (const std::string* whole : {&exif, &mpo})
    for (std::size_t cut = 0; cut < whole->size(); ++cut) look(whole->substr(0, cut));
  Rng rng(5);
  const std::size_t reach = mpo.find("\xFF\xDB");  // the parts in front of the tables
  ASSERT_NE(reach, std::string::npos);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = mpo;
    for (int k = 0; k < 1 + i % 4; ++k)
      damaged[static_cast<std::size_t>(rng.uniform() * static_cast<double>(reach))] =
          static_cast<char>(i % 3 == 0 ? 0xFF : static_cast<int>(rng.uniform() * 256));
    look(damaged);
  }
}

TEST(PhotoInfo, Upright) {
  Image image(3, 2);
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 3; ++x) image.row(y)[3 * x] = static_cast<std::uint8_t>(10 * y + x);
  auto rows = [&](int orientation) {
    const Image turned = upright(image, orientation);
    std::vector<int> values;
    for (int y = 0; y < turned.height(); ++y)
      for (int x = 0; x < turned.width(); ++x) values.push_back(turned.row(y)[3 * x]);
    return std::pair(turned.width(), values);
  };
  using Rows = std::pair<int, std::vector<int>>;
  EXPECT_EQ(rows(1), Rows(3, {0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(rows(2), Rows(3, {2, 1, 0, 12, 11, 10}));
  EXPECT_EQ(rows(3), Rows(3, {12, 11, 10, 2, 1, 0}));
  EXPECT_EQ(rows(4), Rows(3, {10, 11, 12, 0, 1, 2}));
  EXPECT_EQ(rows(5), Rows(2, {0, 10, 1, 11, 2, 12}));
  EXPECT_EQ(rows(6), Rows(2, {10, 0, 11, 1, 12, 2}));  // a quarter clockwise
  EXPECT_EQ(rows(7), Rows(2, {12, 2, 11, 1, 10, 0}));
  EXPECT_EQ(rows(8), Rows(2, {2, 12, 1, 11, 0, 10}));
}

void expect_near(const Image& a, const Image& b) {
  ASSERT_EQ(std::pair(a.width(), a.height()), std::pair(b.width(), b.height()));
  EXPECT_LE(test::largest_difference(a, b), 12);
}

TEST(PhotoInfo, MpoFiles) {
  test::TempFolder folder;
  const Image left = picture(64, 48, 3), right = upright(left, 3);
  const std::string a = with_exif(test::encoded(".jpg", left), true, 1,
                                  {{0xA405, 3, bytes_of(true, 35, 2)}}),
                    b = test::encoded(".jpg", right);
  std::string damaged = mpo_file(a, b, true);
  damaged[damaged.find("MPF") + 4] = 'X';  // no byte order: the index is not read
  const std::string plain = a + std::string(300, '\0') + b;
  const std::vector<std::tuple<const char*, std::string, bool>> files{
      {"big.mpo", mpo_file(a, b, true), true},
      {"little.MPO", mpo_file(a, b, false), true},
      {"gap.mpo", mpo_file(a, b, true, std::string(100, '\0')), true},
      {"plain.mpo", plain, false},
  };
  for (const auto& [name, content, indexed] : files) {
    SCOPED_TRACE(name);
    test::put(folder / name, content);
    auto source = open_pairs({.left = folder / name});
    InputPair pair;
    ASSERT_TRUE(source->next(pair));
    ASSERT_FALSE(pair.error) << pair.error->what();
    expect_near(pair.left, left);
    expect_near(pair.right, right);
    EXPECT_EQ(pair.baseline_guess.has_value(), indexed);
    EXPECT_DOUBLE_EQ(pair.baseline_guess.value_or(0), indexed ? 0.077 : 0);
    ASSERT_TRUE(pair.focal_guess);
    EXPECT_NEAR(*pair.focal_guess, 35 / 43.2666 * 80, 0.1);
  }
  EXPECT_EQ(multi_picture(damaged, "a").right.substr(0, 2), "\xFF\xD8") << "the next picture";
  // The whole folder, one with a single picture among them.
  test::put(folder / "single.mpo", a);
  auto source = open_pairs({.left = folder.path(), .layout = Layout::kMpo});
  int good = 0, bad = 0;
  for (InputPair pair; source->next(pair);) {
    (pair.error ? bad : good) += 1;
    const std::string reason = pair.error ? pair.error->what() : "holds one picture";
    EXPECT_NE(reason.find("holds one picture"), std::string::npos) << reason;
  }
  EXPECT_EQ(std::pair(good, bad), std::pair(4, 1));
}

TEST(PhotoInfo, OrientationOfPairs) {
  test::TempFolder folder;
  const Image image = picture(64, 48, 3);
  for (const char* name : {"l.jpg", "r.jpg"})
    test::put(folder / name, with_exif(test::encoded(".jpg", image), true, 6, {}));
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel, const std::string& text) { warnings.push_back(text); });
  InputPair pair;
  ASSERT_TRUE(open_pairs({.left = folder / "l.jpg", .right = folder / "r.jpg"})->next(pair));
  EXPECT_EQ(pair.left.width(), 64) << "as stored";
  ASSERT_EQ(warnings.size(), 1u) << "once for both";
  EXPECT_NE(warnings[0].find("orientation 6"), std::string::npos);
  ASSERT_TRUE(open_pairs({.left = folder / "l.jpg", .right = folder / "r.jpg", .upright = true})
                  ->next(pair));
  set_log_sink({});
  EXPECT_EQ(warnings.size(), 1u);
  expect_near(pair.left, upright(image, 6));
  expect_near(pair.right, upright(image, 6));
}

}  // namespace
}  // namespace nmrf
