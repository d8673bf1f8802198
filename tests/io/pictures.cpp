#include "io/pictures.h"

#include <gtest/gtest.h>
#include <png.h>
#include <tiffio.h>
#include <webp/encode.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

// clang-format off
#include <jpeglib.h>
// clang-format on

#include "core/file.h"
#include "core/rng.h"
#include "nmrf/files.h"
#include "support/support.h"

namespace nmrf::test {
namespace {

void set_value(Image& image, int y, int x, int channel, int value) {
  const int at = x * image.channels() + channel;
  if (image.bits() == 16)
    reinterpret_cast<std::uint16_t*>(image.row(y))[at] = static_cast<std::uint16_t>(value);
  else
    image.row(y)[at] = static_cast<std::uint8_t>(value);
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

}  // namespace

Image picture(int width, int height, int channels, int bits) {
  Image image(width, height, channels, bits);
  const double top = bits == 16 ? 65535 : 255;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        set_value(image, y, x, c,
                  static_cast<int>(
                      std::min(top, top * (x + y + 5 * c) / (height + width + 5 * channels - 7))));
  return image;
}

Image noise(int width, int height, int channels, int bits, std::uint64_t seed) {
  Image image(width, height, channels, bits);
  Rng rng(seed);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        set_value(image, y, x, c, static_cast<int>(rng.integer(0, bits == 16 ? 65535 : 255)));
  return image;
}

int value(const Image& image, int y, int x, int channel) {
  const int at = x * image.channels() + channel;
  return image.bits() == 16 ? reinterpret_cast<const std::uint16_t*>(image.row(y))[at]
                            : image.row(y)[at];
}

int largest_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.row_bytes(), b.row_bytes());
  EXPECT_EQ(a.height(), b.height());
  int largest = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x)
      for (int c = 0; c < a.channels(); ++c)
        largest = std::max(largest, std::abs(value(a, y, x, c) - value(b, y, x, c)));
  return largest;
}

std::string encoded(const std::string& extension, const Image& image) {
  TempFolder folder;
  write_image(folder / ("a" + extension), image);
  return read_file(folder / ("a" + extension));
}

std::string jpeg_file(const Image& image, const JpegVariety& variety) {
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&codec, &bytes, &count);
  codec.image_width = static_cast<JDIMENSION>(image.width());
  codec.image_height = static_cast<JDIMENSION>(image.height());
  codec.input_components = image.channels();
  codec.in_color_space = variety.cmyk ? JCS_CMYK : image.channels() == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, 95, TRUE);
  if (variety.progressive) jpeg_simple_progression(&codec);
  codec.restart_in_rows = variety.restart;
  jpeg_start_compress(&codec, TRUE);
  for (int y = 0; y < image.height(); ++y) {
    JSAMPROW row = const_cast<std::uint8_t*>(image.row(y));
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  std::string file(reinterpret_cast<const char*>(bytes), count);
  jpeg_destroy_compress(&codec);
  std::free(bytes);
  return file;
}

std::string lossy_webp(const Image& image) {
  std::uint8_t* bytes = nullptr;
  const std::size_t count = WebPEncodeRGB(image.data(), image.width(), image.height(),
                                          static_cast<int>(image.row_bytes()), 90, &bytes);
  std::string file(reinterpret_cast<const char*>(bytes), count);
  WebPFree(bytes);
  return file;
}

std::string interlaced_png(const Image& image) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep data, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(p))
            ->append(reinterpret_cast<const char*>(data), count);
      },
      [](png_structp) {});
  constexpr int kColours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                              PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width()),
               static_cast<png_uint_32>(image.height()), image.bits(),
               kColours[image.channels() - 1], PNG_INTERLACE_ADAM7, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (image.bits() == 16) png_set_swap(png);
  std::vector<png_bytep> rows;
  for (int y = 0; y < image.height(); ++y) rows.push_back(const_cast<png_bytep>(image.row(y)));
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string png_chunk(const std::string& type, const std::string& data) {
  std::uint32_t crc = ~0u;  // bit by bit
  for (char c : type + data) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return big_endian(static_cast<std::uint32_t>(data.size())) + type + data + big_endian(~crc);
}

std::string handmade_png(int width, int height, int bits, int colour_type, const std::string& rows,
                         const std::string& extra) {
  std::uint32_t a = 1, b = 0;  // Adler-32
  for (char c : rows) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  const auto length = static_cast<std::uint16_t>(rows.size());
  std::string stored = "\x78\x01\x01";
  stored += static_cast<char>(length & 0xFF);
  stored += static_cast<char>(length >> 8);
  stored += static_cast<char>(~length & 0xFF);
  stored += static_cast<char>(~length >> 8 & 0xFF);
  stored += rows + big_endian(b << 16 | a);
  std::string header = big_endian(static_cast<std::uint32_t>(width)) +
                       big_endian(static_cast<std::uint32_t>(height));
  for (int item : {bits, colour_type, 0, 0, 0}) header += static_cast<char>(item);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + extra + png_chunk("IDAT", stored) +
         png_chunk("IEND", "");
}

std::string tiff_file(int width, int height, int channels, int bits, const std::string& rows,
                      const TiffVariety& v) {
  TempFolder folder;
  const std::string path = folder / "a.tiff";
  TIFFSetWarningHandler(nullptr);
  TIFF* tiff = TIFFOpen(path.c_str(), v.big_endian ? "wb" : "wl");
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, channels);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, v.format);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, v.packing);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC,
               v.meaning >= 0  ? v.meaning
               : channels >= 3 ? PHOTOMETRIC_RGB
                               : PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG,
               v.separate ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  if (v.packing == COMPRESSION_JPEG) TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  if (!v.palette.empty()) {
    const std::size_t count = std::size_t{1} << bits;
    TIFFSetField(tiff, TIFFTAG_COLORMAP, &v.palette[0], &v.palette[count], &v.palette[2 * count]);
  }
  const int planes = v.separate ? channels : 1;
  const std::size_t row_bytes = rows.size() / static_cast<std::size_t>(height * planes);
  std::string copy = rows;  // the library may change it
  auto row_at = [&](int plane, int y) {
    return copy.data() + row_bytes * static_cast<std::size_t>(plane * height + y);
  };
  if (v.tile == 0) {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, v.packing == COMPRESSION_JPEG ? 16 : 3);
    for (int plane = 0; plane < planes; ++plane)
      for (int y = 0; y < height; ++y)
        EXPECT_EQ(TIFFWriteScanline(tiff, row_at(plane, y), static_cast<std::uint32_t>(y),
                                    static_cast<std::uint16_t>(plane)),
                  1);
  } else {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, v.tile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, v.tile);
    const std::size_t tile_row = static_cast<std::size_t>(TIFFTileRowSize(tiff));
    const std::size_t pixel = row_bytes / static_cast<std::size_t>(width);  // whole bytes only
    for (int plane = 0; plane < planes; ++plane)
      for (int top = 0; top < height; top += v.tile)
        for (int left = 0; left < width; left += v.tile) {
          std::string tile(tile_row * static_cast<std::size_t>(v.tile), '\0');
          for (int y = top; y < std::min(height, top + v.tile); ++y)
            std::memcpy(tile.data() + tile_row * static_cast<std::size_t>(y - top),
                        row_at(plane, y) + pixel * static_cast<std::size_t>(left),
                        pixel * static_cast<std::size_t>(std::min(v.tile, width - left)));
          EXPECT_GT(
              TIFFWriteTile(tiff, tile.data(), static_cast<std::uint32_t>(left),
                            static_cast<std::uint32_t>(top), 0, static_cast<std::uint16_t>(plane)),
              0);
        }
  }
  TIFFClose(tiff);
  return read_file(path);
}

std::string tiff_file(const Image& image, const TiffVariety& variety) {
  std::string rows;
  const auto step = static_cast<std::size_t>(image.bits() / 8);
  const auto channels = static_cast<std::size_t>(image.channels());
  for (std::size_t plane = 0; plane < (variety.separate ? channels : 1); ++plane)
    for (int y = 0; y < image.height(); ++y) {
      const std::string row(reinterpret_cast<const char*>(image.row(y)), image.row_bytes());
      if (!variety.separate) rows += row;
      for (std::size_t x = plane; variety.separate && x < row.size() / step; x += channels)
        rows += row.substr(x * step, step);
    }
  return tiff_file(image.width(), image.height(), image.channels(), image.bits(), rows, variety);
}

}  // namespace nmrf::test
