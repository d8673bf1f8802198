#include "train/ops/warp.h"

#include "train/ops/dispatch.h"
#include "train/ops/memory.h"
#include "train/ops/parallel.h"
#include "train/ops/pixel_map.h"

namespace nmrf::ops {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// ---- The plain form ----------------------------------------------------------------------------

Tensor warp_plain(const Tensor& right, const Tensor& labels) {
  const int64_t batch = right.size(0), channels = right.size(1), h = right.size(2),
                w = right.size(3), k = labels.size(3);
  auto columns = torch::arange(w, labels.options()).view({1, 1, w, 1});
  auto position = columns - labels.detach();  // [B, h, w, k]
  auto lower = position.floor();
  auto fraction = position - lower;
  auto rows = right.permute({0, 2, 3, 1});  // [B, h, w, C]
  auto tap = [&](const Tensor& column, const Tensor& weight) {
    auto inside = (column >= 0) & (column <= w - 1);
    auto index = column.clamp(0, w - 1).to(torch::kLong).view({batch, h, w * k, 1});
    auto value = rows.gather(2, index.expand({batch, h, w * k, channels}));
    auto factor = torch::where(inside, weight, torch::zeros_like(weight));
    return value.view({batch, h, w, k, channels}) * factor.unsqueeze(-1);
  };
  return tap(lower, 1 - fraction) + tap(lower + 1, fraction);
}

Tensor features_plain(const Tensor& left1, const Tensor& right1, const Tensor& left2,
                      const Tensor& right2, const Tensor& labels, int64_t groups, int64_t radius) {
  const int64_t batch = labels.size(0), h = labels.size(1), w = labels.size(2), k = labels.size(3);
  const int64_t channels1 = left1.size(1), channels2 = left2.size(1);
  auto own = left1.permute({0, 2, 3, 1}).unsqueeze(3).expand({batch, h, w, k, channels1});
  auto other = warp_plain(right1, labels);
  std::vector<Tensor> parts{own, other};
  for (int64_t around = -radius; around <= radius; ++around) {
    auto product = left2.permute({0, 2, 3, 1}).unsqueeze(3) * warp_plain(right2, labels - around);
    parts.push_back(product.view({batch, h, w, k, groups, channels2 / groups}).mean(-1));
  }
  return torch::cat(parts, -1);
}

// ---- The fast form -----------------------------------------------------------------------------

// The maps of a call, each [B, h, w, C]; only right1 is there when a map is warped alone.
struct Maps {
  Tensor left1, right1, left2, right2, labels;
  kernels::FeatureShape shape;

  kernels::FeatureMapsIn in() const {
    kernels::FeatureMapsIn maps;
    if (left1.defined()) {
      maps.left1 = pixel_map(left1);
      maps.left2 = pixel_map(left2);
      maps.right2 = pixel_map(right2);
    }
    maps.right1 = pixel_map(right1);
    maps.labels = labels.data_ptr<float>();
    return maps;
  }
};

kernels::FeatureShape shape_of(const Tensor& right1, const Tensor& labels) {
  kernels::FeatureShape shape;
  shape.batch = labels.size(0), shape.height = labels.size(1), shape.width = labels.size(2);
  shape.labels = labels.size(3), shape.channels1 = right1.size(3);
  shape.own = false;
  return shape;
}

Maps maps_of(const Tensor& right, const Tensor& labels) {
  Maps maps;
  maps.right1 = channels_last(right);
  maps.labels = labels.detach().contiguous();
  maps.shape = shape_of(maps.right1, labels);
  return maps;
}

Maps maps_of(const Tensor& left1, const Tensor& right1, const Tensor& left2, const Tensor& right2,
             const Tensor& labels, int64_t groups, int64_t radius) {
  Maps maps = maps_of(right1, labels);
  maps.left1 = channels_last(left1);
  maps.left2 = channels_last(left2);
  maps.right2 = channels_last(right2);
  maps.shape.channels2 = left2.size(1);
  maps.shape.groups = groups;
  maps.shape.radius = radius;
  maps.shape.own = true;
  return maps;
}

Tensor run_forward(const Maps& maps) {
  const auto& s = maps.shape;
  auto out = empty_floats({s.batch, s.height, s.width, s.labels, s.wide()});
  const auto in = maps.in();
  share(s.rows(), 1, [&](int64_t begin, int64_t end) {
    kernels::label_feature_forward(s, in, out.data_ptr<float>(), begin, end);
  });
  return out;
}

// Gradients of left1, right1, left2, right2 where wanted, as maps [B, C, h, w].
variable_list run_backward(const Maps& maps, const Tensor& above, const bool (&wanted)[4]) {
  const auto& s = maps.shape;
  auto contiguous = above.contiguous();
  auto gradient = [&](bool want, int64_t channels) {
    return want ? empty_floats({s.batch, s.height, s.width, channels}) : Tensor();
  };
  const Tensor left1 = gradient(wanted[0], s.channels1), right1 = gradient(wanted[1], s.channels1),
               left2 = gradient(wanted[2], s.channels2), right2 = gradient(wanted[3], s.channels2);
  const auto in = maps.in();
  const kernels::FeatureMapsOut out{mutable_pixel_map(left1), mutable_pixel_map(right1),
                                    mutable_pixel_map(left2), mutable_pixel_map(right2)};
  share(s.rows(), 1, [&](int64_t begin, int64_t end) {
    kernels::label_feature_backward(s, in, contiguous.data_ptr<float>(), out, begin, end);
  });
  return {as_map(left1), as_map(right1), as_map(left2), as_map(right2)};
}

struct WarpFunction : torch::autograd::Function<WarpFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& right, const Tensor& labels) {
    const Maps maps = maps_of(right, labels);
    context->save_for_backward({maps.right1, maps.labels});
    return run_forward(maps);
  }
  static variable_list backward(AutogradContext* context, const variable_list& above) {
    const auto saved = context->get_saved_variables();
    Maps maps;
    maps.right1 = saved[0];
    maps.labels = saved[1];
    maps.shape = shape_of(saved[0], saved[1]);
    return {run_backward(maps, above[0], {false, true, false, false})[1], Tensor()};
  }
};

struct FeatureFunction : torch::autograd::Function<FeatureFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& left1, const Tensor& right1,
                        const Tensor& left2, const Tensor& right2, const Tensor& labels,
                        int64_t groups, int64_t radius) {
    const Maps maps = maps_of(left1, right1, left2, right2, labels, groups, radius);
    context->save_for_backward({maps.left1, maps.right1, maps.left2, maps.right2, maps.labels});
    context->saved_data["groups"] = groups;
    context->saved_data["radius"] = radius;
    return run_forward(maps);
  }
  static variable_list backward(AutogradContext* context, const variable_list& above) {
    const auto saved = context->get_saved_variables();
    Maps maps{saved[0], saved[1], saved[2], saved[3], saved[4], shape_of(saved[1], saved[4])};
    maps.shape.channels2 = saved[2].size(3);
    maps.shape.groups = context->saved_data["groups"].toInt();
    maps.shape.radius = context->saved_data["radius"].toInt();
    maps.shape.own = true;
    auto gradients = run_backward(maps, above[0],
                                  {context->needs_input_grad(0), context->needs_input_grad(1),
                                   context->needs_input_grad(2), context->needs_input_grad(3)});
    gradients.resize(7);
    return gradients;
  }
};

void check_maps(const Tensor& left, const Tensor& right, const Tensor& labels) {
  TORCH_CHECK(right.dim() == 4 && labels.dim() == 4 && left.sizes() == right.sizes() &&
                  right.size(0) == labels.size(0) && right.size(2) == labels.size(1) &&
                  right.size(3) == labels.size(2),
              "maps [B, C, h, w] and labels [B, h, w, k] of one grid");
}

}  // namespace

Tensor warp_right(const Tensor& right, const Tensor& labels) {
  check_maps(right, right, labels);
  if (!use_fast(right, labels)) return warp_plain(right, labels);
  if (wants_gradient({right})) return WarpFunction::apply(right, labels.detach());
  return run_forward(maps_of(right, labels));
}

Tensor label_features(const Tensor& left1, const Tensor& right1, const Tensor& left2,
                      const Tensor& right2, const Tensor& labels, int64_t groups, int64_t radius) {
  check_maps(left1, right1, labels);
  check_maps(left2, right2, labels);
  TORCH_CHECK(groups > 0 && left2.size(1) % groups == 0, "groups must divide the channels");
  TORCH_CHECK(radius >= 0, "radius must not be negative");
  if (!use_fast(left1, right1, left2, right2, labels))
    return features_plain(left1, right1, left2, right2, labels, groups, radius);
  if (wants_gradient({left1, right1, left2, right2}))
    return FeatureFunction::apply(left1, right1, left2, right2, labels.detach(), groups, radius);
  return run_forward(maps_of(left1, right1, left2, right2, labels, groups, radius));
}

Tensor correlate(const Tensor& left, const Tensor& right, const Tensor& labels, int64_t groups,
                 int64_t radius) {
  const auto none = torch::empty({left.size(0), 0, left.size(2), left.size(3)}, left.options());
  return label_features(none, none, left, right, labels, groups, radius);
}

}  // namespace nmrf::ops
