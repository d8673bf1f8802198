// `nmrf eval --sequences`: what nmrf::Sequence gains over frame by frame.
#pragma once

#include <filesystem>

#include "cli/eval_study.h"

namespace nmrf::cli {

struct SequenceSettings : StudySettings {
  std::filesystem::path folder;  // of `nmrf synth --frames`
};

// Matches every frame both ways, in turn, and prints time, errors and temporal noise. Sequences
// follow each other without a word, as cuts. Returns the exit code.
int run_sequences(const SequenceSettings& settings);

}  // namespace nmrf::cli
