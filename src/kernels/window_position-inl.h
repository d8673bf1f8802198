// Products with relative positions inside a window, shared by the labels of a pixel.
#include <cstddef>
#include <cstdint>

#include "kernels/attention_blocks-inl.h"

#if defined(NMRF_OPS_WINDOW_POSITION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NMRF_OPS_WINDOW_POSITION_INL_H_
#undef NMRF_OPS_WINDOW_POSITION_INL_H_
#else
#define NMRF_OPS_WINDOW_POSITION_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

// A few tokens handled together: labels of one pixel, or (k = 1) neighbours in a row of pixels. In
// the second case each has its own encodings, `table_step` floats after those of the one before.
struct TokenRun {
  size_t first, count;  // at most 4
  size_t pixel;         // of the first
  bool neighbours;
};

// Splits the tokens [begin, end) of a window into runs. Neighbours are taken 4 or 2 at a time where
// that never crosses the end of a row of pixels.
template <class Visit>
HWY_INLINE void for_each_run(size_t begin, size_t end, size_t labels, size_t window,
                             const Visit& visit) {
  const size_t group = window % 4 == 0 ? 4 : window % 2 == 0 ? 2 : 1;
  for (size_t v = begin; v < end;) {
    TokenRun run{v, 1, v / labels, false};
    if (labels > 1) {
      run.count = std::min({labels - v % labels, end - v, size_t{4}});
    } else if (v % group == 0 && v + group <= end) {
      run.count = group;
      run.neighbours = group > 1;
    }
    visit(run);
    v += run.count;
  }
}

// out[r][c] = start[c] + sum over d of tokens[r][d] * sheet[d][c] for kN vectors of columns.
template <size_t kD, size_t kR, size_t kN, bool kNeighbours>
HWY_INLINE void sheet_tile(const float* tokens, size_t depth, const float* sheet, size_t columns,
                           const float* start, float* out, size_t out_stride) {
  const F f;
  const size_t next = kNeighbours ? kD * columns : 0;  // the sheet of the next column of pixels
  // A few sums alone would wait for each other: then odd and even d are summed apart.
  constexpr size_t kParts = kR * kN <= 4 ? 2 : 1;
  V acc[kParts][kR][kN];
  NMRF_UNROLL for (size_t r = 0; r < kR; ++r) {
    NMRF_UNROLL for (size_t n = 0; n < kN; ++n) {
      acc[kParts - 1][r][n] = hn::Zero(f);
      acc[0][r][n] =
          start ? hn::LoadU(f, start + (kNeighbours ? r * columns : 0) + n * kLanes) : hn::Zero(f);
    }
  }
  auto add = [&](V(&sum)[kR][kN]) HWY_ATTR {
    V right[kN];
    NMRF_UNROLL for (size_t n = 0; n < kN; ++n) right[n] = hn::LoadU(f, sheet + n * kLanes);
    NMRF_UNROLL for (size_t r = 0; r < kR; ++r) {
      const V token = hn::Set(f, tokens[r * kD]);
      if (kNeighbours && r > 0) {
        NMRF_UNROLL for (size_t n = 0; n < kN; ++n) right[n] =
            hn::LoadU(f, sheet + r * next + n * kLanes);
      }
      NMRF_UNROLL for (size_t n = 0; n < kN; ++n) sum[r][n] =
          hn::MulAdd(token, right[n], sum[r][n]);
    }
    sheet += columns;
    ++tokens;
  };
  size_t d = 0;
  for (; d + kParts <= depth; d += kParts) {
    NMRF_UNROLL for (size_t part = 0; part < kParts; ++part) add(acc[part]);
  }
  if (d < depth) add(acc[0]);
  if (kParts == 2) {
    NMRF_UNROLL for (size_t r = 0; r < kR; ++r) {
      NMRF_UNROLL for (size_t n = 0; n < kN; ++n) acc[0][r][n] =
          hn::Add(acc[0][r][n], acc[kParts - 1][r][n]);
    }
  }
  store_tile(acc[0], out, out_stride);
}

template <size_t kD, size_t kR, bool kNeighbours>
HWY_INLINE void sheet_rows(const float* tokens, size_t depth, const float* sheet, size_t columns,
                           const float* start, size_t vectors, float* out, size_t out_stride) {
  size_t n = 0;
  auto at = [](const float* p, size_t offset) { return p ? p + offset : nullptr; };
  for (; n + 3 <= vectors; n += 3)
    sheet_tile<kD, kR, 3, kNeighbours>(tokens, depth, sheet + n * kLanes, columns,
                                       at(start, n * kLanes), out + n * kLanes, out_stride);
  for (; n + 2 <= vectors; n += 2)
    sheet_tile<kD, kR, 2, kNeighbours>(tokens, depth, sheet + n * kLanes, columns,
                                       at(start, n * kLanes), out + n * kLanes, out_stride);
  for (; n < vectors; ++n)
    sheet_tile<kD, kR, 1, kNeighbours>(tokens, depth, sheet + n * kLanes, columns,
                                       at(start, n * kLanes), out + n * kLanes, out_stride);
}

// The same for four labels of two pixels, one above the other, which share the columns from `sheet`
// on but for a shift by `window`: twice the products for each value read. Writes kN vectors of each
// row; those of the upper pixel begin `window` columns early.
template <size_t kD, size_t kN>
HWY_INLINE void sheet_pair(const float* upper, const float* lower, size_t depth, const float* sheet,
                           size_t columns, const float* start, size_t window, float* upper_out,
                           float* lower_out, size_t out_stride) {
  const F f;
  V acc[8][kN];
  NMRF_UNROLL for (size_t n = 0; n < kN; ++n) {
    const V first = start ? hn::LoadU(f, start + n * kLanes) : hn::Zero(f);
    NMRF_UNROLL for (size_t r = 0; r < 8; ++r) acc[r][n] = first;
  }
  for (size_t d = 0; d < depth; ++d, sheet += columns) {
    V right[kN];
    NMRF_UNROLL for (size_t n = 0; n < kN; ++n) right[n] = hn::LoadU(f, sheet + n * kLanes);
    NMRF_UNROLL for (size_t r = 0; r < 4; ++r) {
      const V token = hn::Set(f, upper[r * kD + d]);
      NMRF_UNROLL for (size_t n = 0; n < kN; ++n) acc[r][n] =
          hn::MulAdd(token, right[n], acc[r][n]);
    }
    NMRF_UNROLL for (size_t r = 0; r < 4; ++r) {
      const V token = hn::Set(f, lower[r * kD + d]);
      NMRF_UNROLL for (size_t n = 0; n < kN; ++n) acc[4 + r][n] =
          hn::MulAdd(token, right[n], acc[4 + r][n]);
    }
  }
  NMRF_UNROLL for (size_t r = 0; r < 4; ++r) {
    NMRF_UNROLL for (size_t n = 0; n < kN; ++n) {
      hn::StoreU(acc[r][n], f, upper_out + r * out_stride + n * kLanes - window);
      hn::Store(acc[4 + r][n], f, lower_out + r * out_stride + n * kLanes);
    }
  }
}

// Products of all tokens of a window with the encodings between their pixel and every other:
// out[t][pixel]. tokens: [M * M * labels][kD]; sheets, starts: see WindowTableLayout; starts may be
// null, and so may sheets (then out = starts). out_stride is a multiple of the lanes and leaves M
// values beyond a row that may be overwritten; so are M values before the first one.
template <size_t kD>
HWY_NOINLINE void position_products(const float* tokens, size_t depth, const float* sheets,
                                    const float* starts, size_t columns, size_t window,
                                    size_t labels, float* out, size_t out_stride, Ahead& ahead) {
  const size_t vectors = (window * window + kLanes - 1) / kLanes;
  if (!sheets) {
    sheets = starts;
    depth = 0;
  }
  auto of_run = [&](const TokenRun& run) HWY_ATTR {
    const size_t x = run.pixel % window, offset = (window - 1 - run.pixel / window) * window;
    const float* sheet = sheets + x * kD * columns + offset;
    const float* start = starts ? starts + x * columns + offset : nullptr;
    const float* token = tokens + run.first * kD;
    float* to = out + run.first * out_stride;
    if (run.neighbours && run.count == 4)
      sheet_rows<kD, 4, true>(token, depth, sheet, columns, start, vectors, to, out_stride);
    else if (run.neighbours)
      sheet_rows<kD, 2, true>(token, depth, sheet, columns, start, vectors, to, out_stride);
    else if (run.count == 4)
      sheet_rows<kD, 4, false>(token, depth, sheet, columns, start, vectors, to, out_stride);
    else if (run.count == 3)
      sheet_rows<kD, 3, false>(token, depth, sheet, columns, start, vectors, to, out_stride);
    else if (run.count == 2)
      sheet_rows<kD, 2, false>(token, depth, sheet, columns, start, vectors, to, out_stride);
    else
      sheet_rows<kD, 1, false>(token, depth, sheet, columns, start, vectors, to, out_stride);
    ahead.step(kProductWork);
  };
  if (labels == 1) {
    for_each_run(0, window * window, labels, window, of_run);
    return;
  }
  // Column by column, so that one sheet stays in the first-level cache.
  const bool pairs =
      kAccumulators == 24 && labels == 4 && vectors == 3 && window * window + window <= 3 * kLanes;
  for (size_t x = 0; x < window; ++x) {
    size_t y = 0;
    if constexpr (kAccumulators == 24) {
      for (; pairs && y + 2 <= window; y += 2) {
        const size_t offset = (window - 2 - y) * window;
        const size_t upper = (y * window + x) * labels, lower = upper + window * labels;
        sheet_pair<kD, 3>(tokens + upper * kD, tokens + lower * kD, depth,
                          sheets + x * kD * columns + offset, columns,
                          starts ? starts + x * columns + offset : nullptr, window,
                          out + upper * out_stride, out + lower * out_stride, out_stride);
        ahead.step(2 * kProductWork);
      }
    }
    for (; y < window; ++y) {
      const size_t first = (y * window + x) * labels;
      for_each_run(first, first + labels, labels, window, of_run);
    }
  }
}

// How the weights between one run of tokens and all pixels are stored, and where the encodings lie.
struct PixelWeights {
  const float* weights;  // of the first token and pixel 0
  ptrdiff_t token_step, pixel_step;
  ptrdiff_t
      sign;  // +1: the encoding of pixel (y, x) is row y(2M-1) + x after the first; -1: before
};

// out[r] += sum over the pixels of weights[r][pixel] * encoding(pixel); `rows` belongs to pixel (0,
// 0).
template <size_t kD, size_t kR, bool kNeighbours>
HWY_INLINE void sum_encodings_tile(const PixelWeights& w, const float* rows, size_t window,
                                   float* out) {
  constexpr size_t kN = row_vectors<kD>();
  const F f;
  const ptrdiff_t step = w.sign * static_cast<ptrdiff_t>(kD);
  // The next token's pixel lies one further, which moves its encodings against the sign.
  const ptrdiff_t next = kNeighbours ? -step : 0;
  for (size_t c = 0; c < kD; c += kN * kLanes) {
    V acc[kR][kN];
    load_tile(out + c, kD, true, acc);
    const float* a = w.weights;
    for (size_t y = 0; y < window; ++y) {
      const float* b = rows + c + static_cast<ptrdiff_t>(y * (2 * window - 1)) * step;
      for (size_t x = 0; x < window; ++x, a += w.pixel_step, b += step) {
        V right[kN];
        NMRF_UNROLL for (size_t n = 0; n < kN; ++n) right[n] = hn::Load(f, b + n * kLanes);
        NMRF_UNROLL for (size_t r = 0; r < kR; ++r) {
          const V left = hn::Set(f, a[static_cast<ptrdiff_t>(r) * w.token_step]);
          if (kNeighbours && r > 0) {
            NMRF_UNROLL for (size_t n = 0; n < kN; ++n) right[n] =
                hn::Load(f, b + static_cast<ptrdiff_t>(r) * next + n * kLanes);
          }
          NMRF_UNROLL for (size_t n = 0; n < kN; ++n) acc[r][n] =
              hn::MulAdd(left, right[n], acc[r][n]);
        }
      }
    }
    store_tile(acc, out + c, kD);
  }
}

template <size_t kD>
HWY_INLINE void sum_encodings(const TokenRun& run, const PixelWeights& w, const float* rows,
                              size_t window, float* out) {
  if (run.neighbours && run.count == 4)
    sum_encodings_tile<kD, 4, true>(w, rows, window, out);
  else if (run.neighbours)
    sum_encodings_tile<kD, 2, true>(w, rows, window, out);
  else if (run.count == 4)
    sum_encodings_tile<kD, 4, false>(w, rows, window, out);
  else if (run.count == 3)
    sum_encodings_tile<kD, 3, false>(w, rows, window, out);
  else if (run.count == 2)
    sum_encodings_tile<kD, 2, false>(w, rows, window, out);
  else
    sum_encodings_tile<kD, 1, false>(w, rows, window, out);
}

// The gradient of what sum_encodings reads: encoding(pixel) += sum over r of weights[r][pixel] *
// tokens[r], for tokens of one pixel.
template <size_t kD, size_t kR>
HWY_INLINE void spread_tile(const PixelWeights& w, const float* tokens, size_t window,
                            float* rows) {
  constexpr size_t kN = row_vectors<kD>();
  const F f;
  const ptrdiff_t step = w.sign * static_cast<ptrdiff_t>(kD);
  for (size_t c = 0; c < kD; c += kN * kLanes) {
    V token[kR][kN];
    load_tile(tokens + c, kD, true, token);
    const float* a = w.weights;
    for (size_t y = 0; y < window; ++y) {
      float* b = rows + c + static_cast<ptrdiff_t>(y * (2 * window - 1)) * step;
      for (size_t x = 0; x < window; ++x, a += w.pixel_step, b += step) {
        V sum[kN];
        NMRF_UNROLL for (size_t n = 0; n < kN; ++n) sum[n] = hn::Load(f, b + n * kLanes);
        NMRF_UNROLL for (size_t r = 0; r < kR; ++r) {
          const V left = hn::Set(f, a[static_cast<ptrdiff_t>(r) * w.token_step]);
          NMRF_UNROLL for (size_t n = 0; n < kN; ++n) sum[n] =
              hn::MulAdd(left, token[r][n], sum[n]);
        }
        NMRF_UNROLL for (size_t n = 0; n < kN; ++n) hn::Store(sum[n], f, b + n * kLanes);
      }
    }
  }
}

template <size_t kD>
HWY_INLINE void spread_tokens(size_t count, const PixelWeights& w, const float* tokens,
                              size_t window, float* rows) {
  if (count == 4)
    spread_tile<kD, 4>(w, tokens, window, rows);
  else if (count == 3)
    spread_tile<kD, 3>(w, tokens, window, rows);
  else if (count == 2)
    spread_tile<kD, 2>(w, tokens, window, rows);
  else
    spread_tile<kD, 1>(w, tokens, window, rows);
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
