// PNG through libpng: 1 to 16 bits, palettes, interlaced files.
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "io/formats.h"

namespace nmrf::formats {
namespace {

constexpr auto kKind = PictureKind::kPng;

struct Message {
  char text[160] = "the data are damaged";
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto* message = static_cast<Message*>(png_get_error_ptr(png));
  std::snprintf(message->text, sizeof message->text, "%s", text);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

struct Reader {
  explicit Reader(std::string_view bytes)
      : data(bytes),
        png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &message, on_error, on_warning)),
        info(png ? png_create_info_struct(png) : nullptr) {}
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::string_view data;
  Message message;
  png_structp png;
  png_infop info;
};

void take(png_structp png, png_bytep to, std::size_t count) {
  auto* data = static_cast<std::string_view*>(png_get_io_ptr(png));
  if (count > data->size()) png_error(png, "the file ends inside the image");
  std::memcpy(to, data->data(), count);
  data->remove_prefix(count);
}

// Reads up to the pixels and asks for plain 8- or 16-bit channels.
bool read_header(Reader& reader) {
  png_structp png = reader.png;
  png_infop info = reader.info;
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, &reader.data, take);
  png_set_user_limits(png, 0x7FFFFFFF, 0x7FFFFFFF);               // check_size() has stricter ones
  png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);  // check_picture() has done it
  // Text, profiles and the like stay packed.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  const int colour = png_get_color_type(png, info);
  if (colour == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(png);
    if (png_get_valid(png, info, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(png);
  } else if (png_get_bit_depth(png, info) < 8) {
    png_set_expand_gray_1_2_4_to_8(png);
  }
  if (std::endian::native == std::endian::little && png_get_bit_depth(png, info) == 16)
    png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}

bool read_rows(Reader& reader, std::uint8_t* to, std::size_t row_bytes, int height) {
  png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png))) return false;
  const int passes = png_get_interlace_type(png, reader.info) == PNG_INTERLACE_NONE
                         ? 1
                         : PNG_INTERLACE_ADAM7_PASSES;
  for (int pass = 0; pass < passes; ++pass)
    for (int y = 0; y < height; ++y)
      png_read_row(png, to + row_bytes * static_cast<std::size_t>(y), nullptr);
  png_read_end(png, nullptr);
  return true;
}

struct Writer {
  Writer()
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &message, on_error, on_warning)),
        info(png ? png_create_info_struct(png) : nullptr) {}
  ~Writer() { png_destroy_write_struct(&png, &info); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  std::string bytes;
  Message message;
  png_structp png;
  png_infop info;
};

bool append(std::string& to, const png_bytep from, std::size_t count) noexcept {
  try {
    to.append(reinterpret_cast<const char*>(from), count);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void put(png_structp png, png_bytep from, std::size_t count) {
  if (!append(*static_cast<std::string*>(png_get_io_ptr(png)), from, count))
    png_error(png, "there is not enough memory");
}

void flush(png_structp) {}

bool write_all(Writer& writer, RowReader& rows, const ImageView& image) {
  png_structp png = writer.png;
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_write_fn(png, &writer.bytes, put, flush);
  png_set_user_limits(png, 0x7FFFFFFF, 0x7FFFFFFF);
  const int colour = image.channels == 1   ? PNG_COLOR_TYPE_GRAY
                     : image.channels == 3 ? PNG_COLOR_TYPE_RGB
                                           : PNG_COLOR_TYPE_RGB_ALPHA;
  png_set_IHDR(png, writer.info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), image.bits, colour, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
  png_set_compression_level(png, 3);
  png_write_info(png, writer.info);
  if (std::endian::native == std::endian::little && image.bits == 16) png_set_swap(png);
  for (int y = 0; y < image.height; ++y) png_write_row(png, rows.row(y));
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

Picture decode_png(std::string_view data, const std::string& name) {
  Reader reader(data);
  if (!reader.info) throw std::bad_alloc();
  if (!read_header(reader)) cannot_decode(name, kKind, reader.message.text);
  Picture picture;
  picture.image = make_image(name, kKind, png_get_image_width(reader.png, reader.info),
                             png_get_image_height(reader.png, reader.info),
                             png_get_channels(reader.png, reader.info),
                             png_get_bit_depth(reader.png, reader.info));
  Image& image = picture.image;
  picture.white = image.bits() == 8 ? 255 : 65535;
  if (png_get_rowbytes(reader.png, reader.info) != image.row_bytes())
    cannot_decode(name, kKind, "its rows have an unexpected length");
  if (!read_rows(reader, image.data(), image.row_bytes(), image.height()))
    cannot_decode(name, kKind, reader.message.text);
  return picture;
}

std::string encode_png(const ImageView& image, const std::string& name) {
  Writer writer;
  if (!writer.info) throw std::bad_alloc();
  RowReader rows(image, image.channels);
  if (!write_all(writer, rows, image)) cannot_encode(name, image, writer.message.text);
  return std::move(writer.bytes);
}

}  // namespace nmrf::formats
