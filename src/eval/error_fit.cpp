#include "eval/error_fit.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "core/rng.h"

namespace nmrf {
namespace {

using kernels::ErrorMlp;
constexpr std::size_t kF = ErrorMlp::kFeatures, kH = ErrorMlp::kHidden, kR = ErrorMlp::kRanges;
constexpr std::size_t kWeights = kH * kF + kH + kR * kH + kR;

// All weights in one array: weight1, bias1, weight2, bias2.
struct Flat {
  std::vector<float> values = std::vector<float>(kWeights, 0.0f);
  float* weight1(std::size_t h) { return values.data() + h * kF; }
  float& bias1(std::size_t h) { return values[kH * kF + h]; }
  float* weight2(std::size_t r) { return values.data() + kH * kF + kH + r * kH; }
  float& bias2(std::size_t r) { return values[kH * kF + kH + kR * kH + r]; }
};

struct Activations {
  float hidden[kH], share[kR];
};

void forward(Flat& net, const float* input, Activations& out) {
  for (std::size_t h = 0; h < kH; ++h) {
    float sum = net.bias1(h);
    for (std::size_t f = 0; f < kF; ++f) sum += net.weight1(h)[f] * input[f];
    out.hidden[h] = std::max(0.0f, sum);
  }
  float most = -1e30f, total = 0;
  for (std::size_t r = 0; r < kR; ++r) {
    out.share[r] = net.bias2(r);
    for (std::size_t h = 0; h < kH; ++h) out.share[r] += net.weight2(r)[h] * out.hidden[h];
    most = std::max(most, out.share[r]);
  }
  for (float& share : out.share) total += share = std::exp(share - most);
  for (float& share : out.share) share /= total;
}

// Adds the gradient of the cross-entropy of one pixel.
void backward(Flat& net, const float* input, std::size_t range, Activations& at, Flat& gradient) {
  float back[kH] = {};
  for (std::size_t r = 0; r < kR; ++r) {
    const float slope = at.share[r] - (r == range ? 1.0f : 0.0f);
    gradient.bias2(r) += slope;
    for (std::size_t h = 0; h < kH; ++h) {
      gradient.weight2(r)[h] += slope * at.hidden[h];
      back[h] += slope * net.weight2(r)[h];
    }
  }
  for (std::size_t h = 0; h < kH; ++h) {
    if (at.hidden[h] <= 0) continue;
    gradient.bias1(h) += back[h];
    for (std::size_t f = 0; f < kF; ++f) gradient.weight1(h)[f] += back[h] * input[f];
  }
}

// Logarithms of the features, of mean 0 and variance 1 but for those that hardly vary.
struct Standardised {
  std::vector<float> values;
  std::array<double, kF> mean{}, scale{};

  explicit Standardised(const ErrorSamples& samples) : values(samples.features) {
    const std::size_t n = samples.size();
    for (float& value : values) value = std::log1p(value);
    for (std::size_t f = 0; f < kF; ++f) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < n; ++i) sum += values[i * kF + f];
      mean[f] = sum / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) squares += std::pow(values[i * kF + f] - mean[f], 2);
      scale[f] = 1 / std::max(0.05, std::sqrt(squares / static_cast<double>(n)));
      for (std::size_t i = 0; i < n; ++i)
        values[i * kF + f] = static_cast<float>((values[i * kF + f] - mean[f]) * scale[f]);
    }
  }
};

// The same function of the logarithms themselves.
ErrorMlp unfolded(Flat& net, const Standardised& data) {
  ErrorMlp mlp;
  for (std::size_t h = 0; h < kH; ++h) {
    double bias = net.bias1(h);
    for (std::size_t f = 0; f < kF; ++f) {
      const double weight = net.weight1(h)[f] * data.scale[f];
      mlp.weight1[h][f] = static_cast<float>(weight);
      bias -= weight * data.mean[f];
    }
    mlp.bias1[h] = static_cast<float>(bias);
  }
  for (std::size_t r = 0; r < kR; ++r) {
    std::copy_n(net.weight2(r), kH, mlp.weight2[r].begin());
    mlp.bias2[r] = net.bias2(r);
  }
  return mlp;
}

}  // namespace

std::size_t error_range(float error) {
  const auto& ends = ErrorMlp::kEnds;
  return static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), error) - ends.begin());
}

ErrorMlp fit_error_model(const ErrorSamples& samples, const ErrorFitOptions& options) {
  const std::size_t n = samples.size();
  check(n >= 10000 && samples.features.size() == n * kF, ErrorKind::kInput,
        "an error model needs at least 10000 pixels of known error; here are {}", n);
  const Standardised data(samples);
  Rng rng(options.seed);
  Flat net, gradient, first, second;
  auto start = [&](float* weights, std::size_t count) {
    const double size = std::sqrt(6.0 / static_cast<double>(count));
    for (std::size_t i = 0; i < count; ++i)
      weights[i] = static_cast<float>((2 * rng.uniform() - 1) * size);
  };
  for (std::size_t h = 0; h < kH; ++h) start(net.weight1(h), kF);
  for (std::size_t r = 0; r < kR; ++r) start(net.weight2(r), kH);

  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto batch = static_cast<std::size_t>(options.batch);
  const std::size_t steps = n / batch;
  const double all = static_cast<double>(steps) * options.epochs;
  double step = 0;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    rng.shuffle(order);
    for (std::size_t s = 0; s < steps; ++s) {
      std::fill(gradient.values.begin(), gradient.values.end(), 0.0f);
      for (std::size_t i = s * batch; i < (s + 1) * batch; ++i) {
        const float* input = data.values.data() + order[i] * kF;
        Activations at;
        forward(net, input, at);
        backward(net, input, error_range(samples.errors[order[i]]), at, gradient);
      }
      ++step;
      const double rate = options.rate * 0.5 * (1 + std::cos(std::numbers::pi * step / all));
      const double correct1 = 1 - std::pow(0.9, step), correct2 = 1 - std::pow(0.999, step);
      for (std::size_t i = 0; i < kWeights; ++i) {
        const float g = gradient.values[i] / static_cast<float>(batch);
        first.values[i] += 0.1f * (g - first.values[i]);
        second.values[i] += 0.001f * (g * g - second.values[i]);
        net.values[i] -= static_cast<float>(rate * first.values[i] / correct1 /
                                            (std::sqrt(second.values[i] / correct2) + 1e-8));
      }
    }
  }

  ErrorMlp mlp = unfolded(net, data);
  std::array<double, kR> sums{}, counts{};
  for (float error : samples.errors) {
    sums[error_range(error)] += std::min<double>(error, options.greatest);
    ++counts[error_range(error)];
  }
  for (std::size_t r = 0; r < kR; ++r)
    mlp.mean[r] = static_cast<float>(counts[r] > 0 ? sums[r] / counts[r]
                                     : r > 0       ? ErrorMlp::kEnds[r - 1]
                                                   : 0);
  return mlp;
}

double cross_entropy(const ErrorMlp& mlp, const ErrorSamples& samples) {
  Flat net;
  for (std::size_t h = 0; h < kH; ++h) {
    std::copy_n(mlp.weight1[h].begin(), kF, net.weight1(h));
    net.bias1(h) = mlp.bias1[h];
  }
  for (std::size_t r = 0; r < kR; ++r) {
    std::copy_n(mlp.weight2[r].begin(), kH, net.weight2(r));
    net.bias2(r) = mlp.bias2[r];
  }
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    float input[kF];
    for (std::size_t f = 0; f < kF; ++f) input[f] = std::log1p(samples.features[i * kF + f]);
    Activations at;
    forward(net, input, at);
    sum -= std::log(std::max(at.share[error_range(samples.errors[i])], 1e-12f));
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, samples.size()));
}

}  // namespace nmrf
