// Image files for the tests: by our own writers, by the libraries themselves, and byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf::test {

// A picture with smooth colours (so that JPEG keeps them) and values that use the whole range.
Image picture(int width, int height, int channels, int bits = 8);
// Every pixel at random.
Image noise(int width, int height, int channels = 3, int bits = 8, std::uint64_t seed = 7);

// One value of an image.
int value(const Image& image, int y, int x, int channel = 0);
// The largest difference of two images of one size and type.
int largest_difference(const Image& a, const Image& b);

// The bytes of the file that write_image() makes.
std::string encoded(const std::string& extension, const Image& image);

struct JpegVariety {
  bool progressive = false;
  int restart = 0;  // in rows of blocks
  bool cmyk = false;
};
std::string jpeg_file(const Image& image, const JpegVariety& variety);

// RGB, 8 bits, quality 90.
std::string lossy_webp(const Image& image);

// Interlaced by Adam7.
std::string interlaced_png(const Image& image);

// A checksummed block of a PNG file.
std::string png_chunk(const std::string& type, const std::string& data);
// `rows` holds the filter byte and the packed pixels of every row; stored, not compressed.
// `extra` comes between header and pixels.
std::string handmade_png(int width, int height, int bits, int colour_type, const std::string& rows,
                         const std::string& extra = "");

struct TiffVariety {
  int packing = 1;        // libtiff's number
  int meaning = -1;       // photometric interpretation; -1: by channels
  int tile = 0;           // side of the tiles; 0: strips
  bool separate = false;  // plane by plane
  bool big_endian = false;
  int format = 1;                        // 1 unsigned, 2 signed, 3 float
  std::vector<std::uint16_t> palette{};  // 3 * 256 values: all reds, greens, blues
};
// `bits` and `channels` as given; `rows` holds the packed bytes of each row, planes following each
// other where they are separate.
std::string tiff_file(int width, int height, int channels, int bits, const std::string& rows,
                      const TiffVariety& variety);
std::string tiff_file(const Image& image, const TiffVariety& variety);

// A video: AVI with one JPEG image per frame (Motion JPEG).
std::string avi_file(const std::vector<Image>& frames, int frames_per_second);
// True when the module for videos was built and lies where open_video() looks for it.
bool has_video_module();

}  // namespace nmrf::test
