// Message passing steps (paper, Eq. 5 and 6) and the stack of them that inference and refinement
// share: an embedding per label, x += message, x += MLP(x).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "network/layers.h"
#include "network/observed_features.h"
#include "network/options.h"

namespace nmrf {

// A grid of tokens, padded for its windows: [padded height, padded width, k, C].
struct TokenGrid {
  WindowPadding padding;
  std::int64_t labels = 0, channels = 0;
  Buffer<float> values;

  std::int64_t rows() const { return padding.padded_pixels() * labels; }
  // Tokens of row y of the inner grid, [width, k, C].
  tokens::InputRows inner_row(std::int64_t y) const;
  // For traces: the whole grid, and the inner one.
  TraceShape trace_shape() const;
  TraceShape inner_shape() const { return {padding.height, padding.width, labels, channels}; }
  std::vector<float> inner_values() const;
};

// Self edges: the labels of one pixel. No MLP here (the published model has none).
class SelfEdgesStep {
 public:
  SelfEdgesStep(Parameters& parameters, const std::string& name, std::int64_t channels,
                std::int64_t encoding, std::int64_t heads);
  // x changes in place; encoding: [rows, E].
  void forward(Context& context, TokenGrid& x, const float* encoding) const;

 private:
  std::int64_t encoding_, heads_;
  TokenProjection qkv_, proj_;
};

// How a neighbour step uses relative positions.
struct NeighbourOptions {
  std::int64_t channels = 0;
  std::int64_t encoding = 0;  // channels of the disparity encoding
  std::int64_t heads = 0;
  std::int64_t window = 0;
  std::int64_t shift = 0;
  std::int64_t mlp_ratio = 0;
  bool adaptive_bias = true;
  bool position_aggregation = true;
  bool own_only = false;  // of the query's own pixel, only the label itself sends a message
};

// Attention among all labels of the pixels in a window, cyclically shifted with Swin's region mask.
// qkv: [grid, 3 C]; message: [grid, stride], the first C of each; may be qkv, whose queries are not
// needed any longer.
void window_attention(Context& context, const TokenGrid& grid, std::int64_t heads,
                      std::int64_t window, std::int64_t shift, bool own_only,
                      const kernels::PositionTables& tables, const float* packed, const float* qkv,
                      float* message, std::int64_t stride);

// Neighbour edges: all labels of the pixels in an M x M window.
class NeighbourEdgesStep {
 public:
  NeighbourEdgesStep(Parameters& parameters, const std::string& name,
                     const NeighbourOptions& options);
  void forward(Context& context, TokenGrid& x, const float* encoding) const;

 private:
  void pack_tables(Parameters& parameters, const std::string& name);

  NeighbourOptions options_;
  TokenProjection qkv_;
  TokenMlp mlp_;
  Packed packed_;
  kernels::PositionTables tables_;  // only which of them are there
  const float* packed_tables_ = nullptr;
};

// Observed label features -> embedding -> layers of self edges (inference only) and neighbour
// edges.
class MessagePassing {
 public:
  // `name`: inference, refinement, refinement2. encoding_range: of the disparity encoding, 64 on
  // the coarse grid and 128 on the fine one.
  MessagePassing(Parameters& parameters, const std::string& name, const ModelOptions& options,
                 const NeighbourOptions& neighbour, std::int64_t layers, bool own_self_edges,
                 std::int64_t encoding_range);

  // The embedding of each label before the layers; labels: [h, w, count] pixels of the grid.
  TokenGrid embed(Context& context, const MatchingMaps& maps, const float* labels,
                  std::int64_t count) const;
  // The layers; `trace` prefixes trace entries.
  void forward(Context& context, TokenGrid& x, const float* labels, const std::string& trace) const;
  // The final norm of an embedding, for traces; the heads contain it.
  void trace_output(Context& context, const TokenGrid& x, const std::string& trace) const;
  const std::string& norm() const { return norm_; }  // the name of the final LayerNorm

 private:
  struct Layer {
    std::optional<SelfEdgesStep> self_edges;
    NeighbourEdgesStep neighbour_edges;
  };
  ModelOptions options_;
  std::int64_t channels_, window_, encoding_range_;
  std::string norm_;
  TokenMlp ffn_;
  std::vector<Layer> layers_;
  std::vector<float> norm_weight_, norm_bias_;
};

// Encodings of labels [h, w, k] on a padded grid, zero in the border: [grid, 2 F + 1].
Buffer<float> encode_labels(Context& context, const WindowPadding& padding, const float* labels,
                            std::int64_t count, std::int64_t range, std::int64_t frequencies);

}  // namespace nmrf
