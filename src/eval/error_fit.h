// Fits the error model of a network (matching/error_model.h) to pixels whose error is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/error_mlp.h"

namespace nmrf {

struct ErrorSamples {
  std::vector<float> features;  // [pixels, ErrorMlp::kFeatures]
  std::vector<float> errors;    // px
  std::size_t size() const { return errors.size(); }
};

struct ErrorFitOptions {
  int epochs = 24;
  int batch = 256;
  double rate = 4e-3;    // of the first step; falls to 0 along a half cosine
  double greatest = 64;  // px: a greater error counts as this in the expected error
  std::uint64_t seed = 1;
};

// Least cross-entropy over the ranges of the error, by Adam. The same seed gives the same model.
// Throws Error(kInput) for fewer than 10,000 pixels.
kernels::ErrorMlp fit_error_model(const ErrorSamples& samples, const ErrorFitOptions& options = {});

// Mean cross-entropy of a model, nats.
double cross_entropy(const kernels::ErrorMlp& mlp, const ErrorSamples& samples);

// The range of an error, px.
std::size_t error_range(float error);

}  // namespace nmrf
