#include "network/layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/byte_conv.h"
#include "kernels/bytes.h"
#include "kernels/direct_conv.h"
#include "kernels/instance_norm.h"
#include "kernels/pack.h"
#include "kernels/winograd.h"

namespace nmrf {
namespace {

constexpr std::int64_t kTile = 12;  // rows of a register tile
// The stem, which sees the image itself, stays in float.
constexpr std::int64_t kMostByteKernel = 3;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

// f(begin, end) over rows of tokens; boundaries are multiples of `labels`.
template <class F>
void share_rows(Context& context, std::int64_t rows, std::int64_t labels, const F& f) {
  const std::int64_t unit = kTile * labels;
  context.share((rows + unit - 1) / unit, 4, [&](std::int64_t begin, std::int64_t end, int) {
    f(size(begin * unit), size(std::min(end * unit, rows)));
  });
}

void take_layer_norm(Parameters& parameters, Packed& packed, const NormSpec& norm,
                     std::int64_t channels, const float*& weight, const float*& bias, float& eps) {
  if (norm.name.empty()) return;
  weight = packed.copy(parameters.take(norm.name + ".weight", {channels}));
  bias = packed.copy(parameters.take(norm.name + ".bias", {channels}));
  eps = norm.eps;
}

}  // namespace

// ---- Packed weights ----------------------------------------------------------------------------

float* Packed::take(std::size_t floats) {
  blocks_.push_back(hwy::AllocateAligned<float>(std::max<std::size_t>(floats, 1)));
  return blocks_.back().get();
}

const float* Packed::transposed(const std::vector<float>& w, std::size_t out, std::size_t in) {
  if (w.empty()) return nullptr;
  float* packed = take(tokens::packed_size(in, out));
  tokens::pack_transposed(w.data(), in, in, out, in, 0, packed);
  return packed;
}

const float* Packed::bytes(const float* w, std::size_t stride, std::size_t out, std::size_t in) {
  float* packed = take(tokens::packed_bytes_size(in, out));
  tokens::pack_bytes(w, stride, in, out, packed);
  return packed;
}

const float* Packed::bias(const std::vector<float>& values, std::size_t count) {
  float* packed = take(tokens::padded(count));
  tokens::pack_bias(values.empty() ? nullptr : values.data(), count, packed);
  return packed;
}

const float* Packed::copy(const std::vector<float>& values) {
  if (values.empty()) return nullptr;
  float* copied = take(values.size());
  std::copy(values.begin(), values.end(), copied);
  return copied;
}

// ---- Convolutions ------------------------------------------------------------------------------

Convolution::Convolution(Parameters& parameters, const std::string& name, std::int64_t in,
                         std::int64_t out, std::int64_t kernel, std::int64_t stride, bool bias)
    : in_(in),
      out_(out),
      kernel_(kernel),
      stride_(stride),
      bias_(bias),
      bytes_(parameters.bytes() && kernel <= kMostByteKernel &&
             tokens::byte_arithmetic().convolutions) {
  const auto weight = parameters.take(name + ".weight", {out, in, kernel, kernel});
  if (bias) bias_values_ = packed_.bias(parameters.take(name + ".bias", {out}), size(out));
  if (weight.empty()) return;
  if (winograd()) {
    float* packed = packed_.take(conv::winograd_weights_size(size(in), size(out)));
    conv::winograd_weights(weight.data(), size(out), size(in), packed, 0, size(in));
    weights_ = packed;
  } else {
    const conv::Direct op{1, 1, 1,        size(in), size(kernel), size(stride), size(padding()),
                          1, 1, size(out)};
    float* packed =
        packed_.take(bytes_ ? conv::byte_weights_size(op) : conv::direct_weights_size(op));
    (bytes_ ? conv::byte_weights : conv::direct_weights)(op, weight.data(), packed);
    weights_ = packed;
  }
}

void Convolution::forward(Context& context, const conv::Source& x, std::int64_t height,
                          std::int64_t width, float* y, const NormValues* norm) const {
  const std::int64_t out_height = out_size(height), out_width = out_size(width);
  context.count(&StageCost::convolution, 2.0 * static_cast<double>(out_height * out_width) *
                                             static_cast<double>(in_ * out_ * kernel_ * kernel_));
  const conv::Winograd fast(1, size(height), size(width), size(in_), size(out_));
  const conv::Direct direct{1,
                            size(height),
                            size(width),
                            size(in_),
                            size(kernel_),
                            size(stride_),
                            size(padding()),
                            size(out_height),
                            size(out_width),
                            size(out_)};
  const std::size_t units = winograd() ? fast.units() : direct.units();
  // The norm's moments per unit, merged in the order of the units.
  const auto set = static_cast<std::int64_t>(conv::moments_size(size(out_)));
  const auto sets = static_cast<std::int64_t>(units);
  Buffer<float> moments = norm ? context.take(sets * set) : Buffer<float>();
  Buffer<std::size_t> pixels = norm ? context.take<std::size_t>(sets) : Buffer<std::size_t>();
  float* into = norm ? moments.data() : nullptr;
  // Rows under the kernel are rounded again where a piece begins.
  context.share(sets, bytes_ && kernel_ > 1 ? 8 : 1,
                [&](std::int64_t begin, std::int64_t end, int) {
                  if (winograd())
                    conv::winograd_forward(fast, x, weights_, {.data = y, .moments = into},
                                           size(begin), size(end));
                  else
                    (bytes_ ? conv::byte_forward : conv::direct_forward)(
                        direct, x, weights_, bias_values_, y, into, size(begin), size(end));
                });
  if (!norm) return;
  context.share(1, 1, [&](std::int64_t, std::int64_t, int) {
    for (std::size_t u = 0; u < units; ++u)
      pixels[u] = winograd() ? fast.unit_pixels(u) : direct.out_width;
    conv::merge_moments(moments.data(), pixels.data(), units, size(out_), norm->values.data(),
                        norm->values.data() + out_);
  });
}

NormValues take_norm(Context& context, std::int64_t channels) {
  return {context.take(2 * channels), channels};
}

Projection::Projection(Parameters& parameters, const std::string& name, std::int64_t in,
                       std::int64_t hidden, std::int64_t out)
    : conv3_(parameters, name + ".0", in, hidden, 3, 1, false),
      conv1_(parameters, name + ".3", hidden, out, 1, 1, false) {}

FeatureMap Projection::forward(Context& context, const FeatureMap& x) const {
  FeatureMap result = context.map(x.height, x.width, conv1_.out());
  FeatureMap hidden = context.map(x.height, x.width, conv3_.out());
  NormValues norm = take_norm(context, conv3_.out());
  conv3_.forward(context, {x.values.data()}, x.height, x.width, hidden.values.data(), &norm);
  conv1_.forward(context, {hidden.values.data(), norm.norm()}, x.height, x.width,
                 result.values.data());
  return result;
}

// ---- Tokens ------------------------------------------------------------------------------------

TokenProjection::TokenProjection(Parameters& parameters, const NormSpec& norm,
                                 std::int64_t channels, std::int64_t extra, std::int64_t labels,
                                 const std::vector<LinearSpec>& maps)
    : bytes_(parameters.bytes()) {
  map_.channels = size(channels);
  map_.extra = size(extra);
  map_.labels = size(labels);
  map_.blocks = static_cast<int>(maps.size());
  take_layer_norm(parameters, packed_, norm, channels, map_.norm_weight, map_.norm_bias,
                  map_.norm_eps);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const LinearSpec& spec = maps[i];
    auto& block = map_.block[i];
    block.out = size(spec.out);
    block.uses_extra = spec.uses_extra && extra > 0;
    const std::size_t own = map_.channels, more = block.uses_extra ? map_.extra : 0;
    const auto weight =
        parameters.take(spec.name + ".weight", {spec.out, static_cast<std::int64_t>(own + more)});
    const auto bias =
        spec.bias ? parameters.take(spec.name + ".bias", {spec.out}) : std::vector<float>();
    block.bias = packed_.bias(bias, block.out);
    if (weight.empty()) continue;
    const bool joined = labels == 1;
    if (bytes_) {
      block.bytes = packed_.bytes(weight.data(), own + more, block.out, own + (joined ? more : 0));
      if (more > 0 && !joined)
        block.extra_bytes = packed_.bytes(weight.data() + own, own + more, block.out, more);
      continue;
    }
    const std::size_t depth = own + (joined ? more : 0);
    float* columns = packed_.take(tokens::packed_size(depth, block.out));
    tokens::pack_transposed(weight.data(), own + more, own, block.out, depth, 0, columns);
    block.forward = columns;
    if (more == 0) continue;
    if (joined) {
      tokens::pack_transposed(weight.data() + own, own + more, more, block.out, depth, own,
                              columns);
    } else {
      float* further = packed_.take(tokens::packed_size(more, block.out));
      tokens::pack_transposed(weight.data() + own, own + more, more, block.out, more, 0, further);
      block.extra_forward = further;
    }
  }
}

void TokenProjection::forward(Context& context, std::int64_t rows, tokens::InputRows x,
                              tokens::InputRows extra, std::span<const tokens::OutputRows> y,
                              tokens::InputRows residual, std::int64_t labels) const {
  tokens::TokenProjection map = map_;
  if (labels > 0) map.labels = size(labels);
  for (int i = 0; i < map.blocks; ++i)
    context.count(
        &StageCost::linear,
        2.0 * static_cast<double>(rows) *
            static_cast<double>(map.channels + (map.block[i].uses_extra ? map.extra : 0)) *
            static_cast<double>(map.block[i].out));
  share_rows(context, rows, static_cast<std::int64_t>(map.labels),
             [&](std::size_t begin, std::size_t end) {
               if (bytes_)
                 tokens::token_projection_forward_bytes(map, x, extra, residual, y.data(), begin,
                                                        end);
               else
                 tokens::token_projection_forward(map, x, extra, residual, y.data(), begin, end);
             });
}

TokenMlp::TokenMlp(Parameters& parameters, std::int64_t channels,
                   const std::vector<LinearSpec>& layers, const Options& options)
    : bytes_(parameters.bytes() && !options.exact) {
  auto pack = [&](const std::vector<float>& w, std::size_t out, std::size_t in,
                  const float*& forward, const float*& bytes, bool exact = false) {
    if (w.empty()) return;
    if (bytes_ && !exact)
      bytes = packed_.bytes(w.data(), in, out, in);
    else
      forward = packed_.transposed(w, out, in);
  };
  mlp_.layers = static_cast<int>(layers.size());
  mlp_.width[0] = size(channels);
  mlp_.activation = options.activation;
  mlp_.residual = options.residual;
  if (!options.entry.empty()) {
    mlp_.message_width = size(options.message);
    pack(parameters.take(options.entry + ".weight", {channels, options.message}), size(channels),
         size(options.message), mlp_.entry_forward, mlp_.entry_bytes);
    mlp_.entry_bias =
        packed_.bias(parameters.take(options.entry + ".bias", {channels}), size(channels));
  }
  take_layer_norm(parameters, packed_, options.norm, channels, mlp_.norm_weight, mlp_.norm_bias,
                  mlp_.norm_eps);
  std::int64_t in = channels;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LinearSpec& spec = layers[i];
    mlp_.width[i + 1] = size(spec.out);
    pack(parameters.take(spec.name + ".weight", {spec.out, in}), size(spec.out), size(in),
         mlp_.forward[i], mlp_.bytes[i], options.exact_last && i + 1 == layers.size());
    mlp_.bias[i] = packed_.bias(
        spec.bias ? parameters.take(spec.name + ".bias", {spec.out}) : std::vector<float>(),
        size(spec.out));
    in = spec.out;
  }
  out_ = in;
}

double TokenMlp::operations() const {
  double sum = 2.0 * static_cast<double>(mlp_.message_width * mlp_.width[0]);
  for (int i = 0; i < mlp_.layers; ++i)
    sum += 2.0 * static_cast<double>(mlp_.width[i] * mlp_.width[i + 1]);
  return sum;
}

void TokenMlp::forward(Context& context, std::int64_t rows, tokens::InputRows x,
                       tokens::InputRows message, tokens::OutputRows y) const {
  context.count(&StageCost::linear, static_cast<double>(rows) * operations());
  share_rows(context, rows, 1, [&](std::size_t begin, std::size_t end) {
    run(x, message, y, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
  });
}

void TokenMlp::run(tokens::InputRows x, tokens::InputRows message, tokens::OutputRows y,
                   std::int64_t begin, std::int64_t end) const {
  if (bytes_)
    tokens::token_mlp_forward_bytes(mlp_, x, message, y, size(begin), size(end));
  else
    tokens::token_mlp_forward(mlp_, x, message, y, size(begin), size(end));
}

TokenMlp make_mlp(Parameters& parameters, const std::string& name, std::int64_t in,
                  std::int64_t hidden, std::int64_t out, const std::string& norm) {
  return TokenMlp(parameters, in, {{name + ".fc1", hidden}, {name + ".fc2", out}}, {.norm = norm});
}

TokenMlp make_head(Parameters& parameters, const std::string& name, std::int64_t channels,
                   std::int64_t out, const std::string& norm) {
  return TokenMlp(
      parameters, channels,
      {{name + ".layers.0", channels}, {name + ".layers.1", channels}, {name + ".layers.2", out}},
      {.norm = norm, .activation = tokens::Activation::kRelu, .exact_last = true});
}

// ---- Windows -----------------------------------------------------------------------------------

WindowPadding::WindowPadding(std::int64_t h, std::int64_t w, std::int64_t window)
    : height(h), width(w) {
  const std::int64_t more_rows = (window - height % window) % window;
  const std::int64_t more_columns = (window - width % window) % window;
  top = more_rows / 2;
  bottom = more_rows - top;
  left = more_columns / 2;
  right = more_columns - left;
}

void run_windows(Context& context, const kernels::WindowForward& job) {
  const auto room = static_cast<std::int64_t>(kernels::window_forward_scratch(job.shape));
  Buffer<float> scratch = context.take(context.threads() * room);
  context.share(job.shape.windows(), 1, [&](std::int64_t begin, std::int64_t end, int slot) {
    float* own = scratch.data() + slot * room;
    std::fill(own, own + room, 0.0f);
    kernels::window_forward(job, begin, end, own);
  });
}

void WindowPadding::clear_border(Context& context, float* grid, std::int64_t channels) const {
  if (top + bottom + left + right == 0) return;
  const std::int64_t row = padded_width() * channels;
  context.share(padded_height(), 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y) {
      float* at = grid + y * row;
      if (y < top || y >= top + height) {
        std::fill(at, at + row, 0.0f);
      } else {
        std::fill(at, at + left * channels, 0.0f);
        std::fill(at + (left + width) * channels, at + row, 0.0f);
      }
    }
  });
}

void WindowPadding::pad(Context& context, const float* from, std::int64_t channels,
                        float* grid) const {
  clear_border(context, grid, channels);
  context.share(height, 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y)
      std::memcpy(grid + row_offset(y, channels), from + y * width * channels,
                  size(width * channels) * sizeof(float));
  });
}

void trace_norm(Context& context, const std::string& trace, const TraceShape& shape,
                const std::vector<float>& weight, const std::vector<float>& bias, const float* x) {
  if (!context.tracing()) return;
  const std::int64_t channels = shape.channels,
                     rows = shape.height * shape.width * std::max<std::int64_t>(shape.count, 1);
  std::vector<float> result(size(rows * channels));
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * channels;
    double mean = 0, square = 0;
    for (std::int64_t c = 0; c < channels; ++c) mean += row[c];
    mean /= static_cast<double>(channels);
    for (std::int64_t c = 0; c < channels; ++c) square += (row[c] - mean) * (row[c] - mean);
    const double scale = 1 / std::sqrt(square / static_cast<double>(channels) + kNormEps);
    for (std::int64_t c = 0; c < channels; ++c)
      result[size(r * channels + c)] =
          static_cast<float>((row[c] - mean) * scale) * weight[size(c)] + bias[size(c)];
  }
  context.record(trace, shape, result.data());
}

}  // namespace nmrf
