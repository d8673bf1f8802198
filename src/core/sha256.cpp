#include "core/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/file.h"

namespace nmrf {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::block(const std::uint8_t* data) {
  std::array<std::uint32_t, 64> w;
  for (int i = 0; i < 16; ++i)
    w[i] = std::uint32_t{data[4 * i]} << 24 | std::uint32_t{data[4 * i + 1]} << 16 |
           std::uint32_t{data[4 * i + 2]} << 8 | std::uint32_t{data[4 * i + 3]};
  for (int i = 16; i < 64; ++i) {
    std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                       ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    std::uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> worked = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += worked[i];
}

void Sha256::update(const void* data, std::size_t bytes) {
  const auto* cursor = static_cast<const std::uint8_t*>(data);
  total_bytes_ += bytes;
  while (bytes > 0) {
    if (pending_bytes_ == 0 && bytes >= pending_.size()) {
      block(cursor);
      cursor += pending_.size();
      bytes -= pending_.size();
      continue;
    }
    std::size_t part = std::min(bytes, pending_.size() - pending_bytes_);
    std::memcpy(pending_.data() + pending_bytes_, cursor, part);
    pending_bytes_ += part;
    cursor += part;
    bytes -= part;
    if (pending_bytes_ == pending_.size()) {
      block(pending_.data());
      pending_bytes_ = 0;
    }
  }
}

std::string Sha256::hex() {
  // The padding: a one bit, zeros up to 56 modulo 64, the length in bits as a big-endian number.
  const std::uint64_t bits = total_bytes_ * 8;
  std::array<std::uint8_t, 72> tail{0x80};
  std::size_t zeros_end = pending_bytes_ < 56 ? 56 - pending_bytes_ : 120 - pending_bytes_;
  for (int i = 0; i < 8; ++i)
    tail[zeros_end + i] = static_cast<std::uint8_t>(bits >> (56 - 8 * i) & 0xff);
  update(tail.data(), zeros_end + 8);

  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[word >> shift & 15];
  return text;
}

std::string sha256_of_file(const std::filesystem::path& path, ErrorKind kind) {
  MappedFile map(path, kind);
  Sha256 hash;
  hash.update(map.data(), map.size());
  return hash.hex();
}

}  // namespace nmrf
