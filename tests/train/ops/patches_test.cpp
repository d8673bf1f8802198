// Encodings, winners, medians and patches: fast form against slow references and the plain form.
#include "train/ops/patches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fast_and_plain.h"
#include "train/ops/dispatch.h"
#include "train/ops/encoding.h"
#include "train/ops/pixel_map.h"

namespace nmrf::ops {
namespace {

using test::compare;
using test::on_every_target;
using test::random;
using test::Tensors;
using torch::Tensor;

TEST(EncodeDisparity, IsTheSineOfTheFloatAngle) {
  torch::manual_seed(1);
  for (int64_t range : {64, 128}) {
    auto labels = torch::rand({3, 7, 5}) * 320;
    auto flat = labels.view({-1});
    flat[0] = 0;
    flat[1] = -2.5;
    flat[2] = 2048;
    flat[3] = 3e7;  // beyond the vector functions
    // The angle is a float; its multiples by powers of two are exact.
    auto t = (labels * 3.14f / static_cast<float>(range)).to(torch::kDouble).unsqueeze(-1);
    auto angles = t * torch::pow(2.0, torch::arange(15, torch::kDouble));
    auto exact = torch::cat({angles.sin(), angles.cos(), t}, -1);
    on_every_target([&] {
      auto ours = encode_disparity(labels, range);
      ASSERT_EQ(ours.sizes(), exact.sizes());
      auto error = (ours.to(torch::kDouble) - exact).abs() / exact.abs().clamp_min(1);
      EXPECT_LT(error.max().item<double>(), 1e-7);
    });
  }
  EXPECT_TRUE(encode_disparity(torch::full({5}, NAN), 64).isnan().all().item<bool>());
  EXPECT_EQ(encode_disparity(torch::empty({0, 4}), 64).numel(), 0);
}

TEST(EncodeDisparity, AgreesWithThePlainForm) {
  torch::manual_seed(2);
  auto labels = torch::rand({2, 3, 9, 4}) * 40;
  auto view = labels.transpose(1, 2);
  auto ours = encode_disparity(view, 64), few = encode_disparity(view, 64, 4);
  FastGuard plain(false);
  EXPECT_LT((ours - encode_disparity(view, 64)).abs().max().item<double>(), 1e-6);
  EXPECT_EQ(few.size(-1), 9);
  EXPECT_LT((few - encode_disparity(view, 64, 4)).abs().max().item<double>(), 1e-6);
}

TEST(TakeWinners, AgreeWithThePlainForm) {
  torch::manual_seed(3);
  for (int64_t k = 1; k <= 6; ++k) {
    auto score = random({2, 3, 5, k, 64}), disparity = random({2, 3, 5, k, 64});
    score.copy_((score * 4).round() / 4);  // with ties
    if (k > 2) score[0][1][2][k - 1][13] = NAN;
    Winners plain;
    {
      FastGuard guard(false);
      plain = take_winners(score, disparity);
    }
    on_every_target([&] {
      auto ours = take_winners(score, disparity);
      EXPECT_TRUE(ours.index.equal(plain.index));
      EXPECT_TRUE(ours.disparity.equal(plain.disparity));
      EXPECT_TRUE(ours.confidence.isnan().equal(plain.confidence.isnan()));
      EXPECT_EQ(ours.confidence.isnan().sum().item<int64_t>(), k > 2 ? 1 : 0);
      EXPECT_LT((ours.confidence - plain.confidence).nan_to_num().abs().max().item<double>(), 1e-6);
    });
  }
  // Score and disparity as views, a single winner in sight.
  auto both = random({1, 1, 1, 2, 128});
  auto score = both.narrow(4, 0, 64), disparity = both.narrow(4, 64, 64);
  score.select(3, 0).fill_(-1);
  score.select(3, 1).fill_(2);
  auto ours = take_winners(score, disparity);
  EXPECT_TRUE(ours.index.eq(1).all().item<bool>());
  EXPECT_TRUE(ours.disparity.equal(disparity[0][0][0][1].view({1, 8, 8})));
}

TEST(MedianReduce, IsTheEighthOfSixteen) {
  torch::manual_seed(4);
  for (int64_t w : {1, 3, 8, 21, 40}) {
    auto map = random({2, 12, 4 * w}).relu();  // zeros tie
    map[1][5][2] = NAN;
    map[1][9][1] = INFINITY;
    on_every_target([&] {
      auto ours = median_reduce(map);
      ASSERT_EQ(ours.sizes(), at::IntArrayRef({2, 3, w}));
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t y = 0; y < 3; ++y)
          for (int64_t x = 0; x < w; ++x) {
            auto block = map[b].narrow(0, 4 * y, 4).narrow(1, 4 * x, 4).contiguous();
            std::vector<float> values(block.data_ptr<float>(), block.data_ptr<float>() + 16);
            const float got = ours[b][y][x].item<float>();
            if (std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); })) {
              EXPECT_TRUE(std::isnan(got));
              continue;
            }
            std::sort(values.begin(), values.end());
            EXPECT_EQ(got, values[7]);
          }
    });
  }
}

TEST(RefinedDisparity, MatchesThePlainForm) {
  torch::manual_seed(5);
  for (int64_t w : {1, 7, 16})
    for (int64_t batch : {1, 3}) {
      const Tensors inputs{random({batch, 5, w}), random({batch, 5, w, 16})};
      auto call = [](const Tensors& t) { return Tensors{refined_disparity(t[0], t[1])}; };
      compare(inputs, call);
      compare(inputs, call, {0});
      compare(inputs, call, {1});
    }
}

TEST(BlendStarts, MatchesThePlainForm) {
  torch::manual_seed(7);
  for (auto [h, w] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 7}, {5, 16}})
    for (int64_t batch : {1, 3}) {
      auto image = 255 * torch::rand({batch, 3, 4 * h, 4 * w});
      const BlendMaps maps{random({batch, h, w}), image, torch::avg_pool2d(image, 4)};
      for (int64_t first = 0; first < h; first += 2) {
        auto head = random({batch, std::min<int64_t>(h - first, 3), w, 145});
        if (first == 0) head = random({batch, h, w, 145});
        compare({head}, [&](const Tensors& t) { return Tensors{blend_starts(t[0], maps, first)}; });
      }
    }
}

TEST(ChannelsLast, IsAViewOrACopy) {
  torch::manual_seed(6);
  for (int64_t channels : {1, 3, 4, 18, 64}) {
    auto map = random({3, channels, 5, 19});
    auto expected = map.permute({0, 2, 3, 1});
    on_every_target([&] { EXPECT_TRUE(channels_last(map).equal(expected)); });
    EXPECT_TRUE(channels_last(map.narrow(0, 1, 2)).equal(expected.narrow(0, 1, 2)));
    EXPECT_TRUE(channels_last(map.narrow(3, 2, 9)).equal(expected.narrow(2, 2, 9)));
    auto turned = map.contiguous(torch::MemoryFormat::ChannelsLast);
    auto view = channels_last(turned);
    EXPECT_EQ(view.data_ptr(), turned.data_ptr());
    EXPECT_TRUE(view.equal(expected));
  }
}

TEST(Patches, RefuseWhatDoesNotFit) {
  EXPECT_THROW(median_reduce(random({1, 6, 8})), c10::Error);
  EXPECT_THROW(take_winners(random({1, 2, 2, 4, 16}), random({1, 2, 2, 4, 16})), c10::Error);
  EXPECT_THROW(refined_disparity(random({1, 2, 3}), random({1, 2, 2, 16})), c10::Error);
  const BlendMaps maps{random({1, 2, 3}), random({1, 3, 8, 12}), random({1, 3, 2, 3})};
  EXPECT_THROW(blend_starts(random({1, 2, 3, 144}), maps, 0), c10::Error);
  EXPECT_THROW(blend_starts(random({1, 2, 3, 145}), maps, 1), c10::Error);
  EXPECT_THROW(blend_starts(random({1, 2, 3, 145}), {maps.start, maps.colours, maps.colours}, 0),
               c10::Error);
}

}  // namespace
}  // namespace nmrf::ops
