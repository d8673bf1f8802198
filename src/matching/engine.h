// What computes one pass of the network over a pair: the runtime, or the training component where
// it is installed (other devices, plain operators).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "network/model_file.h"
#include "nmrf/disparity.h"
#include "nmrf/image.h"
#include "nmrf/matcher.h"

namespace nmrf {

// What a pass knows of its errors besides the posterior, px of the pass, of the images' size.
struct PassEvidence {
  FloatMap spread;   // mean distance of the hypotheses from the winner's, weighted by the posterior
  FloatMap refined;  // how far refinement moved the winner
  FloatMap guided;   // how far the map is from its guide; 0 without one
};

// One pass over rectified 8-bit RGB images of one size.
struct PassInput {
  const Image* left = nullptr;
  const Image* right = nullptr;
  // A map of this pair in its own pixels, of the images' size: guides the pass. Without one, models
  // that want a guide make theirs from the images at half the size.
  const FloatMap* guide = nullptr;
  // Candidate labels per pixel, at least 2; 0: the model's. Others than the runtime take those.
  int labels = 0;
  bool keep_labels = false;
  PassEvidence* evidence = nullptr;  // to be filled, by engines that can; others leave it empty
  // Called with the share of the pass that is done as each stage begins; may throw to cancel.
  std::function<void(double done, const char* stage)> on_stage{};
};

// The buffers of one call; one thread at a time.
class EnginePass {
 public:
  virtual ~EnginePass() = default;
  // Sets map, posterior and, if asked for, labels and seeds of the result.
  virtual void run(const PassInput& input, Disparity& result) = 0;
  // Bytes of its buffers for images of this size, with a guide given or not; 0: not known.
  virtual std::size_t memory(int width, int height, bool guided) {
    (void)width, (void)height, (void)guided;
    return 0;
  }
};

class Engine {
 public:
  virtual ~Engine() = default;
  // memory: for its buffers, others use it between runs; outlives the pass.
  virtual std::unique_ptr<EnginePass> make_pass(MemoryBlock& memory) = 0;
  virtual const ModelOptions& options() const = 0;
  virtual const std::string& device() const = 0;
};

// The runtime on the CPU.
std::unique_ptr<Engine> make_runtime_engine(LoadedModel model, ThreadPool& pool);

// A matcher of a network that is in memory already. Throws as Matcher::load() does.
Matcher make_matcher(LoadedModel model, const MatcherOptions& options);

// Also the features of every pixel that an error model is fitted to (error_model.h), [height,
// width, ErrorMlp::kFeatures]; left empty by an engine that does not know them.
void match_with_features(const Matcher& matcher, const ImageView& left, const ImageView& right,
                         const MatchOptions& how, Disparity& result, std::vector<float>& features);

// An engine that takes over from the runtime, for the devices it serves; null: none for this one.
using EngineFactory = std::unique_ptr<Engine> (*)(const std::filesystem::path& model,
                                                  const MatcherOptions& options);
void set_engine_factory(EngineFactory factory);
EngineFactory engine_factory();

}  // namespace nmrf
