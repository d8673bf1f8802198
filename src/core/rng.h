// Random numbers that repeat exactly: the same seed gives the same stream on every machine and with
// every standard library (the distributions of <random> promise neither).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace nmrf {

// One seed from several numbers, for example (run seed, epoch, sample). Order matters.
inline std::uint64_t mix_seed(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t hash = 0x6e6d7266u;
  for (std::uint64_t part : parts) {
    hash += part + 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    hash ^= hash >> 31;
  }
  return hash;
}

// SplitMix64: small state, any seed is good.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // In [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // In low..high, both included, without bias.
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
    if (span == 0) return static_cast<std::int64_t>(next());  // the whole range of 64 bits
    std::uint64_t rest = (0 - span) % span;                   // 2^64 mod span
    std::uint64_t value = next();
    while (value < rest) value = next();
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + value % span);
  }
  bool chance(double probability) { return uniform() < probability; }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1],
                items[static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(i) - 1))]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace nmrf
