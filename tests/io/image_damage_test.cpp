// Truncated, damaged, forged and oversized image files.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/rng.h"
#include "io/maps.h"
#include "io/picture_check.h"
#include "io/pictures.h"
#include "nmrf/files.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::encoded;
using test::error_of;
using test::noise;
using test::picture;

TEST(ReadImage, RefusesEveryTruncation) {
  test::TempFolder folder;
  const Image random = noise(23, 19);
  for (const char* extension : {".png", ".jpg", ".webp", ".ppm", ".bmp", ".tiff"}) {
    const std::string whole = encoded(extension, random);
    const auto path = folder / (std::string("cut") + extension);
    for (std::size_t cut = 0; cut < whole.size(); cut += cut < 64 ? 1 : 37) {
      test::put(path, whole.substr(0, cut));
      SCOPED_TRACE(path.filename().string() + " of " + std::to_string(cut) + " bytes");
      const std::string message = error_of(ErrorKind::kInput, [&] { read_image(path); });
      EXPECT_NE(message.find(path.string()), std::string::npos);
    }
    for (std::size_t less : {1u, 2u}) {
      test::put(path, whole.substr(0, whole.size() - less));
      SCOPED_TRACE(path.filename().string() + " less " + std::to_string(less));
      error_of(ErrorKind::kInput, [&] { read_image(path); });
    }
  }
  test::put(folder / "cut.png", encoded(".png", random).substr(0, 700));
  const std::string message = error_of(ErrorKind::kInput, [&] { read_image(folder / "cut.png"); });
  EXPECT_NE(message.find("truncated"), std::string::npos) << message;
  EXPECT_NE(message.find("again"), std::string::npos) << message;
}

TEST(ReadImage, RefusesDamagedPng) {
  test::TempFolder folder;
  std::string png = encoded(".png", picture(23, 19, 3));
  for (std::size_t at : {20u, 45u, 60u}) {
    std::string damaged = png;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    test::put(folder / "a.png", damaged);
    error_of(ErrorKind::kInput, [&] { read_image(folder / "a.png"); });
  }
}

TEST(ReadImage, RefusesForgedSizes) {
  test::TempFolder folder;
  auto refused = [&](const std::string& name, const std::string& content) {
    test::put(folder / name, content);
    return error_of(ErrorKind::kInput, [&] { read_image(folder / name); });
  };
  // JPEG: rewrite height and width of the frame header.
  std::string jpeg = encoded(".jpg", picture(8, 8, 3));
  const std::size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  for (std::size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\xF0';
  EXPECT_NE(refused("a.jpg", jpeg).find("61680x61680"), std::string::npos);
  // PPM: a size that the file cannot hold, and ones that overflow.
  EXPECT_NE(refused("a.ppm", "P6\n100000 100000\n255\nabc").find("100000x100000"),
            std::string::npos);
  refused("b.ppm", "P6\n4294967296 4294967297\n255\nabc");
  refused("c.ppm", "P3\n30000 30000\n255\n1 2 3");
  refused("d.ppm", "P6\n0 4\n255\nabc");
  refused("e.ppm", "P6\n2 2\n99999\nabc");
  refused("f.ppm", "P6\n-2 2\n255\nabcabcabcabcabc");
  // TIFF: 10^9 rows in a directory of either byte order; and a directory that is not there.
  for (bool big : {false, true}) {
    auto number = [&](std::uint32_t value, int bytes) {
      std::string text;
      for (int i = 0; i < bytes; ++i)
        text += static_cast<char>(value >> (8 * (big ? bytes - 1 - i : i)));
      return text;
    };
    auto entry = [&](std::uint32_t tag, std::uint32_t value) {
      return number(tag, 2) + number(4, 2) + number(1, 4) + number(value, 4);
    };
    const std::string start = (big ? "MM" : "II") + number(42, 2);
    const std::string directory = number(8, 4) + number(3, 2);
    EXPECT_NE(refused("a.tiff", start + directory + entry(256, 1000) + entry(257, 1000000000) +
                                    entry(258, 8) + number(0, 4))
                  .find("1000x1000000000"),
              std::string::npos);
    EXPECT_NE(refused("b.tiff", start + directory + entry(256, 10)).find("truncated"),
              std::string::npos);
    EXPECT_NE(refused("c.tiff", start + number(0xFFFFFFFF, 4) + "xx").find("truncated"),
              std::string::npos);
    EXPECT_NE(refused("d.tiff", (big ? "MM" : "II") + number(43, 2) + number(8, 2) + number(0, 4))
                  .find("BigTIFF"),
              std::string::npos);
    refused("e.tiff", start);
    // Whole, and cut inside its pixels: here the directory comes first.
    const std::string small = start + number(8, 4) + number(8, 2) + entry(256, 4) + entry(257, 2) +
                              entry(258, 8) + entry(259, 1) + entry(262, 1) + entry(273, 110) +
                              entry(278, 2) + entry(279, 8) + number(0, 4);
    ASSERT_EQ(small.size(), 110u);
    test::put(folder / "f.tiff", small + "abcdefgh");
    const Image image = read_image(folder / "f.tiff");
    ASSERT_EQ(std::pair(image.width(), image.height()), std::pair(4, 2));
    EXPECT_EQ(test::value(image, 1, 3), 'h');
    EXPECT_NE(refused("g.tiff", small + "abcdefg").find("truncated"), std::string::npos);
  }
  // BMP of 2^31 - 1 pixels per side.
  std::string bmp = encoded(".bmp", picture(8, 8, 3));
  for (std::size_t i = 18; i < 26; ++i) bmp[i] = (i - 18) % 4 == 3 ? '\x7F' : '\xFF';
  refused("a.bmp", bmp);
}

// With any byte changed a file is read or refused, and nothing else happens.
TEST(ReadImage, DamagedFilesThrowOurError) {
  test::TempFolder folder;
  Rng random(5);
  for (const char* extension : {".png", ".ppm", ".bmp", ".tiff", ".webp", ".jpg"}) {
    const std::string whole = encoded(extension, picture(11, 9, 3));
    int refusals = 0;
    for (int i = 0; i < 80; ++i) {
      std::string damaged = whole;
      const int end = i % 2 == 0 ? 64 : static_cast<int>(whole.size());  // headers matter most
      damaged[static_cast<std::size_t>(random.integer(0, end - 1))] =
          static_cast<char>(random.integer(0, 255));
      test::put(folder / "a", damaged);
      try {
        EXPECT_FALSE(read_image(folder / "a").empty());
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInput);
        ++refusals;
      }
    }
    EXPECT_GT(refusals, 3) << extension;
  }
}

TEST(ReadImage, SaysWhatTheFileIsInstead) {
  test::TempFolder folder;
  auto message_of = [&](const std::string& name, const std::string& content) {
    test::put(folder / name, content);
    const std::string message = error_of(ErrorKind::kInput, [&] { read_image(folder / name); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    return message;
  };
  EXPECT_NE(message_of("text.png", "left right disparity\n").find("looks like text"),
            std::string::npos);
  EXPECT_NE(message_of("empty.png", "").find("empty"), std::string::npos);
  EXPECT_NE(message_of("lfs.png", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
                .find("git lfs pull"),
            std::string::npos);
  EXPECT_NE(message_of("zip.png", std::string("PK\x03\x04\x00\x00", 6)).find("known kind"),
            std::string::npos);
  EXPECT_NE(message_of("one.png", "P").find("text"), std::string::npos);
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_image(folder / "none.png"); }).find("none.png"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_image(folder.path()); }).find("is a folder"),
            std::string::npos);
  write_disparity(folder / "float.tiff", test::sample_map(4, 4, false));
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_image(folder / "float.tiff"); }).find("float"),
            std::string::npos);
}

// What the checksums of a file do not cover: each library must notice that data are missing.
TEST(ReadImage, PixelsThatEndTooEarly) {
  test::TempFolder folder;
  using namespace std::string_literals;
  auto refused = [&](const std::string& name, const std::string& content) {
    test::put(folder / name, content);
    return error_of(ErrorKind::kInput, [&] { read_image(folder / name); });
  };
  refused("a.png", test::handmade_png(4, 3, 8, 0, "\0abcd\0abcd"s));  // two rows of three
  // JPEG: half of the coded data, with an end marker.
  for (bool progressive : {false, true}) {
    const std::string jpeg = test::jpeg_file(noise(64, 48), {.progressive = progressive});
    EXPECT_NE(refused("a.jpg", jpeg.substr(0, jpeg.size() / 2) + "\xFF\xD9").find("a.jpg"),
              std::string::npos);
  }
  // TIFF: the directory says that the packed strip is half as long as it is.
  for (int packing : {5, 7, 8, 32773}) {
    SCOPED_TRACE(packing);
    std::string tiff = test::tiff_file(noise(32, packing == 7 ? 8 : 3, 1), {.packing = packing});
    const std::size_t entry = tiff.rfind("\x17\x01");  // StripByteCounts
    ASSERT_NE(entry, std::string::npos);
    std::uint32_t length = 0;
    std::memcpy(&length, tiff.data() + entry + 8, sizeof length);
    ASSERT_LT(length, tiff.size());
    length /= 2;
    std::memcpy(tiff.data() + entry + 8, &length, sizeof length);
    refused("a.tiff", tiff);
  }
  refused("a.ppm", "P3\n2 1\n255\n1 2 3 4 5");
  refused("b.ppm", "P3\n2 1\n255\n1 2 3 4 5 x");
  refused("c.ppm", "P3\n2 1\n255\n1 2 3 4 5 256");
  refused("d.pbm", "P1\n3 1\n0 1 2");
  refused("e.pbm", "P1\n3 1\n01");
}

TEST(ReadImage, RefusesUnknownVarieties) {
  test::TempFolder folder;
  auto message_of = [&](const std::string& name, const std::string& content) {
    test::put(folder / name, content);
    const std::string message = error_of(ErrorKind::kInput, [&] { read_image(folder / name); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    return message;
  };
  EXPECT_NE(message_of("cmyk.jpg", test::jpeg_file(noise(16, 16, 4), {.cmyk = true})).find("CMYK"),
            std::string::npos);
  EXPECT_NE(message_of("cmyk.tiff", test::tiff_file(noise(8, 8, 4), {.meaning = 5})).find("RGB"),
            std::string::npos);
  message_of("signed.tiff", test::tiff_file(noise(8, 8, 1, 16), {.format = 2}));
  message_of("five.tiff", test::tiff_file(4, 1, 5, 8, std::string(20, 'x'), {.meaning = 1}));
  message_of("wide.tiff", test::tiff_file(4, 1, 1, 64, std::string(32, 'x'), {.format = 3}));
  message_of("colour.tiff", test::tiff_file(4, 1, 3, 32, std::string(48, 'x'), {.format = 3}));
  std::string bmp = encoded(".bmp", picture(8, 8, 3));
  bmp[28] = 7;  // bits per pixel
  message_of("odd.bmp", bmp);
}

// A file may be whole and still too large: this one has all the bytes that its pixels can take.
TEST(ReadImage, LimitBeforeDecoding) {
  test::TempFolder folder;
  const std::string small = test::handmade_png(30000, 30000, 8, 0, "");
  const std::size_t header = 8 + 25;
  const std::string png = small.substr(0, header) +
                          test::png_chunk("IDAT", std::string(1'000'000, 'x')) +
                          test::png_chunk("IEND", "");
  test::put(folder / "large.png", png);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  std::string message = error_of(ErrorKind::kDevice, [&] { read_image(folder / "large.png"); });
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_NE(message.find("large.png"), std::string::npos);
  EXPECT_NE(message.find("30000x30000"), std::string::npos);
  EXPECT_NE(message.find("512 megapixels"), std::string::npos);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024) << "kilobytes";
  error_of(ErrorKind::kDevice, [&] { read_disparity(folder / "large.png"); });
  static_assert(kMaxPixels == 512'000'000);
  // WebP: a lossless header of 16383 x 16383 pixels in a few bytes.
  std::string webp("RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\xfe\xbf\xff\x0f", 25);
  webp.resize(34, '\0');
  test::put(folder / "large.webp", webp);
  message = error_of(ErrorKind::kInput, [&] { read_image(folder / "large.webp"); });
  EXPECT_NE(message.find("16383x16383"), std::string::npos) << message;
}

// Thousands of scans would take minutes.
TEST(ReadImage, JpegWithTooManyScans) {
  test::TempFolder folder;
  const std::string jpeg = test::jpeg_file(picture(64, 64, 1), {.progressive = true});
  const std::size_t scan = jpeg.rfind("\xFF\xDA");
  std::string many = jpeg.substr(0, jpeg.size() - 2);
  for (int i = 0; i < 600; ++i) many += jpeg.substr(scan, jpeg.size() - 2 - scan);
  test::put(folder / "a.jpg", many + "\xFF\xD9");
  error_of(ErrorKind::kInput, [&] { read_image(folder / "a.jpg"); });
}

}  // namespace
}  // namespace nmrf
