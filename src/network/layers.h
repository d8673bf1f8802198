// Building blocks that several stages share. Weights are packed once, when a layer is made; a layer
// made from a list of names has no weights and can only be planned.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/maps.h"
#include "kernels/tiles.h"
#include "kernels/token_mlp.h"
#include "kernels/token_projection.h"
#include "network/context.h"
#include "network/parameters.h"

namespace nmrf {

// Owns packed weights.
class Packed {
 public:
  // Uninitialised floats on a cache line.
  float* take(std::size_t floats);
  // W^T of w: [out, in] at rows `offset` on of a packed matrix of `depth` rows.
  const float* transposed(const std::vector<float>& w, std::size_t out, std::size_t in);
  // W^T of w: [out, in], rows of w `stride` apart, as bytes.
  const float* bytes(const float* w, std::size_t stride, std::size_t out, std::size_t in);
  const float* bias(const std::vector<float>& values, std::size_t size);  // zeros when empty
  const float* copy(const std::vector<float>& values);

 private:
  std::vector<hwy::AlignedFreeUniquePtr<float[]>> blocks_;
};

// Mean and scale of an instance norm: [2, channels].
struct NormValues {
  Buffer<float> values;
  std::int64_t channels = 0;
  // No memory while planning.
  conv::Norm norm() const {
    return {values.data(), values.data() ? values.data() + channels : nullptr};
  }
};
NormValues take_norm(Context& context, std::int64_t channels);

constexpr float kNormEps = 1e-5f;

// A square convolution. Around the map there are zeros for half of an odd kernel; an even one cuts
// the map into patches.
class Convolution {
 public:
  // Parameters `name`.weight [out, in, kernel, kernel] and, with a bias, `name`.bias.
  Convolution(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t out,
              std::int64_t kernel, std::int64_t stride, bool bias);

  std::int64_t out() const { return out_; }
  std::int64_t out_size(std::int64_t size) const {
    return (size + 2 * padding() - kernel_) / stride_ + 1;
  }
  // y: [out_size(height), out_size(width), out]. norm, unless null, receives mean and scale of y.
  void forward(Context& context, const conv::Source& x, std::int64_t height, std::int64_t width,
               float* y, const NormValues* norm = nullptr) const;

 private:
  std::int64_t padding() const { return kernel_ % 2 == 0 ? 0 : kernel_ / 2; }
  bool winograd() const { return !bytes_ && kernel_ == 3 && stride_ == 1 && !bias_; }

  std::int64_t in_, out_, kernel_, stride_;
  bool bias_;
  bool bytes_;  // on 8-bit integers
  Packed packed_;
  const float *weights_ = nullptr, *bias_values_ = nullptr;
};

// conv 3x3, instance norm, ReLU, conv 1x1, no biases (published names 0 and 3): gamma1, gamma2 and
// the visual context.
class Projection {
 public:
  Projection(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t hidden,
             std::int64_t out);
  FeatureMap forward(Context& context, const FeatureMap& x) const;

 private:
  Convolution conv3_, conv1_;
};

// Tokens of a map, a row each.
inline tokens::InputRows rows_of(const FeatureMap& map) {
  return {map.values.data(), static_cast<std::size_t>(map.channels)};
}
inline tokens::OutputRows rows_of(FeatureMap& map) {
  return {map.values.data(), static_cast<std::size_t>(map.channels)};
}

// A LayerNorm: `name`.weight, `name`.bias; no name, no norm.
struct NormSpec {
  NormSpec(std::string norm = {}, float epsilon = kNormEps) : name(std::move(norm)), eps(epsilon) {}
  NormSpec(const char* norm) : name(norm) {}
  std::string name;
  float eps = kNormEps;
};

// A Linear of a message passing step: `name`.weight [out, in], `name`.bias.
struct LinearSpec {
  std::string name;
  std::int64_t out = 0;
  bool bias = true;
  bool uses_extra = true;  // in = channels + extra, else channels
};

// One to three linear maps of normalised tokens; see kernels/token_projection.h.
class TokenProjection {
 public:
  // labels > 1: so many rows share a row of extra.
  TokenProjection(Parameters& parameters, const NormSpec& norm, std::int64_t channels,
                  std::int64_t extra, std::int64_t labels, const std::vector<LinearSpec>& maps);
  // Rows of x; y: one output per map. The residual is added to the first. labels: of this call,
  // more than 1, where they are fewer or more than those of the model; 0: the model's.
  void forward(Context& context, std::int64_t rows, tokens::InputRows x, tokens::InputRows extra,
               std::span<const tokens::OutputRows> y, tokens::InputRows residual = {},
               std::int64_t labels = 0) const;

 private:
  tokens::TokenProjection map_;
  bool bytes_ = false;
  Packed packed_;
};

// See kernels/token_mlp.h.
class TokenMlp {
 public:
  struct Options {
    std::string entry{};       // name of the Linear a message goes through, or empty
    std::int64_t message = 0;  // channels of the message
    std::string norm{};        // name of the LayerNorm, or empty
    tokens::Activation activation = tokens::Activation::kGelu;
    bool residual = false;
    bool exact = false;       // float even where token layers are bytes
    bool exact_last = false;  // the last layer is
  };
  // layers: the Linears, in order.
  TokenMlp(Parameters& parameters, std::int64_t channels, const std::vector<LinearSpec>& layers,
           const Options& options);
  void forward(Context& context, std::int64_t rows, tokens::InputRows x, tokens::InputRows message,
               tokens::OutputRows y) const;
  // The same on the calling thread, for a stage that shares its work in another way.
  void run(tokens::InputRows x, tokens::InputRows message, tokens::OutputRows y, std::int64_t begin,
           std::int64_t end) const;
  std::int64_t out() const { return out_; }
  double operations() const;  // per row

 private:
  tokens::TokenMlp mlp_;
  bool bytes_ = false;
  Packed packed_;
  std::int64_t out_ = 0;
};

// fc1, GELU, fc2 of the published names.
TokenMlp make_mlp(Parameters& parameters, const std::string& name, std::int64_t in,
                  std::int64_t hidden, std::int64_t out, const std::string& norm = {});
// Linear, ReLU, Linear, ReLU, Linear on normalised tokens: the heads that decode an embedding.
TokenMlp make_head(Parameters& parameters, const std::string& name, std::int64_t channels,
                   std::int64_t out, const std::string& norm);

// Attention in windows, shared among the threads.
void run_windows(Context& context, const kernels::WindowForward& job);

// A zero border that makes a grid a multiple of a window, half (rounded down) of it at the top and
// the left.
struct WindowPadding {
  WindowPadding() = default;
  WindowPadding(std::int64_t height, std::int64_t width, std::int64_t window);
  std::int64_t padded_height() const { return top + height + bottom; }
  std::int64_t padded_width() const { return left + width + right; }
  std::int64_t padded_pixels() const { return padded_height() * padded_width(); }
  // Floats before pixel (y, 0) of the inner grid in a padded one of `channels` floats per pixel.
  std::int64_t row_offset(std::int64_t y, std::int64_t channels) const {
    return ((top + y) * padded_width() + left) * channels;
  }
  // Zeroes the border of [padded height, padded width, channels].
  void clear_border(Context& context, float* grid, std::int64_t channels) const;
  // Copies [height, width, channels] into the middle and zeroes the border.
  void pad(Context& context, const float* from, std::int64_t channels, float* grid) const;

  std::int64_t height = 0, width = 0, top = 0, bottom = 0, left = 0, right = 0;
};

// LayerNorm of `rows` tokens, for traces.
void trace_norm(Context& context, const std::string& trace, const TraceShape& shape,
                const std::vector<float>& weight, const std::vector<float>& bias, const float* x);

}  // namespace nmrf
