// Convolutions of any kernel size and stride as matrix products on gathered pixels, and their
// gradients. Maps have their channels last.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/maps.h"

namespace nmrf::conv {

// A square kernel, zeros around the map. The unit of work is a row of results, or for the gradient
// of the input a row of the input.
struct Direct {
  std::size_t batch, height, width, in;  // the input
  std::size_t kernel, stride, padding;
  std::size_t out_height, out_width, out;

  std::size_t depth() const { return kernel * kernel * in; }
  std::size_t units() const { return batch * out_height; }
  std::size_t input_units() const { return batch * height; }
};

// Weights [kernel, kernel, in, out] as the products read them; `packed` has direct_weights_size
// floats.
inline std::size_t direct_weights_size(const Direct& op) {
  return op.depth() * tokens::padded(op.out);
}
// w: [out, in, kernel, kernel]
void direct_weights(const Direct& op, const float* w, float* packed);

// out = conv(x) (+ bias, padded with zeros), moments (a set a unit) unless null.
void direct_forward(const Direct& op, const Source& x, const float* packed, const float* bias,
                    float* out, float* moments, std::size_t begin, std::size_t end);

// Gradient of the input. An input pixel meets the taps of its class, its position modulo the
// stride: each class has a matrix of its own.
struct DirectBackward {
  DirectBackward(const Direct& op, const float* w);  // w: [out, in, kernel, kernel]
  struct Class {
    std::vector<std::size_t> taps_y, taps_x;
    std::vector<float> packed;
  };
  Direct op;
  std::vector<Class> classes;  // stride x stride
};
// dx, [batch, height, width, in], is written, or added to.
void direct_backward(const DirectBackward& backward, const float* dy, bool add, float* dx,
                     std::size_t begin, std::size_t end);

// Gradient of the weights, [kernel, kernel, in, padded(out)], added to `sums`.
inline std::size_t direct_sums_size(const Direct& op) { return direct_weights_size(op); }
void direct_weights_gradient(const Direct& op, const Source& x, const float* dy, float* sums,
                             std::size_t begin, std::size_t end);

}  // namespace nmrf::conv
