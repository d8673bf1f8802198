// JPEG through libjpeg-turbo: grey and colour, baseline and progressive.
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it first
#include <new>

// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "core/check.h"
#include "io/formats.h"

namespace nmrf::formats {
namespace {

constexpr auto kKind = PictureKind::kJpeg;
constexpr int kMaxScans = 500;  // a progressive file has about ten

// libjpeg's error handler with a way out.
struct Errors {
  jpeg_error_mgr base;  // must be first: libjpeg hands out a pointer to it
  std::jmp_buf way_out;
  char text[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void on_error(j_common_ptr codec) {
  auto* errors = reinterpret_cast<Errors*>(codec->err);
  codec->err->format_message(codec, errors->text);
  std::longjmp(errors->way_out, 1);
}

// A warning that means invented pixels ends the decoding; the others are harmless.
void on_message(j_common_ptr codec, int level) {
  if (level >= 0) return;
  switch (codec->err->msg_code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
      on_error(codec);
    default:
      break;
  }
}

void no_output(j_common_ptr) {}

void set_up(Errors& errors) {
  jpeg_std_error(&errors.base);
  errors.base.error_exit = on_error;
  errors.base.emit_message = on_message;
  errors.base.output_message = no_output;
}

// Called again and again while scans are read: a small file with thousands of them takes minutes.
void count_scans(j_common_ptr codec) {
  if (!codec->is_decompressor) return;
  if (reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number > kMaxScans)
    ERREXIT(codec, JERR_BAD_PROGRESSION);
}

struct Reader {
  Reader() {
    set_up(errors);
    codec.err = &errors.base;
  }
  ~Reader() { jpeg_destroy_decompress(&codec); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  jpeg_decompress_struct codec{};
  jpeg_progress_mgr progress{};
  Errors errors{};
};

bool read_header(Reader& reader, std::string_view data) {
  if (setjmp(reader.errors.way_out)) return false;
  jpeg_create_decompress(&reader.codec);
  reader.progress.progress_monitor = count_scans;
  reader.codec.progress = &reader.progress;
  jpeg_mem_src(&reader.codec, reinterpret_cast<const unsigned char*>(data.data()),
               static_cast<unsigned long>(data.size()));
  jpeg_read_header(&reader.codec, TRUE);
  return true;
}

bool read_rows(Reader& reader, std::uint8_t* to, std::size_t row_bytes) {
  jpeg_decompress_struct& codec = reader.codec;
  if (setjmp(reader.errors.way_out)) return false;
  codec.out_color_space = codec.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&codec);
  while (codec.output_scanline < codec.output_height) {
    JSAMPROW row = to + row_bytes * codec.output_scanline;
    jpeg_read_scanlines(&codec, &row, 1);
  }
  jpeg_finish_decompress(&codec);
  return true;
}

// Takes the coded bytes in blocks.
struct Destination {
  jpeg_destination_mgr base;  // must be first
  JOCTET block[1 << 14];
  std::string* bytes;
};

void start_block(j_compress_ptr codec) {
  auto* to = reinterpret_cast<Destination*>(codec->dest);
  to->base.next_output_byte = to->block;
  to->base.free_in_buffer = sizeof to->block;
}

void append(j_compress_ptr codec, std::size_t count) {
  auto* to = reinterpret_cast<Destination*>(codec->dest);
  bool ok = true;
  try {
    to->bytes->append(reinterpret_cast<const char*>(to->block), count);
  } catch (const std::bad_alloc&) {
    ok = false;
  }
  if (!ok) ERREXIT1(codec, JERR_OUT_OF_MEMORY, 0);
}

boolean end_block(j_compress_ptr codec) {
  append(codec, sizeof Destination::block);
  start_block(codec);
  return TRUE;
}

void end_all(j_compress_ptr codec) {
  append(codec, sizeof Destination::block - codec->dest->free_in_buffer);
}

struct Writer {
  Writer() {
    set_up(errors);
    codec.err = &errors.base;
    destination.base.init_destination = start_block;
    destination.base.empty_output_buffer = end_block;
    destination.base.term_destination = end_all;
    destination.bytes = &bytes;
  }
  ~Writer() { jpeg_destroy_compress(&codec); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  jpeg_compress_struct codec{};
  Errors errors{};
  Destination destination{};
  std::string bytes;
};

bool write_all(Writer& writer, RowReader& rows, const ImageView& image, int quality) {
  jpeg_compress_struct& codec = writer.codec;
  if (setjmp(writer.errors.way_out)) return false;
  jpeg_create_compress(&codec);
  codec.dest = &writer.destination.base;
  codec.image_width = static_cast<JDIMENSION>(image.width);
  codec.image_height = static_cast<JDIMENSION>(image.height);
  codec.input_components = image.channels == 1 ? 1 : 3;
  codec.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, quality, TRUE);
  jpeg_start_compress(&codec, TRUE);
  for (int y = 0; y < image.height; ++y) {
    JSAMPROW row = const_cast<std::uint8_t*>(rows.row(y));  // not changed
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  return true;
}

}  // namespace

Picture decode_jpeg(std::string_view data, const std::string& name) {
  Reader reader;
  if (!read_header(reader, data)) cannot_decode(name, kKind, reader.errors.text);
  const jpeg_decompress_struct& codec = reader.codec;
  check(codec.num_components == 1 || codec.num_components == 3, ErrorKind::kInput,
        "{}: the JPEG image has {} channels, as for print (CMYK); only grey and colour are read. "
        "Save it as RGB.",
        name, codec.num_components);
  const auto pixels = std::uint64_t{codec.image_width} * codec.image_height;
  // With several scans libjpeg keeps all coefficients, two bytes each.
  const std::uint64_t workspace =
      codec.progressive_mode || codec.comps_in_scan < codec.num_components
          ? pixels * 2 * static_cast<std::uint64_t>(codec.num_components)
          : 0;
  Picture picture;
  picture.image = make_image(name, kKind, codec.image_width, codec.image_height,
                             codec.num_components, 8, workspace);
  if (!read_rows(reader, picture.image.data(), picture.image.row_bytes()))
    cannot_decode(name, kKind, reader.errors.text);
  return picture;
}

std::string encode_jpeg(const ImageView& image, const std::string& name, int quality) {
  Writer writer;
  RowReader rows(image, image.channels == 1 ? 1 : 3);
  if (!write_all(writer, rows, image, quality)) cannot_encode(name, image, writer.errors.text);
  return std::move(writer.bytes);
}

}  // namespace nmrf::formats
