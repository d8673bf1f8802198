// Memory of large tensors: used again within a pass, given back when it is no longer needed.
#include "train/ops/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace nmrf::ops {
namespace {

constexpr int64_t kLarge = 3 << 20;  // floats: far above what takes the usual way

// Fresh pages hold zeros; a block used again holds what was written last.
float first_value(const torch::Tensor& tensor) { return tensor.data_ptr<float>()[0]; }

TEST(Memory, SizesAndStrides) {
  for (int64_t rows : {0, 1, 5, 70000}) {
    auto tensor = empty_floats({2, rows, 32});
    EXPECT_EQ(tensor.sizes(), at::IntArrayRef({2, rows, 32}));
    EXPECT_TRUE(tensor.is_contiguous());
    EXPECT_EQ(tensor.scalar_type(), torch::kFloat);
    tensor.fill_(1);
    EXPECT_EQ(tensor.sum().item<double>(), static_cast<double>(2 * rows * 32));
  }
  for (int64_t side : {3, 500}) {
    auto map = empty_map(2, 5, side, side + 1);
    EXPECT_TRUE(map.is_contiguous(torch::MemoryFormat::ChannelsLast));
    EXPECT_EQ(map.sizes(), at::IntArrayRef({2, 5, side, side + 1}));
  }
  EXPECT_EQ(empty_floats({}).numel(), 1);
}

TEST(Memory, BlocksAreUsedAgainWithinAPass) {
  release_idle();
  begin_pass();
  empty_floats({kLarge}).fill_(7);
  EXPECT_EQ(first_value(empty_floats({kLarge})), 7);
  EXPECT_EQ(first_value(empty_map(1, 1, 1, kLarge)), 7);
  release_idle();
  EXPECT_EQ(first_value(empty_floats({kLarge})), 0);
}

TEST(Memory, KeptBlocksMakeRoomForOthers) {
  release_idle();
  begin_pass();
  empty_floats({kLarge}).fill_(7);
  // Another size does not fit under what was in use before together with the kept block, whose
  // pages go into it.
  auto twice = empty_floats({2 * kLarge});
  EXPECT_EQ(first_value(twice), 7);
  EXPECT_EQ(twice[2 * kLarge - 1].item<float>(), 0);
  twice.fill_(8);
  // Nothing is idle: a fresh block.
  auto once = empty_floats({kLarge});
  EXPECT_EQ(first_value(once), 0);
  once.fill_(9);
  EXPECT_EQ(twice.sum().item<double>(), 16.0 * kLarge);
}

TEST(Memory, WhatThePassBeforeNeededIsKept) {
  release_idle();
  begin_pass();
  empty_floats({kLarge}).fill_(7);
  begin_pass();
  EXPECT_EQ(first_value(empty_floats({kLarge})), 7);
  begin_pass();
  begin_pass();  // a pass that needed nothing
  EXPECT_EQ(first_value(empty_floats({kLarge})), 0);
}

// Faults of this process that needed no disk: one or more for every fresh page.
long fresh_pages() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(Memory, APassOfManySizesTakesFreshPagesOnce) {
  auto pass = [] {
    begin_pass();
    const long before = fresh_pages();
    torch::Tensor last;
    for (int64_t size : {5, 9, 3, 12, 4, 7, 2, 11, 6})
      last = empty_floats({size * (1 << 20)}).fill_(static_cast<float>(size));
    EXPECT_EQ(last.sum().item<double>(), 36.0 * (1 << 20));
    return fresh_pages() - before;
  };
  release_idle();
  const long first = pass();
  EXPECT_GE(first, 20);
  pass();
  EXPECT_LT(4 * pass(), first);
}

}  // namespace
}  // namespace nmrf::ops
