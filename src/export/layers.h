// Layers that several stages share. Tokens are rows of a matrix [tokens, channels].
#pragma once

#include <string>

#include "export/graph.h"

namespace nmrf::graph {

// A grid of cells, in rows and columns.
struct Grid {
  Size height, width;
  Size cells() const { return height * width; }
};

// Added to the logit of what attention must not see: its weight is exactly 0 in 32 bits, and 16
// bits hold the number.
inline constexpr float kUnseen = -1e4f;
inline constexpr float kNormEps = 1e-5f;

// x: [tokens, in] -> [tokens, out]; parameters `name`.weight, .bias.
Value linear(Graph& graph, const Value& x, const std::string& name, std::int64_t in,
             std::int64_t out, bool bias = true);
// LayerNorm over the channels of [tokens, channels].
Value layer_norm(Graph& graph, const Value& x, const std::string& name, std::int64_t channels,
                 float eps = kNormEps);
Value gelu(Graph& graph, const Value& x);
// fc1, GELU, fc2.
Value mlp(Graph& graph, const Value& x, const std::string& name, std::int64_t in,
          std::int64_t hidden, std::int64_t out);
// Linear, ReLU, linear, ReLU, linear.
Value head(Graph& graph, const Value& x, const std::string& name, std::int64_t channels,
           std::int64_t out);
// x + W message + b, then y + mlp(norm2(y)): parameters `name` + `proj`, .norm2, .mlp (Eq. 5).
Value receive(Graph& graph, const Value& x, const Value& message, const std::string& name,
              std::int64_t channels, std::int64_t mlp_ratio, const char* proj = ".proj");

// x: [n, in, h, w]; a square kernel; where its side is odd, with zeros around the map.
Value convolution(Graph& graph, const Value& x, const std::string& name, std::int64_t in,
                  std::int64_t out, std::int64_t kernel, std::int64_t stride, bool bias);
Value instance_norm(Graph& graph, const Value& x, std::int64_t channels);
// conv 3x3, instance norm, ReLU, conv 1x1: gamma1, gamma2 and the visual context.
Value projection(Graph& graph, const Value& x, const std::string& name, std::int64_t in,
                 std::int64_t hidden, std::int64_t out);
// [views, C, h, w] -> [views * h * w, C]
Value to_tokens(Graph& graph, const Value& map, const Grid& grid, std::int64_t channels,
                std::int64_t views = 1);
// Means of 2 x 2 cells.
Value half_map(Graph& graph, const Value& map);

// Sines and cosines of a disparity: labels, float [tokens] -> [tokens, 2 * frequencies + 1].
Value encode_disparity(Graph& graph, const Value& labels, float range, std::int64_t frequencies);

// 1 / sqrt(channels of a head)
float attention_scale(std::int64_t depth);
// Added to the logits of tokens [tokens] of which `labels` in a row belong to one pixel: float
// [tokens, tokens], kUnseen for two labels of one pixel.
Value rival_mask(Graph& graph, const Value& token, const Value& pixel);

}  // namespace nmrf::graph
