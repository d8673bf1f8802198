// `nmrf eval --sequences`: what nmrf::Sequence gains over frame by frame.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "nmrf/matcher.h"

namespace nmrf::cli {

struct SequenceSettings {
  std::filesystem::path folder;  // of `nmrf synth --frames`
  std::string model;
  MatcherOptions matcher;
  std::optional<double> scale;
  std::size_t count = SIZE_MAX;  // sequences, at most
  std::string json;              // file, "-" for stdout, or empty
  bool quiet = false;
};

// Matches every frame both ways, in turn, and prints time, errors and temporal noise. Sequences
// follow each other without a word, as cuts. Returns the exit code.
int run_sequences(const SequenceSettings& settings);

}  // namespace nmrf::cli
