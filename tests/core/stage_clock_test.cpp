#include "core/stage_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace nmrf {
namespace {

void spend(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(StageClock, AnInnerStageIsNotCountedForTheOuterOne) {
  StageClock clock;
  {
    StageScope outer("outer");
    in_stage("inner", [] { return spend(40); });
    in_stage("inner", [] { return spend(40); });
  }
  ASSERT_EQ(clock.seconds().size(), 2u);
  EXPECT_EQ(clock.seconds()[0].first, "inner");
  EXPECT_EQ(clock.seconds()[1].first, "outer");
  EXPECT_GE(clock.seconds()[0].second, 0.08);
  EXPECT_LT(clock.seconds()[1].second, clock.seconds()[0].second);
}

TEST(StageClock, NothingIsCountedWithoutAClockOrOnAnotherThread) {
  in_stage("before", [] { return 1; });
  StageClock clock;
  std::thread([] { in_stage("elsewhere", [] { return 1; }); }).join();
  EXPECT_TRUE(clock.seconds().empty());
  EXPECT_EQ(in_stage("here", [] { return 7; }), 7);
  ASSERT_EQ(clock.seconds().size(), 1u);
}

}  // namespace
}  // namespace nmrf
