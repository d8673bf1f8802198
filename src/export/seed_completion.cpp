// The extension seed completion (network/extensions/seed_completion.h), without loops: maps of
// cells are float [h, w], and where a cell looks along its row, [h, w, w].
#include "network/extensions/seed_completion.h"

#include "export/stages.h"

namespace nmrf::graph {
namespace {

constexpr float kSame = 0.4f;  // planes between two seeds of one surface
constexpr float kNone = -1;

class Completion {
 public:
  Completion(Graph& graph, LabelSeeds& seeds, const Grid& grid, const ModelOptions& o)
      : g(graph), grid_(grid), k_(o.labels), planes_(o.planes()) {
    column_ = g.full(g.range(grid.width));  // [w]
    slot_ = g.full(g.range(k_));            // [k]
    const std::vector<Size> shape{grid.height, grid.width, k_};
    starts_ = g.reshape(seeds.starts, shape);
    seeds_ = g.reshape(g.full(seeds.planes), shape);
    probability_ = cells(g.gather_elements(seeds.probability, g.slice(seeds.planes, 1, 0, 1), 1));
  }

  void run(const std::optional<Value>& guide) {
    Graph::Scope scope(g, "seed_completion");
    const Value found = classify();
    const Value start = cells(g.slice(starts_, 2, 0, 1));
    // Cells up to the last one whose nearest match to the right lies beyond the left border.
    const Value seen = beside(found, start, /*right=*/true);
    const Value outside = g.less(column_, seen);
    const Value last = g.reduce("ReduceMax", g.where(outside, column_, g.scalar(kNone)), {1}, true);
    const Value beyond = g.negate(g.less(last, column_));
    const Value matched = g.both(found, g.negate(beyond));
    state_ = g.where(beyond, state(CellState::kBeyond), state_);
    const Value from_right = beside(matched, start, true),
                from_left = beside(matched, start, false);
    const Value first = first_seen(matched);

    own_ = g.unsqueeze(g.mul(state_, static_cast<float>(kSeedRoles)), {2});  // [h, w, 1]
    kinds_ = g.expand(own_, {grid_.height, grid_.width, k_});
    if (guide) offer_guide(*guide);
    const Value high = maximum(from_left, from_right);
    const Value lacks_one = minimum(from_left, from_right);
    const Value low = g.where(g.less(lacks_one, 0.0f), high, lacks_one);
    const Value open = g.both(g.negate(matched), g.negate(g.less(low, 0.0f)));
    offer("farther", low, open, SeedRole::kFarther);
    const Value known = g.both(g.less(column_, first), g.less(first, float(planes_)));
    offer("outside", g.expand(first, {grid_.height, grid_.width}), g.both(open, known),
          SeedRole::kOutside);
    const Value differ = g.negate(g.less(g.sub(high, low), kSame));
    offer("nearer", high, g.both(open, differ), SeedRole::kNearer);
  }

  void store(LabelSeeds& seeds) const {
    const std::vector<Size> shape{grid_.cells(), k_};
    seeds.starts = g.reshape(starts_, shape);
    seeds.planes = g.cast(g.reshape(seeds_, shape), Type::kInt64);
    seeds.kinds = g.cast(g.reshape(kinds_, shape), Type::kInt64);
  }

 private:
  Value cells(const Value& x) const { return g.reshape(x, {grid_.height, grid_.width}); }
  Value state(CellState s) const { return g.scalar(static_cast<float>(s)); }
  Value maximum(const Value& a, const Value& b) const { return g.node("Max", {a, b}, a.type); }
  Value minimum(const Value& a, const Value& b) const { return g.node("Min", {a, b}, a.type); }
  Value any(const Value& condition, std::int64_t axis, bool keep) const {
    return g.negate(g.less(g.reduce("ReduceMax", g.full(condition), {axis}, keep), 0.5f));
  }
  // The values [h, w] at columns [h, w].
  Value at(const Value& values, const Value& columns) const {
    const Value last = g.full(g.sizes({grid_.width - 1}));
    return g.gather_elements(values, g.cast(g.clamp(columns, last), Type::kInt64), 1);
  }

  // Sets the states and returns where the best seed is a match.
  Value classify() {
    const Value seed = cells(g.slice(seeds_, 2, 0, 1));
    const Value target = g.sub(column_, seed);  // column of the right view
    // [h, w of the left, w of the right]: the probability of each match.
    const Value meets = g.equal(g.unsqueeze(target, {2}), column_);
    const Value claims = g.where(meets, g.unsqueeze(probability_, {2}), g.scalar(0));
    const Value claimed = g.less(g.scalar(0), g.reduce("ReduceMax", claims, {1}));
    const Value winner = g.gather_elements(seed, g.arg_max(claims, 1, false), 1);
    const Value right_seed = g.where(claimed, winner, g.scalar(-2));
    const Value apart = g.less(g.scalar(1), g.abs(g.sub(at(right_seed, target), seed)));
    const Value contradicted = g.either(g.less(target, 0.0f), apart);
    const Value unsure = g.less(probability_, 0.5f);
    state_ =
        g.where(unsure, state(CellState::kUnsure),
                g.where(contradicted, state(CellState::kContradicted), state(CellState::kMatched)));
    return g.negate(g.either(unsure, contradicted));
  }

  // The start of the nearest matched cell on one side, kNone where there is none.
  Value beside(const Value& matched, const Value& start, bool right) const {
    const Value own = g.unsqueeze(column_, {1});  // [w, 1]: the cell that looks
    const Value on_side = right ? g.less(own, column_) : g.less(column_, own);
    const Value wanted = g.both(g.unsqueeze(matched, {1}), on_side);  // [h, w, w]
    const Value none = right ? g.full(g.sizes({grid_.width})) : g.scalar(kNone);
    const Value nearest =
        g.reduce(right ? "ReduceMin" : "ReduceMax", g.where(wanted, column_, none), {2});
    return g.where(g.equal(nearest, none), g.scalar(kNone), at(start, nearest));
  }

  // [h, 1]: the first of two matched cells in a row, 0 without any.
  Value first_seen(const Value& matched) const {
    const Value numbers = g.full(matched);
    const Value pairs =
        g.mul(g.slice(numbers, 1, 0, grid_.width - 1), g.slice(numbers, 1, 1, grid_.width));
    return g.full(g.arg_max(pairs, 1, true));
  }

  // Farthest and nearest disparity of a guide in each cell; a negative one says nothing.
  void offer_guide(const Value& guide) {
    const Value blocks = g.reshape(guide, {grid_.height, 8, grid_.width, 8});
    const Value farthest = g.mul(g.reduce("ReduceMin", blocks, {1, 3}), 1.0f / 8);
    const Value nearest = g.mul(g.reduce("ReduceMax", blocks, {1, 3}), 1.0f / 8);
    const Value given = g.negate(g.less(farthest, 0.0f));
    offer("guide_farthest", farthest, given, SeedRole::kGuide);
    offer("guide_nearest", nearest, given, SeedRole::kGuide);
  }

  // SeedRow::offer for all cells: value [h, w] where `offered`.
  void offer(const char* name, const Value& cell_value, const Value& offered, SeedRole role) {
    Graph::Scope scope(g, name);
    const Value value = g.unsqueeze(cell_value, {2});
    const Value same = g.less(g.abs(g.sub(starts_, value)), kSame);  // [h, w, k]
    const Value has_same = any(same, 2, true);
    const Value own = g.equal(kinds_, own_);
    const Value last_own = g.reduce("ReduceMax", g.where(own, slot_, g.scalar(0)), {2}, true);
    const Value slot = g.where(has_same, g.full(g.arg_max(g.full(same), 2, true)), last_own);
    const Value taken =
        g.both(g.unsqueeze(offered, {2}), g.either(has_same, g.less(g.scalar(0), last_own)));
    const Value hit = g.both(g.equal(slot_, slot), taken);
    const Value replaced = g.both(hit, g.negate(has_same));
    const Value plane = g.clamp(g.floor(g.add(value, 0.5f)), g.scalar(float(planes_ - 1)));
    starts_ = g.where(replaced, value, starts_);
    seeds_ = g.where(replaced, plane, seeds_);
    const Value kind = g.add(own_, static_cast<float>(role));
    kinds_ = g.where(g.both(hit, own), kind, kinds_);
  }

  Graph& g;
  Grid grid_;
  std::int64_t k_, planes_;
  Value column_, slot_;
  Value starts_, seeds_, kinds_;  // float [h, w, k]
  Value probability_;             // of the best seeds
  Value state_, own_;             // of the cells; the kind of a seed of their own
};

}  // namespace

void complete_seeds(Graph& g, LabelSeeds& seeds, const Grid& grid, const ModelOptions& o,
                    const std::optional<Value>& guide) {
  Completion completion(g, seeds, grid, o);
  completion.run(guide);
  completion.store(seeds);
}

}  // namespace nmrf::graph
