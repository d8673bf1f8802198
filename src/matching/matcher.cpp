#include "nmrf/matcher.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "core/check.h"
#include "core/cores.h"
#include "core/log.h"
#include "core/quantile.h"
#include "core/stage_clock.h"
#include "kernels/bytes.h"
#include "kernels/resample.h"
#include "matching/alignment.h"
#include "matching/engine.h"
#include "matching/error_model.h"
#include "matching/hole_filling.h"
#include "matching/tiles.h"
#include "matching/weighted_median.h"
#include "nmrf/checks.h"

namespace nmrf {
namespace {

constexpr int kLeastSide = 32;  // of the images that are matched

// Of images whose scale is left to the model: bounds time and memory.
constexpr double kMostPixels = 2e6;

constexpr double kMostEnlarged = 2;

double within_most_pixels(int width, int height) {
  return std::sqrt(kMostPixels / (static_cast<double>(width) * height));
}

void mirror(Image& image) {
  for (int y = 0; y < image.height(); ++y) {
    std::uint8_t* row = image.row(y);
    for (int x = 0, z = image.width() - 1; x < z; ++x, --z)
      std::swap_ranges(row + 3 * x, row + 3 * x + 3, row + 3 * z);
  }
}

template <class T>
void mirror(Map<T>& map) {
  for (int y = 0; y < map.height(); ++y) std::reverse(map.row(y), map.row(y) + map.width());
}

// Moves an image by `shift` pixels to the right, in place; the border is repeated.
void move_right(Image& image, int shift) {
  const int width = image.width(), kept = width - std::abs(shift);
  for (int y = 0; y < image.height(); ++y) {
    std::uint8_t* row = image.row(y);
    const int from = std::max(0, -shift), to = std::max(0, shift);
    std::memmove(row + 3 * to, row + 3 * from, 3 * static_cast<std::size_t>(kept));
    const std::uint8_t* border = row + 3 * (shift > 0 ? to : kept - 1);
    const int begin = shift > 0 ? 0 : kept, end = shift > 0 ? to : width;
    for (int x = begin; x < end; ++x) std::memcpy(row + 3 * x, border, 3);
  }
}

// Marks pixels whose match lies in the border that move_right() replicated.
void mark_repeated(const FloatMap& map, float shift, ByteMap& mask) {
  const float first = std::max(0.0f, shift),
              last = static_cast<float>(map.width() - 1) + std::min(0.0f, shift);
  for (int y = 0; y < map.height(); ++y)
    for (int x = 0; x < map.width(); ++x) {
      const float at = static_cast<float>(x) - map.at(y, x);
      if (at < first || at > last) mask.at(y, x) = kOutOfView | kFilled;
    }
}

void add(float shift, FloatMap& map) {
  for (float& value : map) value += shift;
}

void warn_of_limit(const FloatMap& disparity, int max_disp) {
  // The last plane stands for max_disp - 8; beyond it nothing can be found.
  const auto limit = static_cast<float>(max_disp - 12);
  const auto near_limit =
      std::count_if(disparity.begin(), disparity.end(), [&](float value) { return value > limit; });
  const double share = static_cast<double>(near_limit) / static_cast<double>(disparity.size());
  if (share > 0.02)
    log_warning(
        "{:.0f} % of the disparities are at the limit of {} px, so nearer surfaces are missed. "
        "Raise max_disp, or match at a smaller scale.",
        100 * share, max_disp);
}

// The buffers of one call, used again by the next one.
struct Call {
  MemoryBlock memory;  // of the network's pass, then of each step after it
  std::unique_ptr<EnginePass> pass;
  Image left, right;                // as given, 8-bit RGB, the right one corrected
  Image aligned;                    // its memory
  Image scaled_left, scaled_right;  // as matched in the first pass
  Image finer_left, finer_right;    // and in the second
  Image coarse_left, coarse_right;  // of the pass that guides tiles
  TiledPass tiles;
  FloatMap guide, swap;
  std::vector<float> known;
  kernels::Resampler resampler;
  kernels::NearestResampler nearest;
  std::vector<float> work;
  PassEvidence evidence;
  FloatMap network;  // the map before it is finished
  HoleFilling hole_filling{memory};
  WeightedMedian weighted_median{memory};
  ErrorEstimate errors{memory};
};

}  // namespace

struct Matcher::State {
  explicit State(int threads) : pool(threads) {}

  ThreadPool pool;
  Precision precision = Precision::kFloat32;
  std::unique_ptr<Engine> engine;
  std::optional<ErrorMlp> error_model;
  std::mutex mutex;
  std::vector<std::unique_ptr<Call>> idle;  // at most as many as threads

  const ModelOptions& options() const { return engine->options(); }

  std::unique_ptr<Call> take_call() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto call = std::move(idle.back());
        idle.pop_back();
        return call;
      }
    }
    auto call = std::make_unique<Call>();
    call->pass = engine->make_pass(call->memory);
    return call;
  }

  void give_back(std::unique_ptr<Call> call) {
    std::lock_guard lock(mutex);
    if (idle.size() < static_cast<std::size_t>(pool.threads())) idle.push_back(std::move(call));
  }

  void resize(Call& call, const Image& image, double scale, Image& result) {
    const int width = static_cast<int>(std::lround(image.width() * scale)),
              height = static_cast<int>(std::lround(image.height() * scale));
    check(width > 0 && height > 0, ErrorKind::kInput, "a scale of {} is too small for {}x{} images",
          scale, image.width(), image.height());
    result.resize(width, height);
    call.resampler.prepare(scale < 1 ? kernels::Resampling::kArea : kernels::Resampling::kBicubic,
                           image.width(), image.height(), width, height);
    const std::size_t room = call.resampler.work_floats();
    call.work.resize(std::max(call.work.size(), room * static_cast<std::size_t>(pool.threads())));
    pool.share(height, 8, [&](std::int64_t begin, std::int64_t end, int slot) {
      call.resampler.rows(image.data(), static_cast<std::ptrdiff_t>(image.row_bytes()),
                          result.data(), static_cast<std::ptrdiff_t>(result.row_bytes()),
                          static_cast<int>(begin), static_cast<int>(end),
                          call.work.data() + static_cast<std::size_t>(slot) * room);
    });
  }

  // The nearest value, times a factor, in a map of another size.
  void resize(Call& call, const FloatMap& map, int width, int height, float factor,
              FloatMap& result) {
    result.resize(width, height);
    call.nearest.prepare(map.width(), map.height(), width, height);
    pool.share(height, 16, [&](std::int64_t begin, std::int64_t end, int) {
      call.nearest.rows(map.data(), factor, result.data(), static_cast<int>(begin),
                        static_cast<int>(end));
    });
  }

  double best_scale(const FloatMap& map, std::optional<double> current,
                    std::vector<float>& known) const;
  struct Needs {
    // Bytes: images and maps; what finishing the map takes, in the memory of the passes; the
    // largest pass.
    std::size_t around = 0, finish = 0, pass = 0;
  };
  Needs needs(EnginePass& pass, int width, int height, const MatchOptions& how) const;
  // Returns whether it took tiles.
  bool run_pass(Call& call, PassInput input, std::optional<std::size_t> room, Disparity& result);
  void match(Call& call, const ImageView& left, const ImageView& right, const MatchOptions& how,
             Disparity& result, std::vector<float>* features = nullptr);
  void estimate_errors(Call& call, const Image& left, const Image& right, float scale,
                       Disparity& result, std::vector<float>* features);
};

double Matcher::State::best_scale(const FloatMap& map, std::optional<double> current,
                                  std::vector<float>& known) const {
  constexpr double kLeast = 1.2;    // less is not worth another pass
  constexpr double kCovered = 0.6;  // of max_disp: the rest is for what is nearer still
  constexpr double kNearShare = 0.98;
  if (options().enlarge == 0) return 1;
  known.resize(map.size());
  known.erase(std::copy_if(map.begin(), map.end(), known.begin(),
                           [](float value) { return std::isfinite(value); }),
              known.end());
  const double limit = std::min<double>(options().enlarge, kCovered * options().max_disp);
  const double room = limit / std::max(quantile(known, kNearShare), 1.0f);
  const double most = within_most_pixels(map.width(), map.height());
  double scale = std::min({kMostEnlarged, room, most});
  if (scale < kLeast) scale = std::min(1.0, most);
  return current && *current > 0.9 * scale && *current < 1.1 * scale ? *current : scale;
}

Matcher::State::Needs Matcher::State::needs(EnginePass& pass, int width, int height,
                                            const MatchOptions& how) const {
  const bool choose = !how.scale && options().enlarge > 0 && !how.keep_labels;
  double scale = how.scale.value_or(1);
  if (choose) scale = std::min(kMostEnlarged, within_most_pixels(width, height));
  const int matched_width = std::max(1, static_cast<int>(std::lround(width * scale))),
            matched_height = std::max(1, static_cast<int>(std::lround(height * scale)));
  const auto pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height),
             matched =
                 static_cast<std::size_t>(matched_width) * static_cast<std::size_t>(matched_height);
  // Bytes per pixel. Maps: of the result, of what is known of its errors, the guide.
  constexpr std::size_t kImage = 3, kMaps = 49, kFinish = 52;
  Needs result;
  result.around = pixels * (how.align ? 3 : 2) * kImage + (scale != 1 ? 2 * matched * kImage : 0) +
                  std::max(pixels, matched) * kMaps;
  result.finish = std::max(pixels, matched) * kFinish;
  result.pass = pass.memory(matched_width, matched_height, how.guide != nullptr);
  return result;
}

// One pass, in tiles where it would need more than `room` bytes.
bool Matcher::State::run_pass(Call& call, PassInput input, std::optional<std::size_t> room,
                              Disparity& result) {
  const int width = input.left->width(), height = input.left->height();
  if (!room || call.pass->memory(width, height, input.guide != nullptr) <= *room) {
    call.pass->run(input, result);
    return false;
  }
  const int max_disp = options().max_disp;
  int reach = max_disp;
  if (options().guide) {
    if (!input.guide) {  // the whole at a size that fits
      double scale = std::min(0.5, within_most_pixels(width, height));
      auto fits = [&] {
        return call.pass->memory(static_cast<int>(std::lround(width * scale)),
                                 static_cast<int>(std::lround(height * scale)), false) <= *room;
      };
      while (!fits() && std::min(width, height) * scale > 2 * kLeastSide) scale *= 0.8;
      resize(call, *input.left, scale, call.coarse_left);
      resize(call, *input.right, scale, call.coarse_right);
      PassInput coarse = input;
      coarse.left = &call.coarse_left;
      coarse.right = &call.coarse_right;
      coarse.evidence = nullptr;
      coarse.on_stage = nullptr;
      call.pass->run(coarse, result);
      const float grown = static_cast<float>(width) / static_cast<float>(result.map.width());
      resize(call, result.map, width, height, grown, call.guide);
      input.guide = &call.guide;
    }
    const auto [least, most] = std::minmax_element(input.guide->begin(), input.guide->end());
    reach = std::min(max_disp, static_cast<int>(*most - *least) + 1);
  }
  const Tiling tiling =
      choose_tiling(*call.pass, width, height, input.guide != nullptr, reach, *room);
  if (tiling.tiles.empty())
    call.pass->run(input, result);
  else
    call.tiles.run(*call.pass, input, tiling, max_disp, result);
  return !tiling.tiles.empty();
}

void Matcher::State::estimate_errors(Call& call, const Image& left, const Image& right, float scale,
                                     Disparity& result, std::vector<float>* features) {
  StageScope stage("error model");
  if (!call.evidence.spread.same_size(result.map)) {  // no error model, or an engine without
    result.confidence3.resize(0, 0);
    result.expected_error.resize(0, 0);
    result.confidence.resize(result.map.width(), result.map.height());
    for (std::size_t i = 0; i < result.mask.size(); ++i)
      result.confidence.data()[i] =
          result.mask.data()[i] & kFilled ? 0 : result.posterior.data()[i];
    return;
  }
  const ErrorInput input{
      &left,        &right,         &call.network, &result.map, &result.posterior,
      &result.mask, &call.evidence, scale};
  if (features) call.errors.features(input, pool, *features);
  if (error_model) call.errors.apply(*error_model, input, pool, result);
}

void Matcher::State::match(Call& call, const ImageView& left_view, const ImageView& right_view,
                           const MatchOptions& how, Disparity& result,
                           std::vector<float>* features) {
  const ModelOptions& o = options();
  StageScope images("images");
  to_rgb8(left_view, call.left, "the left image");
  to_rgb8(right_view, call.right, "the right image");
  result.alignment = how.alignment.value_or(Alignment());
  if (how.align && !how.alignment)
    if (const PairCheck verdict = check_pair(call.left, call.right); verdict.correctable)
      result.alignment = verdict.alignment;
  if (!result.alignment.none()) {
    align(call.right, result.alignment, pool, call.work, call.aligned);
    std::swap(call.right, call.aligned);
  }
  if (how.view == View::kRight) {
    std::swap(call.left, call.right);
    mirror(call.left);
    mirror(call.right);
  }
  // What is matched has disparities from 0 on. The other view moves, not the one of the map.
  if (how.min_disp != 0) move_right(call.right, how.min_disp);
  const int width = call.left.width(), height = call.left.height();
  const bool choose = !how.scale;
  double scale = how.scale.value_or(1);
  // Labels are given in pixels of the images as they are.
  if (choose && o.enlarge > 0 && !how.keep_labels)
    scale = std::min(1.0, within_most_pixels(width, height));
  const Image *left = &call.left, *right = &call.right;
  if (scale != 1) {
    resize(call, call.left, scale, call.scaled_left);
    resize(call, call.right, scale, call.scaled_right);
    left = &call.scaled_left;
    right = &call.scaled_right;
  }
  check(left->width() >= kLeastSide && left->height() >= kLeastSide, ErrorKind::kInput,
        "the images to match are {}x{}; at least 32x32 is needed (a larger scale enlarges them)",
        left->width(), left->height());

  // How much larger the images are matched is chosen by a first map: one of half the size, which
  // then guides the pass proper, or one of the images' own size for a model without a guide and
  // where a map or labels of that size are asked for.
  const bool enlarges = choose && o.enlarge > 0;
  const bool halves = enlarges && o.guide && !how.guide && !how.keep_labels &&
                      std::min(left->width(), left->height()) >= 2 * kLeastSide;
  const double first_share = halves ? 0.1 : enlarges ? 0.25 : 1;
  double begin = 0, share = first_share;
  PassInput input{left, right, nullptr, 0, how.keep_labels, nullptr, {}};
  call.evidence.spread.resize(0, 0);
  if (error_model || features) input.evidence = &call.evidence;
  if (how.guide && o.guide) {
    check(how.guide->width() == width && how.guide->height() == height, ErrorKind::kUsage,
          "the guide is {}x{} and the images {}x{}; a guide has the size of the images",
          how.guide->width(), how.guide->height(), width, height);
    const int matched = left->width();
    resize(call, *how.guide, matched, left->height(),
           static_cast<float>(matched) / static_cast<float>(width), call.guide);
    if (how.view == View::kRight) mirror(call.guide);
    if (how.min_disp != 0)
      add(static_cast<float>(-how.min_disp) * static_cast<float>(matched) /
              static_cast<float>(width),
          call.guide);
    input.guide = &call.guide;
    // A map that is nearly right makes one of the candidates needless.
    if (!how.keep_labels && o.labels > 2) input.labels = o.labels - 1;
  }
  if (how.progress)
    input.on_stage = [&](double done, const char* stage) {
      check(how.progress({begin + share * done, stage}), ErrorKind::kCancelled, "cancelled");
    };
  std::optional<std::size_t> room;  // for the buffers of a pass
  if (how.memory) {
    const Needs need = needs(*call.pass, width, height, how);
    check(*how.memory > need.around + need.finish, ErrorKind::kDevice,
          "images and maps of a {}x{} pair alone take {} MB, more than the limit of {} MB allows",
          width, height, (need.around + need.finish) >> 20, *how.memory >> 20);
    room = *how.memory - need.around;
  }
  auto guide_by = [&](const FloatMap& map, const Image& image) {
    resize(call, map, image.width(), image.height(),
           static_cast<float>(image.width()) / static_cast<float>(map.width()), call.guide);
    input.guide = &call.guide;
  };
  if (halves) {
    resize(call, *left, 0.5, call.coarse_left);
    resize(call, *right, 0.5, call.coarse_right);
    PassInput coarse{&call.coarse_left, &call.coarse_right, nullptr, 0, false,
                     nullptr,           input.on_stage};
    run_pass(call, coarse, room, result);
    guide_by(result.map, *left);
  } else {
    const bool tiled = run_pass(call, input, room, result);
    if (!tiled) warn_of_limit(result.map, o.max_disp);  // tiles look beyond it
  }
  const double enlarged =
      enlarges ? best_scale(halves ? call.guide : result.map, {}, call.known) : 1;
  if (enlarged > 1) {
    resize(call, *left, enlarged, call.finer_left);
    resize(call, *right, enlarged, call.finer_right);
    input.left = &call.finer_left;
    input.right = &call.finer_right;
    input.keep_labels = false;
    input.labels = 0;
    if (o.guide) guide_by(result.map, call.finer_left);
  }
  if (halves || enlarged > 1) {
    begin = first_share;
    share = 1 - first_share;
    const bool tiled = run_pass(call, input, room, result);
    if (!tiled && enlarged <= 1) warn_of_limit(result.map, o.max_disp);
  }
  if ((how.full_size || choose) && (result.map.width() != width || result.map.height() != height)) {
    const float grown = static_cast<float>(width) / static_cast<float>(result.map.width());
    resize(call, result.map, width, height, grown, call.swap);
    std::swap(result.map, call.swap);
    resize(call, result.posterior, width, height, 1, call.swap);
    std::swap(result.posterior, call.swap);
    if (!call.evidence.spread.empty())
      for (FloatMap* map : {&call.evidence.spread, &call.evidence.refined, &call.evidence.guided}) {
        resize(call, *map, width, height, grown, call.swap);
        std::swap(*map, call.swap);
      }
  }

  const bool original = result.map.width() == width && result.map.height() == height;
  const Image &seen = original ? call.left : *left, &other = original ? call.right : *right;
  if (input.evidence) call.network = result.map;
  in_stage("hole filling",
           [&] { call.hole_filling.apply(result.map, seen, o.fill, result.mask, pool); });
  in_stage("median", [&] { call.weighted_median.apply(result.map, seen, o.median, pool); });
  const int matched = input.left->width();
  const float least = static_cast<float>(how.min_disp) * static_cast<float>(result.map.width()) /
                      static_cast<float>(width);
  if (how.min_disp != 0) mark_repeated(result.map, least, result.mask);
  estimate_errors(call, seen, other,
                  static_cast<float>(matched) / static_cast<float>(result.map.width()), result,
                  features);
  if (how.min_disp != 0) {
    add(least, result.map);
    for (CellLabels* labels : {&result.labels, &result.seeds})
      for (float& value : labels->values) value += least;
  }
  if (how.view == View::kRight) {
    mirror(result.map);
    for (FloatMap* map :
         {&result.confidence, &result.confidence3, &result.expected_error, &result.posterior})
      mirror(*map);
    mirror(result.mask);
  }
  if (!how.keep_labels) {
    result.labels.values.clear();
    result.seeds.values.clear();
  }
  if (how.progress) how.progress({1, "done"});
}

Matcher::Matcher(std::unique_ptr<State> state) : state_(std::move(state)) {}
Matcher::~Matcher() = default;
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;

double Matcher::best_scale(const FloatMap& map, std::optional<double> current) const {
  check(!map.empty(), ErrorKind::kUsage, "the choice of a scale needs a disparity map");
  std::vector<float> known;
  return state_->best_scale(map, current, known);
}

std::size_t Matcher::memory(int width, int height, const MatchOptions& how) const {
  std::unique_ptr<Call> call = state_->take_call();
  const auto needs = state_->needs(*call->pass, width, height, how);
  state_->give_back(std::move(call));
  return std::min(needs.around + std::max(needs.pass, needs.finish), how.memory.value_or(SIZE_MAX));
}

int Matcher::max_disp() const { return state_->options().max_disp; }
int Matcher::threads() const { return state_->pool.threads(); }
Precision Matcher::precision() const { return state_->precision; }
const std::string& Matcher::device() const { return state_->engine->device(); }

void Matcher::release_idle() const {
  std::lock_guard lock(state_->mutex);
  state_->idle.clear();
}

namespace {

void check_options(const MatcherOptions& options) {
  check(!options.max_disp || (*options.max_disp >= 1 && *options.max_disp <= 16384),
        ErrorKind::kUsage, "max_disp is {}; expected 1 to 16384", options.max_disp.value_or(0));
  check(!options.threads || (*options.threads >= 1 && *options.threads <= 1024), ErrorKind::kUsage,
        "threads is {}; expected 1 to 1024", options.threads.value_or(0));
}

// Without a value: as the model is marked.
std::optional<bool> wants_bytes(const MatcherOptions& options) {
  const bool fast = tokens::byte_arithmetic().fast;
  if (options.precision == Precision::kAuto) return fast ? std::nullopt : std::optional(false);
  if (options.precision == Precision::kInt8 && !fast)
    log_warning("8-bit integers are not faster than 32-bit floats on this CPU");
  return options.precision == Precision::kInt8;
}

void set_max_disp(LoadedModel& model, const MatcherOptions& options) {
  if (!options.max_disp) return;
  const int planes = (*options.max_disp + 7) / 8, labels = model.network->options().labels;
  check(planes >= labels, ErrorKind::kUsage,
        "max_disp is {}; {} with {} labels per pixel needs at least {}", *options.max_disp,
        model.path, labels, 8 * labels);
  model.network->set_max_disp(8 * planes);
}

}  // namespace

Matcher make_matcher(LoadedModel model, const MatcherOptions& options) {
  check_options(options);
  if (!model.trained) log_warning("{}: untrained weights; the maps are meaningless", model.path);
  set_max_disp(model, options);
  auto state = std::make_unique<Matcher::State>(options.threads.value_or(usable_cores()));
  state->precision = model.bytes ? Precision::kInt8 : Precision::kFloat32;
  state->error_model = error_model_of(model.metadata, model.path);
  state->engine = make_runtime_engine(std::move(model), state->pool);
  return Matcher(std::move(state));
}

Matcher Matcher::load(const std::filesystem::path& model, const MatcherOptions& options) {
  check_options(options);
  if (EngineFactory factory = engine_factory()) {
    auto state = std::make_unique<State>(options.threads.value_or(usable_cores()));
    state->engine = factory(model, options);
    if (state->engine) return Matcher(std::move(state));
  }
  check(options.device == "auto" || options.device == "cpu", ErrorKind::kDevice,
        "device '{}' needs the training component with a libtorch built for it; this library "
        "runs on the CPU",
        options.device);
  return make_matcher(load_model(model, options.set, wants_bytes(options)), options);
}

Matcher Matcher::load(std::span<const std::byte> model, const MatcherOptions& options) {
  check(options.device == "auto" || options.device == "cpu", ErrorKind::kDevice,
        "a model in memory runs on the CPU, not on '{}'", options.device);
  return make_matcher(load_model(model, "the model in memory", options.set, wants_bytes(options)),
                      options);
}

void Matcher::match(const ImageView& left, const ImageView& right, const MatchOptions& how,
                    Disparity& result) const {
  check(left.empty() || right.empty() || (left.width == right.width && left.height == right.height),
        ErrorKind::kInput,
        "the left image is {}x{} but the right one is {}x{}; both images of a rectified pair must "
        "have the same size",
        left.width, left.height, right.width, right.height);
  check(!how.scale || (*how.scale > 0.01 && *how.scale < 100), ErrorKind::kUsage,
        "scale is {}; expected a factor such as 0.5", how.scale.value_or(0));
  check(left.empty() || std::abs(static_cast<double>(how.min_disp)) < left.width, ErrorKind::kUsage,
        "min_disp is {} and the images are {} pixels wide", how.min_disp, left.width);
  check(how.view == View::kLeft || !how.keep_labels, ErrorKind::kUsage,
        "candidate labels are kept for the left view only");
  try {
    std::unique_ptr<Call> call = state_->take_call();
    state_->match(*call, left, right, how, result);
    state_->give_back(std::move(call));
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kDevice,
         "not enough memory for a {}x{} pair. Set a memory limit, a scale of 0.5 or a smaller "
         "max_disp (now {}).",
         left.width, left.height, max_disp());
  }
}

void match_with_features(const Matcher& matcher, const ImageView& left, const ImageView& right,
                         const MatchOptions& how, Disparity& result, std::vector<float>& features) {
  features.clear();
  std::unique_ptr<Call> call = matcher.state_->take_call();
  matcher.state_->match(*call, left, right, how, result, &features);
  matcher.state_->give_back(std::move(call));
}

Disparity Matcher::match(const ImageView& left, const ImageView& right,
                         const MatchOptions& how) const {
  Disparity result;
  match(left, right, how, result);
  return result;
}

}  // namespace nmrf
