// Plain text lists of file names: one item per line, columns separated by blanks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace nmrf {

struct ListLine {
  int number = 0;                    // in the file, from 1
  std::vector<std::string> columns;  // at least one
};

// Reads a list. `#` at the start of a column begins a comment; empty lines are skipped; a column in
// double quotes may hold blanks. Throws Error(kInput) naming file and line for an open quote, and
// when the file is missing or larger than 256 MB.
std::vector<ListLine> read_list(const std::filesystem::path& path);

}  // namespace nmrf
