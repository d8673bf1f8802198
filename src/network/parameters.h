// Where the parameters of a network come from. The constructors of the stages name every parameter
// and its shape; that is the one description of the architecture, and lists, checks and weights by
// formula are all derived from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/tensor_file.h"

namespace nmrf {

struct ParameterSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t elements() const;
};

class Parameters {
 public:
  virtual ~Parameters() = default;
  // The values of a parameter in row-major order; nothing when there are only names.
  virtual std::vector<float> take(const std::string& name, std::vector<std::int64_t> shape) = 0;

  // Token layers made of these parameters work on 8-bit integers (kernels/bytes.h).
  void use_bytes(bool on) { bytes_ = on; }
  bool bytes() const { return bytes_; }

 private:
  bool bytes_ = false;
};

// Remembers what was asked for and gives nothing.
class ParameterList : public Parameters {
 public:
  std::vector<float> take(const std::string& name, std::vector<std::int64_t> shape) override;
  const std::vector<ParameterSpec>& all() const { return specs_; }

 private:
  std::vector<ParameterSpec> specs_;
};

// Reads a weight file that was compared with the list before. Throws Error(kModel) for a tensor
// that holds NaN or infinity.
class StoredParameters : public Parameters {
 public:
  StoredParameters(const TensorFile& file, std::string path)
      : file_(file), path_(std::move(path)) {}
  std::vector<float> take(const std::string& name, std::vector<std::int64_t> shape) override;

 private:
  const TensorFile& file_;
  std::string path_;
};

// What became of every key of a weight file.
struct LoadReport {
  struct Mismatch {
    std::string name, in_file, in_model;  // shapes as text
  };
  std::vector<std::string> used;
  std::vector<std::string> missing;     // parameters the file does not have
  std::vector<std::string> unexpected;  // tensors the network has no place for
  std::vector<std::string> ignored;     // buffers known to hold nothing learned
  std::vector<Mismatch> mismatched;     // same name, other shape
  bool complete() const { return missing.empty() && mismatched.empty(); }
  // A few lines for a person.
  std::string summary() const;
};
LoadReport compare(const std::vector<ParameterSpec>& parameters, const TensorFile& file);

}  // namespace nmrf
