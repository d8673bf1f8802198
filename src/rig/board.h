// Calibration boards and finding them in images.
#pragma once

#include <opencv2/core.hpp>
#include <string>
#include <vector>

namespace nmrf {

enum class BoardKind {
  kChessboard,  // inner corners
  kCircles,     // asymmetric grid of circles
  kCharuco,     // chessboard with ArUco markers in its white squares; may be seen in part
};

struct Board {
  BoardKind kind = BoardKind::kChessboard;
  // Inner corners of a chessboard; circles per row and rows of an asymmetric grid.
  int columns = 9, rows = 6;
  double square = 0.025;  // metres: side of a square; half the distance of circles in a row
  double marker = 0;      // metres: side of a marker; 0: three quarters of a square
  std::string dictionary = "4x4_50";

  // Throws Error(kUsage).
  void validate() const;
  int points() const { return columns * rows; }
  // Of point i, in metres, z = 0.
  cv::Point3f point(int i) const;
};

// Points of a board in an image and which they are, in increasing order; none when it is not found.
struct BoardView {
  std::vector<int> ids;
  std::vector<cv::Point2f> points;  // px
  bool found() const { return !ids.empty(); }
};

// grey: CV_8UC1.
BoardView find_board(const cv::Mat& grey, const Board& board);

// Why the board may not be found in an image: it is of another size, mirrored, or has other
// markers. A sentence that begins after the image's name; empty: no idea.
std::string board_doubt(const cv::Mat& grey, const Board& board);

}  // namespace nmrf
