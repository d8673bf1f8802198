#include "network/seed_propagation.h"

#include <algorithm>
#include <cstring>

#include "kernels/attention.h"
#include "kernels/patches.h"

namespace nmrf {
namespace {

constexpr std::int64_t kCoarseRange = 64;  // of the disparity encoding

tokens::InputRows input(const float* data, std::int64_t stride) {
  return {data, static_cast<std::size_t>(stride)};
}
tokens::OutputRows output(float* data, std::int64_t stride) {
  return {data, static_cast<std::size_t>(stride)};
}

}  // namespace

SeedStep::SeedStep(Parameters& parameters, const std::string& name, const ModelOptions& o,
                   std::int64_t layer)
    : heads_(o.propagation_heads),
      window_(o.propagation_window),
      shift_(layer % 2 == 1 ? o.propagation_window / 2 : 0),
      context_channels_(o.context_channels),
      cross_(o.seed_neighbourhood == SeedNeighbourhood::kCross),
      qkv_(parameters, name + ".norm1", o.propagation_channels, o.context_channels, o.labels,
           {{name + ".q", o.propagation_channels},
            {name + ".k", o.propagation_channels},
            {name + ".v", o.propagation_channels, true, /*uses_extra=*/false}}),
      mlp_(parameters, o.propagation_channels,
           {{name + ".mlp.fc1", o.mlp_ratio * o.propagation_channels},
            {name + ".mlp.fc2", o.propagation_channels}},
           {.entry = name + ".proj",
            .message = o.propagation_channels,
            .norm = name + ".norm2",
            .residual = true}) {
  const std::int64_t c = cross_ ? o.propagation_channels / 2 : o.propagation_channels;
  for (int side = 0; side < (cross_ ? 2 : 1); ++side) {
    const auto weight =
        parameters.take(name + ".attns." + std::to_string(side) + ".get_v.weight", {c, 1, 3, 3});
    if (weight.empty()) continue;
    auto tap = [&](std::int64_t channel, std::int64_t y, std::int64_t x) {
      return weight[static_cast<std::size_t>((channel * 3 + y) * 3 + x)];
    };
    // A stripe is one pixel wide: of the 3 x 3 filters only the taps along it act.
    for (std::int64_t t = 0; t < (cross_ ? 3 : 9); ++t)
      for (std::int64_t channel = 0; channel < c; ++channel)
        filters_[side].push_back(!cross_     ? tap(channel, t / 3, t % 3)
                                 : side == 0 ? tap(channel, t, 1)
                                             : tap(channel, 1, t));
  }
}

void SeedStep::cross(Context& context, const TokenGrid& x, float* qkv) const {
  const std::int64_t c = x.channels, k = x.labels, height = x.padding.padded_height(),
                     width = x.padding.padded_width();
  context.count(&StageCost::attention, 4.0 * static_cast<double>(x.rows() * k * (height + width)) *
                                           static_cast<double>(c / 2));
  for (int side = 0; side < 2; ++side) {
    // The columns' tokens are given with the two grid strides exchanged.
    auto tokens = [&](auto* data, std::int64_t stride) {
      const std::int64_t column = k * stride, row = width * column;
      using Grid = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(data)>>,
                                      kernels::Tokens, kernels::MutableTokens>;
      auto* first = data ? data + side * (c / 2) : data;
      return Grid{first, 0, side == 0 ? column : row, side == 0 ? row : column, stride};
    };
    kernels::StripeForward job;
    job.shape.batch = 1;
    job.shape.stripes = side == 0 ? width : height;
    job.shape.pixels = side == 0 ? height : width;
    job.shape.labels = k;
    job.shape.heads = heads_ / 2;
    job.shape.depth = c / heads_;
    const float* in = qkv;
    job.q = tokens(in, 3 * c);
    job.k = tokens(in ? in + c : in, 3 * c);
    job.v = tokens(in ? in + 2 * c : in, 3 * c);
    job.filter = filters_[side].data();
    job.out = tokens(qkv, 3 * c);
    const auto room = static_cast<std::int64_t>(kernels::stripe_forward_scratch(job.shape));
    Buffer<float> scratch = context.take(context.threads() * room);
    context.share(job.shape.stripes * job.shape.heads, 1,
                  [&](std::int64_t begin, std::int64_t end, int slot) {
                    float* own = scratch.data() + slot * room;
                    std::fill(own, own + room, 0.0f);
                    kernels::stripe_forward(job, begin, end, own);
                  });
  }
}

void SeedStep::local(Context& context, const TokenGrid& x, float* qkv) const {
  const std::int64_t c = x.channels, k = x.labels, height = x.padding.padded_height(),
                     width = x.padding.padded_width();
  context.count(&StageCost::attention, 4.0 * static_cast<double>(x.rows() * window_ * window_ * k) *
                                           static_cast<double>(c));
  window_attention(context, x, heads_, window_, shift_, /*own_only=*/true, {}, nullptr, qkv, qkv,
                   3 * c);
  // The locally-enhanced term: of the eight neighbours the sum over their labels, of the pixel
  // itself the label.
  Buffer<float> sums = context.take(height * width * c);
  context.share(height * width, 64, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t p = begin; p < end; ++p)
      for (std::int64_t i = 0; i < c; ++i) {
        float sum = 0;
        for (std::int64_t label = 0; label < k; ++label)
          sum += qkv[(p * k + label) * 3 * c + 2 * c + i];
        sums.data()[p * c + i] = sum;
      }
  });
  Buffer<float> around = context.take(context.threads() * c);
  context.share(height, 1, [&](std::int64_t begin, std::int64_t end, int slot) {
    const float* taps = filters_[0].data();
    float* total = around.data() + slot * c;
    for (std::int64_t y = begin; y < end; ++y)
      for (std::int64_t col = 0; col < width; ++col) {
        std::fill(total, total + c, 0.0f);
        for (std::int64_t t = 0; t < 9; ++t) {
          const std::int64_t v = y + t / 3 - 1, u = col + t % 3 - 1;
          if (t == 4 || v < 0 || v >= height || u < 0 || u >= width) continue;
          const float *from = sums.data() + (v * width + u) * c, *tap = taps + t * c;
          for (std::int64_t i = 0; i < c; ++i) total[i] += tap[i] * from[i];
        }
        for (std::int64_t label = 0; label < k; ++label) {
          const std::int64_t token = (y * width + col) * k + label;
          float* message = qkv + token * 3 * c;
          const float* value = message + 2 * c;
          for (std::int64_t i = 0; i < c; ++i) message[i] += total[i] + taps[4 * c + i] * value[i];
        }
      }
  });
}

// Messages take the place of the queries.
void SeedStep::forward(Context& context, TokenGrid& x, const float* context_map) const {
  const std::int64_t rows = x.rows(), c = x.channels;
  Buffer<float> qkv = context.take(rows * 3 * c);
  auto part = [&](std::int64_t i) {
    return output(context.planning() ? nullptr : qkv.data() + i * c, 3 * c);
  };
  const tokens::OutputRows out[3] = {part(0), part(1), part(2)};
  qkv_.forward(context, rows, input(x.values.data(), c), input(context_map, context_channels_), out,
               {}, x.labels);
  if (cross_)
    cross(context, x, qkv.data());
  else
    local(context, x, qkv.data());
  mlp_.forward(context, rows, input(x.values.data(), c), input(qkv.data(), 3 * c),
               output(x.values.data(), c));
}

SeedPropagation::SeedPropagation(Parameters& parameters, const ModelOptions& o)
    : options_(o),
      visual_context_(parameters, "dpn.proj", o.feature_channels, o.context_hidden,
                      o.context_channels),
      cost_encoder_(parameters, o.cost_groups * (2 * o.cost_radius + 1),
                    {{"dpn.propagation.cost_encoder.0", o.propagation_channels},
                     {"dpn.propagation.cost_encoder.2", o.propagation_channels}},
                    {}),
      proj_(parameters, "", o.propagation_channels, o.encoding_channels(), 1,
            {{"dpn.propagation.proj", o.propagation_channels, /*bias=*/false}}),
      kinds_([&] {
        std::optional<SeedKindEmbedding> kinds;
        if (o.fill_seeds)
          kinds.emplace(parameters, "dpn.propagation.kinds", o.propagation_channels);
        return kinds;
      }()),
      steps_([&] {
        std::vector<SeedStep> steps;
        for (std::int64_t i = 0; i < o.propagation_layers; ++i)
          steps.emplace_back(parameters, "dpn.propagation.layers." + std::to_string(i) + ".nmp", o,
                             i);
        return steps;
      }()),
      head_(make_head(parameters, "dpn.prop_head", o.propagation_channels, 1,
                      "dpn.propagation.norm")),
      norm_weight_(parameters.take("dpn.propagation.norm.weight", {o.propagation_channels})),
      norm_bias_(parameters.take("dpn.propagation.norm.bias", {o.propagation_channels})) {}

// The cost around each seed and its disparity, encoded.
TokenGrid SeedPropagation::embed(Context& context, const LabelSeeds& seeds) const {
  const CostVolume& volume = seeds.volume;
  const std::int64_t c = options_.propagation_channels, k = volume.labels;
  const bool windows = options_.seed_neighbourhood == SeedNeighbourhood::kLocal;
  TokenGrid x{WindowPadding(volume.height, volume.width, windows ? options_.propagation_window : 1),
              k,
              c,
              {}};
  const std::int64_t tokens = volume.cells() * k,
                     around = volume.groups * (2 * options_.cost_radius + 1);
  Buffer<float> unpadded = context.take(tokens * c);
  {
    Buffer<float> feature = context.take(tokens * c);
    {
      Buffer<float> costs = context.take(tokens * around);
      context.share(volume.cells(), 256, [&](std::int64_t begin, std::int64_t end, int) {
        kernels::volume_lookup(volume.shape(), volume.correlation.data(), seeds.planes(),
                               options_.cost_radius, costs.data(), begin, end);
      });
      cost_encoder_.forward(context, tokens, input(costs.data(), around), {},
                            output(feature.data(), c));
    }
    context.record("prop_cost_feat", {volume.height, volume.width, k, c}, feature.data());
    Buffer<float> planes = context.take(tokens);
    context.share(tokens, 4096, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i)
        planes.data()[i] = static_cast<float>(seeds.planes()[i]);
    });
    const WindowPadding none(volume.height, volume.width, 1);
    Buffer<float> encoding =
        encode_labels(context, none, planes.data(), k, kCoarseRange, options_.encoding_frequencies);
    const tokens::OutputRows out[1] = {output(unpadded.data(), c)};
    proj_.forward(context, tokens, input(feature.data(), c),
                  input(encoding.data(), options_.encoding_channels()), out);
  }
  if (kinds_)
    context.share(tokens, 256, [&](std::int64_t begin, std::int64_t end, int) {
      kinds_->add(seeds.kinds.data() + begin, end - begin, unpadded.data() + begin * c);
    });
  context.record("prop_embed0", {volume.height, volume.width, k, c}, unpadded.data());
  if (!windows) {
    x.values = std::move(unpadded);
    return x;
  }
  x.values = context.take(x.rows() * c);
  x.padding.pad(context, unpadded.data(), k * c, x.values.data());
  return x;
}

Buffer<float> SeedPropagation::forward(Context& context, LabelSeeds& seeds,
                                       const FeatureMap& left) const {
  CostVolume& volume = seeds.volume;
  const std::int64_t k = volume.labels, c = options_.propagation_channels;
  Buffer<float> labels = context.take(volume.cells() * k);
  TokenGrid x;
  {
    Stage stage(context, "propagation");
    FeatureMap visual = visual_context_.forward(context, left);
    context.record("prop_context", visual);
    x = embed(context, seeds);
    for (Buffer<float>* values : {&volume.correlation, &volume.cost, &volume.probability})
      values->reset();
    Buffer<float> padded;
    if (x.padding.padded_pixels() != volume.cells()) {
      padded = context.take(x.padding.padded_pixels() * visual.channels);
      x.padding.pad(context, visual.values.data(), visual.channels, padded.data());
    }
    const float* shared = padded ? padded.data() : visual.values.data();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      steps_[i].forward(context, x, shared);
      if (context.tracing())
        context.record("prop_layer" + std::to_string(i), x.trace_shape(), x.values.data());
    }
  }
  Stage stage(context, "heads");
  const std::int64_t tokens = volume.width * k;
  context.count(&StageCost::linear, static_cast<double>(volume.cells() * k) * head_.operations());
  Buffer<float> residual = context.take(volume.cells() * k);
  context.share(volume.height, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y) {
      float* row = residual.data() + y * tokens;
      head_.run(x.inner_row(y), {}, output(row, 1), 0, tokens);
      const float* start = seeds.starts.data() + y * tokens;
      float* label = labels.data() + y * tokens;
      for (std::int64_t i = 0; i < tokens; ++i) label[i] = std::max(0.0f, start[i] + row[i]);
    }
  });
  if (context.tracing()) {
    if (x.padding.padded_pixels() == volume.cells())
      trace_norm(context, "prop_memory", {volume.height, volume.width, k, c}, norm_weight_,
                 norm_bias_, x.values.data());
    context.record("prop_head", {volume.height, volume.width, 0, k}, residual.data());
    context.record("labels", {volume.height, volume.width, 0, k}, labels.data());
  }
  return labels;
}

}  // namespace nmrf
