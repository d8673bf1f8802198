#include "rig/charuco.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/aruco/charuco.hpp>
#include <opencv2/calib3d.hpp>
#include <opencv2/imgproc.hpp>

namespace nmrf {
namespace {

struct NamedDictionary {
  const char* name;
  cv::aruco::PREDEFINED_DICTIONARY_NAME value;
};
constexpr std::array<NamedDictionary, 9> kDictionaries{{{"4x4_50", cv::aruco::DICT_4X4_50},
                                                        {"4x4_100", cv::aruco::DICT_4X4_100},
                                                        {"4x4_250", cv::aruco::DICT_4X4_250},
                                                        {"5x5_50", cv::aruco::DICT_5X5_50},
                                                        {"5x5_100", cv::aruco::DICT_5X5_100},
                                                        {"5x5_250", cv::aruco::DICT_5X5_250},
                                                        {"6x6_50", cv::aruco::DICT_6X6_50},
                                                        {"6x6_100", cv::aruco::DICT_6X6_100},
                                                        {"6x6_250", cv::aruco::DICT_6X6_250}}};

cv::Ptr<cv::aruco::Dictionary> dictionary_of(const std::string& name) {
  for (const auto& entry : kDictionaries)
    if (name == entry.name) return cv::aruco::getPredefinedDictionary(entry.value);
  return {};
}

double marker_side(const Board& board) {
  return board.marker > 0 ? board.marker : 0.75 * board.square;
}

struct Markers {
  std::vector<std::vector<cv::Point2f>> corners;
  std::vector<int> ids;
};

Markers find_markers(const cv::Mat& grey, const cv::Ptr<cv::aruco::Dictionary>& dictionary) {
  Markers found;
  cv::aruco::detectMarkers(grey, dictionary, found.corners, found.ids);
  return found;
}

// Derivatives of the grey levels between pixels.
class Slopes {
 public:
  explicit Slopes(const cv::Mat& grey) {
    const cv::Mat across = (cv::Mat_<float>(1, 3) << -0.5f, 0.0f, 0.5f);
    cv::filter2D(grey, x_, CV_32F, across, {-1, -1}, 0, cv::BORDER_REPLICATE);
    cv::filter2D(grey, y_, CV_32F, across.t(), {-1, -1}, 0, cv::BORDER_REPLICATE);
  }
  // False outside.
  bool at(const cv::Point2d& p, cv::Vec2d& slope) const {
    const int left = static_cast<int>(std::floor(p.x)), top = static_cast<int>(std::floor(p.y));
    if (left < 0 || top < 0 || left + 1 >= x_.cols || top + 1 >= x_.rows) return false;
    const double u = p.x - left, v = p.y - top;
    auto between = [&](const cv::Mat& map) {
      const float *a = map.ptr<float>(top) + left, *b = map.ptr<float>(top + 1) + left;
      return (1 - v) * ((1 - u) * a[0] + u * a[1]) + v * ((1 - u) * b[0] + u * b[1]);
    };
    slope = {between(x_), between(y_)};
    return true;
  }

 private:
  cv::Mat x_, y_;
};

// Moves a corner to where the edges of its four squares meet: there, slopes are at right angles to
// the way to the corner (Förstner). Markers have edges of their own, a few pixels beside those of
// the squares, which would draw it off: they are known by their slope, which has the other sign.
// along: a square's sides in the image, px; gap: between a marker and its square's edge, in
// squares.
class CornerPlacer {
 public:
  CornerPlacer(const Slopes& slopes, const cv::Vec2d (&along)[2], double gap) : slopes_(slopes) {
    for (int arm = 0; arm < 2; ++arm) {
      const double length = cv::norm(along[arm]), across = cv::norm(along[1 - arm]);
      forth_[arm] = along[arm] / length;
      reach_[arm] = std::min(0.4 * length, kMostReach);
      half_[arm] = std::clamp(gap * across, 1.0, 3.0);
      good_ = good_ && length >= kLeastSide;
    }
  }

  bool place(cv::Point2f& corner) const {
    if (!good_) return false;
    cv::Point2d at = corner;
    for (int round = 0; round < 30; ++round) {
      const cv::Point2d from = at;
      // Which two of the four squares are black.
      double black = 0;
      bool inside =
          samples(from, [&](const cv::Vec2d&, const cv::Vec2d&, double rise) { black += rise; });
      cv::Matx22d normal = cv::Matx22d::zeros();
      cv::Vec2d side(0, 0);
      inside = inside && samples(from, [&](const cv::Vec2d& off, const cv::Vec2d& g, double rise) {
                 if (rise * black <= 0) return;
                 const cv::Matx22d weight(g[0] * g[0], g[0] * g[1], g[0] * g[1], g[1] * g[1]);
                 normal += weight;
                 side += weight * off;
               });
      if (!inside) return false;
      const double determinant = cv::determinant(normal), trace = normal(0, 0) + normal(1, 1);
      if (determinant <= 1e-3 * trace * trace) return false;  // an edge, not a corner
      const cv::Vec2d step = normal.inv() * side;
      at += cv::Point2d(step[0], step[1]);
      if (cv::norm(at - cv::Point2d(corner)) > kMostMoved) return false;
      if (cv::norm(step) > 0.003) continue;
      corner = at;
      return true;
    }
    return false;
  }

 private:
  static constexpr double kStep = 0.5, kMostReach = 14, kMostMoved = 2.5, kLeastSide = 6;  // px

  // Calls use(place relative to the corner, slope there, slope across the edge; the same sign for
  // all four edges) along the edges. False when some lie outside.
  template <class Use>
  bool samples(const cv::Point2d& corner, const Use& use) const {
    for (int arm = 0; arm < 2; ++arm) {
      const cv::Vec2d &forth = forth_[arm], &beside = forth_[1 - arm];
      for (double t = half_[arm]; t <= reach_[arm]; t += kStep)
        for (double n = -half_[arm]; n <= half_[arm] + 1e-9; n += kStep)
          for (double way : {-1.0, 1.0}) {
            const cv::Vec2d off = way * t * forth + n * beside;
            cv::Vec2d slope;
            if (!slopes_.at({corner.x + off[0], corner.y + off[1]}, slope)) return false;
            use(off, slope, way * slope.dot(beside));
          }
    }
    return true;
  }

  const Slopes& slopes_;
  cv::Vec2d forth_[2];
  double reach_[2], half_[2];
  bool good_ = true;
};

// Places all corners of a view; those that cannot be placed are left out.
void refine(const cv::Mat& grey, const Board& board, BoardView& view) {
  std::vector<cv::Point2f> on_board;
  for (int id : view.ids) {
    const cv::Point3f p = board.point(id);
    on_board.emplace_back(static_cast<float>(p.x / board.square),
                          static_cast<float>(p.y / board.square));
  }
  if (view.ids.size() < 4) return;
  const cv::Mat found = cv::findHomography(on_board, view.points, cv::RANSAC, 3);
  if (found.empty()) return;
  const cv::Matx33d h(found);
  auto seen = [&](double x, double y) {
    const cv::Vec3d p = h * cv::Vec3d(x, y, 1);
    return cv::Vec2d(p[0] / p[2], p[1] / p[2]);
  };
  const double gap = (1 - marker_side(board) / board.square) / 2;
  const Slopes slopes(grey);
  BoardView placed;
  for (std::size_t i = 0; i < view.ids.size(); ++i) {
    const double x = on_board[i].x, y = on_board[i].y;
    const cv::Vec2d along[2] = {seen(x + 0.5, y) - seen(x - 0.5, y),
                                seen(x, y + 0.5) - seen(x, y - 0.5)};
    cv::Point2f corner = view.points[i];
    if (!CornerPlacer(slopes, along, gap).place(corner)) continue;
    placed.ids.push_back(view.ids[i]);
    placed.points.push_back(corner);
  }
  view = std::move(placed);
}

}  // namespace

std::string charuco_dictionaries() {
  std::string names;
  for (const auto& entry : kDictionaries)
    names += std::string(names.empty() ? "" : ", ") + entry.name;
  return names;
}

bool is_charuco_dictionary(const std::string& name) { return !dictionary_of(name).empty(); }

BoardView find_charuco(const cv::Mat& grey, const Board& board) {
  const auto dictionary = dictionary_of(board.dictionary);
  const auto layout = cv::aruco::CharucoBoard::create(
      board.columns + 1, board.rows + 1, static_cast<float>(board.square),
      static_cast<float>(marker_side(board)), dictionary);
  const Markers markers = find_markers(grey, dictionary);
  BoardView view;
  if (markers.ids.empty()) return view;
  cv::aruco::interpolateCornersCharuco(markers.corners, markers.ids, grey, layout, view.points,
                                       view.ids);
  refine(grey, board, view);
  return view;
}

std::string charuco_doubt(const cv::Mat& grey, const Board& board) {
  constexpr std::size_t kSome = 4;  // markers that are no accident
  const int most = (board.columns + 1) * (board.rows + 1) / 2;
  const Markers own = find_markers(grey, dictionary_of(board.dictionary));
  if (own.ids.size() >= kSome) {
    const int greatest = *std::max_element(own.ids.begin(), own.ids.end());
    if (greatest < most) return "";
    return fmt::format("shows marker {}, but a board of {}x{} inner corners has markers 0 to {}",
                       greatest, board.columns, board.rows, most - 1);
  }
  cv::Mat mirrored;
  cv::flip(grey, mirrored, 1);
  if (find_markers(mirrored, dictionary_of(board.dictionary)).ids.size() >= kSome)
    return "shows the board mirrored, as front cameras often deliver it: turn mirroring off";
  for (const char* name : {"4x4_250", "5x5_250", "6x6_250"}) {  // they hold the smaller ones
    if (find_markers(grey, dictionary_of(name)).ids.size() < kSome) continue;
    return fmt::format("shows markers of the dictionary {}, or a smaller one of its kind", name);
  }
  return "";
}

}  // namespace nmrf
