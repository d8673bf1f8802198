// Multi-layer perceptrons on rows of tokens, a tile at a time: what lies between input and output
// never leaves the caches.
#pragma once

#include <cstddef>

#include "kernels/tiles.h"

namespace nmrf::tokens {

enum class Activation { kRelu, kGelu };

// y = (u +) W_n act(... act(W_1 norm(u) + b_1) ...) + b_n, where u is the input x or, with an
// entry, u = x + W_e message + b_e. Weights packed (ops/kernels/pack.h), biases padded, never null.
struct TokenMlp {
  static constexpr int kMostLayers = 3;
  int layers = 0;
  std::size_t width[kMostLayers + 1] = {};  // of the input and of each layer's output
  Activation activation = Activation::kGelu;
  bool residual = false;               // adds u
  const float* norm_weight = nullptr;  // null: no norm
  const float* norm_bias = nullptr;
  float norm_eps = 0;
  const float* forward[kMostLayers] = {};   // W^T
  const float* bias[kMostLayers] = {};      //
  const float* backward[kMostLayers] = {};  // W, for the backward pass alone
  const float* bytes[kMostLayers] = {};     // W^T as bytes (kernels/bytes.h), or null

  std::size_t message_width = 0;  // 0: no entry
  const float* entry_forward = nullptr;
  const float* entry_bytes = nullptr;
  const float* entry_bias = nullptr;
  const float* entry_backward = nullptr;
};

// Rows [begin, end) of y.
void token_mlp_forward(const TokenMlp& mlp, InputRows x, InputRows message, OutputRows y,
                       std::size_t begin, std::size_t end);

// Where the gradients of the parameters lie in a block of `total` floats: a weight [out, in] has
// padded(in) floats a row.
struct TokenMlpSums {
  explicit TokenMlpSums(const TokenMlp& mlp);
  std::size_t weight[TokenMlp::kMostLayers], bias[TokenMlp::kMostLayers];
  std::size_t norm_weight, norm_bias, entry_weight, entry_bias, total;
};

// Rows [begin, end) of the backward pass; everything between is computed again. dx and d_message
// are written unless null (dx must be there with an entry); `sums` (TokenMlpSums), unless null, is
// added to.
void token_mlp_backward(const TokenMlp& mlp, InputRows x, InputRows message, InputRows dy,
                        OutputRows dx, OutputRows d_message, float* sums, std::size_t begin,
                        std::size_t end);

}  // namespace nmrf::tokens
