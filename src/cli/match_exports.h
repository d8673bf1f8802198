// Results of `nmrf match` in the forms of other tools: --export.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/match_settings.h"
#include "io/pair_source.h"
#include "nmrf/geometry.h"

namespace nmrf::cli {

// One matched pair with its calibration; maps and image of one size.
struct ExportInput {
  const InputPair& pair;
  const Disparity& result;
  const ImageView& image;  // of the left camera
  const Calibration& calibration;
  const FloatMap& depth;  // metres
  const std::vector<Point>& points;
};

class Exporter {
 public:
  // Names a file in the output folder, by the pair's stem and a suffix; and notes a file in the
  // report.
  using Companion = std::function<std::filesystem::path(const std::string& suffix)>;
  using Note = std::function<void(const std::filesystem::path& file)>;

  // frame_rate: of a video; pictures count as 30 frames per second.
  Exporter(const ExportSettings& settings, std::optional<double> frame_rate)
      : s_(settings), frame_rate_(frame_rate.value_or(30)) {}
  bool wanted() const { return !s_.formats.empty(); }
  void write(const ExportInput& input, const Companion& companion, const Note& note);

 private:
  void write_colmap(const ExportInput& input, const std::filesystem::path& folder,
                    const Note& note) const;
  void write_tum(const ExportInput& input, const std::filesystem::path& folder, const Note& note);
  void write_ros(const ExportInput& input, const std::filesystem::path& folder,
                 const Note& note) const;

  const ExportSettings& s_;
  double frame_rate_;
  std::string tum_rgb_, tum_depth_;  // lines of the two lists
};

}  // namespace nmrf::cli
