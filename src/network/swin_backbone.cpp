#include "network/swin_backbone.h"

#include <algorithm>

#include "kernels/map_steps.h"

namespace nmrf {
namespace {

std::int64_t window_multiple(std::int64_t size) {
  return (size + SwinSizes::window - 1) / SwinSizes::window * SwinSizes::window;
}

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

SwinBlock::SwinBlock(Parameters& parameters, const std::string& name, std::int64_t channels,
                     std::int64_t heads, std::int64_t shift)
    : heads_(heads),
      shift_(shift),
      qkv_(parameters, name + ".norm1", channels, 0, 1, {{name + ".attn.qkv", 3 * channels}}),
      mlp_(parameters, channels,
           {{name + ".mlp.fc1", SwinSizes::mlp_ratio * channels}, {name + ".mlp.fc2", channels}},
           {.entry = name + ".attn.proj",
            .message = channels,
            .norm = name + ".norm2",
            .residual = true}),
      outside_(parameters.take(name + ".attn.qkv.bias", {3 * channels})) {
  kernels::WindowShape shape;
  shape.heads = heads, shape.depth = channels / heads, shape.window = SwinSizes::window;
  const std::vector<float> bias =
      parameters.take(name + ".attn.relative_position_bias_table", {shape.positions(), heads});
  if (bias.empty()) return;
  const kernels::PositionTables tables{.bias = bias.data()};
  const std::size_t floats = kernels::window_tables_size(shape, tables);
  float* packed = packed_.take(floats);
  std::fill(packed, packed + floats, 0.0f);
  kernels::pack_window_tables(shape, tables, packed);
  packed_tables_ = packed;
  tables_.bias = packed;
}

void SwinBlock::forward(Context& context, FeatureMap& x) const {
  const std::int64_t rows = x.pixels(), c = x.channels;
  const tokens::InputRows tokens = rows_of(std::as_const(x));
  kernels::WindowForward job;
  job.shape.batch = 1, job.shape.labels = 1;
  job.shape.height = window_multiple(x.height), job.shape.width = window_multiple(x.width);
  job.shape.rows = x.height, job.shape.columns = x.width;
  job.shape.heads = heads_, job.shape.depth = c / heads_;
  job.shape.window = SwinSizes::window, job.shape.shift = shift_;
  job.tables = tables_;
  job.packed = packed_tables_;

  Buffer<float> message = context.take(rows * c);
  {
    // The tokens of the grid, then one for all of the zeros around it.
    Buffer<float> qkv = context.take((rows + 1) * 3 * c);
    const tokens::OutputRows out[1] = {{qkv.data(), size(3 * c)}};
    qkv_.forward(context, rows, tokens, {}, out);
    context.share(1, 1, [&](std::int64_t, std::int64_t, int) {
      std::copy(outside_.begin(), outside_.end(), qkv.data() + rows * 3 * c);
    });
    job.qkv = {qkv.data(), 0, x.width * 3 * c, 3 * c, 0, rows * 3 * c};
    job.out = {message.data(), 0, x.width * c, c, 0};
    // Counted as the published operators compute it, which project the zeros too.
    const auto padded = static_cast<double>(job.shape.height * job.shape.width);
    context.count(&StageCost::linear,
                  2.0 * (padded - static_cast<double>(rows)) * static_cast<double>(4 * c * c));
    context.count(&StageCost::attention,
                  4.0 * padded * static_cast<double>(job.shape.tokens() * c));
    run_windows(context, job);
  }
  mlp_.forward(context, rows, tokens, {message.data(), size(c)}, {x.values.data(), size(c)});
}

PatchMerging::PatchMerging(Parameters& parameters, const std::string& name, std::int64_t channels)
    : reduction_(parameters, name + ".norm", 4 * channels, 0, 1,
                 {{name + ".reduction", 2 * channels, /*bias=*/false}}) {}

FeatureMap PatchMerging::forward(Context& context, FeatureMap x) const {
  FeatureMap result = context.map(x.height / 2, x.width / 2, 2 * x.channels);
  FeatureMap cells = context.map(result.height, result.width, 4 * x.channels);
  context.share(cells.height, 1, [&](std::int64_t begin, std::int64_t end, int) {
    conv::gather_2x2(x.values.data(), size(x.width), size(x.channels), cells.values.data(),
                     size(begin), size(end));
  });
  x = {};
  const tokens::OutputRows out[1] = {rows_of(result)};
  reduction_.forward(context, cells.pixels(), rows_of(std::as_const(cells)), {}, out);
  return result;
}

SwinBackbone::SwinBackbone(Parameters& parameters, const std::string& name)
    : patches_(parameters, name + ".patch_embed.proj", 3, SwinSizes::channels(0), SwinSizes::patch,
               SwinSizes::patch, true),
      norm_weight_(parameters.take(name + ".patch_embed.norm.weight", {SwinSizes::channels(0)})),
      norm_bias_(parameters.take(name + ".patch_embed.norm.bias", {SwinSizes::channels(0)})) {
  for (std::int64_t s = 0; s < SwinSizes::stages; ++s) {
    const std::string layer = name + ".layers." + std::to_string(s);
    SwinStage stage;
    for (std::int64_t b = 0; b < SwinSizes::blocks[s]; ++b)
      stage.blocks.emplace_back(parameters, layer + ".blocks." + std::to_string(b),
                                SwinSizes::channels(s), SwinSizes::heads(s),
                                b % 2 == 0 ? 0 : SwinSizes::window / 2);
    if (s + 1 < SwinSizes::stages)
      stage.merging.emplace(parameters, layer + ".downsample", SwinSizes::channels(s));
    stages_.push_back(std::move(stage));
  }
}

FeatureMap SwinBackbone::embed(Context& context, const FeatureMap& image) const {
  FeatureMap x =
      context.map(patches_.out_size(image.height), patches_.out_size(image.width), patches_.out());
  patches_.forward(context, {image.values.data()}, image.height, image.width, x.values.data());
  context.share(x.pixels(), 64, [&](std::int64_t begin, std::int64_t end, int) {
    conv::layer_norm(x.values.data(), size(x.channels), norm_weight_.data(), norm_bias_.data(),
                     kNormEps, x.values.data(), size(begin), size(end));
  });
  return x;
}

void SwinBackbone::run_stage(Context& context, std::int64_t stage, FeatureMap& x,
                             const std::string& view) const {
  std::int64_t b = 0;
  for (const auto& block : stages_[size(stage)].blocks) {
    block.forward(context, x);
    if (context.tracing())
      context.record("swin_stage" + std::to_string(stage) + "_block" + std::to_string(b++) + view,
                     x);
  }
}

FeatureMap SwinBackbone::merge(Context& context, std::int64_t stage, FeatureMap x) const {
  return stages_[size(stage)].merging->forward(context, std::move(x));
}

}  // namespace nmrf
