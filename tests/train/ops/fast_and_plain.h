// Compares the fast form of an operator with its plain form in double precision.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "kernels/targets.h"

// After targets.h, which says what the kernels were compiled for.
#include <hwy/highway.h>

namespace nmrf::ops::test {

using Tensors = std::vector<torch::Tensor>;

// Runs a body on every SIMD target of this machine, with one and with two threads; else tests have
// one.
inline void on_every_target(const std::function<void()>& body) {
  const int threads = at::get_num_threads();
  const auto targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    for (int count : {1, 2}) {
      at::set_num_threads(count);
      SCOPED_TRACE(std::string(hwy::TargetName(target)) + ", threads " + std::to_string(count));
      body();
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  at::set_num_threads(threads);
}

inline torch::Tensor random(at::IntArrayRef sizes, double scale = 1) {
  return torch::randn(sizes, torch::kFloat) * scale;
}

// The largest difference over the largest value.
inline double relative(const torch::Tensor& ours, const torch::Tensor& reference) {
  if (reference.numel() == 0) return 0;
  auto difference = (ours.to(torch::kDouble) - reference).abs().max().item<double>();
  return difference / std::max(reference.abs().max().item<double>(), 1e-6);
}

constexpr double kTolerance = 1e-4;

// `call` maps inputs to results; all defined inputs get gradients unless listed in `frozen`, and
// keep their strides. Compares results and gradients of the fast form in float, on every SIMD
// target with one and with two threads, with those of the plain form in double.
inline void compare(const Tensors& inputs, const std::function<Tensors(const Tensors&)>& call,
                    const std::vector<std::size_t>& frozen = {}) {
  Tensors weights;
  auto run = [&](torch::ScalarType type, Tensors& results) {
    Tensors leaves;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool fixed = std::find(frozen.begin(), frozen.end(), i) != frozen.end();
      leaves.push_back(inputs[i].defined() ? inputs[i].detach().to(type).requires_grad_(!fixed)
                                           : torch::Tensor());
    }
    results = call(leaves);
    torch::Tensor loss = torch::zeros({}, type);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (weights.size() == i) weights.push_back(random(results[i].sizes()));
      loss = loss + (results[i] * weights[i].to(type)).sum();
    }
    loss.backward();
    Tensors gradients;
    for (const auto& leaf : leaves)
      gradients.push_back(leaf.defined() ? leaf.grad() : torch::Tensor());
    return gradients;
  };
  Tensors reference;
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto gradients = run(torch::kDouble, reference);
  at::set_num_threads(threads);
  on_every_target([&] {
    Tensors ours;
    const auto our_gradients = run(torch::kFloat, ours);
    ASSERT_EQ(ours.size(), reference.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].sizes(), reference[i].sizes());
      EXPECT_LT(relative(ours[i].detach(), reference[i].detach()), kTolerance) << "result " << i;
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      ASSERT_EQ(our_gradients[i].defined(), gradients[i].defined()) << "gradient " << i;
      if (!gradients[i].defined()) continue;
      ASSERT_EQ(our_gradients[i].sizes(), gradients[i].sizes()) << "gradient " << i;
      EXPECT_LT(relative(our_gradients[i], gradients[i]), kTolerance) << "gradient " << i;
    }
  });
}

}  // namespace nmrf::ops::test
