// TIFF through libtiff: the first image of a file, in strips or tiles, with any of its packings.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/check.h"
#include "io/formats.h"

#if TIFFLIB_VERSION < 20221213
#error "nmrf needs libtiff 4.5: older ones report errors through handlers of the whole process"
#endif

namespace nmrf::formats {
namespace {

constexpr auto kKind = PictureKind::kTiff;

// A file in memory, for reading (`in`) or for writing (`out`), and what libtiff says about it.
struct Stream {
  std::string_view in;
  std::string* out = nullptr;
  std::uint64_t at = 0;
  std::string error, warning;

  std::uint64_t size() const { return out ? out->size() : in.size(); }
};

Stream& stream_of(thandle_t handle) { return *static_cast<Stream*>(handle); }

tmsize_t read_some(thandle_t handle, void* to, tmsize_t count) {
  Stream& s = stream_of(handle);
  const std::uint64_t end = s.size();
  const std::uint64_t have = s.at < end ? end - s.at : 0;
  const auto got = std::min(have, static_cast<std::uint64_t>(std::max<tmsize_t>(count, 0)));
  const char* from = s.out ? s.out->data() : s.in.data();
  if (got > 0) std::memcpy(to, from + s.at, got);
  s.at += got;
  return static_cast<tmsize_t>(got);
}

tmsize_t write_some(thandle_t handle, void* from, tmsize_t count) {
  Stream& s = stream_of(handle);
  if (!s.out || count < 0) return -1;
  try {
    const std::uint64_t end = s.at + static_cast<std::uint64_t>(count);
    if (end > s.out->size()) s.out->resize(end);
    std::memcpy(s.out->data() + s.at, from, static_cast<std::size_t>(count));
    s.at = end;
    return count;
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  Stream& s = stream_of(handle);
  s.at = offset + (whence == SEEK_CUR ? s.at : whence == SEEK_END ? s.size() : 0);
  return s.at;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return stream_of(handle).size(); }

// Keeps the first message; what follows are its consequences.
void keep(std::string& text, const char* format, std::va_list arguments) {
  char buffer[256];
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  try {
    if (text.empty()) text = buffer;
  } catch (const std::bad_alloc&) {
  }
}

int on_error(TIFF*, void* stream, const char*, const char* format, std::va_list arguments) {
  keep(static_cast<Stream*>(stream)->error, format, arguments);
  return 1;  // dealt with: nothing is printed
}

int on_warning(TIFF*, void* stream, const char*, const char* format, std::va_list arguments) {
  keep(static_cast<Stream*>(stream)->warning, format, arguments);
  return 1;
}

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Handle = std::unique_ptr<TIFF, Close>;

Handle open(Stream& stream, const std::string& name, const char* mode, std::uint64_t most_memory) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &stream);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, &stream);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(most_memory));
  return Handle(TIFFClientOpenExt(name.c_str(), mode, &stream, read_some, write_some, seek,
                                  close_nothing, size_of, nullptr, nullptr, options.get()));
}

struct Layout {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, channels = 1, format = SAMPLEFORMAT_UINT, planar = PLANARCONFIG_CONTIG;
  std::uint16_t meaning = PHOTOMETRIC_MINISBLACK, packing = COMPRESSION_NONE;

  bool separate() const { return planar == PLANARCONFIG_SEPARATE && channels > 1; }
  bool palette() const { return meaning == PHOTOMETRIC_PALETTE; }
  bool is_float() const { return format == SAMPLEFORMAT_IEEEFP; }
};

Layout layout_of(TIFF* tiff, const std::string& name) {
  Layout l;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &l.width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &l.height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &l.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &l.channels);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &l.format);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &l.planar);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &l.packing);
  if (!TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &l.meaning))
    l.meaning = l.channels >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  check(TIFFIsCODECConfigured(l.packing), ErrorKind::kInput,
        "{}: the TIFF image is packed by method {}, which this libtiff does not know. Save it "
        "without compression, or as PNG.",
        name, l.packing);
  if (l.meaning == PHOTOMETRIC_YCBCR && l.packing == COMPRESSION_JPEG) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    l.meaning = PHOTOMETRIC_RGB;
  }
  const bool whole = l.format == SAMPLEFORMAT_UINT || l.format == SAMPLEFORMAT_VOID;
  const bool small = l.bits == 1 || l.bits == 2 || l.bits == 4;
  check((whole && (l.bits == 8 || l.bits == 16 || (small && l.channels == 1))) ||
            (l.is_float() && l.bits == 32),
        ErrorKind::kInput,
        "{}: holds {}-bit {} values; expected 8 or 16 bits without sign, or 32-bit float.", name,
        l.bits,
        l.is_float()                   ? "float"
        : l.format == SAMPLEFORMAT_INT ? "signed"
                                       : "integer");
  const bool known = l.meaning == PHOTOMETRIC_MINISBLACK || l.meaning == PHOTOMETRIC_MINISWHITE ||
                     l.meaning == PHOTOMETRIC_RGB ||
                     (l.palette() && l.channels == 1 && l.bits <= 8 && whole);
  check(known, ErrorKind::kInput,
        "{}: the TIFF image stores its colours in a way that is not read (photometric "
        "interpretation {}). Save it as RGB.",
        name, l.meaning);
  check(l.channels >= 1 && l.channels <= 4, ErrorKind::kInput,
        "{}: has {} channels; expected 1 (grey), 3 (colour) or 4 (with alpha).", name, l.channels);
  check(!l.is_float() || l.channels == 1, ErrorKind::kInput,
        "{}: holds {} channels of 32-bit float values; a disparity or depth map has one.", name,
        l.channels);
  return l;
}

// Reads all rows as they are packed, plane by plane: use(y, first column, plane, bytes, columns).
template <class Use>
bool read_pixels(TIFF* tiff, const Layout& l, std::uint64_t most_bytes, Use&& use) {
  const std::uint32_t planes = l.separate() ? l.channels : 1;
  std::vector<std::uint8_t> buffer;
  if (!TIFFIsTiled(tiff)) {
    const std::uint64_t bytes = TIFFScanlineSize64(tiff);
    if (bytes == 0 || bytes > most_bytes) return false;
    buffer.resize(bytes);
    for (std::uint32_t plane = 0; plane < planes; ++plane)
      for (std::uint32_t y = 0; y < l.height; ++y) {
        if (TIFFReadScanline(tiff, buffer.data(), y, static_cast<std::uint16_t>(plane)) != 1)
          return false;
        use(y, 0, plane, buffer.data(), l.width);
      }
    return true;
  }
  std::uint32_t wide = 0, high = 0;
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &wide);
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &high);
  const std::uint64_t bytes = TIFFTileSize64(tiff), row = TIFFTileRowSize64(tiff);
  if (wide == 0 || high == 0 || bytes == 0 || bytes > most_bytes || row * high > bytes)
    return false;
  buffer.resize(bytes);
  for (std::uint32_t plane = 0; plane < planes; ++plane)
    for (std::uint64_t top = 0; top < l.height; top += high)
      for (std::uint64_t left = 0; left < l.width; left += wide) {
        if (TIFFReadTile(tiff, buffer.data(), static_cast<std::uint32_t>(left),
                         static_cast<std::uint32_t>(top), 0, static_cast<std::uint16_t>(plane)) < 0)
          return false;
        const std::uint64_t columns = std::min<std::uint64_t>(wide, l.width - left);
        for (std::uint64_t y = top; y < std::min<std::uint64_t>(top + high, l.height); ++y)
          use(static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(left), plane,
              buffer.data() + row * (y - top), static_cast<std::uint32_t>(columns));
      }
  return true;
}

// The colours of a palette, 8 bits each. Some tools write 8-bit entries where 16 are due.
std::vector<std::uint8_t> palette_of(TIFF* tiff, const Layout& l, const std::string& name) {
  std::uint16_t* lists[3] = {};
  if (!TIFFGetField(tiff, TIFFTAG_COLORMAP, &lists[0], &lists[1], &lists[2]))
    cannot_decode(name, kKind, "it has no palette");
  const std::size_t count = std::size_t{1} << l.bits;
  bool wide = false;
  for (const std::uint16_t* list : lists)
    wide = wide || std::any_of(list, list + count, [](std::uint16_t v) { return v > 255; });
  std::vector<std::uint8_t> colours(count * 3);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      colours[3 * i + c] = static_cast<std::uint8_t>(wide ? lists[c][i] >> 8 : lists[c][i]);
  return colours;
}

// Puts a run of packed pixels into the image.
class Painter {
 public:
  Painter(Image& image, const Layout& layout, std::vector<std::uint8_t> palette)
      : image_(image), l_(layout), palette_(std::move(palette)) {}

  void operator()(std::uint32_t y, std::uint32_t x, std::uint32_t plane, const std::uint8_t* from,
                  std::uint32_t columns) {
    std::uint8_t* to = image_.row(static_cast<int>(y));
    if (l_.bits == 16)
      copy(reinterpret_cast<const std::uint16_t*>(from), reinterpret_cast<std::uint16_t*>(to), x,
           plane, columns);
    else if (l_.bits == 8 && !l_.palette())
      copy(from, to, x, plane, columns);
    else
      unpack(from, to, x, columns);
  }

 private:
  template <class T>
  void copy(const T* from, T* to, std::uint32_t x, std::uint32_t plane, std::uint32_t columns) {
    const std::size_t channels = l_.channels;
    const T flip = l_.meaning == PHOTOMETRIC_MINISWHITE ? static_cast<T>(~T{0}) : T{0};
    to += x * channels;
    if (l_.separate())
      for (std::size_t i = 0; i < columns; ++i) to[i * channels + plane] = from[i] ^ flip;
    else
      for (std::size_t i = 0; i < columns * channels; ++i) to[i] = from[i] ^ flip;
  }

  // One channel of 1, 2, 4 or (with a palette) 8 bits.
  void unpack(const std::uint8_t* from, std::uint8_t* to, std::uint32_t x, std::uint32_t columns) {
    const unsigned top = (1u << l_.bits) - 1;
    for (std::uint32_t i = 0; i < columns; ++i) {
      const std::uint32_t bit = i * l_.bits;
      const unsigned value = from[bit / 8] >> (8 - l_.bits - bit % 8) & top;
      if (l_.palette())
        std::copy_n(&palette_[3 * value], 3, to + 3 * std::size_t{x + i});
      else
        to[x + i] = static_cast<std::uint8_t>(
            (l_.meaning == PHOTOMETRIC_MINISWHITE ? top - value : value) * 255 / top);
    }
  }

  Image& image_;
  const Layout& l_;
  std::vector<std::uint8_t> palette_;
};

template <class Row>
std::string encode(const Layout& l, const std::string& name, Row&& row) {
  std::string bytes;
  Stream stream;
  stream.out = &bytes;
  const ImageView size{nullptr, static_cast<int>(l.width), static_cast<int>(l.height)};
  Handle tiff = open(stream, name, "wl", 0);
  if (!tiff) cannot_encode(name, size, stream.error);
  TIFF* t = tiff.get();
  TIFFSetField(t, TIFFTAG_IMAGEWIDTH, l.width);
  TIFFSetField(t, TIFFTAG_IMAGELENGTH, l.height);
  TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, l.bits);
  TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, l.channels);
  TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, l.format);
  TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(t, TIFFTAG_PHOTOMETRIC, l.meaning);
  TIFFSetField(t, TIFFTAG_COMPRESSION, l.packing);
  if (l.packing == COMPRESSION_ADOBE_DEFLATE)
    TIFFSetField(t, TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
  if (l.channels == 4) {
    const std::uint16_t alpha = EXTRASAMPLE_UNASSALPHA;
    TIFFSetField(t, TIFFTAG_EXTRASAMPLES, 1, &alpha);
  }
  TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, TIFFDefaultStripSize(t, 0));
  std::vector<std::uint8_t> copy(static_cast<std::size_t>(TIFFScanlineSize(t)));
  bool ok = true;
  for (std::uint32_t y = 0; ok && y < l.height; ++y) {
    std::memcpy(copy.data(), row(static_cast<int>(y)), copy.size());  // the predictor changes it
    ok = TIFFWriteScanline(t, copy.data(), y, 0) == 1;
  }
  ok = TIFFFlush(t) == 1 && ok;
  tiff.reset();
  if (!ok || !stream.error.empty()) cannot_encode(name, size, stream.error);
  return bytes;
}

}  // namespace

Picture decode_tiff(std::string_view data, const std::string& name) {
  Stream stream;
  stream.in = data;
  constexpr std::uint64_t kWorkspace = 64'000'000;
  // "m": no memory map, the file is in memory already.
  Handle tiff = open(stream, name, "rm", 2 * data.size() + kWorkspace);
  if (!tiff) cannot_decode(name, kKind, stream.error);
  const Layout l = layout_of(tiff.get(), name);
  stream.warning.clear();
  Picture picture;
  bool ok = false;
  // A strip or tile is no larger than what it unpacks to; see check_picture().
  const std::uint64_t most = std::max<std::uint64_t>(data.size() * kMaxPackingTiff, kWorkspace);
  if (l.is_float()) {
    check_size(name, kKind, l.width, l.height, sizeof(float));
    picture.floats.resize(static_cast<int>(l.width), static_cast<int>(l.height));
    ok =
        read_pixels(tiff.get(), l, most, [&](auto y, auto x, auto, const auto* from, auto columns) {
          std::memcpy(picture.floats.row(static_cast<int>(y)) + x, from, columns * sizeof(float));
        });
  } else {
    picture.image = make_image(name, kKind, l.width, l.height, l.palette() ? 3 : l.channels,
                               l.bits == 16 ? 16 : 8);
    picture.white = l.bits == 16 ? 65535 : 255;
    Painter painter(picture.image, l,
                    l.palette() ? palette_of(tiff.get(), l, name) : std::vector<std::uint8_t>());
    ok = read_pixels(tiff.get(), l, most, painter);
  }
  // libjpeg inside libtiff fills up what is missing, with a warning.
  if (ok && l.packing == COMPRESSION_JPEG && !stream.warning.empty())
    cannot_decode(name, kKind, stream.warning);
  if (!ok) cannot_decode(name, kKind, stream.error.empty() ? "the data are damaged" : stream.error);
  return picture;
}

std::string encode_tiff(const ImageView& image, const std::string& name) {
  Layout l;
  l.width = static_cast<std::uint32_t>(image.width);
  l.height = static_cast<std::uint32_t>(image.height);
  l.bits = static_cast<std::uint16_t>(image.bits);
  l.channels = static_cast<std::uint16_t>(image.channels);
  l.meaning = image.channels >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  l.packing = COMPRESSION_ADOBE_DEFLATE;
  RowReader rows(image, image.channels);
  return encode(l, name, [&](int y) { return rows.row(y); });
}

std::string encode_tiff(const FloatMap& map, const std::string& name) {
  Layout l;
  l.width = static_cast<std::uint32_t>(map.width());
  l.height = static_cast<std::uint32_t>(map.height());
  l.bits = 32;
  l.format = SAMPLEFORMAT_IEEEFP;
  return encode(l, name, [&](int y) { return map.row(y); });
}

}  // namespace nmrf::formats
