#include "network/message_passing.h"

#include <algorithm>

#include "kernels/patches.h"

namespace nmrf {
namespace {

tokens::InputRows rows_of(const float* data, std::int64_t channels) {
  return {data, static_cast<std::size_t>(channels)};
}
tokens::OutputRows rows_of(float* data, std::int64_t channels) {
  return {data, static_cast<std::size_t>(channels)};
}

kernels::Tokens tokens_of(const TokenGrid& grid, const float* data, std::int64_t channels) {
  return {data, 0, grid.padding.padded_width() * grid.labels * channels, grid.labels * channels,
          channels};
}
kernels::MutableTokens tokens_of(const TokenGrid& grid, float* data, std::int64_t channels) {
  return {data, 0, grid.padding.padded_width() * grid.labels * channels, grid.labels * channels,
          channels};
}

// norm1, then qkv of the normalised tokens and the encoding of their labels.
TokenProjection make_qkv(Parameters& parameters, const std::string& name,
                         const NeighbourOptions& o) {
  return TokenProjection(parameters, name + ".norm1", o.channels, o.encoding, 1,
                         {{name + ".qkv", 3 * o.channels}});
}

}  // namespace

tokens::InputRows TokenGrid::inner_row(std::int64_t y) const {
  return rows_of(
      static_cast<const float*>(values.data()) + padding.row_offset(y, labels * channels),
      channels);
}

TraceShape TokenGrid::trace_shape() const {
  return {padding.padded_height(), padding.padded_width(), labels, channels};
}

std::vector<float> TokenGrid::inner_values() const {
  const std::int64_t row = padding.width * labels * channels;
  std::vector<float> values_of_rows(static_cast<std::size_t>(padding.height * row));
  for (std::int64_t y = 0; y < padding.height; ++y)
    std::copy_n(inner_row(y).data, row, values_of_rows.data() + y * row);
  return values_of_rows;
}

SelfEdgesStep::SelfEdgesStep(Parameters& parameters, const std::string& name, std::int64_t channels,
                             std::int64_t encoding, std::int64_t heads)
    : encoding_(encoding),
      heads_(heads),
      qkv_(parameters, name + ".norm1", channels, encoding, 1,
           {{name + ".q", channels},
            {name + ".k", channels},
            {name + ".v", channels, true, /*uses_extra=*/false}}),
      proj_(parameters, "", channels, 0, 1, {{name + ".proj", channels}}) {}

void SelfEdgesStep::forward(Context& context, TokenGrid& x, const float* encoding) const {
  const std::int64_t rows = x.rows(), c = x.channels;
  Buffer<float> q = context.take(rows * c), k = context.take(rows * c), v = context.take(rows * c);
  const tokens::OutputRows out[3] = {rows_of(q.data(), c), rows_of(k.data(), c),
                                     rows_of(v.data(), c)};
  qkv_.forward(context, rows, rows_of(static_cast<const float*>(x.values.data()), c),
               rows_of(encoding, encoding_), out);
  kernels::LabelShape shape;
  shape.batch = 1, shape.height = x.padding.padded_height();
  shape.width = x.padding.padded_width();
  shape.labels = x.labels, shape.heads = heads_, shape.depth = c / heads_;
  const kernels::LabelForward job{shape, tokens_of(x, static_cast<const float*>(q.data()), c),
                                  tokens_of(x, static_cast<const float*>(k.data()), c),
                                  tokens_of(x, static_cast<const float*>(v.data()), c),
                                  tokens_of(x, q.data(), c)};  // the message, on the queries
  context.count(&StageCost::attention, 4.0 * static_cast<double>(rows * x.labels * c));
  context.share(shape.pixels(), 64, [&](std::int64_t begin, std::int64_t end, int) {
    kernels::label_forward(job, begin, end);
  });
  const tokens::OutputRows to[1] = {rows_of(x.values.data(), c)};
  proj_.forward(context, rows, rows_of(static_cast<const float*>(q.data()), c), {}, to,
                rows_of(static_cast<const float*>(x.values.data()), c));
}

void window_attention(Context& context, const TokenGrid& grid, std::int64_t heads,
                      std::int64_t window, std::int64_t shift, bool own_only,
                      const kernels::PositionTables& tables, const float* packed, const float* qkv,
                      float* message, std::int64_t stride) {
  kernels::WindowForward job;
  job.shape.batch = 1;
  job.shape.height = grid.padding.padded_height();
  job.shape.width = grid.padding.padded_width();
  job.shape.labels = grid.labels;
  job.shape.heads = heads;
  job.shape.depth = grid.channels / heads;
  job.shape.window = window;
  job.shape.shift = shift;
  job.shape.own_only = own_only;
  job.tables = tables;
  job.packed = packed;
  job.qkv = tokens_of(grid, qkv, 3 * grid.channels);
  job.out = tokens_of(grid, message, stride);
  run_windows(context, job);
}

NeighbourEdgesStep::NeighbourEdgesStep(Parameters& parameters, const std::string& name,
                                       const NeighbourOptions& o)
    : options_(o),
      qkv_(make_qkv(parameters, name, o)),
      mlp_(parameters, o.channels,
           {{name + ".mlp.fc1", o.mlp_ratio * o.channels}, {name + ".mlp.fc2", o.channels}},
           {.entry = name + ".proj",
            .message = o.channels,
            .norm = name + ".norm2",
            .residual = true}) {
  pack_tables(parameters, name + ".attn");
}

// relative_position_enc_table: [(2M-1)^2, heads, parts, D], parts = those in use of r^q, r^k
// (adaptive bias) and r^v (position aggregation).
void NeighbourEdgesStep::pack_tables(Parameters& parameters, const std::string& name) {
  kernels::WindowShape shape;
  shape.heads = options_.heads;
  shape.depth = options_.channels / options_.heads;
  shape.window = options_.window;
  const std::int64_t positions = shape.positions(), depth = shape.depth, heads = shape.heads;
  const std::int64_t parts =
      (options_.adaptive_bias ? 2 : 0) + (options_.position_aggregation ? 1 : 0);
  std::vector<float> encodings, bias;
  if (parts > 0)
    encodings = parameters.take(name + ".relative_position_enc_table",
                                {positions, parts * options_.channels});
  if (!options_.adaptive_bias)
    bias = parameters.take(name + ".relative_position_bias_table", {positions, heads});
  if (encodings.empty() && bias.empty()) return;

  auto part = [&](std::int64_t index) {
    std::vector<float> table(static_cast<std::size_t>(positions * heads * depth));
    for (std::int64_t i = 0; i < positions * heads; ++i)
      std::copy_n(encodings.data() + (i * parts + index) * depth, depth, table.data() + i * depth);
    return table;
  };
  std::vector<float> query, key, value;
  kernels::PositionTables tables;
  if (options_.adaptive_bias) {
    query = part(0);
    key = part(1);
    tables.query = query.data();
    tables.key = key.data();
  } else {
    tables.bias = bias.data();
  }
  if (options_.position_aggregation) {
    value = part(parts - 1);
    tables.value = value.data();
  }
  const std::size_t size = kernels::window_tables_size(shape, tables);
  float* packed = packed_.take(size);
  std::fill(packed, packed + size, 0.0f);
  kernels::pack_window_tables(shape, tables, packed);
  packed_tables_ = packed;
  tables_ = {tables.query ? packed : nullptr, tables.key ? packed : nullptr,
             tables.value ? packed : nullptr, tables.bias ? packed : nullptr};
}

void NeighbourEdgesStep::forward(Context& context, TokenGrid& x, const float* encoding) const {
  const std::int64_t rows = x.rows(), c = x.channels;
  Buffer<float> qkv = context.take(rows * 3 * c);
  const tokens::OutputRows out[1] = {rows_of(qkv.data(), 3 * c)};
  qkv_.forward(context, rows, rows_of(static_cast<const float*>(x.values.data()), c),
               rows_of(encoding, options_.encoding), out);
  // Scores and messages, and the position terms, counted for every pair of labels as the published
  // operators compute them.
  const std::int64_t terms =
      2 + (options_.adaptive_bias ? 2 : 0) + (options_.position_aggregation ? 1 : 0);
  context.count(&StageCost::attention,
                2.0 * static_cast<double>(rows * options_.window * options_.window * x.labels) *
                    static_cast<double>(c * terms));
  window_attention(context, x, options_.heads, options_.window, options_.shift, options_.own_only,
                   tables_, packed_tables_, qkv.data(), qkv.data(), 3 * c);
  mlp_.forward(context, rows, rows_of(static_cast<const float*>(x.values.data()), c),
               rows_of(static_cast<const float*>(qkv.data()), 3 * c), rows_of(x.values.data(), c));
}

Buffer<float> encode_labels(Context& context, const WindowPadding& padding, const float* labels,
                            std::int64_t count, std::int64_t range, std::int64_t frequencies) {
  const std::int64_t wide = (2 * frequencies + 1) * count;
  Buffer<float> result = context.take(padding.padded_pixels() * wide);
  padding.clear_border(context, result.data(), wide);
  context.share(padding.height, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y)
      kernels::encode_labels(labels + y * padding.width * count, static_cast<float>(range),
                             frequencies, result.data() + padding.row_offset(y, wide), 0,
                             padding.width * count);
  });
  return result;
}

MessagePassing::MessagePassing(Parameters& parameters, const std::string& name,
                               const ModelOptions& options, const NeighbourOptions& neighbour,
                               std::int64_t layers, bool own_self_edges,
                               std::int64_t encoding_range)
    : options_(options),
      channels_(neighbour.channels),
      window_(neighbour.window),
      encoding_range_(encoding_range),
      norm_(name + ".norm"),
      ffn_(make_mlp(parameters, name + ".ffn", options.observed_channels(), channels_, channels_)) {
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = name + ".layers." + std::to_string(i);
    NeighbourOptions step = neighbour;
    step.shift = i % 2 == 1 ? window_ / 2 : 0;
    std::optional<SelfEdgesStep> self_edges;
    if (own_self_edges)
      self_edges.emplace(parameters, layer + ".self_nmp", channels_, step.encoding, step.heads);
    layers_.push_back(
        {std::move(self_edges), NeighbourEdgesStep(parameters, layer + ".nmp", step)});
  }
  norm_weight_ = parameters.take(norm_ + ".weight", {channels_});
  norm_bias_ = parameters.take(norm_ + ".bias", {channels_});
}

TokenGrid MessagePassing::embed(Context& context, const MatchingMaps& maps, const float* labels,
                                std::int64_t count) const {
  const ObservedFeatures features(maps, labels, count, options_);
  const std::int64_t height = maps.left1.height, width = maps.left1.width;
  TokenGrid x{WindowPadding(height, width, window_), count, channels_, {}};
  x.values = context.take(x.rows() * channels_);
  x.padding.clear_border(context, x.values.data(), count * channels_);
  const std::int64_t tokens = width * count, wide = features.channels();
  context.count(&StageCost::other, static_cast<double>(height * tokens) * features.operations());
  context.count(&StageCost::linear, static_cast<double>(height * tokens) * ffn_.operations());
  Buffer<float> scratch = context.take(context.threads() * tokens * wide);
  context.share(height, 1, [&](std::int64_t begin, std::int64_t end, int slot) {
    float* row = scratch.data() + slot * tokens * wide;
    for (std::int64_t y = begin; y < end; ++y) {
      features.row(y, row);
      ffn_.run(rows_of(static_cast<const float*>(row), wide), {},
               rows_of(x.values.data() + x.padding.row_offset(y, count * channels_), channels_), 0,
               tokens);
    }
  });
  return x;
}

void MessagePassing::forward(Context& context, TokenGrid& x, const float* labels,
                             const std::string& trace) const {
  if (context.tracing())
    context.record(trace + "_embed0", x.inner_shape(), x.inner_values().data());
  Buffer<float> encoding = encode_labels(context, x.padding, labels, x.labels, encoding_range_,
                                         options_.encoding_frequencies);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::string name = context.tracing() ? trace + "_layer" + std::to_string(i) : "";
    if (layers_[i].self_edges) {
      layers_[i].self_edges->forward(context, x, encoding.data());
      if (context.tracing()) context.record(name + "_self", x.trace_shape(), x.values.data());
    }
    layers_[i].neighbour_edges.forward(context, x, encoding.data());
    if (context.tracing()) context.record(name, x.trace_shape(), x.values.data());
  }
}

void MessagePassing::trace_output(Context& context, const TokenGrid& x,
                                  const std::string& trace) const {
  if (!context.tracing()) return;
  trace_norm(context, trace, x.inner_shape(), norm_weight_, norm_bias_, x.inner_values().data());
}

}  // namespace nmrf
