// Runs a test on every instruction set of this machine.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "kernels/targets.h"

// After targets.h, which says what the kernels were compiled for.
#include <hwy/highway.h>

namespace nmrf {

inline void on_every_target(const std::function<void()>& body) {
  const auto targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (std::int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace nmrf
