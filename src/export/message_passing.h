// Attention inside windows, with and without relative positions (paper, Eq. 6; supplement).
#pragma once

#include <string>
#include <vector>

#include "export/windows.h"

namespace nmrf::graph {

// Encodings of relative positions for (query pixel, key pixel) of a window, and a bias per head;
// without a name where the network has none.
struct PositionTables {
  Value query;  // [heads, Pk, D, Pq]
  Value key;    // [heads, Pq, D, Pk]
  Value value;  // [heads, Pq, Pk, D]
  Value bias;   // [1, heads, 1, P, 1, P]
};

// Row of a position table for every (query pixel, key pixel) of a window: int64 [P * P].
Value relative_index(Graph& graph, std::int64_t window);
// The fixed bias of a table [(2 M - 1)^2, heads], parameter `name`.relative_position_bias_table.
Value position_bias(Graph& graph, const std::string& name, std::int64_t window, std::int64_t heads);

// qkv: [tokens, 3 C] in the order of the windows of `shift` -> messages [tokens, C]. own_only: of
// the labels of its own pixel a label sees only itself.
Value window_attention(Graph& graph, const Value& qkv, WindowGrid& windows, std::int64_t heads,
                       std::int64_t channels, std::int64_t shift, bool own_only,
                       const PositionTables& position);

// A learned vector per kind of seed: int64 [cells, k] -> [cells * k, channels].
Value seed_kinds(Graph& graph, const Value& kinds, const std::string& name, std::int64_t channels);

}  // namespace nmrf::graph
