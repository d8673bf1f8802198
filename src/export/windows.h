// Message passing inside windows works on tokens in the order of the windows: [window, label,
// pixel]. One Gather per layer turns the order of one layer into that of the next.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "export/graph.h"
#include "export/layers.h"

namespace nmrf::graph {

class WindowGrid {
 public:
  enum class Border { kAround, kBehind };  // half of it before the grid, or all of it behind
  // views: grids of one size, one after another.
  WindowGrid(Graph& graph, const Grid& grid, std::int64_t window, std::int64_t labels,
             std::int64_t views = 1, Border border = Border::kAround);

  // Tokens [h * w * k, channels] with zeros around them, in the windows of a shift.
  Value enter(const Value& tokens, std::int64_t channels, std::int64_t shift);
  // From the windows of one shift to those of another.
  Value change(const Value& tokens, std::int64_t from, std::int64_t to);
  // Back to rows of cells, without the border.
  Value leave(const Value& tokens, std::int64_t shift);
  // The same border for tokens that stay in rows.
  Value pad(const Value& tokens, std::int64_t channels);
  Value crop(const Value& tokens, std::int64_t channels);

  Size windows() const { return rows_ * columns_; }  // of all views
  std::int64_t window() const { return window_; }
  std::int64_t pixels() const { return window_ * window_; }
  std::int64_t labels() const { return labels_; }
  // The padded grid.
  const Grid& padded() const { return padded_; }
  // For tokens of the padded grid, in rows: their places in the order of a shift.
  Value token_places(std::int64_t shift);
  // For places in that order: their tokens.
  Value order(std::int64_t shift);

  // Terms of logits [windows, heads, label, pixel, label, pixel] that exclude: labels of one pixel
  // [k, P, k, P], and pixels from opposite borders of a shifted grid [windows, 1, 1, P, 1, P].
  Value rivals();
  Value foreigners(std::int64_t shift);

 private:
  Value places(std::int64_t shift);  // the same as [views, H, W, k]
  // [views, H, W, n] -> [views * H / M, W / M, n, M, M]
  Value to_windows(const Value& rows, std::int64_t labels);
  // Rolled along both axes of [views, H, W, ...].
  Value rolled(const Value& rows, const Size& by_rows, const Size& by_columns);
  // [views, H, W, ...] without the border.
  Value inner(const Value& rows);
  Value once(const std::string& key, const std::function<Value()>& make);

  Graph& graph_;
  Grid grid_, padded_;
  std::int64_t window_, labels_, views_;
  Size tokens_;  // of all padded grids
  Size top_, bottom_, left_, right_, rows_, columns_;
  std::map<std::string, Value> made_;
};

}  // namespace nmrf::graph
