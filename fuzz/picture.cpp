// PNG, JPEG, TIFF, WebP, PPM/PGM/PBM and BMP through their common entry. The mutator sets the
// checksums of PNG right, behind which nothing would be reached otherwise.
#include <algorithm>
#include <cstring>
#include <string>

#include "fuzz/fuzz.h"
#include "io/codec.h"
#include "weights/zip.h"

NMRF_FUZZ_TARGET({ nmrf::decode_picture(nmrf::fuzz::as_file(input)); })

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int) {
  size = LLVMFuzzerMutate(data, size, most);
  if (size < 8 || std::memcmp(data, "\x89PNG\r\n\x1a\n", 8) != 0) return size;
  for (std::size_t at = 8; size - at >= 12;) {
    std::uint32_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | data[at + i];
    if (length > size - at - 12) break;
    const std::uint32_t crc = nmrf::crc32({data + at + 4, length + std::size_t{4}});
    for (std::size_t i = 0; i < 4; ++i)
      data[at + 8 + length + i] = static_cast<std::uint8_t>(crc >> (24 - 8 * i));
    at += 12 + std::size_t{length};
  }
  return size;
}
