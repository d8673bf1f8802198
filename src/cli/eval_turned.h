// `nmrf eval --turn`: what `--rectify auto` makes of pairs whose cameras were turned.
#pragma once

#include <cstdint>

#include "cli/eval_study.h"

namespace nmrf::cli {

struct TurnedSettings : StudySettings {
  double degrees = 1;  // each camera, about each axis, at most
  std::uint64_t seed = 1;
};

// Turns the cameras of rectified pairs at random, rectifies what they see by features, and compares
// the maps with the truth of the pairs as they were. Prints the errors beside those of the pairs as
// they were and of the pairs turned back by the known turns. Returns the exit code.
int run_turned(const TurnedSettings& settings);

}  // namespace nmrf::cli
