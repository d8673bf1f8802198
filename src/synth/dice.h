// The draws that scene builders need on top of Rng.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "core/rng.h"
#include "synth/vec.h"

namespace nmrf::synth {

class Dice : public Rng {
 public:
  using Rng::Rng;

  // In [low, high).
  float real(double low, double high) { return static_cast<float>(uniform(low, high)); }
  // As many small values as large ones in terms of ratios; low > 0.
  float log_real(double low, double high) {
    return static_cast<float>(low * std::pow(high / low, uniform()));
  }
  // In low..high.
  int count(int low, int high) { return static_cast<int>(integer(low, high)); }
  float normal(double sigma) {
    double r = std::sqrt(-2 * std::log(1 - uniform()));
    return static_cast<float>(sigma * r * std::cos(2 * 3.14159265358979 * uniform()));
  }
  float sign() { return chance(0.5) ? 1.f : -1.f; }
  std::uint32_t bits() { return static_cast<std::uint32_t>(next() >> 32); }
  template <class T>
  T pick(std::initializer_list<T> items) {
    return *(items.begin() + integer(0, static_cast<std::int64_t>(items.size()) - 1));
  }
  // The index drawn with probability proportional to its weight; some weight must be positive.
  template <class Weights>
  int weighted(const Weights& weights) {
    double sum = 0;
    for (double w : weights) sum += w;
    double at = uniform() * sum;
    int index = 0, last = 0;
    for (double w : weights) {
      if (w > 0) {
        last = index;
        if (at < w) return index;
        at -= w;
      }
      ++index;
    }
    return last;
  }
  // A unit vector, uniform on the sphere.
  Vec3 unit() {
    float z = real(-1, 1), a = real(0, 2 * kPi), r = std::sqrt(std::max(0.f, 1 - z * z));
    return {r * std::cos(a), r * std::sin(a), z};
  }
  // A rotation, uniform enough for tumbling objects.
  Transform turn() {
    return Transform::turn_y(real(0, 2 * kPi)) * Transform::turn_x(real(-kPi, kPi)) *
           Transform::turn_z(real(0, 2 * kPi));
  }
  // An independent stream, so that a change inside one object leaves the others as they are.
  Dice fork() { return Dice(next()); }
};

}  // namespace nmrf::synth
