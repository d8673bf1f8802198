// Label features, cost volume and seeds: fast form against the plain one in double precision,
// forward and backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fast_and_plain.h"
#include "kernels/modals.h"
#include "train/ops/cost_volume.h"
#include "train/ops/dispatch.h"
#include "train/ops/warp.h"

namespace nmrf::ops {
namespace {

using test::compare;
using test::on_every_target;
using test::random;
using test::relative;
using test::Tensors;
using torch::Tensor;

// Labels of all kinds: inside, at integers, between the last column and the next, far outside on
// either side.
Tensor random_labels(int64_t batch, int64_t h, int64_t w, int64_t k) {
  auto labels = torch::rand({batch, h, w, k}) * (static_cast<double>(w) + 6) - 3;
  auto flat = labels.view({-1});
  const float special[] = {0, 1, -0.5f, -1, -7.25f, 1e9f, -1e9f, static_cast<float>(w) - 0.5f};
  for (int64_t i = 0; i < flat.numel(); i += 5) flat[i] = special[i / 5 % 8];
  return labels;
}

// As the convolutions may hand them on: channels last in memory.
Tensor turned(const Tensor& map) { return map.contiguous(torch::MemoryFormat::ChannelsLast); }

TEST(LabelFeatures, MatchThePlainForm) {
  torch::manual_seed(1);
  struct Case {
    int64_t batch, h, w, k, c1, c2, groups, radius = 0;
  };
  for (const Case& c :
       {Case{1, 3, 17, 1, 64, 256, 32}, Case{2, 5, 9, 4, 32, 96, 16}, Case{1, 2, 13, 2, 7, 15, 3},
        Case{3, 1, 8, 3, 16, 24, 24}, Case{1, 4, 11, 5, 20, 28, 2}, Case{2, 2, 1, 6, 3, 36, 1},
        Case{2, 3, 9, 4, 32, 96, 16, 2}, Case{1, 2, 13, 1, 7, 15, 3, 1},
        Case{1, 1, 3, 2, 4, 8, 4, 5}}) {
    SCOPED_TRACE("k " + std::to_string(c.k) + ", channels " + std::to_string(c.c2));
    auto labels = random_labels(c.batch, c.h, c.w, c.k);
    auto maps = [&](int64_t channels) { return random({c.batch, channels, c.h, c.w}); };
    auto call = [&](const Tensors& t) {
      return Tensors{label_features(t[0], t[1], t[2], t[3], labels.to(t[0].scalar_type()), c.groups,
                                    c.radius)};
    };
    const Tensors inputs{maps(c.c1), maps(c.c1), maps(c.c2), maps(c.c2)};
    compare(inputs, call);
    compare({turned(inputs[0]), turned(inputs[1]), turned(inputs[2]), turned(inputs[3])}, call);
  }
}

TEST(LabelFeatures, GradientsOnlyWhereWanted) {
  torch::manual_seed(2);
  auto labels = random_labels(2, 3, 10, 3);
  const Tensors inputs{random({2, 8, 3, 10}), random({2, 8, 3, 10}), random({2, 12, 3, 10}),
                       random({2, 12, 3, 10})};
  auto call = [&](const Tensors& t) {
    return Tensors{label_features(t[0], t[1], t[2], t[3], labels.to(t[0].scalar_type()), 4)};
  };
  for (std::size_t wanted = 0; wanted < 4; ++wanted) {
    std::vector<std::size_t> frozen{0, 1, 2, 3};
    frozen.erase(frozen.begin() + static_cast<long>(wanted));
    compare(inputs, call, frozen);
  }
  compare(inputs, call, {0, 2});
  // Labels take no gradient.
  auto moving = labels.clone().requires_grad_(true);
  auto left = inputs[0].clone().requires_grad_(true);
  label_features(left, inputs[1], inputs[2], inputs[3], moving, 4).sum().backward();
  EXPECT_FALSE(moving.grad().defined());
}

TEST(LabelFeatures, ViewsOfABatch) {
  torch::manual_seed(3);
  auto labels = random_labels(2, 3, 10, 2);
  auto first = random({4, 8, 3, 10}), second = turned(random({4, 12, 3, 10}));
  auto cropped = random({2, 8, 5, 14}).narrow(2, 1, 3).narrow(3, 2, 10);
  auto call = [&](auto copy) {
    return label_features(copy(first.narrow(0, 0, 2)), copy(cropped), copy(second.narrow(0, 0, 2)),
                          copy(second.narrow(0, 2, 2)), labels, 4);
  };
  EXPECT_TRUE(torch::equal(call([](const Tensor& x) { return x; }),
                           call([](const Tensor& x) { return x.clone().contiguous(); })));
}

TEST(LabelFeatures, ALabelThatIsNoNumberReadsNothing) {
  auto map = torch::ones({1, 4, 1, 3});
  auto labels = torch::zeros({1, 1, 3, 1});
  labels[0][0][1][0] = NAN;
  labels[0][0][2][0] = INFINITY;
  auto y = label_features(map, map, map, map, labels, 2);
  EXPECT_TRUE(y[0][0][0][0].equal(torch::ones({10})));
  for (int64_t x : {1, 2}) {
    EXPECT_TRUE(y[0][0][x][0].narrow(0, 0, 4).equal(torch::ones({4})));
    EXPECT_TRUE(y[0][0][x][0].narrow(0, 4, 6).equal(torch::zeros({6})));
  }
}

TEST(Correlate, IsTheLastPartOfTheFeature) {
  torch::manual_seed(5);
  auto labels = random_labels(2, 3, 9, 1);
  const Tensors inputs{random({2, 24, 3, 9}), random({2, 24, 3, 9})};
  auto call = [&](const Tensors& t) {
    return Tensors{correlate(t[0], t[1], labels.to(t[0].scalar_type()), 4, 3)};
  };
  compare(inputs, call);
  auto whole = label_features(inputs[0], inputs[1], inputs[0], inputs[1], labels, 4, 3);
  EXPECT_TRUE(call(inputs)[0].equal(whole.narrow(4, 48, 28)));
}

TEST(WarpRight, MatchesThePlainForm) {
  torch::manual_seed(4);
  for (int64_t k = 1; k <= 6; ++k) {
    auto labels = random_labels(2, 3, 7 + k, k);
    compare({random({2, 5 * k, 3, 7 + k})}, [&](const Tensors& t) {
      return Tensors{warp_right(t[0], labels.to(t[0].scalar_type()))};
    });
  }
}

ScoreConvolutions random_score(int64_t groups, int64_t hidden1, int64_t hidden2) {
  const int64_t width[] = {groups, hidden1, hidden2, 1};
  ScoreConvolutions score;
  for (int i = 0; i < 3; ++i) {
    const double scale = 1.5 / std::sqrt(5.0 * static_cast<double>(width[i]));
    score.weight[i] = random({width[i + 1], width[i], 5}, scale);
    score.bias[i] = random({width[i + 1]}, 0.3);
  }
  return score;
}

struct VolumeCase {
  int64_t batch, h, w, channels, groups, planes, hidden1, hidden2, k;
};

Tensors volume_inputs(const VolumeCase& c) {
  auto score = random_score(c.groups, c.hidden1, c.hidden2);
  return {random({c.batch, c.channels, c.h, c.w}),
          random({c.batch, c.channels, c.h, c.w}),
          score.weight[0],
          score.bias[0],
          score.weight[1],
          score.bias[1],
          score.weight[2],
          score.bias[2]};
}

SeedVolume volume_of(const VolumeCase& c, const Tensors& t) {
  return seed_volume(t[0], t[1], c.groups, c.planes, {{t[2], t[4], t[6]}, {t[3], t[5], t[7]}}, c.k);
}

const VolumeCase kVolumes[] = {
    {1, 2, 30, 32, 4, 12, 8, 16, 4},  // the network's groups
    {2, 3, 13, 24, 4, 40, 8, 16, 3},  // planes that no column sees
    {1, 2, 70, 15, 3, 9, 5, 7, 2},    // odd everything
    {3, 1, 5, 8, 1, 6, 3, 17, 6},     // as many labels as planes
    {1, 1, 60, 96, 4, 53, 8, 16, 5},  // more planes than a tile has rows
    {1, 3, 1, 8, 2, 1, 4, 4, 1},      // one column, one plane
    {1, 1, 300, 16, 4, 7, 8, 16, 1},  // a row wider than one pass of a product
};

TEST(SeedVolume, MatchesThePlainForm) {
  torch::manual_seed(5);
  for (const auto& c : kVolumes) {
    SCOPED_TRACE("width " + std::to_string(c.w) + ", planes " + std::to_string(c.planes));
    const auto inputs = volume_inputs(c);
    auto call = [&](const Tensors& t) {
      auto r = volume_of(c, t);
      return Tensors{r.volume, r.cost, r.prob};
    };
    compare(inputs, call);
    auto last = inputs;
    last[0] = turned(last[0]);
    last[1] = turned(last[1]);
    compare(last, call);
  }
}

TEST(SeedVolume, GradientsOnlyWhereWanted) {
  torch::manual_seed(61);
  const VolumeCase c{2, 2, 19, 16, 4, 8, 8, 16, 2};
  const auto inputs = volume_inputs(c);
  auto cost = [&](const Tensors& t) { return Tensors{volume_of(c, t).cost}; };
  auto volume = [&](const Tensors& t) { return Tensors{volume_of(c, t).volume}; };
  compare(inputs, cost);
  compare(inputs, cost, {2, 3, 4, 5, 6, 7});
  compare(inputs, cost, {0, 1});
  compare(inputs, cost, {0});
  compare(inputs, cost, {1, 2, 3});
  compare(inputs, volume, {2, 3, 4, 5, 6, 7});
}

// Seeds must be those that the plain steps find in the same probabilities.
TEST(SeedVolume, SeedsAreTheTopModalsOfItsProbabilities) {
  torch::manual_seed(7);
  for (const auto& c : kVolumes) {
    const auto inputs = volume_inputs(c);
    on_every_target([&] {
      auto r = volume_of(c, inputs);
      EXPECT_TRUE(r.seeds.equal(top_modals(suppress_non_modals(r.prob), c.k)));
      EXPECT_LT(relative(r.prob, r.cost.to(torch::kDouble).softmax(-1)), 1e-6);
    });
  }
}

// Where nothing distinguishes the planes all of them tie, and the order of ties is documented.
TEST(SeedVolume, TiesAsThePlainFormHasThem) {
  torch::manual_seed(8);
  const VolumeCase c{1, 2, 12, 8, 4, 40, 8, 16, 4};
  auto inputs = volume_inputs(c);
  inputs[1].zero_();
  inputs[7].fill_(0.25);
  auto fast = volume_of(c, inputs);
  FastGuard guard(false);
  auto plain = volume_of(c, inputs);
  EXPECT_TRUE(fast.seeds.equal(plain.seeds));
}

TEST(SeedVolume, NotANumber) {
  torch::manual_seed(9);
  const VolumeCase c{1, 1, 20, 8, 2, 10, 4, 4, 3};
  auto inputs = volume_inputs(c);
  inputs[0][0][3][0][15] = NAN;
  auto fast = volume_of(c, inputs);
  FastGuard guard(false);
  auto plain = volume_of(c, inputs);
  EXPECT_TRUE(fast.prob.isnan().equal(plain.prob.isnan()));
  EXPECT_TRUE(fast.prob[0][0][15].isnan().all().item<bool>());
  EXPECT_TRUE(fast.seeds.equal(plain.seeds));
}

TEST(SeedVolume, RepeatsExactly) {
  torch::manual_seed(10);
  const VolumeCase c{2, 7, 33, 32, 4, 24, 8, 16, 4};
  const auto inputs = volume_inputs(c);
  const int threads = at::get_num_threads();
  auto run = [&](Tensors& gradients) {
    Tensors leaves;
    for (const auto& t : inputs) leaves.push_back(t.clone().requires_grad_(true));
    auto r = volume_of(c, leaves);
    auto around = lookup_cost(r.volume, r.seeds, 4);
    ((r.cost * r.cost).sum() + (around * around).sum()).backward();
    for (const auto& leaf : leaves) gradients.push_back(leaf.grad());
    return r;
  };
  at::set_num_threads(2);
  Tensors first, second, third;
  auto a = run(first), b = run(second);
  EXPECT_TRUE(a.cost.equal(b.cost) && a.volume.equal(b.volume) && a.seeds.equal(b.seeds));
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(first[i].equal(second[i])) << i;
  at::set_num_threads(1);
  auto one = run(third);
  at::set_num_threads(threads);
  EXPECT_TRUE(a.cost.equal(one.cost) && a.seeds.equal(one.seeds));
  for (std::size_t i : {0, 1}) EXPECT_TRUE(first[i].equal(third[i])) << i;
}

TEST(LookupCost, MatchesThePlainForm) {
  torch::manual_seed(11);
  for (int64_t k = 1; k <= 6; ++k)
    for (int64_t groups : {1, 4}) {
      const int64_t planes = 5 + k;
      auto seeds = torch::randint(0, planes, {2, 3, 5, k}, torch::kLong);
      compare({random({2, groups, planes, 3, 5})},
              [&](const Tensors& t) { return Tensors{lookup_cost(t[0], seeds, 4)}; });
    }
}

// Against a reference that does nothing clever.
TEST(ModalPicker, OrderOfTies) {
  torch::manual_seed(12);
  for (int round = 0; round < 300; ++round) {
    const int64_t planes = 1 + round % 40, k = 1 + round % std::min<int64_t>(planes, 6);
    // Few distinct values in most rounds.
    auto values = round % 3 == 0 ? torch::rand({planes})
                                 : torch::randint(0, 2 + round % 7, {planes}).to(torch::kFloat);
    if (round % 10 == 9) values[planes / 2] = NAN;
    const float* v = values.data_ptr<float>();
    using Entry = std::pair<float, int64_t>;
    auto greater = [](const Entry& a, const Entry& b) {
      return (std::isnan(a.first) && !std::isnan(b.first)) || a.first > b.first;
    };
    std::vector<Entry> queue;
    for (int64_t z = 0; z < planes; ++z) queue.push_back({v[z], z});
    std::nth_element(queue.begin(), queue.begin() + k - 1, queue.end(), greater);
    std::sort(queue.begin(), queue.begin() + k - 1, greater);
    std::vector<int64_t> best(static_cast<std::size_t>(k));
    kernels::ModalPicker(planes).pick(v, k, best.data());
    for (int64_t i = 0; i < k; ++i) EXPECT_EQ(best[i], queue[i].second) << round;
  }
}

TEST(Volume, TheSwitchChooses) {
  const VolumeCase c{1, 2, 9, 8, 4, 4, 8, 16, 2};
  auto inputs = volume_inputs(c);
  for (auto& t : inputs) t.requires_grad_(true);
  auto labels = torch::zeros({1, 2, 9, 1});
  auto fast = [&] {
    const auto name =
        volume_of(c, inputs).cost.grad_fn()->name() +
        label_features(inputs[0], inputs[1], inputs[0], inputs[1], labels, 4).grad_fn()->name();
    return name.find("SeedVolumeFunction") != std::string::npos &&
           name.find("FeatureFunction") != std::string::npos;
  };
  EXPECT_TRUE(fast());
  FastGuard plain(false);
  EXPECT_FALSE(fast());
}

TEST(Volume, RefusesWhatDoesNotFit) {
  const VolumeCase c{1, 2, 9, 8, 4, 4, 8, 16, 2};
  auto inputs = volume_inputs(c);
  auto wrong = [&](std::size_t i, const Tensor& t) {
    auto changed = inputs;
    changed[i] = t;
    return changed;
  };
  EXPECT_THROW(volume_of(c, wrong(1, random({1, 8, 2, 10}))), c10::Error);
  EXPECT_THROW(volume_of(c, wrong(2, random({8, 3, 5}))), c10::Error);
  EXPECT_THROW(volume_of(c, wrong(4, random({16, 8, 3}))), c10::Error);
  EXPECT_THROW(volume_of({1, 2, 9, 8, 4, 4, 8, 16, 5}, inputs), c10::Error);
  EXPECT_THROW(
      label_features(inputs[0], inputs[1], inputs[0], inputs[1], torch::zeros({1, 2, 8, 1}), 4),
      c10::Error);
  EXPECT_THROW(
      label_features(inputs[0], inputs[1], inputs[0], inputs[1], torch::zeros({1, 2, 9, 1}), 3),
      c10::Error);
}

}  // namespace
}  // namespace nmrf::ops
