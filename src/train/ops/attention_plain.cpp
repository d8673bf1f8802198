#include "train/ops/attention_plain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace nmrf::ops::plain {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
// Scores of one chunk: 2^24 floats, 64 MB. Bounds the memory of large images; no effect on results.
constexpr int64_t kScoresAtOnce = int64_t{1} << 24;

// [P, P]: row of the position table for (query pixel, key pixel) of an M x M window.
torch::Tensor relative_index(int64_t window, torch::Device device) {
  auto pixel = torch::arange(window * window, torch::TensorOptions(torch::kLong).device(device));
  auto row = pixel.div(window, "floor"), column = pixel.remainder(window);
  auto dy = row.unsqueeze(1) - row.unsqueeze(0) + window - 1;
  auto dx = column.unsqueeze(1) - column.unsqueeze(0) + window - 1;
  return dy * (2 * window - 1) + dx;
}

// [windows, P, P], true where two pixels of a shifted window come from opposite borders of the
// grid.
torch::Tensor foreign_pixels(int64_t height, int64_t width, int64_t window, int64_t shift,
                             torch::Device device) {
  auto regions = [&](int64_t size) {
    auto at = torch::arange(size, torch::TensorOptions(torch::kLong).device(device));
    return (at >= size - window).to(torch::kLong) + (at >= size - shift).to(torch::kLong);
  };
  auto region = regions(height).unsqueeze(1) * 3 + regions(width).unsqueeze(0);  // [H, W]
  auto windows = region.view({height / window, window, width / window, window})
                     .permute({0, 2, 1, 3})
                     .reshape({-1, window * window});
  return windows.unsqueeze(1) != windows.unsqueeze(2);
}

// [n * k, n * k], true for two different labels of one pixel.
torch::Tensor rival_labels(int64_t pixels, int64_t k, torch::Device device) {
  auto token = torch::arange(pixels * k, torch::TensorOptions(torch::kLong).device(device));
  auto pixel = token.div(k, "floor");
  return (pixel.unsqueeze(1) == pixel.unsqueeze(0)) & (token.unsqueeze(1) != token.unsqueeze(0));
}

// One chunk of windows. q, k, v: [N, heads, P, k, D]; mask: bool, broadcastable to
// [N, 1, P, k, P, k] or undefined -> [N, heads, P, k, D].
torch::Tensor attend_windows(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                             const RelativePosition& position, const torch::Tensor& index,
                             const torch::Tensor& mask) {
  const int64_t n = q.size(0), heads = q.size(1), pixels = q.size(2), labels = q.size(3),
                depth = q.size(4), tokens = pixels * labels;
  const double scale = 1.0 / std::sqrt(static_cast<double>(depth));
  auto flat = [&](const torch::Tensor& x) { return x.reshape({n, heads, tokens, depth}); };
  // [heads, P, N * k, D]: the products with an encoding are shared by all windows and labels.
  auto by_pixel = [&](const torch::Tensor& x) {
    return x.permute({1, 2, 0, 3, 4}).reshape({heads, pixels, n * labels, x.size(4)});
  };
  // Encodings of (query, key): [P, P, heads, D].
  auto encoding = [&](const torch::Tensor& table) {
    return table.index_select(0, index.view(-1)).view({pixels, pixels, heads, depth});
  };

  auto logits = torch::matmul(flat(q) * scale, flat(k).transpose(2, 3))
                    .view({n, heads, pixels, labels, pixels, labels});
  if (position.key.defined()) {
    auto table = encoding(position.key).permute({2, 0, 3, 1});  // [heads, Pq, D, Pk]
    auto term = torch::matmul(by_pixel(q) * scale, table);      // [heads, Pq, N k, Pk]
    logits = logits + term.view({heads, pixels, n, labels, pixels, 1}).permute({2, 0, 1, 3, 4, 5});
  }
  if (position.query.defined()) {
    auto table = encoding(position.query).permute({2, 1, 3, 0});  // [heads, Pk, D, Pq]
    auto term = torch::matmul(by_pixel(k) * scale, table);        // [heads, Pk, N k, Pq]
    logits = logits + term.view({heads, pixels, n, labels, pixels, 1}).permute({2, 0, 4, 5, 1, 3});
  }
  if (position.bias.defined()) {
    auto bias = position.bias.index_select(0, index.view(-1)).view({pixels, pixels, heads});
    logits = logits + bias.permute({2, 0, 1}).view({1, heads, pixels, 1, pixels, 1});
  }
  if (mask.defined()) logits = logits.masked_fill(mask, kMinusInfinity);
  auto weights = logits.view({n, heads, tokens, tokens}).softmax(-1);
  auto message = torch::matmul(weights, flat(v)).view({n, heads, pixels, labels, depth});
  if (position.value.defined()) {
    auto by_key = weights.view({n, heads, pixels, labels, pixels, labels}).sum(-1);
    auto table = encoding(position.value).permute({2, 0, 1, 3});  // [heads, Pq, Pk, D]
    auto term = torch::matmul(by_pixel(by_key), table).view({heads, pixels, n, labels, depth});
    message = message + term.permute({2, 0, 1, 3, 4});
  }
  return message;
}

// Attention along the rows of [B, H, W, k, C] with the locally-enhanced term; filter: [C, 3].
torch::Tensor attend_rows(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                          int64_t heads, const torch::Tensor& filter) {
  const int64_t batch = q.size(0), height = q.size(1), width = q.size(2), labels = q.size(3),
                channels = q.size(4), depth = channels / heads, tokens = width * labels;
  const double scale = 1.0 / std::sqrt(static_cast<double>(depth));
  auto stripes = [&](const torch::Tensor& x) {
    return x.reshape({batch * height, tokens, heads, depth}).transpose(1, 2);
  };
  auto qs = stripes(q), ks = stripes(k), vs = stripes(v);
  auto mask = labels > 1 ? rival_labels(width, labels, q.device()) : torch::Tensor();
  const int64_t chunk = std::max<int64_t>(1, kScoresAtOnce / (heads * tokens * tokens));
  std::vector<torch::Tensor> parts;
  for (int64_t begin = 0; begin < batch * height; begin += chunk) {
    const int64_t count = std::min(chunk, batch * height - begin);
    auto logits = torch::matmul(qs.narrow(0, begin, count) * scale,
                                ks.narrow(0, begin, count).transpose(2, 3));
    if (mask.defined()) logits = logits.masked_fill(mask, kMinusInfinity);
    parts.push_back(torch::matmul(logits.softmax(-1), vs.narrow(0, begin, count)));
  }
  auto message =
      torch::cat(parts, 0).transpose(1, 2).reshape({batch, height, width, labels, channels});

  auto sums = v.sum(3);  // [B, H, W, C]
  auto before = torch::constant_pad_nd(sums.narrow(2, 0, width - 1), {0, 0, 1, 0});
  auto after = torch::constant_pad_nd(sums.narrow(2, 1, width - 1), {0, 0, 0, 1});
  auto neighbours = before * filter.select(1, 0) + after * filter.select(1, 2);
  return message + neighbours.unsqueeze(3) + v * filter.select(1, 1);
}

}  // namespace

torch::Tensor window_attention(const torch::Tensor& qkv, int64_t heads, int64_t window,
                               int64_t shift, const RelativePosition& position, OwnPixel own) {
  const int64_t batch = qkv.size(0), height = qkv.size(1), width = qkv.size(2), k = qkv.size(3),
                channels = qkv.size(4) / 3, depth = channels / heads;
  const int64_t rows = height / window, columns = width / window, pixels = window * window,
                windows = rows * columns, tokens = pixels * k;
  TORCH_CHECK(height % window == 0 && width % window == 0, "grid is no multiple of the window");

  auto shifted = shift > 0 ? qkv.roll({-shift, -shift}, {1, 2}) : qkv;
  auto parts = shifted.reshape({batch, rows, window, columns, window, k, 3, heads, depth})
                   .permute({6, 0, 1, 3, 7, 2, 4, 5, 8})
                   .reshape({3, batch * windows, heads, pixels, k, depth});

  auto index = relative_index(window, qkv.device());
  torch::Tensor rivals, foreign;
  if (own == OwnPixel::kItself && k > 1)
    rivals = rival_labels(pixels, k, qkv.device()).view({1, 1, pixels, k, pixels, k});
  if (shift > 0)
    foreign = foreign_pixels(height, width, window, shift, qkv.device())
                  .view({windows, 1, pixels, 1, pixels, 1});

  const int64_t chunk = std::max<int64_t>(1, kScoresAtOnce / (heads * tokens * tokens));
  std::vector<torch::Tensor> messages;
  for (int64_t image = 0; image < batch; ++image) {
    for (int64_t begin = 0; begin < windows; begin += chunk) {
      const int64_t count = std::min(chunk, windows - begin);
      auto part = parts.narrow(1, image * windows + begin, count);
      torch::Tensor mask = rivals;
      if (foreign.defined()) {
        mask = foreign.narrow(0, begin, count);
        if (rivals.defined()) mask = mask | rivals;
      }
      messages.push_back(attend_windows(part[0], part[1], part[2], position, index, mask));
    }
  }
  auto result = torch::cat(messages, 0)
                    .view({batch, rows, columns, heads, window, window, k, depth})
                    .permute({0, 1, 4, 2, 5, 6, 3, 7})
                    .reshape({batch, height, width, k, channels});
  return shift > 0 ? result.roll({shift, shift}, {1, 2}) : result;
}

torch::Tensor stripe_attention(const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, int64_t heads,
                               const torch::Tensor& column_filter,
                               const torch::Tensor& row_filter) {
  const int64_t half = q.size(4) / 2;
  auto first = [&](const torch::Tensor& x) { return x.narrow(4, 0, half).transpose(1, 2); };
  auto second = [&](const torch::Tensor& x) { return x.narrow(4, half, half); };
  auto column = attend_rows(first(q), first(k), first(v), heads / 2, column_filter);
  auto row = attend_rows(second(q), second(k), second(v), heads / 2, row_filter);
  return torch::cat({column.transpose(1, 2), row}, 4);
}

torch::Tensor label_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, int64_t heads) {
  const int64_t labels = q.size(3), channels = q.size(4), depth = channels / heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(depth));
  auto split = [&](const torch::Tensor& x) {
    return x.reshape({-1, labels, heads, depth}).transpose(1, 2);
  };
  auto weights = torch::matmul(split(q) * scale, split(k).transpose(2, 3)).softmax(-1);
  return torch::matmul(weights, split(v)).transpose(1, 2).reshape(q.sizes());
}

}  // namespace nmrf::ops::plain
