#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/file.h"
#include "io/maps.h"
#include "io/pictures.h"
#include "nmrf/files.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::encoded;
using test::error_of;
using test::noise;
using test::picture;
using test::value;

void expect_size(const Image& image, int width, int height, int channels, int bits = 8) {
  EXPECT_EQ(std::pair(image.width(), image.height()), std::pair(width, height));
  EXPECT_EQ(image.channels(), channels);
  EXPECT_EQ(image.bits(), bits);
  EXPECT_EQ(image.order(), ChannelOrder::kRgb);
}

// All channels of a pixel.
std::vector<int> pixel(const Image& image, int y, int x) {
  std::vector<int> values;
  for (int c = 0; c < image.channels(); ++c) values.push_back(value(image, y, x, c));
  return values;
}
using Pixel = std::vector<int>;

TEST(ImageFiles, LosslessFormatsKeepEveryBit) {
  test::TempFolder folder;
  struct Case {
    const char* name;
    int channels, bits;
  };
  for (const Case& c :
       {Case{"a.png", 1, 8}, {"a.png", 3, 8},  {"a.png", 4, 8},  {"a.png", 1, 16}, {"a.png", 3, 16},
        {"a.png", 4, 16},    {"a.tiff", 1, 8}, {"a.tiff", 3, 8}, {"a.tiff", 4, 8}, {"a.tif", 1, 16},
        {"a.tif", 3, 16},    {"a.tif", 4, 16}, {"a.ppm", 3, 8},  {"a.ppm", 3, 16}, {"a.pgm", 1, 8},
        {"a.pgm", 1, 16},    {"a.pnm", 1, 8},  {"a.pnm", 3, 8},  {"a.bmp", 1, 8},  {"a.bmp", 3, 8},
        {"a.bmp", 4, 8},     {"a.webp", 3, 8}, {"a.webp", 4, 8}, {"A.PNG", 3, 8}})
    for (auto [width, height] :
         {std::pair(1, 1), std::pair(3, 1), std::pair(1, 5), std::pair(17, 13)}) {
      SCOPED_TRACE(fmt::format("{} {}x{} {} bit", c.name, width, height, c.bits));
      for (const Image& image :
           {picture(width, height, c.channels, c.bits), noise(width, height, c.channels, c.bits)}) {
        write_image(folder / c.name, image);
        const Image back = read_image(folder / c.name);
        // WebP drops an alpha channel that is opaque everywhere.
        if (back.channels() == 3 && c.channels == 4 && c.name[2] == 'w')
          test::expect_same_bits(back, to_rgb8(image));
        else
          test::expect_same_bits(back, image);
      }
    }
}

TEST(ImageFiles, LossyFormats) {
  test::TempFolder folder;
  for (int channels : {1, 3}) {
    const Image image = picture(56, 40, channels);
    write_image(folder / "a.jpg", image);
    const Image back = read_image(folder / "a.jpg");
    expect_size(back, 56, 40, channels);
    EXPECT_LT(test::largest_difference(back, image), 12);
  }
  const Image image = picture(56, 40, 3);
  test::put(folder / "p.jpg", test::jpeg_file(image, {.progressive = true, .restart = 1}));
  EXPECT_LT(test::largest_difference(read_image(folder / "p.jpg"), image), 12);
  test::put(folder / "l.webp", test::lossy_webp(image));
  EXPECT_LT(test::largest_difference(read_image(folder / "l.webp"), image), 16);
}

// What a format cannot hold is dropped or repeated: alpha of JPEG and PPM, grey in WebP.
TEST(ImageFiles, ChannelsThatAFormatLacks) {
  test::TempFolder folder;
  const Image rgba = noise(5, 4, 4);
  write_image(folder / "a.ppm", rgba);
  test::expect_same_bits(read_image(folder / "a.ppm"), to_rgb8(rgba));
  write_image(folder / "a.jpg", rgba);
  expect_size(read_image(folder / "a.jpg"), 5, 4, 3);
  const Image grey = noise(5, 4, 1);
  for (const char* name : {"g.webp", "g.ppm"}) {
    write_image(folder / name, grey);
    test::expect_same_bits(read_image(folder / name), to_rgb8(grey));
  }
}

TEST(ImageFiles, BgrAndStridesAreWrittenAsSeen) {
  test::TempFolder folder;
  for (int bits : {8, 16})
    for (int channels : {3, 4}) {
      const Image rgb = noise(6, 5, channels, bits);
      Image bgr(6, 5, channels, bits, ChannelOrder::kBgr);
      const auto step = static_cast<std::size_t>(bits / 8);
      for (int y = 0; y < 5; ++y)
        for (int x = 0; x < 6 * channels; ++x) {
          const int c = x % channels, from = c < 3 ? x - c + 2 - c : x;
          std::copy_n(rgb.row(y) + static_cast<std::size_t>(from) * step, step,
                      bgr.row(y) + static_cast<std::size_t>(x) * step);
        }
      for (const char* name : {"a.png", "a.tiff", "a.bmp", "a.webp"}) {
        if (bits == 16 && (name[2] == 'b' || name[2] == 'w')) continue;
        write_image(folder / name, bgr);
        test::expect_same_bits(read_image(folder / name), rgb);
      }
      // Bottom up, and a part of each row.
      ImageView flipped = rgb.view();
      flipped.data = rgb.row(4);
      flipped.stride = -static_cast<std::ptrdiff_t>(rgb.row_bytes());
      flipped.width = 4;
      write_image(folder / "f.png", flipped);
      const Image back = read_image(folder / "f.png");
      for (int y = 0; y < 5; ++y)
        EXPECT_EQ(0, std::memcmp(back.row(y), rgb.row(4 - y), back.row_bytes()));
    }
}

// The kind is found by content: a wrong extension does no harm.
TEST(ImageFiles, ExtensionDoesNotMatter) {
  test::TempFolder folder;
  const Image image = picture(6, 5, 3);
  test::put(folder / "a.jpg", encoded(".png", image));
  test::expect_same_bits(read_image(folder / "a.jpg"), image);
  test::put(folder / "noextension", encoded(".ppm", image));
  test::expect_same_bits(read_image(folder / "noextension"), image);
}

TEST(ImageFiles, InterlacedPng) {
  test::TempFolder folder;
  for (int bits : {8, 16})
    for (int channels : {1, 2, 3, 4})
      for (auto [width, height] : {std::pair(1, 1), std::pair(3, 2), std::pair(29, 17)}) {
        const Image image = noise(width, height, channels, bits);
        test::put(folder / "a.png", test::interlaced_png(image));
        test::expect_same_bits(read_image(folder / "a.png"), image);
      }
}

TEST(ImageFiles, RarerVarietiesOfPng) {
  test::TempFolder folder;
  const auto path = folder / "a.png";
  using namespace std::string_literals;
  using test::handmade_png;
  const std::string palette = test::png_chunk("PLTE", "\x0A\x14\x1E\x28\x32\x3C");
  test::put(path, handmade_png(2, 1, 8, 3, "\0\1\0"s, palette));
  Image image = read_image(path);
  expect_size(image, 2, 1, 3);
  EXPECT_EQ(pixel(image, 0, 0), (Pixel{40, 50, 60}));
  EXPECT_EQ(pixel(image, 0, 1), (Pixel{10, 20, 30}));
  // The same with transparency, and of one bit per pixel.
  test::put(path, handmade_png(2, 1, 1, 3, "\0\x80"s, palette + test::png_chunk("tRNS", "\x07")));
  image = read_image(path);
  expect_size(image, 2, 1, 4);
  EXPECT_EQ(pixel(image, 0, 0), (Pixel{40, 50, 60, 255}));
  EXPECT_EQ(pixel(image, 0, 1), (Pixel{10, 20, 30, 7}));
  // A transparent colour is no alpha channel: a 16-bit disparity map stays one.
  test::put(path, handmade_png(1, 1, 16, 0, "\0\x12\x34"s, test::png_chunk("tRNS", "\0\0"s)));
  image = read_image(path);
  expect_size(image, 1, 1, 1, 16);
  EXPECT_EQ(value(image, 0, 0), 0x1234);
  test::put(path, handmade_png(2, 1, 8, 4, "\0\x64\0\xC8\xFF"s));  // grey and alpha
  image = read_image(path);
  expect_size(image, 2, 1, 2);
  EXPECT_EQ(pixel(image, 0, 0), (Pixel{100, 0}));
  EXPECT_EQ(pixel(image, 0, 1), (Pixel{200, 255}));
  test::put(path, handmade_png(3, 2, 1, 0, "\0\xA0\0\x40"s));  // one bit per pixel
  image = read_image(path);
  expect_size(image, 3, 2, 1);
  EXPECT_EQ(value(image, 0, 0), 255);
  EXPECT_EQ(value(image, 0, 1), 0);
  EXPECT_EQ(value(image, 1, 1), 255);
  test::put(path, handmade_png(2, 1, 4, 0, "\0\x3F"s));  // four bits
  EXPECT_EQ(value(read_image(path), 0, 0), 0x33);
  test::put(path, handmade_png(1, 1, 16, 4, "\0\x80\0\xFF\xFF"s));  // 16-bit grey and alpha
  image = read_image(path);
  expect_size(image, 1, 1, 2, 16);
  EXPECT_EQ(pixel(image, 0, 0), (Pixel{0x8000, 0xFFFF}));
  // A proper checksum does not make a forged size plausible.
  test::put(path, handmade_png(30000, 30000, 8, 0, "\0\1"s));
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_image(path); }).find("30000x30000"),
            std::string::npos);
  test::put(path, handmade_png(0, 5, 8, 0, "\0\1"s));
  error_of(ErrorKind::kInput, [&] { read_image(path); });
}

TEST(ImageFiles, VarietiesOfTiff) {
  test::TempFolder folder;
  const auto path = folder / "a.tiff";
  // None, LZW, deflate (both numbers), PackBits; strips and tiles; planes together and apart.
  for (int packing : {1, 5, 8, 32946, 32773})
    for (int tile : {0, 16})
      for (bool separate : {false, true})
        for (bool big_endian : {false, true})
          for (int bits : {8, 16})
            for (int channels : {1, 2, 3, 4}) {
              SCOPED_TRACE(fmt::format("{} tile {} separate {} {} bit {} channels", packing, tile,
                                       separate, bits, channels));
              const Image image = noise(37, 21, channels, bits);
              test::put(path, test::tiff_file(image, {.packing = packing,
                                                      .tile = tile,
                                                      .separate = separate,
                                                      .big_endian = big_endian}));
              test::expect_same_bits(read_image(path), image);
            }
  // JPEG inside TIFF, colours as YCbCr.
  const Image smooth = picture(48, 32, 3);
  test::put(path, test::tiff_file(smooth, {.packing = 7, .meaning = 6}));
  EXPECT_LT(test::largest_difference(read_image(path), smooth), 40);
  // White is zero; and fewer bits.
  test::put(path, test::tiff_file(3, 1, 1, 8, "\x01\x02\xFF", {.meaning = 0}));
  EXPECT_EQ(pixel(read_image(path), 0, 0), Pixel{254});
  EXPECT_EQ(pixel(read_image(path), 0, 2), Pixel{0});
  test::put(path, test::tiff_file(3, 1, 1, 1, "\xA0", {.meaning = 1}));
  EXPECT_EQ(pixel(read_image(path), 0, 0), Pixel{255});
  EXPECT_EQ(pixel(read_image(path), 0, 1), Pixel{0});
  test::put(path, test::tiff_file(2, 1, 1, 4, "\x3F", {}));
  EXPECT_EQ(pixel(read_image(path), 0, 0), Pixel{0x33});
  // A palette.
  std::vector<std::uint16_t> palette(3 * 256);
  palette[7] = 0x1100;
  palette[256 + 7] = 0x2200;
  palette[512 + 7] = 0x3300;
  test::put(path, test::tiff_file(2, 1, 1, 8, "\x07\x01", {.meaning = 3, .palette = palette}));
  EXPECT_EQ(pixel(read_image(path), 0, 0), (Pixel{0x11, 0x22, 0x33}));
  EXPECT_EQ(pixel(read_image(path), 0, 1), (Pixel{0, 0, 0}));
}

TEST(ImageFiles, NetpbmByHand) {
  test::TempFolder folder;
  const auto path = folder / "a.ppm";
  using namespace std::string_literals;
  test::put(path, "P3\n# by hand\n2 1\n255\n10 20 30  40 50 60\n");
  Image image = read_image(path);
  expect_size(image, 2, 1, 3);
  EXPECT_EQ(pixel(image, 0, 0), (Pixel{10, 20, 30}));
  EXPECT_EQ(pixel(image, 0, 1), (Pixel{40, 50, 60}));
  test::put(path, "P2 2 1 65535 # comment\n 1000 65535\n");
  image = read_image(path);
  expect_size(image, 2, 1, 1, 16);
  EXPECT_EQ(value(image, 0, 0), 1000);
  test::put(path, "P5\n2 1\n65535\n\x12\x34\xFF\xFF"s);
  EXPECT_EQ(value(read_image(path), 0, 0), 0x1234);
  // Less than the whole range is stretched for the eye, and kept for disparities.
  test::put(folder / "a.pgm", "P5\n3 1\n100\n\0\x32\x64"s);
  image = read_image(folder / "a.pgm");
  EXPECT_EQ(value(image, 0, 1), 128);
  EXPECT_EQ(value(image, 0, 2), 255);
  EXPECT_EQ(read_disparity(folder / "a.pgm", {.divisor = 1}).at(0, 1), 50.0f);
  test::put(folder / "b.pgm", "P2\n2 1\n1023\n512 1023\n");
  image = read_image(folder / "b.pgm");
  expect_size(image, 2, 1, 1, 16);
  EXPECT_EQ(value(image, 0, 1), 65535);
  EXPECT_EQ(read_disparity(folder / "b.pgm").at(0, 0), 2.0f);
  // Bitmaps: 1 is black.
  test::put(path, "P1\n3 2\n1 0 1\n011\n");
  image = read_image(path);
  expect_size(image, 3, 2, 1);
  EXPECT_EQ(value(image, 0, 0), 0);
  EXPECT_EQ(value(image, 1, 0), 255);
  test::put(path, "P4\n9 2\n\x80\x00\x7F\x80"s);
  image = read_image(path);
  expect_size(image, 9, 2, 1);
  EXPECT_EQ(value(image, 0, 0), 0);
  EXPECT_EQ(value(image, 0, 8), 255);
  EXPECT_EQ(value(image, 1, 0), 255);
  EXPECT_EQ(value(image, 1, 8), 0);
}

std::string little(std::uint32_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(i < 4 ? number >> (8 * i) : 0);
  return text;
}

// A BMP file with a header of 40 bytes; `extra` are masks or the palette.
std::string bmp_file(int width, int height, int bits, int packing, const std::string& extra,
                     const std::string& pixels, int colours = 0) {
  const auto start = static_cast<std::uint32_t>(54 + extra.size());
  return "BM" + little(0, 8) + little(start, 4) + little(40, 4) +
         little(static_cast<std::uint32_t>(width), 4) +
         little(static_cast<std::uint32_t>(height), 4) + little(1, 2) +
         little(static_cast<std::uint32_t>(bits), 2) +
         little(static_cast<std::uint32_t>(packing), 4) + little(0, 12) +
         little(static_cast<std::uint32_t>(colours), 4) + little(0, 4) + extra + pixels;
}

TEST(ImageFiles, VarietiesOfBmp) {
  test::TempFolder folder;
  const auto path = folder / "a.bmp";
  using namespace std::string_literals;
  // Rows from the top, 24 bits.
  test::put(path, bmp_file(1, -2, 24, 0, "", "\1\2\3\0\4\5\6\0"s));
  EXPECT_EQ(pixel(read_image(path), 0, 0), (Pixel{3, 2, 1}));
  EXPECT_EQ(pixel(read_image(path), 1, 0), (Pixel{6, 5, 4}));
  // 32 bits without an alpha mask: the fourth byte means nothing.
  test::put(path, bmp_file(1, 1, 32, 0, "", "\1\2\3\x63"s));
  EXPECT_EQ(pixel(read_image(path), 0, 0), (Pixel{3, 2, 1}));
  // 16 bits: 5-5-5, and 5-6-5 by masks.
  test::put(path, bmp_file(2, 1, 16, 0, "", "\x00\x7C\x1F\x00"s));
  EXPECT_EQ(pixel(read_image(path), 0, 0), (Pixel{255, 0, 0}));
  EXPECT_EQ(pixel(read_image(path), 0, 1), (Pixel{0, 0, 255}));
  test::put(path, bmp_file(2, 1, 16, 3, little(0xF800, 4) + little(0x07E0, 4) + little(0x1F, 4),
                           "\xE0\x07\x00\x80"s));
  EXPECT_EQ(pixel(read_image(path), 0, 0), (Pixel{0, 255, 0}));
  EXPECT_EQ(pixel(read_image(path), 0, 1), (Pixel{132, 0, 0}));
  // Palettes of 1, 4 and 8 bits, in colour and grey.
  const std::string two = "\1\2\3\0\xA\xB\xC\0"s, greys = "\x64\x64\x64\0\xC8\xC8\xC8\0"s;
  test::put(path, bmp_file(3, 1, 1, 0, two, "\x40\0\0\0"s));
  EXPECT_EQ(pixel(read_image(path), 0, 0), (Pixel{3, 2, 1}));
  EXPECT_EQ(pixel(read_image(path), 0, 1), (Pixel{12, 11, 10}));
  test::put(path, bmp_file(3, 1, 4, 0, two, "\x01\x10\0\0"s, 2));
  EXPECT_EQ(pixel(read_image(path), 0, 1), (Pixel{12, 11, 10}));
  test::put(path, bmp_file(2, 1, 8, 0, greys, "\1\0\0\0"s, 2));
  EXPECT_EQ(pixel(read_image(path), 0, 0), Pixel{200});
  EXPECT_EQ(pixel(read_image(path), 0, 1), Pixel{100});
  // Run lengths: a run, bytes as they are, the end of a row, a step, the end.
  const std::string runs8 = "\3\1\0\3\1\0\1\0\0\0\0\2\4\0\2\1\0\1"s;
  test::put(path, bmp_file(6, 2, 8, 1, greys, runs8, 2));
  Image image = read_image(path);
  expect_size(image, 6, 2, 1);
  for (auto [x, wanted] : {std::pair(0, 200), {2, 200}, {3, 200}, {4, 100}, {5, 200}})
    EXPECT_EQ(value(image, 1, x), wanted) << x;
  for (auto [x, wanted] : {std::pair(0, 100), {3, 100}, {4, 200}, {5, 200}})
    EXPECT_EQ(value(image, 0, x), wanted) << x;
  test::put(path, bmp_file(5, 1, 4, 2, greys, "\3\x10\0\2\0\0\2\x11\0\1"s, 2));
  image = read_image(path);
  for (auto [x, wanted] : {std::pair(0, 200), {1, 100}, {2, 200}, {3, 200}, {4, 200}})
    EXPECT_EQ(value(image, 0, x), wanted) << x;
  test::put(path, bmp_file(6, 2, 8, 1, greys, runs8.substr(0, runs8.size() - 2), 2));
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_image(path); }).find("truncated"),
            std::string::npos);
  // The header of OS/2.
  test::put(path, "BM" + little(0, 8) + little(26, 4) + little(12, 4) + little(1, 2) +
                      little(1, 2) + little(1, 2) + little(24, 2) + "\1\2\3\0"s);
  EXPECT_EQ(pixel(read_image(path), 0, 0), (Pixel{3, 2, 1}));
}

// A phone that lies on its side must not turn one of the two images.
TEST(ImageFiles, ExifOrientationIsIgnored) {
  test::TempFolder folder;
  std::string jpeg = encoded(".jpg", picture(40, 24, 3));
  // APP1 with one tag: 0x0112 (orientation) = 6, quarter turn.
  const std::string exif(
      "\xFF\xE1\x00\x22"
      "Exif\0\0"
      "MM\0*\0\0\0\x08"
      "\0\x01"
      "\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
      "\0\0\0\0",
      36);
  jpeg.insert(2, exif);
  test::put(folder / "a.jpg", jpeg);
  expect_size(read_image(folder / "a.jpg"), 40, 24, 3);
}

TEST(ImageFiles, TrailingBytesAfterJpegAndPng) {
  test::TempFolder folder;
  const Image image = picture(40, 24, 3);
  test::put(folder / "a.jpg", encoded(".jpg", image) + std::string(100, 'x'));
  expect_size(read_image(folder / "a.jpg"), 40, 24, 3);
  test::put(folder / "a.png", encoded(".png", image) + "\n");
  test::expect_same_bits(read_image(folder / "a.png"), image);
}

TEST(ImageFiles, WriterRefusesAndLeavesNothing) {
  test::TempFolder folder;
  const Image image = picture(9, 7, 3);
  const auto message = error_of(ErrorKind::kUsage, [&] { write_image(folder / "a.xyz", image); });
  EXPECT_NE(message.find(".xyz"), std::string::npos);
  error_of(ErrorKind::kUsage, [&] { write_image(folder / "b.png", Image()); });
  error_of(ErrorKind::kUsage, [&] { write_image(folder / "b.png", picture(9, 7, 2)); });
  ImageView odd = image;
  odd.bits = 32;
  error_of(ErrorKind::kUsage, [&] { write_image(folder / "b.png", odd); });
  for (const char* name : {"b.jpg", "b.bmp", "b.webp"})
    error_of(ErrorKind::kUsage, [&] { write_image(folder / name, picture(9, 7, 3, 16)); });
  error_of(ErrorKind::kUsage, [&] { write_image(folder / "b.pgm", image); });
  error_of(ErrorKind::kUsage, [&] { write_image(folder / "b.webp", Image(20000, 1)); });
  error_of(ErrorKind::kFailure, [&] { write_image(folder / "b.jpg", Image(70000, 1)); });
  error_of(ErrorKind::kFailure, [&] { write_image(folder / "no/such/b.png", image); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ImageFiles, RealPictures) {
  NMRF_NEED_SHARED("data/pairs.txt");
  const auto data = test::shared_folder() / "data";
  struct Case {
    const char* name;
    int width, height, channels;
  };
  for (const Case& c :
       {Case{"KITTI/KITTI_2015/training/image_2/000001_10.png", 1242, 375, 3},
        {"Middlebury/2003/teddy/im6.png", 450, 375, 3},
        {"Middlebury/MiddEval3/trainingQ/Motorcycle/im0.png", 741, 497, 3},
        {"ETH3D/two_view_training/playground_1l/im0.png", 941, 490, 1},
        {"SceneFlow/FlyingThings3D/frames_cleanpass/TEST/A/0000/left/0006.png", 960, 540, 3}}) {
    SCOPED_TRACE(c.name);
    if (!std::filesystem::exists(data / c.name)) continue;
    const Image image = read_image(data / c.name);
    EXPECT_EQ(std::pair(image.width(), image.height()), std::pair(c.width, c.height));
    test::TempFolder folder;
    write_image(folder / "a.png", image);
    test::expect_same_bits(read_image(folder / "a.png"), image);
  }
}

}  // namespace
}  // namespace nmrf
