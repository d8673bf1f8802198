// ChArUco boards: chessboards with ArUco markers in their white squares.
#pragma once

#include <string>

#include "rig/board.h"

namespace nmrf {

// Names of the known dictionaries of markers, separated by commas.
std::string charuco_dictionaries();
bool is_charuco_dictionary(const std::string& name);

// grey: CV_8UC1.
BoardView find_charuco(const cv::Mat& grey, const Board& board);

// Why the board may not be found: the image is mirrored, or its markers are those of another board
// or dictionary. A sentence that begins after the image's name; empty: no idea.
std::string charuco_doubt(const cv::Mat& grey, const Board& board);

}  // namespace nmrf
