#include "train/ops/cost_volume_fast.h"

#include <algorithm>

#include "kernels/label_volume.h"
#include "kernels/pack.h"
#include "train/ops/dispatch.h"
#include "train/ops/memory.h"
#include "train/ops/parallel.h"
#include "train/ops/pixel_map.h"
#include "train/ops/token_rows.h"

namespace nmrf::ops::fast {
namespace {

using kernels::VolumeShape;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

VolumeShape shape_of(const Tensor& left, int64_t groups, int64_t planes, const Tensor& first,
                     const Tensor& second, int64_t k) {
  VolumeShape s;
  s.batch = left.size(0), s.height = left.size(1), s.width = left.size(2);
  s.channels = left.size(3), s.groups = groups, s.planes = planes;
  s.hidden1 = first.size(0), s.hidden2 = second.size(0), s.labels = k;
  return s;
}

// Weights as the kernels take them.
class Packed {
 public:
  Packed(const VolumeShape& s, const Tensor* weight, const Tensor* bias, bool backward)
      : packing_(floats(s)) {
    for (int i = 0; i < 3; ++i) {
      const auto in = static_cast<std::size_t>(weight[i].size(1)),
                 out = static_cast<std::size_t>(weight[i].size(0)), deep = in * kernels::kScoreTaps;
      if (i < 2) {
        auto rows = weight[i].permute({0, 2, 1}).contiguous();  // [out, 5, in]
        float* packed = packing_.take(tokens::packed_size(deep, out));
        tokens::pack_transposed(rows.data_ptr<float>(), deep, deep, out, deep, 0, packed);
        weights.forward[i] = packed;
        float* padded = packing_.take(tokens::padded(out));
        tokens::pack_bias(bias[i].contiguous().data_ptr<float>(), out, padded);
        weights.bias[i] = padded;
      } else {
        auto columns = torch::constant_pad_nd(
            weight[i][0], {0, kernels::kScorePad - kernels::kScoreTaps});  // [in, 8]
        float* packed = packing_.take(tokens::packed_size(in, kernels::kScorePad));
        tokens::pack_rows(columns.contiguous().data_ptr<float>(), kernels::kScorePad, in,
                          kernels::kScorePad, packed);
        weights.forward[i] = packed;
        weights.last_bias = bias[i].item<float>();
      }
      if (!backward) continue;
      auto mirrored = weight[i].flip(2).permute({2, 0, 1}).contiguous();  // [5, out, in]
      float* packed = packing_.take(tokens::packed_size(out * kernels::kScoreTaps, in));
      tokens::pack_rows(mirrored.data_ptr<float>(), in, out * kernels::kScoreTaps, in, packed);
      weights.backward[i] = packed;
    }
  }
  kernels::ScoreWeights weights;

 private:
  static std::size_t floats(const VolumeShape& s) {
    const std::int64_t width[4] = {s.groups, s.hidden1, s.hidden2, kernels::kScorePad};
    std::size_t sum = 0;
    for (int i = 0; i < 3; ++i)
      sum += 2 * tokens::padded(static_cast<std::size_t>(width[i])) *
                 tokens::padded(static_cast<std::size_t>(width[i + 1])) * kernels::kScoreTaps +
             4 * tokens::padded(static_cast<std::size_t>(width[i + 1]));
    return sum;
  }
  tokens::Packing packing_;
};

struct Results {
  Tensor lines, cost, prob, seeds;  // lines: [B, h, w, planes, groups]
};

Results run_forward(const VolumeShape& s, const Tensor& left, const Tensor& right,
                    const ScoreConvolutions& score) {
  const Packed packed(s, score.weight, score.bias, false);
  Results r;
  r.lines = empty_floats({s.batch, s.height, s.width, s.planes, s.groups});
  r.cost = empty_floats({s.batch, s.height, s.width, s.planes});
  r.prob = empty_floats(r.cost.sizes());
  r.seeds = torch::empty({s.batch, s.height, s.width, s.labels}, torch::kLong);
  const kernels::VolumeOut out{r.lines.data_ptr<float>(), r.cost.data_ptr<float>(),
                               r.prob.data_ptr<float>(), r.seeds.data_ptr<int64_t>()};
  const auto left_map = pixel_map(left), right_map = pixel_map(right);
  share(s.rows(), 1, [&](int64_t begin, int64_t end) {
    kernels::label_volume_forward(s, left_map, right_map, packed.weights, out, begin, end);
  });
  return r;
}

struct SeedVolumeFunction : torch::autograd::Function<SeedVolumeFunction> {
  static variable_list forward(AutogradContext* context, const Tensor& left, const Tensor& right,
                               const Tensor& w0, const Tensor& b0, const Tensor& w1,
                               const Tensor& b1, const Tensor& w2, const Tensor& b2, int64_t planes,
                               int64_t k) {
    const Tensor own = channels_last(left), other = channels_last(right);
    const auto s = shape_of(own, w0.size(1), planes, w0, w1, k);
    auto r = run_forward(s, own, other, {{w0, w1, w2}, {b0, b1, b2}});
    context->save_for_backward({own, other, w0, b0, w1, b1, w2, b2, r.lines, r.prob});
    context->saved_data["k"] = k;
    context->mark_non_differentiable({r.seeds});
    context->set_materialize_grads(false);
    return {r.lines, r.cost, r.prob, r.seeds};
  }

  static variable_list backward(AutogradContext* context, const variable_list& above) {
    refuse_second_derivative();
    variable_list result(10);
    const auto saved = context->get_saved_variables();
    const Tensor &left = saved[0], &right = saved[1], &lines = saved[8], &prob = saved[9];
    const Tensor weight[3] = {saved[2], saved[4], saved[6]},
                 bias[3] = {saved[3], saved[5], saved[7]};
    const auto s = shape_of(left, lines.size(4), lines.size(3), weight[0], weight[1],
                            context->saved_data["k"].toInt());
    Tensor d_lines = above[0].defined() ? above[0].contiguous() : Tensor();
    Tensor d_cost = above[1];
    if (above[2].defined()) {
      auto through = prob * (above[2] - (prob * above[2]).sum(-1, true));
      d_cost = d_cost.defined() ? d_cost + through : through;
    }
    if (d_cost.defined()) d_cost = d_cost.contiguous();
    if (!d_cost.defined() && !d_lines.defined()) return result;

    bool to_score = false;
    for (std::size_t i = 2; i < 8; ++i) to_score = to_score || context->needs_input_grad(i);
    auto pixels = [&](std::size_t input, const Tensor& map) {
      return context->needs_input_grad(input) ? empty_floats(map.sizes()) : Tensor();
    };
    const Tensor d_left = pixels(0, left), d_right = pixels(1, right);
    const Packed packed(s, weight, bias, true);
    const kernels::ScoreSums at(s);
    const int64_t ranges = std::clamp<int64_t>(at::get_num_threads(), 1, s.rows());
    tokens::GradientSums sums(to_score ? ranges : 0, at.total);
    at::parallel_for(0, ranges, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        kernels::label_volume_backward(
            s, pixel_map(left), pixel_map(right), packed.weights, lines.data_ptr<float>(),
            tokens::data_or_null(d_cost), tokens::data_or_null(d_lines), mutable_pixel_map(d_left),
            mutable_pixel_map(d_right), to_score ? sums.begin(i) : nullptr, s.rows() * i / ranges,
            s.rows() * (i + 1) / ranges);
    });
    result[0] = as_map(d_left);
    result[1] = as_map(d_right);
    if (!to_score) return result;
    sums.finish();
    for (std::size_t i = 0; i < 3; ++i) {
      const int64_t out = weight[i].size(0), in = weight[i].size(1);
      result[2 + 2 * i] = sums.matrix(at.weight[i], out, kernels::kScoreTaps * in)
                              .reshape({out, kernels::kScoreTaps, in})
                              .permute({0, 2, 1})
                              .contiguous();
      result[3 + 2 * i] = sums.vector(at.bias[i], out).clone();
    }
    return result;
  }
};

// ---- Reading the volume ------------------------------------------------------------------------

VolumeShape lookup_shape(const Tensor& lines, const Tensor& seeds) {
  VolumeShape s;
  s.batch = lines.size(0), s.height = lines.size(1), s.width = lines.size(2);
  s.planes = lines.size(3), s.groups = lines.size(4), s.labels = seeds.size(3);
  return s;
}

constexpr int64_t kPixelsAtLeast = 256;  // of a piece

Tensor run_lookup(const Tensor& lines, const Tensor& seeds, int64_t radius) {
  const auto s = lookup_shape(lines, seeds);
  auto out = empty_floats({s.batch, s.height, s.width, s.labels, s.groups * (2 * radius + 1)});
  share(s.rows() * s.width, kPixelsAtLeast, [&](int64_t begin, int64_t end) {
    kernels::volume_lookup(s, lines.data_ptr<float>(), seeds.data_ptr<int64_t>(), radius,
                           out.data_ptr<float>(), begin, end);
  });
  return out;
}

struct LookupFunction : torch::autograd::Function<LookupFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& lines, const Tensor& seeds,
                        int64_t radius) {
    context->save_for_backward({seeds});
    context->saved_data["planes"] = lines.size(3);
    context->saved_data["groups"] = lines.size(4);
    context->saved_data["radius"] = radius;
    return run_lookup(lines.contiguous(), seeds, radius);
  }
  static variable_list backward(AutogradContext* context, const variable_list& above) {
    refuse_second_derivative();
    const auto seeds = context->get_saved_variables()[0];
    const auto from = above[0].contiguous();
    auto d_lines = empty_floats({seeds.size(0), seeds.size(1), seeds.size(2),
                                 context->saved_data["planes"].toInt(),
                                 context->saved_data["groups"].toInt()});
    const auto s = lookup_shape(d_lines, seeds);
    const int64_t radius = context->saved_data["radius"].toInt();
    share(s.rows() * s.width, kPixelsAtLeast, [&](int64_t begin, int64_t end) {
      kernels::volume_lookup_backward(s, from.data_ptr<float>(), seeds.data_ptr<int64_t>(), radius,
                                      d_lines.data_ptr<float>(), begin, end);
    });
    return {d_lines, Tensor(), Tensor()};
  }
};

}  // namespace

SeedVolume seed_volume(const Tensor& left, const Tensor& right, int64_t groups, int64_t planes,
                       const ScoreConvolutions& score, int64_t k) {
  const auto &w = score.weight, &b = score.bias;
  Results r;
  if (wants_gradient({left, right, w[0], b[0], w[1], b[1], w[2], b[2]})) {
    auto all =
        SeedVolumeFunction::apply(left, right, w[0], b[0], w[1], b[1], w[2], b[2], planes, k);
    r = {all[0], all[1], all[2], all[3]};
  } else {
    const Tensor own = channels_last(left), other = channels_last(right);
    r = run_forward(shape_of(own, groups, planes, w[0], w[1], k), own, other, score);
  }
  return {r.lines.permute({0, 4, 3, 1, 2}), r.cost, r.prob, r.seeds};
}

Tensor lookup_cost(const Tensor& volume, const Tensor& seeds, int64_t radius) {
  auto lines = volume.permute({0, 3, 4, 2, 1});  // as they lie in memory, if made here
  if (wants_gradient({volume})) return LookupFunction::apply(lines, seeds.contiguous(), radius);
  return run_lookup(lines.contiguous(), seeds.contiguous(), radius);
}

}  // namespace nmrf::ops::fast
