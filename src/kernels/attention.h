// CPU kernels of the three attentions: raw pointers, float32, no tensors, no threads. The caller
// splits the work into ranges and gives each range its own scratch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nmrf::kernels {

// Widths a head is padded to inside the kernels. Wider heads have no fast form.
inline constexpr int64_t kMaxDepth = 32;
inline int64_t padded_depth(int64_t depth) { return depth <= 16 ? 16 : 32; }

// Tokens [B, H, W, k, channels] by strides in elements; channels are contiguous.
struct Tokens {
  const float* data = nullptr;
  int64_t batch = 0, row = 0, column = 0, label = 0;
  int64_t outside = 0;  // what pixels outside read, see WindowShape
};
struct MutableTokens {
  float* data = nullptr;
  int64_t batch = 0, row = 0, column = 0, label = 0;
  static constexpr int64_t outside = -1;  // what pixels outside would receive is dropped
};

// ---- Windows -----------------------------------------------------------------------------------

struct WindowShape {
  int64_t batch = 0, height = 0, width = 0, labels = 0, heads = 0, depth = 0;
  int64_t window = 0, shift = 0;  // 0 <= shift < window; height and width are multiples of it
  bool own_only = false;          // other labels of the query's pixel are masked
  // Of the grid only so many rows and columns exist; the pixels outside all read one token. 0: all
  // exist. The backward pass has no such form.
  int64_t rows = 0, columns = 0;
  int64_t windows() const { return batch * (height / window) * (width / window); }
  int64_t tokens() const { return window * window * labels; }  // of one window
  int64_t positions() const { return (2 * window - 1) * (2 * window - 1); }
};

// Encodings [(2M-1)^2, heads, D] and bias [(2M-1)^2, heads], contiguous; null switches a term off.
struct PositionTables {
  const float* query = nullptr;
  const float* key = nullptr;
  const float* value = nullptr;
  const float* bias = nullptr;
};

// Position tables rearranged for the kernels, once a call. `packed` holds window_tables_size
// floats, 64-byte aligned and zeroed; it has room for the tables that are there.
size_t window_tables_size(const WindowShape& shape, const PositionTables& tables);
void pack_window_tables(const WindowShape& shape, const PositionTables& tables, float* packed);

// Gradients of the position tables, each [heads, (2M-1)^2, padded_depth(D)]; bias: [heads,
// (2M-1)^2]. The kernel adds to them, but for a factor the caller applies at the end: query_factor,
// key_factor. Null where nothing is wanted.
double query_factor(int64_t depth);
double key_factor();
struct PositionGradients {
  float* query = nullptr;
  float* key = nullptr;
  float* value = nullptr;
  float* bias = nullptr;
};

struct WindowForward {
  WindowShape shape;
  PositionTables tables;  // only which of them are there
  const float* packed = nullptr;
  Tokens qkv;            // channels {q, k, v} x heads x D
  MutableTokens out;     // channels heads x D; may lie on q
  float* lse = nullptr;  // [windows, heads, tokens]: base-2 log of the softmax sums, or null
};

struct WindowBackward {
  WindowShape shape;
  PositionTables tables;
  const float* packed = nullptr;
  Tokens qkv, grad_out;
  const float* lse = nullptr;
  MutableTokens grad_qkv;
};

// Floats of scratch a range needs (64-byte aligned, zeroed).
size_t window_forward_scratch(const WindowShape& shape);
size_t window_backward_scratch(const WindowShape& shape);
// Windows [begin, end), counted over batch, window row, window column.
void window_forward(const WindowForward& job, int64_t begin, int64_t end, float* scratch);
void window_backward(const WindowBackward& job, const PositionGradients& grads, int64_t begin,
                     int64_t end, float* scratch);

// ---- Stripes -----------------------------------------------------------------------------------

// Attention along one axis of the grid. A stripe is a row (or column) of `pixels` pixels.
struct StripeShape {
  int64_t stripes = 0;  // in one image
  int64_t batch = 0, pixels = 0, labels = 0, heads = 0, depth = 0;
  int64_t tokens() const { return pixels * labels; }
};

// In these, `row` steps from stripe to stripe and `column` along a stripe: a column stripe is given
// by exchanging the two strides. Channels start at the first head of this direction.
struct StripeForward {
  StripeShape shape;
  Tokens q, k, v;
  const float* filter = nullptr;  // [3, heads * D]: taps before, centre, after
  MutableTokens out;              // may lie on q
  float* lse = nullptr;           // [batch * stripes, heads, tokens], or null
};

struct StripeBackward {
  StripeShape shape;
  Tokens q, k, v, out, grad_out;
  const float* filter = nullptr;
  const float* lse = nullptr;
  MutableTokens grad_q, grad_k, grad_v;
};

size_t stripe_forward_scratch(const StripeShape& shape);
size_t stripe_backward_scratch(const StripeShape& shape);
// Items [begin, end), counted over batch, stripe, head.
void stripe_forward(const StripeForward& job, int64_t begin, int64_t end, float* scratch);
// Adds to grad_filter [3, heads * D].
void stripe_backward(const StripeBackward& job, float* grad_filter, int64_t begin, int64_t end,
                     float* scratch);

// ---- Labels of one pixel -----------------------------------------------------------------------

struct LabelShape {
  int64_t batch = 0, height = 0, width = 0, labels = 0, heads = 0, depth = 0;
  int64_t pixels() const { return batch * height * width; }
};

struct LabelForward {
  LabelShape shape;
  Tokens q, k, v;
  MutableTokens out;  // may lie on q
};

struct LabelBackward {
  LabelShape shape;
  Tokens q, k, v, grad_out;
  MutableTokens grad_q, grad_k, grad_v;
};

inline constexpr int64_t kMaxLabels = 16;
// Pixels [begin, end), counted over batch, row, column.
void label_forward(const LabelForward& job, int64_t begin, int64_t end);
void label_backward(const LabelBackward& job, int64_t begin, int64_t end);

}  // namespace nmrf::kernels
