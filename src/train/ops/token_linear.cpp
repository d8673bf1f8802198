#include "train/ops/token_linear.h"

#include "kernels/pack.h"
#include "kernels/token_projection.h"
#include "train/ops/dispatch.h"
#include "train/ops/memory.h"
#include "train/ops/token_rows.h"

namespace nmrf::ops {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
constexpr int kMostMaps = tokens::TokenProjection::kMostBlocks;

// Everything the maps read, as tensors.
struct Inputs {
  Tensor x{}, norm_weight{}, norm_bias{}, extra{}, residual{};
  Tensor weight[kMostMaps] = {}, bias[kMostMaps] = {};
  bool uses_extra[kMostMaps] = {};
  int maps = 0;
};

// The labels of a pixel that share a row of extra, 1 when each label has its own.
int64_t sharing(const Tensor& x, const Tensor& extra) {
  return extra.defined() && extra.size(-2) == 1 ? x.size(-2) : 1;
}

// A prepared call: tensors seen as rows, weights packed.
struct Prepared {
  Prepared(const Inputs& in, bool backward)
      : x(tokens::rows_of(in.x)), labels(sharing(in.x, in.extra)), packing(floats(in, backward)) {
    const auto wide = static_cast<std::size_t>(in.x.size(-1));
    map.channels = wide;
    if (in.extra.defined()) {
      // A kernel's tile holds whole pixels; nobody has so many labels, but then each gets its own
      // row.
      if (labels > static_cast<int64_t>(tokens::kMostRows)) {
        auto sizes = in.x.sizes().vec();
        sizes.back() = in.extra.size(-1);
        extra = tokens::rows_of(in.extra.expand(sizes));
        labels = 1;
      } else {
        extra = tokens::rows_of(in.extra);
      }
      map.extra = static_cast<std::size_t>(in.extra.size(-1));
    }
    map.labels = static_cast<std::size_t>(labels);
    if (in.norm_weight.defined()) {
      norm_weight = in.norm_weight.contiguous();
      norm_bias = in.norm_bias.contiguous();
      map.norm_weight = norm_weight.data_ptr<float>();
      map.norm_bias = norm_bias.data_ptr<float>();
      map.norm_eps = static_cast<float>(tokens::kNormEps);
    }
    map.blocks = in.maps;
    for (int i = 0; i < in.maps; ++i) pack(in, i, backward);
  }

  tokens::TokenProjection map;
  Tensor x, extra, norm_weight, norm_bias;
  int64_t labels;

 private:
  static std::size_t floats(const Inputs& in, bool backward) {
    std::size_t sum = 0;
    for (int i = 0; i < in.maps; ++i) {
      const auto out = static_cast<std::size_t>(in.weight[i].size(0)),
                 wide = static_cast<std::size_t>(in.weight[i].size(1));
      sum += 2 * tokens::kPad + tokens::padded(out) +
             (backward ? tokens::packed_size(out, wide + tokens::kPad)
                       : tokens::packed_size(wide, out));
    }
    return sum;
  }

  void pack(const Inputs& in, int i, bool backward) {
    auto& block = map.block[i];
    const Tensor weight = in.weight[i].contiguous();
    const float* w = weight.data_ptr<float>();
    const auto stride = static_cast<std::size_t>(weight.size(1)), own = map.channels,
               more = in.uses_extra[i] ? map.extra : 0;
    block.out = static_cast<std::size_t>(weight.size(0));
    block.uses_extra = in.uses_extra[i];
    if (backward) {
      float* rows = packing.take(tokens::packed_size(block.out, own));
      tokens::pack_rows(w, stride, block.out, own, rows);
      block.backward = rows;
      if (more > 0) {
        float* further = packing.take(tokens::packed_size(block.out, more));
        tokens::pack_rows(w + own, stride, block.out, more, further);
        block.extra_backward = further;
      }
      return;
    }
    const bool joined = labels == 1;
    float* columns = packing.take(tokens::packed_size(own + (joined ? more : 0), block.out));
    tokens::share_packing(w, stride, own, block.out, own + (joined ? more : 0), 0, columns);
    block.forward = columns;
    if (joined && more > 0) {
      tokens::share_packing(w + own, stride, more, block.out, own + more, own, columns);
    } else if (more > 0) {
      float* further = packing.take(tokens::packed_size(more, block.out));
      tokens::share_packing(w + own, stride, more, block.out, more, 0, further);
      block.extra_forward = further;
    }
    float* bias = packing.take(tokens::padded(block.out));
    const Tensor given = in.bias[i].defined() ? in.bias[i].contiguous() : Tensor();
    tokens::pack_bias(tokens::data_or_null(given), block.out, bias);
    block.bias = bias;
  }

  tokens::Packing packing;
};

std::vector<Tensor> run_forward(const Inputs& in) {
  Prepared call(in, /*backward=*/false);
  const Tensor residual = in.residual.defined() ? tokens::rows_of(in.residual) : Tensor();
  std::vector<Tensor> results;
  tokens::OutputRows y[kMostMaps];
  for (int i = 0; i < in.maps; ++i) {
    auto sizes = in.x.sizes().vec();
    sizes.back() = in.weight[i].size(0);
    results.push_back(empty_floats(sizes));
    y[i] = {results.back().data_ptr<float>(), static_cast<std::size_t>(sizes.back())};
  }
  tokens::share_rows(call.x.size(0), call.labels, [&](std::size_t begin, std::size_t end) {
    tokens::token_projection_forward(call.map, tokens::input_rows(call.x),
                                     tokens::input_rows(call.extra), tokens::input_rows(residual),
                                     y, begin, end);
  });
  return results;
}

struct Gradients {
  Tensor x, norm_weight, norm_bias, extra;
  Tensor weight[kMostMaps], bias[kMostMaps];
};

Gradients run_backward(const Inputs& in, const variable_list& above, bool to_x, bool to_extra,
                       bool to_parameters) {
  Prepared call(in, /*backward=*/true);
  Gradients result;
  tokens::OutputRows dx, d_extra;
  if (to_x) {
    result.x = empty_floats(in.x.sizes());
    dx = {result.x.data_ptr<float>(), call.map.channels};
  }
  if (to_extra) {
    result.extra = empty_floats({call.extra.size(0), call.extra.size(1)});
    d_extra = {result.extra.data_ptr<float>(), call.map.extra};
  }
  Tensor flat[kMostMaps];
  tokens::InputRows dy[kMostMaps];
  for (int i = 0; i < in.maps; ++i) {
    flat[i] = tokens::rows_of(above[i]);
    dy[i] = tokens::input_rows(flat[i]);
  }
  const int64_t count = call.x.size(0), ranges = tokens::range_count(count);
  const tokens::TokenProjectionSums at(call.map);
  tokens::GradientSums sums(to_parameters ? ranges : 0, at.total);
  tokens::for_ranges(
      count, call.labels, ranges, [&](std::size_t begin, std::size_t end, int64_t range) {
        tokens::token_projection_backward(call.map, tokens::input_rows(call.x),
                                          tokens::input_rows(call.extra), dy, dx, d_extra,
                                          to_parameters ? sums.begin(range) : nullptr, begin, end);
      });
  if (to_extra) {
    if (result.extra.numel() == in.extra.numel())
      result.extra = result.extra.view(in.extra.sizes());
    else  // every label had its own copy of the row
      result.extra =
          result.extra.view({-1, in.x.size(-2), in.extra.size(-1)}).sum(1).view(in.extra.sizes());
  }
  if (!to_parameters) return result;
  sums.finish();
  const int64_t own = in.x.size(-1);
  for (int i = 0; i < in.maps; ++i) {
    const int64_t out = in.weight[i].size(0);
    auto weight = sums.matrix(at.weight[i], out, own);
    if (in.uses_extra[i])
      weight = torch::cat({weight, sums.matrix(at.extra_weight[i], out, in.extra.size(-1))}, 1);
    result.weight[i] = weight.contiguous();
    if (in.bias[i].defined()) result.bias[i] = sums.vector(at.bias[i], out);
  }
  if (in.norm_weight.defined()) {
    result.norm_weight = sums.vector(at.norm_weight, own);
    result.norm_bias = sums.vector(at.norm_bias, own);
  }
  return result;
}

struct ProjectionFunction : torch::autograd::Function<ProjectionFunction> {
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& norm_weight,
                               const Tensor& norm_bias, const Tensor& extra, const Tensor& residual,
                               const Tensor& w0, const Tensor& b0, const Tensor& w1,
                               const Tensor& b1, const Tensor& w2, const Tensor& b2, int64_t maps,
                               int64_t extra_uses) {
    const variable_list read{x, norm_weight, norm_bias, extra, w0, b0, w1, b1, w2, b2};
    context->save_for_backward(read);
    context->saved_data["maps"] = maps;
    context->saved_data["extra_uses"] = extra_uses;
    Inputs in = inputs(read, maps, extra_uses);
    in.residual = tokens::unless_stand_in(residual);
    return run_forward(in);
  }

  static variable_list backward(AutogradContext* context, const variable_list& above) {
    auto in = inputs(context->get_saved_variables(), context->saved_data["maps"].toInt(),
                     context->saved_data["extra_uses"].toInt());
    bool to_parameters = false;
    for (std::size_t i : {1, 2, 5, 6, 7, 8, 9, 10})
      to_parameters = to_parameters || context->needs_input_grad(i);
    auto g = run_backward(in, above, context->needs_input_grad(0), context->needs_input_grad(3),
                          to_parameters);
    // The residual is added to the first map's result.
    const Tensor residual = context->needs_input_grad(4) ? above[0] : Tensor();
    return {g.x,         g.norm_weight, g.norm_bias, g.extra,   residual, g.weight[0], g.bias[0],
            g.weight[1], g.bias[1],     g.weight[2], g.bias[2], Tensor(), Tensor()};
  }

 private:
  // `read`: x, norm weight and bias, extra, then weight and bias of each map.
  static Inputs inputs(const variable_list& read, int64_t maps, int64_t extra_uses) {
    auto at = [&](std::size_t i) { return tokens::unless_stand_in(read[i]); };
    Inputs in{.x = at(0), .norm_weight = at(1), .norm_bias = at(2), .extra = at(3)};
    in.maps = static_cast<int>(maps);
    for (int i = 0; i < in.maps; ++i) {
      in.weight[i] = at(4 + 2 * i);
      in.bias[i] = at(5 + 2 * i);
      in.uses_extra[i] = (extra_uses >> i & 1) != 0;
    }
    return in;
  }
};

bool wants_gradient(const Inputs& in) {
  if (!torch::GradMode::is_enabled()) return false;
  auto wanted = [](const Tensor& t) { return t.defined() && t.requires_grad(); };
  bool any = wanted(in.x) || wanted(in.norm_weight) || wanted(in.norm_bias) || wanted(in.extra) ||
             wanted(in.residual);
  for (int i = 0; i < in.maps; ++i) any = any || wanted(in.weight[i]) || wanted(in.bias[i]);
  return any;
}

std::vector<Tensor> run(const Inputs& in) {
  if (!wants_gradient(in)) return run_forward(in);
  int64_t extra_uses = 0;
  for (int i = 0; i < in.maps; ++i) extra_uses |= static_cast<int64_t>(in.uses_extra[i]) << i;
  auto given = tokens::or_stand_in;
  return ProjectionFunction::apply(
      in.x, given(in.norm_weight), given(in.norm_bias), given(in.extra), given(in.residual),
      in.weight[0], given(in.bias[0]), given(in.weight[1]), given(in.bias[1]), given(in.weight[2]),
      given(in.bias[2]), static_cast<int64_t>(in.maps), extra_uses);
}

// The plain form.
std::vector<Tensor> run_plain(const Inputs& in) {
  const int64_t channels = in.x.size(-1);
  auto y = in.norm_weight.defined()
               ? torch::layer_norm(in.x, {channels}, in.norm_weight, in.norm_bias, tokens::kNormEps)
               : in.x;
  Tensor seen;
  std::vector<Tensor> results;
  for (int i = 0; i < in.maps; ++i) {
    if (in.uses_extra[i] && !seen.defined()) {
      auto sizes = in.x.sizes().vec();
      sizes.back() = in.extra.size(-1);
      seen = torch::cat({y, in.extra.expand(sizes)}, -1);
    }
    results.push_back(torch::linear(in.uses_extra[i] ? seen : y, in.weight[i], in.bias[i]));
  }
  if (in.residual.defined()) results[0] = in.residual + results[0];
  return results;
}

bool all_fast(const Inputs& in) {
  auto fast = [](const Tensor& t) { return !t.defined() || use_fast(t); };
  bool all = fast(in.x) && fast(in.norm_weight) && fast(in.norm_bias) && fast(in.extra) &&
             fast(in.residual);
  for (int i = 0; i < in.maps; ++i) all = all && fast(in.weight[i]) && fast(in.bias[i]);
  return all;
}

}  // namespace

std::vector<Tensor> norm_linear(const Tensor& x, const NormWeights& norm, const Tensor& extra,
                                const std::vector<LinearWeights>& maps) {
  TORCH_CHECK(!maps.empty() && maps.size() <= kMostMaps, "one to three maps");
  Inputs in{.x = x, .norm_weight = norm.weight, .norm_bias = norm.bias, .extra = extra};
  if (extra.defined()) {
    TORCH_CHECK(x.dim() >= 2 && extra.dim() == x.dim(), "extra has as many axes as x");
    for (int64_t axis = 0; axis + 1 < x.dim(); ++axis)
      TORCH_CHECK(
          extra.size(axis) == x.size(axis) || (axis + 2 == x.dim() && extra.size(axis) == 1),
          "extra has the rows of x, or one a pixel");
  }
  for (const auto& map : maps) {
    const int i = in.maps++;
    in.weight[i] = map.weight;
    in.bias[i] = map.bias;
    in.uses_extra[i] = map.uses_extra && extra.defined();
    TORCH_CHECK(map.weight.size(1) == x.size(-1) + (in.uses_extra[i] ? extra.size(-1) : 0),
                "weight and input channels differ");
  }
  return all_fast(in) ? run(in) : run_plain(in);
}

Tensor linear_residual(const Tensor& message, const LinearWeights& map, const Tensor& x) {
  TORCH_CHECK(message.dim() == x.dim() && map.weight.size(1) == message.size(-1) &&
                  map.weight.size(0) == x.size(-1) &&
                  message.sizes().slice(0, x.dim() - 1) == x.sizes().slice(0, x.dim() - 1),
              "message, weight and x do not fit");
  Inputs in{.x = message, .residual = x};
  in.weight[0] = map.weight;
  in.bias[0] = map.bias;
  in.maps = 1;
  return (all_fast(in) ? run(in) : run_plain(in))[0];
}

}  // namespace nmrf::ops
