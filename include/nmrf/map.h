// A value per pixel: disparities, depths, confidences, masks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nmrf {

// Rows are contiguous.
template <class T>
class Map {
 public:
  Map() = default;
  Map(int width, int height, T value = T{})
      : width_(width),
        height_(height),
        values_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), value) {}

  int width() const { return width_; }
  int height() const { return height_; }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  template <class U>
  bool same_size(const Map<U>& other) const {
    return width_ == other.width() && height_ == other.height();
  }

  // Reuses memory where possible; the contents are unspecified afterwards.
  void resize(int width, int height) {
    width_ = width;
    height_ = height;
    values_.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  }

  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  T* row(int y) { return values_.data() + offset(y); }
  const T* row(int y) const { return values_.data() + offset(y); }
  T& at(int y, int x) { return values_[offset(y) + static_cast<std::size_t>(x)]; }
  const T& at(int y, int x) const { return values_[offset(y) + static_cast<std::size_t>(x)]; }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

  friend bool operator==(const Map&, const Map&) = default;

 private:
  std::size_t offset(int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_);
  }

  int width_ = 0, height_ = 0;
  std::vector<T> values_;
};

using FloatMap = Map<float>;        // disparity, depth, confidence
using ByteMap = Map<std::uint8_t>;  // masks

}  // namespace nmrf
