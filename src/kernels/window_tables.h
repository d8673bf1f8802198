// How the position tables of a window are laid out for the kernels.
#pragma once

#include "kernels/attention.h"

namespace nmrf::kernels {

// Two forms of each table for each head.
// Rows: [(2M-1)^2][kD], a row for a relative position, as the sums over encodings need it.
// Sheets: [M][kD][columns], for the products of a token with the encodings of all pixels at once.
// Sheet x serves the tokens in column x of the window; the M * M encodings a token in row y needs
// lie side by side from column (M - 1 - y) * M on, in the order of the other pixels.
struct WindowTableLayout {
  WindowTableLayout(const WindowShape& shape, const PositionTables& tables);

  size_t depth;                                            // kD
  size_t columns;                                          // stride of a sheet's rows
  size_t query_sheet, key_sheet, value_sheet, bias_sheet;  // offsets in the part of a head
  size_t query_rows, key_rows, value_rows;
  size_t head;  // floats of one head
};

}  // namespace nmrf::kernels
