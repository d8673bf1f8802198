// One pass of the network with planned buffers: images in, disparity out, at most one guide pass at
// half the size before it.
#include <algorithm>
#include <cmath>
#include <compare>
#include <map>

#include "core/arena.h"
#include "kernels/patches.h"
#include "matching/engine.h"
#include "network/flops.h"

namespace nmrf {
namespace {

constexpr int kLeastSide = 32;          // of the images of a pass
constexpr std::size_t kMostPlans = 16;  // kept per call

// 8-bit RGB as floats of 0 to 255, replicate-padded at the right and the bottom to the sizes the
// network takes. image: not looked at while planning.
FeatureMap to_floats(Context& context, const Image* image, int width, int height,
                     const ModelOptions& options) {
  FeatureMap result = context.map(options.aligned(height), options.aligned(width), 3);
  context.share(result.height, 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y) {
      const std::uint8_t* from = image->row(std::min(static_cast<int>(y), height - 1));
      float* to = result.values.data() + y * result.width * 3;
      for (int i = 0; i < 3 * width; ++i) to[i] = from[i];
      for (std::int64_t x = width; x < result.width; ++x)
        std::copy_n(to + 3 * (width - 1), 3, to + 3 * x);
    }
  });
  return result;
}

// Means of 2 x 2 pixels, replicate-padded likewise.
FeatureMap halved(Context& context, const FeatureMap& image, const ModelOptions& options) {
  const std::int64_t height = image.height / 2, width = image.width / 2;
  FeatureMap result = context.map(options.aligned(height), options.aligned(width), 3);
  context.share(result.height, 4, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y) {
      const std::int64_t from = std::min(y, height - 1);
      float* to = result.values.data() + y * result.width * 3;
      kernels::average_2x2(image.values.data(), image.width, 3, to - from * width * 3, from,
                           from + 1);
      for (std::int64_t x = width; x < result.width; ++x)
        std::copy_n(to + 3 * (width - 1), 3, to + 3 * x);
    }
  });
  return result;
}

enum class Guide { kNone, kHalfSize, kGiven };

class RuntimePass : public EnginePass {
 public:
  RuntimePass(const Network& network, ThreadPool& pool, MemoryBlock& memory)
      : network_(network), pool_(pool), arena_(memory) {}

  void run(const PassInput& input, Disparity& result) override {
    const Image& left = *input.left;
    const Key key = key_of(left.width(), left.height(), input.guide != nullptr, input.labels);
    const Planned& planned = plan(key);
    result.map.resize(left.width(), left.height());
    result.posterior.resize(left.width(), left.height());
    if (input.evidence)
      for (FloatMap* map :
           {&input.evidence->spread, &input.evidence->refined, &input.evidence->guided})
        map->resize(left.width(), left.height());
    arena_.begin(planned.memory);
    Context context(arena_, pool_);
    double done = 0;
    std::size_t next = 0;
    if (input.on_stage)
      context.notify([&](const char* stage) {
        input.on_stage(planned.operations > 0 ? done / planned.operations : 0, stage);
        if (next < planned.stages.size()) done += planned.stages[next++];
      });
    forward(context, key, input, &result);
  }

  std::size_t memory(int width, int height, bool guided) override {
    return plan(key_of(width, height, guided, 0)).memory.bytes;
  }

 private:
  struct Key {
    int width, height;
    Guide guide;
    int labels;  // 0: the model's
    auto operator<=>(const Key&) const = default;
  };
  struct Planned {
    ArenaPlan memory;
    std::vector<double> stages;  // operations of each stage, in order of execution
    double operations = 0;
  };

  Key key_of(int width, int height, bool guided, int labels) const {
    const bool halves = width >= 2 * kLeastSide && height >= 2 * kLeastSide;
    return {width, height,
            !network_.options().guide ? Guide::kNone
            : guided                  ? Guide::kGiven
            : halves                  ? Guide::kHalfSize
                                      : Guide::kNone,
            labels};
  }

  const Planned& plan(const Key& key) {
    if (auto found = plans_.find(key); found != plans_.end()) return found->second;
    if (plans_.size() >= kMostPlans) plans_.clear();
    arena_.begin_planning();
    Context context(arena_, pool_.threads());
    Planned planned;
    // The cost of a stage is known when the next one begins.
    auto counted = [&] { return total_flops(context.costs()); };
    double before = 0;
    bool first = true;
    context.notify([&](const char*) {
      const double now = counted();
      if (!first) planned.stages.push_back(now - before);
      first = false;
      before = now;
    });
    forward(context, key, {}, nullptr);
    planned.stages.push_back(counted() - before);
    planned.operations = counted();
    planned.memory = arena_.plan();
    return plans_.emplace(key, std::move(planned)).first->second;
  }

  // While planning, the input is empty and the result null.
  void forward(Context& context, const Key& key, const PassInput& input, Disparity* result) const {
    const ModelOptions& options = network_.options();
    const Guide guide = key.guide;
    FeatureMap left = to_floats(context, input.left, key.width, key.height, options);
    FeatureMap right = to_floats(context, input.right, key.width, key.height, options);
    const std::int64_t wide = left.width;
    const Buffer<float> guide_map = make_guide(context, input, guide, left, right);
    const NetworkOutput out = network_.forward(context, std::move(left), std::move(right),
                                               guide_map.data(), guide != Guide::kNone, key.labels);
    if (!result) return;
    const int width = result->map.width();
    context.share(result->map.height(), 16, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t y = begin; y < end; ++y) {
        std::copy_n(out.disparity.data() + y * wide, width, result->map.row(static_cast<int>(y)));
        std::copy_n(out.confidence.data() + y * wide, width,
                    result->posterior.row(static_cast<int>(y)));
        if (input.evidence)
          note_evidence(out, guide_map.data(), guide != Guide::kNone, y, wide, *input.evidence);
      }
    });
    if (input.keep_labels) keep_labels(out, options.aligned(key.height), wide, *result);
  }

  Buffer<float> make_guide(Context& context, const PassInput& input, Guide guide,
                           const FeatureMap& left, const FeatureMap& right) const {
    if (guide == Guide::kNone) return {};
    const std::int64_t height = left.height, width = left.width;
    Buffer<float> result = context.take(height * width);
    if (guide == Guide::kGiven) {
      context.share(height, 16, [&](std::int64_t begin, std::int64_t end, int) {
        const FloatMap& map = *input.guide;
        for (std::int64_t y = begin; y < end; ++y) {
          const float* from = map.row(std::min(static_cast<int>(y), map.height() - 1));
          float* to = result.data() + y * width;
          std::copy_n(from, map.width(), to);
          std::fill(to + map.width(), to + width, to[map.width() - 1]);
        }
      });
      return result;
    }
    FeatureMap half_left = halved(context, left, network_.options()),
               half_right = halved(context, right, network_.options());
    const std::int64_t half_width = half_left.width;
    const NetworkOutput half =
        network_.forward(context, std::move(half_left), std::move(half_right));
    context.share(height, 16, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t y = begin; y < end; ++y) {
        const float* from = half.disparity.data() + y / 2 * half_width;
        float* to = result.data() + y * width;
        for (std::int64_t x = 0; x < width; ++x) to[x] = 2 * from[x / 2];
      }
    });
    return result;
  }

  // Row y of what the pass knows of its errors; the padded maps are `wide` pixels wide.
  static void note_evidence(const NetworkOutput& out, const float* guide, bool guided,
                            std::int64_t y, std::int64_t wide, PassEvidence& evidence) {
    const int width = evidence.spread.width(), row = static_cast<int>(y);
    const float *map = out.disparity.data() + y * wide, *winner = out.winner.data() + y * wide,
                *apart = out.spread.data() + y * wide;
    float *spread = evidence.spread.row(row), *refined = evidence.refined.row(row),
          *change = evidence.guided.row(row);
    for (int x = 0; x < width; ++x) {
      spread[x] = 8 * apart[x];
      refined[x] = std::abs(map[x] - 8 * winner[x]);
      change[x] = guided ? std::abs(map[x] - guide[y * wide + x]) : 0;
    }
  }

  void keep_labels(const NetworkOutput& out, std::int64_t height, std::int64_t width,
                   Disparity& result) const {
    const auto count = static_cast<std::size_t>(network_.options().labels);
    for (CellLabels* labels : {&result.labels, &result.seeds}) {
      labels->width = static_cast<int>(width / 8);
      labels->height = static_cast<int>(height / 8);
      labels->count = static_cast<int>(count);
      labels->values.resize(static_cast<std::size_t>(labels->width * labels->height) * count);
    }
    for (std::size_t i = 0; i < result.labels.values.size(); ++i) {
      result.labels.values[i] = 8 * out.labels[i];
      result.seeds.values[i] = 8 * static_cast<float>(out.seeds[i]);
    }
  }

  const Network& network_;
  ThreadPool& pool_;
  Arena arena_;
  std::map<Key, Planned> plans_;
};

class RuntimeEngine : public Engine {
 public:
  RuntimeEngine(LoadedModel model, ThreadPool& pool) : model_(std::move(model)), pool_(pool) {}
  std::unique_ptr<EnginePass> make_pass(MemoryBlock& memory) override {
    return std::make_unique<RuntimePass>(*model_.network, pool_, memory);
  }
  const ModelOptions& options() const override { return model_.network->options(); }
  const std::string& device() const override { return device_; }

 private:
  LoadedModel model_;
  ThreadPool& pool_;
  std::string device_ = "cpu";
};

}  // namespace

std::unique_ptr<Engine> make_runtime_engine(LoadedModel model, ThreadPool& pool) {
  return std::make_unique<RuntimeEngine>(std::move(model), pool);
}

}  // namespace nmrf
