#include "train/ops/attention_fast.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/attention.h"
#include "train/ops/dispatch.h"
#include "train/ops/memory.h"
#include "train/ops/parallel.h"

namespace nmrf::ops::fast {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The kernels read any strides but need the channels of a token side by side.
Tensor rows(const Tensor& x) { return x.stride(-1) == 1 || x.size(-1) == 1 ? x : x.contiguous(); }

kernels::Tokens tokens(const Tensor& x) {
  return {x.data_ptr<float>(), x.stride(0), x.stride(1), x.stride(2), x.stride(3)};
}
kernels::MutableTokens mutable_tokens(const Tensor& x) {
  return {x.data_ptr<float>(), x.stride(0), x.stride(1), x.stride(2), x.stride(3)};
}

Tensor scratch(size_t floats) {
  return torch::zeros({static_cast<int64_t>(floats)}, torch::kFloat);
}

Tensor contiguous_or_undefined(const Tensor& x) { return x.defined() ? x.contiguous() : x; }

const float* data_or_null(const Tensor& x) { return x.defined() ? x.data_ptr<float>() : nullptr; }

// Work is cut into pieces with accumulators of their own, added up in order: the same sum whatever
// the number of threads, as long as there are no more of them than pieces.
int64_t pieces(int64_t items, int64_t items_at_least, int64_t most) {
  most = std::max<int64_t>(most, at::get_num_threads());
  return std::clamp<int64_t>(items / items_at_least, 1, most);
}
std::pair<int64_t, int64_t> piece(int64_t items, int64_t count, int64_t index) {
  return {items * index / count, items * (index + 1) / count};
}

// ---- Windows -----------------------------------------------------------------------------------

// The position tables as the kernels take them.
struct Tables {
  Tensor query, key, value, bias, packed;

  Tables(const kernels::WindowShape& shape, const RelativePosition& position)
      : query(contiguous_or_undefined(position.query)),
        key(contiguous_or_undefined(position.key)),
        value(contiguous_or_undefined(position.value)),
        bias(contiguous_or_undefined(position.bias)),
        packed(scratch(kernels::window_tables_size(shape, pointers()))) {
    kernels::pack_window_tables(shape, pointers(), packed.data_ptr<float>());
  }
  kernels::PositionTables pointers() const {
    return {data_or_null(query), data_or_null(key), data_or_null(value), data_or_null(bias)};
  }
};

kernels::WindowShape window_shape(const Tensor& qkv, int64_t heads, int64_t window, int64_t shift,
                                  bool own_only) {
  kernels::WindowShape shape;
  shape.batch = qkv.size(0), shape.height = qkv.size(1), shape.width = qkv.size(2);
  shape.labels = qkv.size(3), shape.heads = heads, shape.depth = qkv.size(4) / 3 / heads;
  shape.window = window, shape.shift = shift, shape.own_only = own_only;
  return shape;
}

void check_tables(const kernels::WindowShape& s, const RelativePosition& position) {
  for (const Tensor& x : {position.query, position.key, position.value})
    TORCH_CHECK(!x.defined() || x.sizes() == at::IntArrayRef({s.positions(), s.heads, s.depth}),
                "a position table must be [(2M-1)^2, heads, D]");
  TORCH_CHECK(!position.bias.defined() ||
                  position.bias.sizes() == at::IntArrayRef({s.positions(), s.heads}),
              "a position bias must be [(2M-1)^2, heads]");
}

// lse is written when defined.
Tensor run_windows(const kernels::WindowShape& shape, const Tensor& qkv, const Tables& tables,
                   const Tensor& lse) {
  auto out = empty_floats(
      {shape.batch, shape.height, shape.width, shape.labels, shape.heads * shape.depth});
  kernels::WindowForward job;
  job.shape = shape;
  job.tables = tables.pointers();
  job.packed = tables.packed.data_ptr<float>();
  job.qkv = tokens(qkv);
  job.out = mutable_tokens(out);
  job.lse = lse.defined() ? lse.data_ptr<float>() : nullptr;
  const size_t room = kernels::window_forward_scratch(shape);
  share(shape.windows(), 1, [&](int64_t begin, int64_t end) {
    auto memory = scratch(room);
    kernels::window_forward(job, begin, end, memory.data_ptr<float>());
  });
  return out;
}

struct WindowFunction : torch::autograd::Function<WindowFunction> {
  // libtorch takes an absent input only as an empty optional.
  using Optional = c10::optional<Tensor>;
  static Optional optional(const Tensor& x) { return x.defined() ? Optional(x) : Optional(); }

  static Tensor forward(AutogradContext* ctx, const Tensor& qkv, const Optional& query,
                        const Optional& key, const Optional& value, const Optional& bias,
                        int64_t heads, int64_t window, int64_t shift, bool own_only) {
    const auto shape = window_shape(qkv, heads, window, shift, own_only);
    const RelativePosition position{query.value_or(Tensor()), key.value_or(Tensor()),
                                    value.value_or(Tensor()), bias.value_or(Tensor())};
    const Tables tables(shape, position);
    auto lse = empty_floats({shape.windows(), heads, shape.tokens()});
    auto out = run_windows(shape, qkv, tables, lse);
    ctx->save_for_backward({qkv, position.query, position.key, position.value, position.bias, lse});
    ctx->saved_data["heads"] = heads;
    ctx->saved_data["window"] = window;
    ctx->saved_data["shift"] = shift;
    ctx->saved_data["own_only"] = own_only;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    refuse_second_derivative();
    const auto saved = ctx->get_saved_variables();
    const Tensor& qkv = saved[0];
    const auto shape =
        window_shape(qkv, ctx->saved_data["heads"].toInt(), ctx->saved_data["window"].toInt(),
                     ctx->saved_data["shift"].toInt(), ctx->saved_data["own_only"].toBool());
    const Tables tables(shape, {saved[1], saved[2], saved[3], saved[4]});
    const auto grad_out = rows(grads[0]);
    auto grad_qkv = empty_floats(qkv.sizes());

    const int64_t parts = pieces(shape.windows(), 12, 16);
    const int64_t depth = kernels::padded_depth(shape.depth);
    auto room_for = [&](const Tensor& table) {
      if (!table.defined() || !table.requires_grad()) return Tensor();
      return torch::zeros({parts, shape.heads, shape.positions(), table.dim() == 3 ? depth : 1},
                          qkv.options());
    };
    const std::array<Tensor, 4> sums = {room_for(saved[1]), room_for(saved[2]), room_for(saved[3]),
                                        room_for(saved[4])};

    kernels::WindowBackward job;
    job.shape = shape;
    job.tables = tables.pointers();
    job.packed = tables.packed.data_ptr<float>();
    job.qkv = tokens(qkv);
    job.grad_out = tokens(grad_out);
    job.lse = saved[5].data_ptr<float>();
    job.grad_qkv = mutable_tokens(grad_qkv);
    const size_t room = kernels::window_backward_scratch(shape);
    at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      auto memory = scratch(room);
      for (int64_t i = first; i < last; ++i) {
        const auto [begin, end] = piece(shape.windows(), parts, i);
        auto of_part = [&](const Tensor& x) {
          return x.defined() ? x.data_ptr<float>() + i * x.stride(0) : nullptr;
        };
        kernels::window_backward(
            job, {of_part(sums[0]), of_part(sums[1]), of_part(sums[2]), of_part(sums[3])}, begin,
            end, memory.data_ptr<float>());
      }
    });

    auto total = [&](const Tensor& x, double factor) {
      if (!x.defined()) return Tensor();
      return (x.sum(0).narrow(-1, 0, shape.depth).transpose(0, 1) * factor).contiguous();
    };
    Tensor bias = sums[3].defined() ? sums[3].sum(0).squeeze(-1).t().contiguous() : Tensor();
    return {grad_qkv,
            total(sums[0], kernels::query_factor(shape.depth)),
            total(sums[1], kernels::key_factor()),
            total(sums[2], 1.0),
            bias,
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

// ---- Stripes -----------------------------------------------------------------------------------

// One direction of the cross: the columns' tokens are given with the two grid strides exchanged.
struct Direction {
  bool columns;
  int64_t first_channel;
  template <class Grid>
  Grid operator()(Grid grid) const {
    grid.data += first_channel;
    if (columns) std::swap(grid.row, grid.column);
    return grid;
  }
};

std::array<Direction, 2> directions(const Tensor& q) {
  return {Direction{true, 0}, Direction{false, q.size(4) / 2}};
}

kernels::StripeShape stripe_shape(const Tensor& q, int64_t heads, bool columns) {
  kernels::StripeShape shape;
  shape.batch = q.size(0), shape.labels = q.size(3);
  shape.stripes = q.size(columns ? 2 : 1), shape.pixels = q.size(columns ? 1 : 2);
  shape.heads = heads / 2, shape.depth = q.size(4) / heads;
  return shape;
}

int64_t items(const kernels::StripeShape& s) { return s.batch * s.stripes * s.heads; }

// lse: of the columns and of the rows, written when defined.
Tensor run_stripes(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads,
                   const Tensor& column_filter, const Tensor& row_filter,
                   const std::array<Tensor, 2>& lse) {
  auto out = empty_floats(q.sizes());
  for (const Direction& direction : directions(q)) {
    const auto taps = (direction.columns ? column_filter : row_filter).t().contiguous();
    const Tensor& sums = lse[direction.columns ? 0 : 1];
    kernels::StripeForward job;
    job.shape = stripe_shape(q, heads, direction.columns);
    job.q = direction(tokens(q)), job.k = direction(tokens(k)), job.v = direction(tokens(v));
    job.filter = taps.data_ptr<float>();
    job.out = direction(mutable_tokens(out));
    job.lse = sums.defined() ? sums.data_ptr<float>() : nullptr;
    const size_t room = kernels::stripe_forward_scratch(job.shape);
    share(items(job.shape), 1, [&](int64_t begin, int64_t end) {
      auto memory = scratch(room);
      kernels::stripe_forward(job, begin, end, memory.data_ptr<float>());
    });
  }
  return out;
}

struct StripeFunction : torch::autograd::Function<StripeFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& column_filter, const Tensor& row_filter, int64_t heads) {
    std::array<Tensor, 2> lse;
    for (const Direction& direction : directions(q)) {
      const auto shape = stripe_shape(q, heads, direction.columns);
      lse[direction.columns ? 0 : 1] = empty_floats({items(shape), shape.tokens()});
    }
    auto out = run_stripes(q, k, v, heads, column_filter, row_filter, lse);
    ctx->save_for_backward({q, k, v, column_filter, row_filter, out, lse[0], lse[1]});
    ctx->saved_data["heads"] = heads;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    refuse_second_derivative();
    const auto saved = ctx->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[5];
    const int64_t heads = ctx->saved_data["heads"].toInt();
    const auto grad_out = rows(grads[0]);
    auto grad_q = empty_floats(q.sizes()), grad_k = empty_floats(q.sizes()),
         grad_v = empty_floats(q.sizes());
    std::array<Tensor, 2> grad_filters;
    for (const Direction& direction : directions(q)) {
      const int side = direction.columns ? 0 : 1;
      const auto taps = saved[3 + side].t().contiguous();
      kernels::StripeBackward job;
      job.shape = stripe_shape(q, heads, direction.columns);
      job.q = direction(tokens(q)), job.k = direction(tokens(k)), job.v = direction(tokens(v));
      job.out = direction(tokens(out)), job.grad_out = direction(tokens(grad_out));
      job.filter = taps.data_ptr<float>();
      job.lse = saved[6 + side].data_ptr<float>();
      job.grad_q = direction(mutable_tokens(grad_q));
      job.grad_k = direction(mutable_tokens(grad_k));
      job.grad_v = direction(mutable_tokens(grad_v));
      const size_t room = kernels::stripe_backward_scratch(job.shape);
      const int64_t parts = pieces(items(job.shape), 1, 32);
      auto sums = torch::zeros({parts, 3, q.size(4) / 2}, q.options());
      at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
        auto memory = scratch(room);
        for (int64_t i = first; i < last; ++i) {
          const auto [begin, end] = piece(items(job.shape), parts, i);
          kernels::stripe_backward(job, sums.data_ptr<float>() + i * sums.stride(0), begin, end,
                                   memory.data_ptr<float>());
        }
      });
      grad_filters[side] = sums.sum(0).t().contiguous();
    }
    return {grad_q, grad_k, grad_v, grad_filters[0], grad_filters[1], Tensor()};
  }
};

// ---- Labels ------------------------------------------------------------------------------------

constexpr int64_t kPixelsAtLeast = 64;  // of a piece

kernels::LabelShape label_shape(const Tensor& q, int64_t heads) {
  kernels::LabelShape shape;
  shape.batch = q.size(0), shape.height = q.size(1), shape.width = q.size(2);
  shape.labels = q.size(3), shape.heads = heads, shape.depth = q.size(4) / heads;
  return shape;
}

Tensor run_labels(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads) {
  auto out = empty_floats(q.sizes());
  const kernels::LabelForward job{label_shape(q, heads), tokens(q), tokens(k), tokens(v),
                                  mutable_tokens(out)};
  share(job.shape.pixels(), kPixelsAtLeast,
        [&](int64_t begin, int64_t end) { kernels::label_forward(job, begin, end); });
  return out;
}

struct LabelFunction : torch::autograd::Function<LabelFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        int64_t heads) {
    ctx->save_for_backward({q, k, v});
    ctx->saved_data["heads"] = heads;
    return run_labels(q, k, v, heads);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    refuse_second_derivative();
    const auto saved = ctx->get_saved_variables();
    const auto grad_out = rows(grads[0]);
    const Tensor& q = saved[0];
    auto grad_q = empty_floats(q.sizes()), grad_k = empty_floats(q.sizes()),
         grad_v = empty_floats(q.sizes());
    const kernels::LabelBackward job{label_shape(q, ctx->saved_data["heads"].toInt()),
                                     tokens(q),
                                     tokens(saved[1]),
                                     tokens(saved[2]),
                                     tokens(grad_out),
                                     mutable_tokens(grad_q),
                                     mutable_tokens(grad_k),
                                     mutable_tokens(grad_v)};
    share(job.shape.pixels(), kPixelsAtLeast,
          [&](int64_t begin, int64_t end) { kernels::label_backward(job, begin, end); });
    return {grad_q, grad_k, grad_v, Tensor()};
  }
};

}  // namespace

bool fits(int64_t depth) { return depth <= kernels::kMaxDepth; }
bool fits_labels(int64_t labels) { return labels <= kernels::kMaxLabels; }

torch::Tensor window_attention(const torch::Tensor& qkv, int64_t heads, int64_t window,
                               int64_t shift, const RelativePosition& position, OwnPixel own) {
  const auto x = rows(qkv);
  const auto shape = window_shape(x, heads, window, shift, own == OwnPixel::kItself);
  check_tables(shape, position);
  if (wants_gradient({x, position.query, position.key, position.value, position.bias}))
    return WindowFunction::apply(
        x, WindowFunction::optional(position.query), WindowFunction::optional(position.key),
        WindowFunction::optional(position.value), WindowFunction::optional(position.bias), heads,
        window, shift, own == OwnPixel::kItself);
  return run_windows(shape, x, Tables(shape, position), {});
}

torch::Tensor stripe_attention(const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, int64_t heads,
                               const torch::Tensor& column_filter,
                               const torch::Tensor& row_filter) {
  TORCH_CHECK(q.sizes() == k.sizes() && q.sizes() == v.sizes(), "q, k, v differ in shape");
  for (const Tensor& filter : {column_filter, row_filter})
    TORCH_CHECK(filter.sizes() == at::IntArrayRef({q.size(4) / 2, 3}),
                "a stripe filter must be [C/2, 3]");
  const auto a = rows(q), b = rows(k), c = rows(v);
  if (wants_gradient({q, k, v, column_filter, row_filter}))
    return StripeFunction::apply(a, b, c, column_filter, row_filter, heads);
  return run_stripes(a, b, c, heads, column_filter, row_filter, {});
}

torch::Tensor label_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, int64_t heads) {
  TORCH_CHECK(q.sizes() == k.sizes() && q.sizes() == v.sizes(), "q, k, v differ in shape");
  const auto a = rows(q), b = rows(k), c = rows(v);
  if (wants_gradient({q, k, v})) return LabelFunction::apply(a, b, c, heads);
  return run_labels(a, b, c, heads);
}

}  // namespace nmrf::ops::fast
