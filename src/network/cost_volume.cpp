#include "network/cost_volume.h"

#include "kernels/pack.h"

namespace nmrf {
namespace {

constexpr std::int64_t kTaps = kernels::kScoreTaps;

}  // namespace

kernels::VolumeShape CostVolume::shape() const {
  kernels::VolumeShape s;
  s.batch = 1, s.height = height, s.width = width;
  s.groups = groups, s.planes = planes, s.labels = labels;
  return s;
}

CostScore::CostScore(Parameters& parameters, const ModelOptions& o)
    : groups_(o.cost_groups), hidden1_(o.cost_hidden1), hidden2_(o.cost_hidden2) {
  const std::int64_t wide[4] = {groups_, hidden1_, hidden2_, 1};
  const char* names[3] = {"dpn.mlp.0", "dpn.mlp.2", "dpn.mlp.4"};
  for (int i = 0; i < 3; ++i) {
    const std::int64_t in = wide[i], out = wide[i + 1];
    const auto weight = parameters.take(std::string(names[i]) + ".weight", {out, in, kTaps});
    const auto bias = parameters.take(std::string(names[i]) + ".bias", {out});
    if (weight.empty()) continue;
    const auto deep = static_cast<std::size_t>(in * kTaps), n = static_cast<std::size_t>(out);
    if (i < 2) {
      std::vector<float> rows(weight.size());  // [out, taps, in]
      for (std::int64_t o2 = 0; o2 < out; ++o2)
        for (std::int64_t c = 0; c < in; ++c)
          for (std::int64_t t = 0; t < kTaps; ++t)
            rows[static_cast<std::size_t>((o2 * kTaps + t) * in + c)] =
                weight[static_cast<std::size_t>((o2 * in + c) * kTaps + t)];
      weights_.forward[i] = packed_.transposed(rows, n, deep);
      weights_.bias[i] = packed_.bias(bias, n);
    } else {
      constexpr auto kPad = static_cast<std::size_t>(kernels::kScorePad);
      std::vector<float> columns(static_cast<std::size_t>(in) * kPad, 0.0f);  // [in, pad]
      for (std::int64_t c = 0; c < in; ++c)
        for (std::int64_t t = 0; t < kTaps; ++t)
          columns[static_cast<std::size_t>(c) * kPad + static_cast<std::size_t>(t)] =
              weight[static_cast<std::size_t>(c * kTaps + t)];
      float* packed = packed_.take(tokens::packed_size(static_cast<std::size_t>(in), kPad));
      tokens::pack_rows(columns.data(), kPad, static_cast<std::size_t>(in), kPad, packed);
      weights_.forward[i] = packed;
      weights_.last_bias = bias[0];
    }
  }
}

CostVolume CostScore::forward(Context& context, const FeatureMap& left, const FeatureMap& right,
                              std::int64_t planes, std::int64_t labels) const {
  CostVolume result;
  result.height = left.height;
  result.width = left.width;
  result.planes = planes;
  result.groups = groups_;
  result.labels = labels;
  const std::int64_t cells = result.cells();
  result.correlation = context.take(cells * planes * groups_);
  result.cost = context.take(cells * planes);
  result.probability = context.take(cells * planes);
  result.modals = context.take<std::int64_t>(cells * labels);
  const double values = static_cast<double>(cells * planes);
  context.count(&StageCost::other, 2 * values * static_cast<double>(left.channels));
  context.count(&StageCost::convolution,
                2 * values * kTaps *
                    static_cast<double>(groups_ * hidden1_ + hidden1_ * hidden2_ + hidden2_));
  kernels::VolumeShape shape = result.shape();
  shape.channels = left.channels;
  shape.hidden1 = hidden1_;
  shape.hidden2 = hidden2_;
  const kernels::VolumeOut out{result.correlation.data(), result.cost.data(),
                               result.probability.data(), result.modals.data()};
  context.share(shape.rows(), 1, [&](std::int64_t begin, std::int64_t end, int) {
    kernels::label_volume_forward(shape, left.view(), right.view(), weights_, out, begin, end);
  });
  return result;
}

}  // namespace nmrf
