// The one exception type of the library.
#pragma once

#include <stdexcept>
#include <string>

#include "nmrf/export.h"

namespace nmrf {

// Kind of error. The values are the exit codes of the command `nmrf`.
enum class ErrorKind {
  kFailure = 1,      // any other run-time failure
  kUsage = 2,        // invalid or contradictory arguments
  kInput = 3,        // an image, calibration, data set or other input file
  kModel = 4,        // a weight file or model options
  kDevice = 5,       // no such device, or not enough memory
  kCancelled = 130,  // the caller asked to stop
};

// Thrown by every function of the library that fails. `what()` is a full sentence for the user:
// what was wrong, where, what was expected, what to try.
class NMRF_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }
  int exit_code() const noexcept { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

}  // namespace nmrf
