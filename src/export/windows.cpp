#include "export/windows.h"

namespace nmrf::graph {

WindowGrid::WindowGrid(Graph& graph, const Grid& grid, std::int64_t window, std::int64_t labels,
                       std::int64_t views, Border border)
    : graph_(graph), grid_(grid), window_(window), labels_(labels), views_(views) {
  const Size more_rows = missing_to_multiple(grid.height, window),
             more_columns = missing_to_multiple(grid.width, window);
  const bool around = border == Border::kAround;
  top_ = around ? more_rows / 2 : Size(0);
  bottom_ = more_rows - top_;
  left_ = around ? more_columns / 2 : Size(0);
  right_ = more_columns - left_;
  padded_ = {grid.height + more_rows, grid.width + more_columns};
  tokens_ = padded_.cells() * (labels * views);
  rows_ = padded_.height / window * views;
  columns_ = padded_.width / window;
}

Value WindowGrid::once(const std::string& key, const std::function<Value()>& make) {
  const auto found = made_.find(key);
  return found != made_.end() ? found->second : made_.emplace(key, make()).first->second;
}

Value WindowGrid::to_windows(const Value& rows, std::int64_t labels) {
  const Value split = graph_.reshape(rows, {rows_, window_, columns_, window_, labels});
  return graph_.transpose(split, {0, 2, 4, 1, 3});
}

Value WindowGrid::rolled(const Value& rows, const Size& by_rows, const Size& by_columns) {
  auto roll = [&](const Value& x, std::int64_t axis, const Size& by, const Size& size) {
    return graph_.concat({graph_.slice(x, axis, by, size), graph_.slice(x, axis, 0, by)}, axis);
  };
  return roll(roll(rows, 1, by_rows, padded_.height), 2, by_columns, padded_.width);
}

Value WindowGrid::order(std::int64_t shift) {
  return once("order" + std::to_string(shift), [&] {
    Value token =
        graph_.reshape(graph_.range(tokens_), {views_, padded_.height, padded_.width, labels_});
    if (shift > 0) token = rolled(token, shift, shift);
    return graph_.reshape(to_windows(token, labels_), {tokens_});
  });
}

Value WindowGrid::places(std::int64_t shift) {
  return once("places" + std::to_string(shift), [&] {
    const Value place =
        graph_.reshape(graph_.range(tokens_), {rows_, columns_, labels_, window_, window_});
    Value token = graph_.reshape(graph_.transpose(place, {0, 3, 1, 4, 2}),
                                 {views_, padded_.height, padded_.width, labels_});
    if (shift > 0) token = rolled(token, padded_.height - shift, padded_.width - shift);
    return token;  // [views, H, W, k]
  });
}

Value WindowGrid::token_places(std::int64_t shift) {
  return graph_.reshape(places(shift), {tokens_});
}

Value WindowGrid::pad(const Value& tokens, std::int64_t channels) {
  const Value rows =
      graph_.reshape(tokens, {views_, grid_.height, grid_.width, labels_ * channels});
  const Value padded = graph_.pad(rows, {0, top_, left_, 0}, {0, bottom_, right_, 0}, "constant");
  return graph_.reshape(padded, {tokens_, channels});
}

Value WindowGrid::inner(const Value& rows) {
  const Value cut = graph_.slice(rows, 1, top_, top_ + grid_.height);
  return graph_.slice(cut, 2, left_, left_ + grid_.width);
}

Value WindowGrid::crop(const Value& tokens, std::int64_t channels) {
  Value rows = graph_.reshape(tokens, {views_, padded_.height, padded_.width, labels_ * channels});
  return graph_.reshape(inner(rows), {grid_.cells() * (labels_ * views_), channels});
}

Value WindowGrid::enter(const Value& tokens, std::int64_t channels, std::int64_t shift) {
  return graph_.gather(pad(tokens, channels), order(shift), 0);
}

Value WindowGrid::change(const Value& tokens, std::int64_t from, std::int64_t to) {
  if (from == to) return tokens;
  const Value index = once("change" + std::to_string(from) + "to" + std::to_string(to),
                           [&] { return graph_.gather(token_places(from), order(to), 0); });
  return graph_.gather(tokens, index, 0);
}

Value WindowGrid::leave(const Value& tokens, std::int64_t shift) {
  const Value index = once("leave" + std::to_string(shift), [&] {
    return graph_.reshape(inner(places(shift)), {grid_.cells() * (labels_ * views_)});
  });
  return graph_.gather(tokens, index, 0);
}

Value WindowGrid::rivals() {
  return once("rivals", [&] {
    std::vector<std::int64_t> token, pixel;
    for (std::int64_t i = 0; i < labels_ * pixels(); ++i) {
      token.push_back(i);
      pixel.push_back(i % pixels());
    }
    return graph_.reshape(rival_mask(graph_, graph_.ints(token), graph_.ints(pixel)),
                          {labels_, pixels(), labels_, pixels()});
  });
}

Value WindowGrid::foreigners(std::int64_t shift) {
  return once("foreigners" + std::to_string(shift), [&] {
    auto regions = [&](const Size& size) {
      const Value at = graph_.range(size);
      auto from = [&](const Size& first) {
        const Value before = graph_.less(at, graph_.sizes({first}));
        return graph_.cast(graph_.negate(before), Type::kInt64);
      };
      return graph_.add(from(size - window_), from(size - shift));
    };
    Value region =
        graph_.add(graph_.mul(graph_.unsqueeze(regions(padded_.height), {1}), graph_.integer(3)),
                   graph_.unsqueeze(regions(padded_.width), {0}));
    if (views_ > 1)
      region = graph_.concat(std::vector<Value>(static_cast<std::size_t>(views_), region), 0);
    const Value windows = graph_.reshape(to_windows(region, 1), {this->windows(), pixels()});
    const Value same =
        graph_.equal(graph_.unsqueeze(windows, {1, 2, 4}), graph_.unsqueeze(windows, {1, 2, 3}));
    // [windows, 1, 1, P, P]
    return graph_.unsqueeze(graph_.where(same, graph_.scalar(0, graph_.working()),
                                         graph_.scalar(kUnseen, graph_.working())),
                            {4});
  });
}

}  // namespace nmrf::graph
