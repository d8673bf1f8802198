// Window attention for one range of windows: what forward and backward share, and both of them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/attention.h"
#include "kernels/window_position-inl.h"
#include "kernels/window_tables.h"

#if defined(NMRF_OPS_WINDOW_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NMRF_OPS_WINDOW_KERNEL_INL_H_
#undef NMRF_OPS_WINDOW_KERNEL_INL_H_
#else
#define NMRF_OPS_WINDOW_KERNEL_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

// Adds both position terms to the products of a key with a panel of queries.
template <size_t kVecs>
struct StorePlaced {
  float* panel;
  const float* by_key_pixel;  // [pixels][stride]: s q.r^k + bias for this panel's queries
  size_t by_key_pixel_stride;
  const float* by_query_pixel;  // [keys][stride]: s k.r^q for every pixel of a query
  size_t by_query_pixel_stride;
  const int32_t* pixel_of_key;
  const int32_t* first_pixel;  // [kVecs]: query pixel of the first lane
  const int32_t* lane_pixel;   // [kVecs][lanes]: pixel of each lane, minus the first
  Ahead* ahead;

  HWY_INLINE void operator()(size_t u, V (&sums)[kVecs]) const {
    const F f;
    const float* key_row = by_key_pixel + pixel_of_key[u] * by_key_pixel_stride;
    const float* query_row = by_query_pixel + u * by_query_pixel_stride;
    NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
      const V few = hn::LoadU(f, query_row + first_pixel[n]);
      const V sum =
          hn::Add(hn::Add(sums[n], hn::Load(f, key_row + n * kLanes)),
                  hn::TableLookupLanes(few, hn::SetTableIndices(f, lane_pixel + n * kLanes)));
      hn::Store(sum, f, panel + (u * kVecs + n) * kLanes);
    }
    ahead->step(kVecs * kScoreWork);
  }
};

// Adds a row for each key pixel and sums the product with the weights over the keys.
template <size_t kVecs>
struct StoreGradient {
  float* panel;
  const float* weights;
  const float* by_key_pixel;
  size_t by_key_pixel_stride;
  const int32_t* pixel_of_key;
  size_t keys;
  V* total;  // [kVecs]

  HWY_INLINE void operator()(size_t u, V (&sums)[kVecs]) const {
    if (u >= keys) return;
    const F f;
    const float* key_row = by_key_pixel + pixel_of_key[u] * by_key_pixel_stride;
    NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
      const size_t at = (u * kVecs + n) * kLanes;
      const V sum = hn::Add(sums[n], hn::Load(f, key_row + n * kLanes));
      total[n] = hn::MulAdd(sum, hn::Load(f, weights + at), total[n]);
      hn::Store(sum, f, panel + at);
    }
  }
};

// Index tables of a kernel, kept by each thread from call to call.
struct WindowIndices {
  std::vector<int32_t> pixel_of_key, first_pixel, lane_pixel;
  std::vector<int64_t> place_qkv, place_out, place_grad;
};
inline WindowIndices& window_indices() {
  thread_local WindowIndices indices;
  return indices;
}

template <size_t kVecs, size_t kD>
class WindowKernel {
  static constexpr size_t kQ = kVecs * kLanes;  // queries of a panel
  // Windows taken together head by head: the tables of a head are large.
  static constexpr int64_t kGroup = 8;

 public:
  // With a null scratch only the size is found.
  WindowKernel(const WindowShape& shape, const PositionTables& tables, const float* packed,
               bool backward, float* scratch)
      : s_(shape),
        has_(tables),
        layout_(shape, tables),
        packed_(packed),
        pixels_(shape.window * shape.window),
        tokens_(pixels_ * shape.labels),
        panels_((tokens_ + kQ - 1) / kQ),
        padded_(round_up(std::max(tokens_, panels_ * kQ), 48)),
        pixel_stride_(round_up(
            std::max({pixels_ + kLanes, panels_ * kQ / static_cast<size_t>(shape.labels) + kLanes,
                      pixels_ + static_cast<size_t>(shape.window)}),
            16)),
        scale_(1.0f / std::sqrt(static_cast<float>(shape.depth))),
        pixel_of_key_(window_indices().pixel_of_key),
        first_pixel_(window_indices().first_pixel),
        lane_pixel_(window_indices().lane_pixel),
        place_qkv_(window_indices().place_qkv),
        place_out_(window_indices().place_out),
        place_grad_(window_indices().place_grad) {
    Arena arena{scratch};
    q_ = arena.take(padded_ * kD);
    k_ = arena.take(padded_ * kD);
    v_ = arena.take(padded_ * kD);
    query_panels_ = arena.take(panels_ * kQ * kD);
    // Position terms; those without a table stay zero.
    products_ = arena.take(padded_ * pixel_stride_, 16);
    by_query_pixel_ = arena.take(padded_ * pixel_stride_, 16);
    by_key_pixel_ = arena.take(round_up(pixels_, 4) * panels_ * kQ);
    weights_ = arena.take(padded_ * kQ);
    weight_sums_ = arena.take(pixels_ * kQ);
    out_ = arena.take(kQ * kD);
    row_ = arena.take(kQ);
    region_ = arena.take(panels_ * kQ);
    if (backward) {
      grad_ = arena.take(padded_ * kD);
      grad_panels_ = arena.take(panels_ * kQ * kD);
      grad_by_key_pixel_ = arena.take(round_up(pixels_, 4) * panels_ * kQ);
      slopes_ = arena.take(padded_ * kQ);
      slope_sums_ = arena.take(pixels_ * kQ);
      query_slopes_ = arena.take(padded_ * pixel_stride_);
      grad_k_ = arena.take(padded_ * kD);
      grad_v_ = arena.take(padded_ * kD);
    }
    size_ = arena.used;
    if (!scratch) return;
    const auto labels = static_cast<size_t>(s_.labels);
    pixel_of_key_.resize(padded_);
    for (size_t t = 0; t < padded_; ++t)
      pixel_of_key_[t] = static_cast<int32_t>(std::min(t / labels, pixels_ - 1));
    // Lanes beyond the last token read the last pixel.
    const size_t vectors = panels_ * kVecs;
    first_pixel_.resize(vectors);
    lane_pixel_.resize(vectors * kLanes);
    for (size_t n = 0; n < vectors; ++n) {
      first_pixel_[n] = static_cast<int32_t>(std::min(n * kLanes / labels, pixels_ - 1));
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const size_t pixel = std::min((n * kLanes + lane) / labels, pixels_ - 1);
        lane_pixel_[n * kLanes + lane] = static_cast<int32_t>(pixel) - first_pixel_[n];
      }
    }
    for (auto* places : {&place_qkv_, &place_out_, &place_grad_})
      places->resize((kGroup + 1) * padded_);
  }

  size_t size() const { return size_; }

  void forward(const WindowForward& job, int64_t begin, int64_t end) {
    const size_t channels = s_.heads * s_.depth;
    auto enter = [&](int64_t w, size_t slot) {
      locate(w, job.qkv, &place_qkv_[slot * padded_]);
      locate(w, job.out, &place_out_[slot * padded_]);
    };
    auto look_ahead = [&](size_t slot, int64_t head) {
      for (size_t part = 0; part < 3; ++part)
        ahead_.add(job.qkv.data + part * channels + head * s_.depth, &place_qkv_[slot * padded_]);
      ahead_.add(job.out.data + head * s_.depth, &place_out_[slot * padded_]);
    };
    for_each_head(begin, end, enter, look_ahead, [&](int64_t w, size_t slot, int64_t head) {
      load_qkv(job.qkv.data, slot, head);
      prepare_positions(head);
      float* lse = job.lse ? job.lse + (w * s_.heads + head) * tokens_ : nullptr;
      for (size_t panel = 0; panel < panels_; ++panel) {
        const size_t count = std::min(kQ, tokens_ - panel * kQ);
        scores(panel, StartAtZero());
        mask(panel);
        softmax(lse ? lse + panel * kQ : nullptr, count);
        gather_from_keys<kQ, kD>(weights_, tokens_, v_, false, out_);
        if (has_.value)
          add_encodings(panel, count, weight_sums_, rows(head, layout_.value_rows), out_);
        const int64_t* place = &place_out_[slot * padded_ + panel * kQ];
        for (size_t i = 0; i < count; ++i)
          if (place[i] >= 0)
            copy_scaled(out_ + i * kD, s_.depth, row_[i],
                        job.out.data + place[i] + head * s_.depth);
      }
    });
  }

  void backward(const WindowBackward& job, const PositionGradients& grads, int64_t begin,
                int64_t end) {
    const size_t channels = s_.heads * s_.depth;
    const bool by_query = grads.query || has_.query || grads.bias;
    auto enter = [&](int64_t w, size_t slot) {
      locate(w, job.qkv, &place_qkv_[slot * padded_]);
      locate(w, job.grad_out, &place_grad_[slot * padded_]);
      locate(w, job.grad_qkv, &place_out_[slot * padded_]);
    };
    auto look_ahead = [&](size_t slot, int64_t head) {
      for (size_t part = 0; part < 3; ++part) {
        const size_t from = part * channels + head * s_.depth;
        ahead_.add(job.qkv.data + from, &place_qkv_[slot * padded_]);
        ahead_.add(job.grad_qkv.data + from, &place_out_[slot * padded_]);
      }
      ahead_.add(job.grad_out.data + head * s_.depth, &place_grad_[slot * padded_]);
    };
    for_each_head(begin, end, enter, look_ahead, [&](int64_t w, size_t slot, int64_t head) {
      load_qkv(job.qkv.data, slot, head);
      for (size_t t = 0; t < tokens_; ++t)
        copy_scaled(job.grad_out.data + place_grad_[slot * padded_ + t] + head * s_.depth, s_.depth,
                    1.0f, grad_ + t * kD);
      to_panels(grad_, grad_panels_);
      prepare_positions(head);
      if (has_.value)
        products_by_key_pixel(grad_, rows(head, layout_.value_sheet), nullptr, grad_by_key_pixel_);
      const float* lse = job.lse + (w * s_.heads + head) * tokens_;
      const int64_t* place = &place_out_[slot * padded_];
      float* grad_q_at = job.grad_qkv.data + head * s_.depth;
      for (size_t panel = 0; panel < panels_; ++panel) {
        const size_t count = std::min(kQ, tokens_ - panel * kQ);
        std::copy(lse + panel * kQ, lse + panel * kQ + count, row_);
        scores(panel, StartBelow{row_});
        mask(panel);
        slopes(panel, by_query);
        const float* queries = q_ + panel * kQ * kD;
        const float* grad = grad_ + panel * kQ * kD;
        gather_from_queries<kQ, kD>(weights_, tokens_, grad, count, panel > 0, grad_v_);
        gather_from_queries<kQ, kD>(slopes_, tokens_, queries, count, panel > 0, grad_k_);
        gather_from_keys<kQ, kD>(slopes_, tokens_, k_, false, out_);
        if (has_.key) add_encodings(panel, count, slope_sums_, rows(head, layout_.key_rows), out_);
        if (grads.key) spread(panel, count, slope_sums_, queries, table(grads.key, head));
        if (grads.value) spread(panel, count, weight_sums_, grad, table(grads.value, head));
        for (size_t i = 0; i < count; ++i)
          copy_scaled(out_ + i * kD, s_.depth, scale_, grad_q_at + place[panel * kQ + i]);
      }
      if (by_query) key_encodings(head, grads);
      // k_ meets queries that carry scale * log2(e), and so do the encodings r^q.
      for (size_t t = 0; t < tokens_; ++t) {
        float* to = grad_q_at + place[t] + channels;
        copy_scaled(grad_k_ + t * kD, s_.depth, kLn2, to);
        copy_scaled(grad_v_ + t * kD, s_.depth, 1.0f, to + channels);
      }
    });
  }

 private:
  const float* rows(int64_t head, size_t offset) const {
    return packed_ + head * layout_.head + offset;
  }
  float* table(float* grads, int64_t head) const { return grads + head * s_.positions() * kD; }

  // Visits every head of every window, a group of windows at a time. enter(w, slot) finds the
  // places of a window, look_ahead(slot, head) lists what comes next, visit(w, slot, head) does the
  // work.
  template <class Enter, class LookAhead, class Visit>
  HWY_INLINE void for_each_head(int64_t begin, int64_t end, const Enter& enter,
                                const LookAhead& look_ahead, const Visit& visit) {
    const size_t rows = panels_ * tokens_ * kVecs, runs = pixels_ * ((s_.labels + 3) / 4);
    const size_t work = rows * (kScoreWork + kSoftmaxWork) + 2 * runs * kProductWork;
    for (int64_t group = begin; group < end; group += kGroup) {
      const int64_t count = std::min(kGroup, end - group), more = group + count < end;
      for (int64_t i = 0; i < count + more; ++i) enter(group + i, i);
      for (int64_t head = 0; head < s_.heads; ++head) {
        for (int64_t i = 0; i < count; ++i) {
          ahead_.start(tokens_, s_.depth, work);
          if (i + 1 < count)
            look_ahead(i + 1, head);
          else if (head + 1 < s_.heads)
            look_ahead(0, head + 1);
          else if (more)
            look_ahead(count, 0);
          find_regions(group + i);
          visit(group + i, i, head);
        }
      }
    }
  }

  int64_t row_of(int64_t w) const { return w / (s_.width / s_.window) % (s_.height / s_.window); }
  int64_t column_of(int64_t w) const { return w % (s_.width / s_.window); }

  // Where the tokens of window `w` lie in a tensor; beyond the last token that one again. Negative:
  // nowhere.
  template <class Grid>
  HWY_NOINLINE void locate(int64_t w, const Grid& grid, int64_t* place) {
    const int64_t image = w / (s_.height / s_.window * (s_.width / s_.window));
    auto wrap = [](int64_t at, int64_t size) { return at < size ? at : at - size; };
    const int64_t top = row_of(w) * s_.window + s_.shift,
                  left = column_of(w) * s_.window + s_.shift;
    const int64_t rows = s_.rows > 0 ? s_.rows : s_.height,
                  columns = s_.columns > 0 ? s_.columns : s_.width;
    size_t t = 0;
    for (int64_t y = 0; y < s_.window; ++y) {
      const int64_t row = wrap(top + y, s_.height);
      for (int64_t x = 0; x < s_.window; ++x) {
        const int64_t column = wrap(left + x, s_.width);
        const bool exists = row < rows && column < columns;
        const int64_t at = image * grid.batch + row * grid.row + column * grid.column;
        for (int64_t l = 0; l < s_.labels; ++l)
          place[t++] = exists ? at + l * grid.label : grid.outside;
      }
    }
    for (; t < padded_; ++t) place[t] = place[tokens_ - 1];
  }

  // Whether the window holds pixels from opposite borders of the grid, and which.
  void find_regions(int64_t w) {
    const bool last_row = s_.shift > 0 && row_of(w) == s_.height / s_.window - 1;
    const bool last_column = s_.shift > 0 && column_of(w) == s_.width / s_.window - 1;
    mixed_ = last_row || last_column;
    if (!mixed_) return;
    size_t t = 0;
    for (int64_t y = 0; y < s_.window; ++y) {
      for (int64_t x = 0; x < s_.window; ++x) {
        const float region = (last_row && y >= s_.window - s_.shift ? 2.0f : 0.0f) +
                             (last_column && x >= s_.window - s_.shift ? 1.0f : 0.0f);
        for (int64_t l = 0; l < s_.labels; ++l) region_[t++] = region;
      }
    }
  }

  void load_qkv(const float* qkv, size_t slot, int64_t head) {
    const size_t channels = s_.heads * s_.depth;
    const int64_t* place = &place_qkv_[slot * padded_];
    for (size_t t = 0; t < tokens_; ++t) {
      const float* from = qkv + place[t] + head * s_.depth;
      copy_scaled(from, s_.depth, scale_ * kLog2E, q_ + t * kD);
      copy_scaled(from + channels, s_.depth, 1.0f, k_ + t * kD);
      copy_scaled(from + 2 * channels, s_.depth, 1.0f, v_ + t * kD);
    }
    to_panels(q_, query_panels_);
  }

  // [tokens][kD] -> [panels][kD][kQ]
  void to_panels(const float* tokens, float* panels) {
    for (size_t panel = 0; panel < panels_; ++panel) {
      const size_t count = round_up(std::min(kQ, tokens_ - panel * kQ), 4);
      transpose(tokens + panel * kQ * kD, kD, count, kD, panels + panel * kQ * kD, kQ);
    }
  }

  // Products of the tokens with a sheet, as [pixel][token]; the panels lie side by side.
  void products_by_key_pixel(const float* tokens, const float* sheets, const float* starts,
                             float* out) {
    position_products<kD>(tokens, s_.depth, sheets, starts, layout_.columns, s_.window, s_.labels,
                          products_, pixel_stride_, ahead_);
    transpose(products_, pixel_stride_, round_up(tokens_, 4), round_up(pixels_, 4), out,
              panels_ * kQ);
  }

  void prepare_positions(int64_t head) {
    const float* base = packed_ + head * layout_.head;
    // A fixed bias alone is the same in every window.
    const bool fixed = has_.bias && !has_.key && !has_.query;
    if (fixed && head == prepared_head_) return;
    prepared_head_ = head;
    if (has_.key || has_.bias)
      products_by_key_pixel(q_, has_.key ? base + layout_.key_sheet : nullptr,
                            has_.bias ? base + layout_.bias_sheet : nullptr, by_key_pixel_);
    if (has_.query)
      position_products<kD>(k_, s_.depth, base + layout_.query_sheet, nullptr, layout_.columns,
                            s_.window, s_.labels, by_query_pixel_, pixel_stride_, ahead_);
  }

  // weights_ = logits (base 2) of one panel of queries, not yet masked.
  template <class Start>
  HWY_NOINLINE void scores(size_t panel, const Start& start) {
    const StorePlaced<kVecs> finish{weights_,
                                    by_key_pixel_ + panel * kQ,
                                    panels_ * kQ,
                                    by_query_pixel_,
                                    pixel_stride_,
                                    pixel_of_key_.data(),
                                    first_pixel_.data() + panel * kVecs,
                                    lane_pixel_.data() + panel * kQ,
                                    &ahead_};
    score_panel<kVecs, kD>(k_, tokens_, query_panels_ + panel * kQ * kD, s_.depth, start, finish);
  }

  // Sets the logits of pairs without an edge to -infinity.
  HWY_NOINLINE void mask(size_t panel) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    const F f;
    if (mixed_) {
      for (size_t u = 0; u < tokens_; ++u) {
        const V mine = hn::Set(f, region_[u]);
        for (size_t n = 0; n < kVecs; ++n) {
          float* at = weights_ + u * kQ + n * kLanes;
          const auto same = hn::Eq(mine, hn::Load(f, region_ + panel * kQ + n * kLanes));
          hn::Store(hn::IfThenElse(same, hn::Load(f, at), hn::Set(f, kNever)), f, at);
        }
      }
    }
    if (s_.own_only && s_.labels > 1) {
      const size_t labels = s_.labels;
      for (size_t v = panel * kQ; v < std::min((panel + 1) * kQ, tokens_); ++v) {
        const size_t first = v / labels * labels;
        for (size_t u = first; u < first + labels; ++u)
          if (u != v) weights_[u * kQ + v - panel * kQ] = kNever;
      }
    }
  }

  // weights_ = exp of the logits minus their maximum; weight_sums_ = sums over the labels of each
  // key pixel; row_ = 1 / sum. Writes `count` values of lse unless that is null.
  HWY_NOINLINE void softmax(float* lse, size_t count) {
    const F f;
    V top[kVecs], total[kVecs];
    for (size_t n = 0; n < kVecs; ++n) {
      top[n] = hn::Load(f, weights_ + n * kLanes);
      total[n] = hn::Zero(f);
    }
    for (size_t u = 1; u < tokens_; ++u) {
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) top[n] =
          hn::Max(top[n], hn::Load(f, weights_ + u * kQ + n * kLanes));
    }
    float* at = weights_;
    for (size_t pixel = 0; pixel < pixels_; ++pixel) {
      V sum[kVecs];
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) sum[n] = hn::Zero(f);
      for (int64_t l = 0; l < s_.labels; ++l, at += kQ) {
        NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
          const V weight = exp2(hn::Sub(hn::Load(f, at + n * kLanes), top[n]));
          hn::Store(weight, f, at + n * kLanes);
          sum[n] = hn::Add(sum[n], weight);
        }
      }
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
        hn::Store(sum[n], f, weight_sums_ + pixel * kQ + n * kLanes);
        total[n] = hn::Add(total[n], sum[n]);
      }
      ahead_.step(s_.labels * kVecs * kSoftmaxWork);
    }
    for (size_t n = 0; n < kVecs; ++n)
      hn::Store(hn::Div(hn::Set(f, 1.0f), total[n]), f, row_ + n * kLanes);
    if (!lse) return;
    HWY_ALIGN float sums[kQ];
    for (size_t n = 0; n < kVecs; ++n)
      hn::Store(hn::Add(top[n], hn::Log2(f, total[n])), f, sums + n * kLanes);
    std::copy_n(sums, count, lse);
  }

  // From the masked logits minus lse in weights_: the weights, the gradients of the natural logits
  // (slopes_), and their sums over the labels of each pixel.
  HWY_NOINLINE void slopes(size_t panel, bool by_query) {
    const F f;
    float* at = weights_;
    for (size_t pixel = 0; pixel < pixels_; ++pixel) {
      V sum[kVecs];
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) sum[n] = hn::Zero(f);
      for (int64_t l = 0; l < s_.labels; ++l, at += kQ) {
        NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
          const V weight = exp2(hn::Load(f, at + n * kLanes));
          hn::Store(weight, f, at + n * kLanes);
          sum[n] = hn::Add(sum[n], weight);
        }
      }
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n)
          hn::Store(sum[n], f, weight_sums_ + pixel * kQ + n * kLanes);
      ahead_.step(s_.labels * kVecs * kSoftmaxWork);
    }
    V total[kVecs];
    for (size_t n = 0; n < kVecs; ++n) total[n] = hn::Zero(f);
    const StoreGradient<kVecs> finish{
        slopes_, weights_, grad_by_key_pixel_ + panel * kQ, panels_ * kQ, pixel_of_key_.data(),
        tokens_, total};
    score_panel<kVecs, kD>(v_, tokens_, grad_panels_ + panel * kQ * kD, s_.depth, StartAtZero(),
                           finish);
    size_t u = 0;
    for (size_t pixel = 0; pixel < pixels_; ++pixel) {
      V sum[kVecs];
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) sum[n] = hn::Zero(f);
      for (int64_t l = 0; l < s_.labels; ++l, ++u) {
        V slope[kVecs];
        NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
          const size_t here = u * kQ + n * kLanes;
          slope[n] =
              hn::Mul(hn::Load(f, weights_ + here), hn::Sub(hn::Load(f, slopes_ + here), total[n]));
          hn::Store(slope[n], f, slopes_ + here);
          sum[n] = hn::Add(sum[n], slope[n]);
        }
        if (by_query) sum_query_labels(panel, u, slope);
      }
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n)
          hn::Store(sum[n], f, slope_sums_ + pixel * kQ + n * kLanes);
    }
  }

  // query_slopes_[u][pixel] = sum of the slopes over the labels of the query pixels in this panel.
  HWY_INLINE void sum_query_labels(size_t panel, size_t u, const V (&slope)[kVecs]) {
    const F f;
    float* to = query_slopes_ + u * pixel_stride_ + panel * kQ / s_.labels;
    if (s_.labels == 1) {
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) hn::StoreU(slope[n], f, to + n * kLanes);
      return;
    }
    if (s_.labels == 2 || s_.labels == 4) {
      // Neighbouring lanes are added by splitting even from odd ones; what a store writes beyond
      // the panel is overwritten by the next panel or lies beyond the last pixel.
      const V& second = slope[kVecs > 1 ? 1 : 0];
      const V& third = slope[kVecs - 1];
      const V pairs =
          hn::Add(hn::ConcatEven(f, second, slope[0]), hn::ConcatOdd(f, second, slope[0]));
      const V rest = kVecs == 3
                         ? hn::Add(hn::ConcatEven(f, third, third), hn::ConcatOdd(f, third, third))
                         : pairs;
      if (s_.labels == 2) {
        hn::StoreU(pairs, f, to);
        if (kVecs == 3) hn::StoreU(rest, f, to + kLanes);
      } else {
        hn::StoreU(hn::Add(hn::ConcatEven(f, rest, pairs), hn::ConcatOdd(f, rest, pairs)), f, to);
      }
      return;
    }
    HWY_ALIGN float lanes[kQ];
    for (size_t n = 0; n < kVecs; ++n) hn::Store(slope[n], f, lanes + n * kLanes);
    const size_t begin = panel * kQ, end = std::min(begin + kQ, tokens_), labels = s_.labels;
    float* row = query_slopes_ + u * pixel_stride_;
    for (size_t v = begin; v < end; ++v) {
      if (v % labels == 0) row[v / labels] = 0;
      row[v / labels] += lanes[v - begin];
    }
  }

  // Weights [pixel][kQ] of the queries of a panel: encodings are found backwards from pixel (0, 0).
  PixelWeights of_query(const float* sums, size_t lane) const {
    return {sums + lane, 1, static_cast<ptrdiff_t>(kQ), -1};
  }
  size_t first_row_of_query(size_t pixel) const {
    const size_t m = s_.window;
    return (pixel / m + m - 1) * (2 * m - 1) + pixel % m + m - 1;
  }

  // out[v] += sum over the key pixels of sums[pixel][v] * encoding.
  HWY_NOINLINE void add_encodings(size_t panel, size_t count, const float* sums, const float* rows,
                                  float* out) {
    const size_t begin = panel * kQ;
    for_each_run(begin, begin + count, s_.labels, s_.window, [&](const TokenRun& run) HWY_ATTR {
      sum_encodings<kD>(run, of_query(sums, run.first - begin),
                        rows + first_row_of_query(run.pixel) * kD, s_.window,
                        out + (run.first - begin) * kD);
    });
  }

  // grads[position] += sum over pairs of sums[pixel][v] * tokens[v].
  HWY_NOINLINE void spread(size_t panel, size_t count, const float* sums, const float* tokens,
                           float* grads) {
    const size_t begin = panel * kQ, labels = s_.labels;
    for (size_t v = begin; v < begin + count;) {
      const size_t pixel = v / labels;
      const size_t run = std::min({labels - v % labels, begin + count - v, size_t{4}});
      spread_tokens<kD>(run, of_query(sums, v - begin), tokens + (v - begin) * kD, s_.window,
                        grads + first_row_of_query(pixel) * kD);
      v += run;
    }
  }

  // The part of r^q: the gradient it gives to the keys, and its own.
  HWY_NOINLINE void key_encodings(int64_t head, const PositionGradients& grads) {
    const size_t m = s_.window, side = 2 * m - 1;
    const float* encodings = rows(head, layout_.query_rows);
    auto first_row = [&](size_t pixel) { return (m - 1 - pixel / m) * side + m - 1 - pixel % m; };
    auto of_key = [&](size_t t) {
      return PixelWeights{query_slopes_ + t * pixel_stride_, static_cast<ptrdiff_t>(pixel_stride_),
                          1, 1};
    };
    for_each_run(0, tokens_, s_.labels, m, [&](const TokenRun& run) HWY_ATTR {
      if (has_.query)
        sum_encodings<kD>(run, of_key(run.first), encodings + first_row(run.pixel) * kD, m,
                          grad_k_ + run.first * kD);
      if (!grads.query) return;
      float* to = table(grads.query, head);
      if (!run.neighbours) {
        spread_tokens<kD>(run.count, of_key(run.first), k_ + run.first * kD, m,
                          to + first_row(run.pixel) * kD);
        return;
      }
      for (size_t i = 0; i < run.count; ++i)
        spread_tokens<kD>(1, of_key(run.first + i), k_ + (run.first + i) * kD, m,
                          to + first_row(run.pixel + i) * kD);
    });
    if (!grads.bias) return;
    float* bias = grads.bias + head * s_.positions();
    for (size_t t = 0; t < tokens_; ++t) {
      const float* from = query_slopes_ + t * pixel_stride_;
      float* to = bias + first_row(t / s_.labels);
      for (size_t y = 0; y < m; ++y)
        for (size_t x = 0; x < m; ++x) to[y * side + x] += from[y * m + x];
    }
  }

  WindowShape s_;
  PositionTables has_;
  WindowTableLayout layout_;
  const float* packed_;
  size_t pixels_, tokens_, panels_;
  size_t padded_;        // tokens, rounded up for every tile
  size_t pixel_stride_;  // of rows with a value for each pixel; leaves room for a vector beyond
  float scale_;
  size_t size_ = 0;
  bool mixed_ = false;
  int64_t prepared_head_ = -1;  // whose position terms are at hand

  float *q_, *k_, *v_;     // [tokens][kD]; q_ times scale * log2(e)
  float* query_panels_;    // [panels][kD][kQ]
  float* products_;        // [tokens][pixel_stride]
  float* by_query_pixel_;  // [key][query pixel]
  float* by_key_pixel_;    // [key pixel][query]
  float* weights_;         // [key][kQ]
  float* weight_sums_;     // [key pixel][kQ]
  float* out_;             // [kQ][kD]
  float *row_, *region_;
  float* grad_ = nullptr;               // of the messages, [tokens][kD]
  float* grad_panels_ = nullptr;        // [panels][kD][kQ]
  float* grad_by_key_pixel_ = nullptr;  // [key pixel][query]
  float* slopes_ = nullptr;             // [key][kQ]
  float* slope_sums_ = nullptr;         // [key pixel][kQ]
  float* query_slopes_ = nullptr;       // [key][query pixel]
  float *grad_k_ = nullptr, *grad_v_ = nullptr;
  std::vector<int32_t>&pixel_of_key_, &first_pixel_, &lane_pixel_;
  std::vector<int64_t>&place_qkv_, &place_out_, &place_grad_;  // [kGroup + 1][padded]
  Ahead ahead_;
};

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
