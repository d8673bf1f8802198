#include "kernels/window_tables.h"

#include <cmath>

namespace nmrf::kernels {
namespace {

constexpr float kLog2E = 1.44269504088896340736f;

size_t round_up(size_t n) { return (n + 15) / 16 * 16; }

// One head of a table [(2M-1)^2, heads, D], times `scale`. `mirrored`: the token is the query and
// the columns are key pixels; else the other way round.
void pack_sheet(const WindowShape& s, const WindowTableLayout& layout, const float* table,
                int64_t head, int64_t depth, float scale, bool mirrored, float* sheet) {
  const int64_t m = s.window, side = 2 * m - 1;
  for (int64_t x = 0; x < m; ++x) {
    for (int64_t j = 0; j < side; ++j) {
      for (int64_t other = 0; other < m; ++other) {
        const int64_t dy = mirrored ? side - 1 - j : j;
        const int64_t dx = (mirrored ? x - other : other - x) + m - 1;
        const float* from = table + ((dy * side + dx) * s.heads + head) * depth;
        float* to = sheet + x * layout.depth * layout.columns + j * m + other;
        for (int64_t d = 0; d < depth; ++d) to[d * layout.columns] = scale * from[d];
      }
    }
  }
}

void pack_rows(const WindowShape& s, const WindowTableLayout& layout, const float* table,
               int64_t head, float scale, float* rows) {
  for (int64_t i = 0; i < s.positions(); ++i) {
    const float* from = table + (i * s.heads + head) * s.depth;
    for (int64_t d = 0; d < s.depth; ++d) rows[i * layout.depth + d] = scale * from[d];
  }
}

}  // namespace

WindowTableLayout::WindowTableLayout(const WindowShape& s, const PositionTables& tables) {
  const size_t m = s.window;
  depth = padded_depth(s.depth);
  columns = round_up((m - 1) * m + round_up(m * m));
  const size_t sheet = m * depth * columns, rows = round_up(s.positions() * depth);
  size_t at = 0;
  auto place = [&](const float* table, size_t size) {
    const size_t here = at;
    if (table) at += size;
    return here;
  };
  query_sheet = place(tables.query, sheet);
  key_sheet = place(tables.key, sheet);
  value_rows = place(tables.value, rows);
  bias_sheet = place(tables.bias, m * columns);
  value_sheet = place(tables.value, sheet);
  query_rows = place(tables.query, rows);
  key_rows = place(tables.key, rows);
  head = at;
}

// Keys are kept as they are, queries times scale * log2(e).
double query_factor(int64_t depth) { return 1.0 / std::sqrt(static_cast<double>(depth)); }
double key_factor() { return 0.693147180559945309417; }

size_t window_tables_size(const WindowShape& shape, const PositionTables& tables) {
  return WindowTableLayout(shape, tables).head * shape.heads;
}

void pack_window_tables(const WindowShape& s, const PositionTables& tables, float* packed) {
  const WindowTableLayout layout(s, tables);
  // Queries carry the scale of the logits; the products of keys with r^q take it from the table.
  const float scale = kLog2E / std::sqrt(static_cast<float>(s.depth));
  for (int64_t head = 0; head < s.heads; ++head) {
    float* base = packed + head * layout.head;
    if (tables.query) {
      pack_sheet(s, layout, tables.query, head, s.depth, scale, false, base + layout.query_sheet);
      pack_rows(s, layout, tables.query, head, scale, base + layout.query_rows);
    }
    if (tables.key) {
      pack_sheet(s, layout, tables.key, head, s.depth, 1, true, base + layout.key_sheet);
      pack_rows(s, layout, tables.key, head, 1, base + layout.key_rows);
    }
    if (tables.value) {
      pack_sheet(s, layout, tables.value, head, s.depth, 1, true, base + layout.value_sheet);
      pack_rows(s, layout, tables.value, head, 1, base + layout.value_rows);
    }
    if (tables.bias) {
      // One value instead of a vector: a sheet of depth 1, whose sheets lie `columns` apart.
      WindowTableLayout flat = layout;
      flat.depth = 1;
      pack_sheet(s, flat, tables.bias, head, 1, kLog2E, true, base + layout.bias_sheet);
    }
  }
}

}  // namespace nmrf::kernels
