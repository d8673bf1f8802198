// The network on its own: every switch, every size, repeatability, files.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/file.h"
#include "network/flops.h"
#include "network/formula.h"
#include "support/support.h"
#include "train/model/golden.h"
#include "train/model/refinement.h"
#include "train/model/switches.h"
#include "train/model/weights.h"
#include "train/ops/dispatch.h"
#include "weights/safetensors.h"

namespace nmrf::train {
namespace {

torch::Tensor run(Network& network, int64_t height, int64_t width) {
  torch::NoGradGuard no_grad;
  auto [left, right] = test::formula_pair(height, width);
  return network->forward(pad_images(left), pad_images(right)).disparity;
}

Network by_formula(const ModelOptions& options) {
  Network network = make_network(options, 0);
  fill_by_formula(network);
  return network;
}

TEST(Formula, FirstValuesAndPixels) {
  Network network = by_formula(preset_options("paper"));
  auto stem = network->named_parameters()["backbone.conv1.weight"].flatten();
  EXPECT_FLOAT_EQ(stem[0].item<float>(), 0.015656795f);
  EXPECT_FLOAT_EQ(stem[1].item<float>(), 0.083448783f);
  EXPECT_FLOAT_EQ(stem[2].item<float>(), 0.033577919f);
  auto [left, right] = test::formula_pair(32, 32);
  EXPECT_EQ(left[0][0][0][0].item<float>(), 107);
  EXPECT_EQ(left[0][1][3][5].item<float>(), 106);
  EXPECT_EQ(right[0][2][0][0].item<float>(), 109);
}

// Spots of the published network's answer for formula weights and images, so that parity is checked
// without any file. {height, width, row, column, disparity}
TEST(Formula, DisparityOfThePublishedNetwork) {
  struct Spot {
    int64_t height, width, row, column;
    double disparity;
  };
  const std::vector<Spot> spots = {
#include "network/formula_spots.inc"
  };
  Network network = by_formula(preset_options("paper"));
  int64_t height = 0, width = 0;
  torch::Tensor map;
  double largest = 0;
  for (const auto& spot : spots) {
    if (spot.height != height || spot.width != width)
      map = run(network, height = spot.height, width = spot.width);
    const double ours = map[0][spot.row][spot.column].item<double>();
    largest = std::max(largest, std::abs(ours - spot.disparity));
    EXPECT_NEAR(ours, spot.disparity, 5e-3)
        << spot.height << "x" << spot.width << " at row " << spot.row << " column " << spot.column;
  }
  std::cout << "  largest difference over " << spots.size() << " spots: " << largest << " px\n";
}

TEST(Network, PublishedParameters) {
  Network network = make_network(preset_options("paper"), 1);
  int64_t count = 0;
  for (const auto& item : network->named_parameters()) count += item.value().numel();
  EXPECT_EQ(count, 6113210);
  EXPECT_EQ(network->named_parameters().size(), 340u);
}

TEST(Network, PresetsKeepTheirPromises) {
  EXPECT_NEAR(total_flops(count_flops(preset_options("paper"), 640, 480)) / 1e9, 363, 1);
  EXPECT_LE(total_flops(count_flops(preset_options("fast"), 640, 480)) / 1e9, 60);
  Network fast = make_network(preset_options("fast"), 1);
  int64_t count = 0;
  for (const auto& item : fast->named_parameters()) count += item.value().numel();
  EXPECT_LE(count, 3000000);
  EXPECT_NE(test::error_of(ErrorKind::kUsage, [] { preset_options("huge"); }).find("paper"),
            std::string::npos);
}

TEST(Network, SeedRepeatsInitialisation) {
  Network a = make_network(tiny_options(), 7), b = make_network(tiny_options(), 7),
          c = make_network(tiny_options(), 8);
  bool differs = false;
  for (const auto& item : a->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value(), b->named_parameters()[item.key()]));
    differs |= !torch::equal(item.value(), c->named_parameters()[item.key()]);
  }
  EXPECT_TRUE(differs);
  auto last = a->named_parameters()["dpn.prop_head.layers.2.weight"];
  EXPECT_EQ(last.abs().max().item<float>(), 0);
}

TEST(LabelSeeds, BetweenPlanes) {
  LabelSeeds seeds;
  // Of each seed the plane below has weight 0.2 and the one above 0.5, where there is one.
  auto weights = torch::tensor({0.3, 0.5, 1e-30, 1e-30, 0.2, 0.3}).log();
  seeds.cost = weights.view({1, 1, 1, 6});
  seeds.seeds = torch::tensor({int64_t{0}, int64_t{1}, int64_t{4}, int64_t{5}}).view({1, 1, 1, 4});
  auto labels = between_planes(seeds).flatten();
  const double expected[] = {0.5 / 0.8, 0.5 / 0.8, 4 + 0.3 / 0.5, 4 + 0.3 / 0.5};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(labels[i].item<double>(), expected[i], 1e-6) << i;
}

// One row of 16 cells and 8 planes: a background of disparity 2, before it from cell 12 on a
// surface of disparity 4, which hides cells 10 and 11 from the right view. Cells 0 and 1 are left
// of that view.
struct FillRow {
  explicit FillRow(int64_t k) {
    const int64_t best[] = {6, 0, 2, 2, 2, 2, 2, 2, 2, 2, 1, 7, 4, 4, 4, 4};
    const float chance[] = {.9f, .95f, .8f, .8f, .8f, .8f, .8f, .8f,
                            .8f, .8f,  .6f, .4f, .9f, .9f, .9f, .9f};
    seeds.seeds = torch::full({1, 1, 16, k}, 5, torch::kLong);
    seeds.prob = torch::zeros({1, 1, 16, 8});
    for (int64_t i = 0; i < 16; ++i) {
      seeds.seeds[0][0][i][0] = best[i];
      seeds.prob[0][0][i][best[i]] = chance[i];
    }
    starts = seeds.seeds.to(torch::kFloat) - 0.25f;
    before = starts.clone();
  }
  std::vector<float> start(int64_t cell) const {
    std::vector<float> values;
    for (int64_t i = 0; i < starts.size(3); ++i)
      values.push_back(starts[0][0][cell][i].item<float>());
    return values;
  }
  LabelSeeds seeds;
  torch::Tensor starts, before;
};

TEST(LabelSeeds, CellsWithoutAMatchTakeTheSeedsBesideThem) {
  using Values = std::vector<float>;
  FillRow row(4);
  const torch::Tensor kinds = fill_seeds(row.seeds, row.starts);
  // Left of the right view, however sure of themselves: the surface to the right continues, or
  // they are too near to be in view, as all up to cell 4 then is.
  EXPECT_EQ(row.start(0), (Values{5.75f, 4.75f, 4, 1.75f}));
  EXPECT_EQ(row.start(1), (Values{-0.25f, 4.75f, 4, 1.75f}));
  // Contradicted by a better match of the same right cell (cell 1's; cell 13's), and unsure.
  // Of what cell 3 is lent it has the surface.
  EXPECT_EQ(row.start(3), (Values{1.75f, 4.75f, 4.75f, 4}));
  EXPECT_EQ(row.start(10), (Values{0.75f, 4.75f, 3.75f, 1.75f}));
  EXPECT_EQ(row.start(11), (Values{6.75f, 4.75f, 3.75f, 1.75f}));
  for (int64_t cell : {2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15})
    EXPECT_TRUE(torch::equal(row.starts[0][0][cell], row.before[0][0][cell])) << cell;
  EXPECT_EQ(row.seeds.seeds[0][0][10][2].item<int64_t>(), 4);
  EXPECT_EQ(row.seeds.seeds[0][0][10][3].item<int64_t>(), 2);
  const auto expect_kinds = [&](int64_t cell, CellState state, std::vector<SeedRole> roles) {
    for (std::size_t i = 0; i < roles.size(); ++i)
      EXPECT_EQ(kinds[0][0][cell][i].item<int64_t>(), seed_kind(state, roles[i]))
          << cell << " " << i;
  };
  constexpr auto kOwn = SeedRole::kOwn, kFarther = SeedRole::kFarther, kNearer = SeedRole::kNearer,
                 kOutside = SeedRole::kOutside;
  expect_kinds(1, CellState::kBeyond, {kOwn, kOwn, kOutside, kFarther});
  expect_kinds(2, CellState::kMatched, {kOwn, kOwn, kOwn, kOwn});
  expect_kinds(3, CellState::kContradicted, {kFarther, kOwn, kOwn, kOutside});
  expect_kinds(10, CellState::kContradicted, {kOwn, kOwn, kNearer, kFarther});
  expect_kinds(11, CellState::kUnsure, {kOwn, kOwn, kNearer, kFarther});

  FillRow two(2);
  fill_seeds(two.seeds, two.starts);
  EXPECT_EQ(two.start(10), (Values{0.75f, 1.75f}));
  FillRow one(1);
  fill_seeds(one.seeds, one.starts);
  EXPECT_TRUE(torch::equal(one.starts, one.before));
}

// What is left of the row's first two matched cells in succession and itself unmatched may be too
// near for the right view: it is lent the disparity from which on it is, after the surface beside
// it.
TEST(LabelSeeds, CellsNowhereInTheRightViewMayBeOutOfIt) {
  using Values = std::vector<float>;
  FillRow row(4);
  const auto set = [&](int64_t cell, int64_t plane, float chance) {
    row.seeds.seeds[0][0][cell][0] = plane;
    row.seeds.prob[0][0][cell].fill_(0);
    row.seeds.prob[0][0][cell][plane] = chance;
    row.starts[0][0][cell][0] = static_cast<float>(plane) + 0.125f;
  };
  // An object in cells 0 to 3, one of which seems to match; behind it something far away.
  set(0, 3, 0.3f), set(1, 0, 0.3f), set(2, 1, 0.9f), set(3, 2, 0.2f);
  for (int64_t cell = 4; cell < 10; ++cell) set(cell, 0, 0.9f);
  const torch::Tensor kinds = fill_seeds(row.seeds, row.starts);
  const auto role = [&](int64_t cell, int64_t slot) {
    return kinds[0][0][cell][slot].item<int64_t>() % kSeedRoles;
  };
  EXPECT_EQ(row.start(0), (Values{3.125f, 4.75f, 4, 1.125f}));
  EXPECT_EQ(row.start(3), (Values{2.125f, 1.125f, 4, 0.125f})) << "and the nearer one beside it";
  EXPECT_EQ(role(3, 2), static_cast<int64_t>(SeedRole::kOutside));
  EXPECT_EQ(role(3, 3), static_cast<int64_t>(SeedRole::kFarther));
  EXPECT_EQ(row.seeds.seeds[0][0][3][2].item<int64_t>(), 4);
  EXPECT_EQ(row.start(11), (Values{6.75f, 4.75f, 3.75f, 0.75f}))
      << "right of the first match nothing changes";
  // No plane stands for it: none is lent.
  FillRow late(4);
  late.seeds.prob.narrow(2, 0, 12).mul_(0.5);
  const torch::Tensor far = fill_seeds(late.seeds, late.starts);
  EXPECT_FALSE((far % kSeedRoles == static_cast<int64_t>(SeedRole::kOutside)).any().item<bool>());
}

TEST(LabelSeeds, ARowWithoutAnyMatchStaysAsItIs) {
  FillRow row(4);
  row.seeds.prob.mul_(0.5);
  fill_seeds(row.seeds, row.starts);
  EXPECT_TRUE(torch::equal(row.starts, row.before));
}

// A guide's smallest and largest disparity of each cell come first, matched or not; the best seed
// stays.
TEST(LabelSeeds, AGuideLendsToEveryCell) {
  using Values = std::vector<float>;
  FillRow row(4);
  auto guide = torch::full({1, 8, 128}, 8 * 3.0);
  const auto say = [&](int64_t cell, double far, double near) {
    guide.narrow(2, 8 * cell, 8).fill_(8 * far);
    guide[0][7][8 * cell + 3] = 8 * near;
  };
  say(4, row.before[0][0][4][0].item<double>(), row.before[0][0][4][0].item<double>() + 0.3);
  say(5, 0.5, 7.5);
  say(10, 6.5, 6.5);
  say(11, 2.5, 3.5);
  const torch::Tensor kinds = fill_seeds(row.seeds, row.starts, guide);
  const auto kind = [&](int64_t cell, int64_t slot) {
    return kinds[0][0][cell][slot].item<int64_t>();
  };
  // A matched cell keeps its seeds where the guide says the same ...
  EXPECT_TRUE(torch::equal(row.starts[0][0][4], row.before[0][0][4]));
  EXPECT_EQ(kind(4, 0), seed_kind(CellState::kMatched, SeedRole::kGuide));
  EXPECT_EQ(kind(4, 1), seed_kind(CellState::kMatched, SeedRole::kOwn));
  // ... and gives its last ones for what it does not have.
  EXPECT_EQ(row.start(5), (Values{row.before[0][0][5][0].item<float>(), 4.75f, 7.5f, 0.5f}));
  EXPECT_EQ(kind(5, 3), seed_kind(CellState::kMatched, SeedRole::kGuide));
  EXPECT_EQ(row.seeds.seeds[0][0][5][2].item<int64_t>(), 7) << "the last plane";
  // Without a match: the guide, then the surfaces beside the cell as far as there is room.
  EXPECT_EQ(row.start(10), (Values{0.75f, 3.75f, 1.75f, 6.5f}));
  EXPECT_EQ(kind(10, 1), seed_kind(CellState::kContradicted, SeedRole::kNearer));
  EXPECT_EQ(kind(10, 2), seed_kind(CellState::kContradicted, SeedRole::kFarther));
  EXPECT_EQ(kind(10, 3), seed_kind(CellState::kContradicted, SeedRole::kGuide));
  EXPECT_EQ(row.start(11), (Values{6.75f, 1.75f, 3.5f, 2.5f})) << "the nearer one is there";
  FillRow one(1);
  fill_seeds(one.seeds, one.starts, guide);
  EXPECT_TRUE(torch::equal(one.starts, one.before));
}

TEST(Network, HalfTheImagesGuideTheWhole) {
  torch::NoGradGuard no_grad;
  ModelOptions options = preset_options("fast");
  options.max_disp = 64;
  Network network = by_formula(options);
  auto [left, right] = test::formula_pair(72, 104);
  auto map = half_size_map(network, left, right);
  ASSERT_EQ(map.sizes(), (std::vector<int64_t>{1, 72, 104}));
  // Half of it is 36 x 52, padded to 40 x 56.
  auto half =
      network
          ->forward(pad_images(torch::avg_pool2d(left, 2)), pad_images(torch::avg_pool2d(right, 2)))
          .disparity;
  for (auto [y, x] : std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {31, 77}, {71, 103}})
    EXPECT_EQ(map[0][y][x].item<float>(), 2 * half[0][y / 2][x / 2].item<float>());
  EXPECT_FALSE(half_size_map(network, left.narrow(2, 0, 56), right.narrow(2, 0, 56)).defined());
  options.guide = false;
  Network alone = by_formula(options);
  EXPECT_FALSE(half_size_map(alone, left, right).defined());
  options.guide = true;
  options.fill_seeds = false;
  EXPECT_NE(test::error_of(ErrorKind::kModel, [&] { options.validate(); }).find("seeds.fill"),
            std::string::npos);
}

// What a blend says, pixel by pixel.
torch::Tensor slow_blend(const CellBlend& blend, const torch::Tensor& embedding,
                         const torch::Tensor& start, const torch::Tensor& image) {
  auto p = blend->named_parameters();
  auto hidden = torch::gelu(torch::linear(embedding, p["weigh.fc1.weight"], p["weigh.fc1.bias"]));
  auto head = torch::linear(hidden, p["weigh.fc2.weight"], p["weigh.fc2.bias"]);
  const int64_t h = start.size(1), w = start.size(2);
  auto result = torch::zeros({1, h, w, 16});
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x)
      for (int64_t pixel = 0; pixel < 16; ++pixel) {
        const int64_t row = 4 * y + pixel / 4, column = 4 * x + pixel % 4;
        std::vector<double> weight, value;
        for (int64_t place = 0; place < 9; ++place) {
          const int64_t v = std::clamp<int64_t>(y + place / 3 - 1, 0, h - 1),
                        u = std::clamp<int64_t>(x + place % 3 - 1, 0, w - 1);
          double distance = 0;
          for (int64_t c = 0; c < 3; ++c) {
            auto cell = image[0][c].slice(0, 4 * v, 4 * v + 4).slice(1, 4 * u, 4 * u + 4);
            distance +=
                std::abs(image[0][c][row][column].item<double>() - cell.mean().item<double>());
          }
          weight.push_back(std::exp(head[0][y][x][9 * pixel + place].item<double>() +
                                    head[0][y][x][144].item<double>() * distance / 48));
          value.push_back(start[0][v][u].item<double>() - start[0][y][x].item<double>());
        }
        double sum = 0, total = 0;
        for (std::size_t i = 0; i < 9; ++i) {
          sum += weight[i] * value[i];
          total += weight[i];
        }
        result[0][y][x][pixel] = sum / total;
      }
  return result;
}

TEST(CellBlend, IsTheWeightedMeanOfTheCellsAround) {
  torch::manual_seed(3);
  CellBlend blend(tiny_options());
  torch::NoGradGuard no_grad;
  blend->named_parameters()["weigh.fc2.weight"].normal_();
  auto embedding = torch::randn({1, 3, 5, 16}), start = 20 * torch::rand({1, 3, 5}),
       image = 255 * torch::rand({1, 3, 12, 20});
  auto slow = slow_blend(blend, embedding, start, image);
  EXPECT_LT((blend(embedding, start, image) - slow).abs().max().item<float>(), 1e-4);
  EXPECT_GT(slow.abs().max().item<float>(), 1);
  EXPECT_EQ(blend(embedding, torch::full({1, 3, 5}, 7.f), image).abs().max().item<float>(), 0);
}

// Without a graph rows are computed some at a time.
TEST(CellBlend, StripsAreNotSeen) {
  torch::manual_seed(4);
  CellBlend blend(tiny_options());
  auto embedding = torch::randn({2, 37, 4, 16}), start = 20 * torch::rand({2, 37, 4}),
       image = 255 * torch::rand({2, 3, 148, 16});
  auto whole = blend(embedding, start, image);
  torch::NoGradGuard no_grad;
  EXPECT_LT((blend(embedding, start, image) - whole).abs().max().item<float>(), 1e-5);
}

// A fresh one already gives the bright pixels of a dark cell what the bright cell beside it has.
TEST(CellBlend, FollowsColoursAtFirst) {
  torch::NoGradGuard no_grad;
  CellBlend blend(tiny_options());
  auto image = torch::zeros({1, 3, 4, 12}), start = torch::tensor({2.f, 2.f, 9.f}).view({1, 1, 3});
  image.slice(3, 7, 12).fill_(240);  // the last column of the middle cell, and the right one
  auto middle = blend(torch::zeros({1, 1, 3, 16}), start, image)[0][0][1].view({4, 4});
  EXPECT_GT(middle.select(1, 3).min().item<float>(), 6.9);
  EXPECT_LT(middle.slice(1, 0, 3).max().item<float>(), 0.1);
}

// Every switch changes the answer, runs on odd sizes, and gives finite disparities.
TEST(Network, EverySwitchRunsAndMatters) {
  Network published = by_formula(tiny_options());
  auto reference = run(published, 41, 75);
  for (const auto& [name, options] : every_switch()) {
    SCOPED_TRACE(name);
    Network network = by_formula(options);
    auto map = run(network, 41, 75);
    EXPECT_EQ(map.sizes(), reference.sizes());
    EXPECT_TRUE(torch::isfinite(map).all().item<bool>());
    EXPECT_GE(map.min().item<float>(), 0);
    EXPECT_FALSE(torch::equal(map, reference));
  }
}

// What a network computes and its gradients, on the fast or the plain form of its operators.
struct Computed {
  NetworkOutput output;
  std::map<std::string, torch::Tensor> gradients;
};

Computed compute(const ModelOptions& options, bool fast) {
  ops::FastGuard guard(fast);
  // A seed that leaves no activation so close to zero that rounding decides its gradient.
  Network network = make_network(options, 1);
  auto [left, right] = test::formula_pair(41, 75);
  ForwardOptions how;
  how.every_layer = true;
  Computed computed{network->forward(pad_images(left), pad_images(right), how), {}};
  const auto& output = computed.output;
  std::vector<torch::Tensor> parts{output.proposals.seeds.cost, output.proposals.labels};
  for (const auto& layer : output.hypotheses) {
    parts.push_back(layer.disparity);
    parts.push_back(layer.score);
  }
  for (const auto& search : output.searches) parts.push_back(search.logits);
  parts.insert(parts.end(), output.refined.begin(), output.refined.end());
  auto loss = torch::zeros({});
  for (const auto& part : parts) {
    auto along = torch::arange(part.numel(), torch::kFloat).cos().view(part.sizes());
    loss = loss + (part * along).mean();
  }
  loss.backward();
  for (const auto& item : network->named_parameters())
    if (item.value().grad().defined()) computed.gradients[item.key()] = item.value().grad();
  return computed;
}

// The whole network gives the same on the fast operators as on the plain ones, and so do its
// gradients, under every switch.
TEST(Network, FastAndPlainAgreeUnderEverySwitch) {
  auto relative = [](const torch::Tensor& ours, const torch::Tensor& reference) {
    return (ours - reference).norm().item<double>() /
           std::max(reference.norm().item<double>(), 1e-6);
  };
  for (const auto& [name, options] : every_switch()) {
    SCOPED_TRACE(name);
    const Computed fast = compute(options, true), plain = compute(options, false);
    ASSERT_TRUE(
        torch::equal(fast.output.proposals.seeds.seeds, plain.output.proposals.seeds.seeds));
    EXPECT_LT(relative(fast.output.proposals.labels, plain.output.proposals.labels), 1e-4);
    ASSERT_EQ(fast.output.hypotheses.size(), plain.output.hypotheses.size());
    for (std::size_t i = 0; i < plain.output.hypotheses.size(); ++i) {
      const auto &ours = fast.output.hypotheses[i], &theirs = plain.output.hypotheses[i];
      EXPECT_LT(relative(ours.disparity, theirs.disparity), 1e-4);
      EXPECT_LT(relative(ours.score, theirs.score), 1e-4);
    }
    EXPECT_LT(relative(fast.output.disparity, plain.output.disparity), 1e-3);
    ASSERT_EQ(fast.gradients.size(), plain.gradients.size());
    // Where labels are computed before they are encoded, the 15th frequency turns a rounding of
    // theirs into 400 times as much; a fresh network has whole seeds as its labels otherwise.
    const bool computed =
        options.refinements == 2 || options.subpixel_seeds || options.refinement_search > 0;
    const double bound = computed && options.encoding_frequencies == 15 ? 5e-3 : 1e-4;
    for (const auto& [key, gradient] : plain.gradients) {
      ASSERT_TRUE(fast.gradients.count(key)) << key;
      // Gradients that only rounding makes differ from zero are not compared.
      if (gradient.norm().item<double>() < 1e-7) continue;
      EXPECT_LT(relative(fast.gradients.at(key), gradient), bound) << key;
    }
  }
}

TEST(Network, AnySizeFrom32Up) {
  Network network = by_formula(tiny_options());
  for (auto [h, w] :
       std::vector<std::pair<int64_t, int64_t>>{{32, 32}, {33, 47}, {40, 200}, {97, 32}})
    EXPECT_TRUE(torch::isfinite(run(network, h, w)).all().item<bool>()) << h << "x" << w;
}

TEST(Network, BatchGivesWhatSinglePairsGive) {
  torch::NoGradGuard no_grad;
  Network network = by_formula(tiny_options());
  auto [left, right] = test::formula_pair(48, 64);
  auto left2 = torch::cat({left, right.flip(3)}), right2 = torch::cat({right, left.flip(3)});
  auto both = network->forward(left2, right2).disparity;
  auto first = network->forward(left, right).disparity;
  EXPECT_LT((both[0] - first[0]).abs().max().item<float>(), 1e-2);
}

TEST(Network, RepeatsBitForBit) {
  Network network = by_formula(tiny_options());
  auto first = run(network, 64, 96);
  EXPECT_TRUE(torch::equal(first, run(network, 64, 96)));
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  auto single = run(network, 64, 96);
  at::set_num_threads(before);
  // A winner at a near-tie may flip: nearly all pixels agree to rounding.
  auto close = ((single - first).abs() < 1e-2).to(torch::kFloat).mean().item<float>();
  EXPECT_GT(close, 0.98);
}

TEST(Network, MaxDispIsARunTimeChoice) {
  Network network = by_formula(tiny_options());
  network->set_max_disp(128);
  Network wide = by_formula([] {
    ModelOptions o = tiny_options();
    o.max_disp = 128;
    return o;
  }());
  EXPECT_TRUE(torch::equal(run(network, 40, 160), run(wide, 40, 160)));
  test::error_of(ErrorKind::kModel, [&] { network->set_max_disp(100); });
}

TEST(Options, MistakesAreNamed) {
  ModelOptions o;
  o.labels = 7;
  EXPECT_NE(test::error_of(ErrorKind::kModel, [&] { o.validate(); }).find("seeds.labels"),
            std::string::npos);
  o = {};
  o.inference_heads = 3;
  test::error_of(ErrorKind::kModel, [&] { o.validate(); });
  o = {};
  o.max_disp = 16;
  test::error_of(ErrorKind::kModel, [&] { o.validate(); });
}

TEST(Weights, RoundTripIsExact) {
  test::TempFolder folder;
  ModelOptions options = tiny_options();
  options.labels = 3;
  options.self_edges = SelfEdges::kShared;
  Network network = by_formula(options);
  save_model(folder / "m.safetensors", network, {{"licence", "CC0"}});
  LoadedModel loaded = load_model((folder / "m.safetensors").string());
  EXPECT_EQ(loaded.metadata.at("licence"), "CC0");
  EXPECT_EQ(to_json_object(loaded.network->options()), to_json_object(options));
  EXPECT_TRUE(torch::equal(run(loaded.network, 40, 72), run(network, 40, 72)));
  save_model(folder / "h.safetensors", network, {}, true);
  EXPECT_LT(std::filesystem::file_size(folder / "h.safetensors"),
            0.6 * std::filesystem::file_size(folder / "m.safetensors"));
  Network half = load_model((folder / "h.safetensors").string()).network;
  for (const auto& item : network->named_parameters()) {
    auto difference = (half->named_parameters()[item.key()] - item.value()).abs().max();
    EXPECT_LT(difference.item<float>(), 2e-3) << item.key();
  }
}

TEST(Weights, EveryKeyIsReported) {
  test::TempFolder folder;
  save_model(folder / "a.safetensors", by_formula(tiny_options()));
  ModelOptions other = tiny_options();
  other.inference_layers = 3;
  other.gamma1_channels = 4;
  Network network = make_network(other, 0);
  TensorFile file = read_tensor_file(folder / "a.safetensors");
  LoadReport report = load_weights(network, file);
  EXPECT_FALSE(report.complete());
  EXPECT_EQ(report.used.size() + report.missing.size() + report.mismatched.size(),
            network->named_parameters().size());
  EXPECT_TRUE(std::all_of(report.missing.begin(), report.missing.end(), [](const auto& name) {
    return name.rfind("inference.layers.2.", 0) == 0;
  }));
  EXPECT_EQ(report.mismatched.at(0).name, "concatconv.3.weight");
}

TEST(Weights, WrongFilesAreRefused) {
  test::TempFolder folder;
  EXPECT_NE(
      test::error_of(ErrorKind::kModel, [&] { load_model(folder / "none.pth"); }).find("none.pth"),
      std::string::npos);
  write_file(folder / "text.safetensors", "not a model at all");
  test::error_of(ErrorKind::kModel, [&] { load_model(folder / "text.safetensors"); });
  // A safetensors file of something else.
  std::vector<float> values(4, 1.0f);
  StoredTensor stored{
      "weight", DType::kF32, {2, 2}, {reinterpret_cast<const std::uint8_t*>(values.data()), 16}};
  write_safetensors(folder / "other.safetensors", std::vector{stored}, {});
  EXPECT_NE(test::error_of(ErrorKind::kModel, [&] { load_model(folder / "other.safetensors"); })
                .find("no NMRF network"),
            std::string::npos);
  // A hole: options of another size.
  Network network = by_formula(tiny_options());
  ModelOptions larger = tiny_options();
  larger.inference_layers = 4;
  save_model(folder / "m.safetensors", network);
  TensorFile file = read_tensor_file(folder / "m.safetensors");
  auto metadata = file.metadata;
  metadata["options"] = to_json_object(larger).dump();
  write_safetensors(folder / "hole.safetensors", file.tensors, metadata);
  EXPECT_NE(test::error_of(ErrorKind::kModel, [&] { load_model(folder / "hole.safetensors"); })
                .find("missing"),
            std::string::npos);
  // NaN in a weight.
  network->named_parameters()["backbone.conv2.bias"].data()[0] = NAN;
  save_model(folder / "nan.safetensors", network);
  EXPECT_NE(test::error_of(ErrorKind::kModel, [&] { load_model(folder / "nan.safetensors"); })
                .find("nan.safetensors: tensor 'backbone.conv2.bias'"),
            std::string::npos);
}

// A small file must not make us build a network of many gigabytes.
TEST(Weights, ForgedSizesAreRefusedBeforeTheyAreBuilt) {
  test::TempFolder folder;
  std::vector<float> values(4096, 1.0f);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  auto refuse = [&](const std::vector<StoredTensor>& tensors,
                    const std::map<std::string, std::string>& metadata) {
    write_safetensors(folder / "forged.safetensors", tensors, metadata);
    test::error_of(ErrorKind::kModel, [&] { load_model(folder / "forged.safetensors"); });
    test::error_of(ErrorKind::kModel, [&] { nmrf::load_model(folder / "forged.safetensors"); });
  };
  StoredTensor any{"any", DType::kF32, {4}, {bytes, 16}};
  for (const std::string options :
       {R"({"inference": {"channels": 4096, "layers": 64}})",
        R"({"refinement": {"channels": 4096}})", R"({"propagation": {"channels": 4096}})",
        R"({"backbone": {"stage2": 4096}})",
        R"({"gamma2": {"hidden": 4096, "channels": 4096}, "backbone": {"features": 4096}})"})
    refuse({any}, {{"options", options}});
  // The sizes of a file without options come from its tensors, which may be forged as well.
  std::vector<StoredTensor> tensors{{"backbone.conv1.weight", DType::kF32, {4}, {bytes, 16}},
                                    {"inference.norm.weight", DType::kF32, {4096}, {bytes, 16384}}};
  for (int i = 0; i < 64; ++i)
    tensors.push_back({fmt::format("inference.layers.{}.x", i), DType::kF32, {1}, {bytes, 4}});
  refuse(tensors, {});
}

}  // namespace
}  // namespace nmrf::train
