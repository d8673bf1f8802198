// The library as plain functions for web/worker.js. Functions that can fail return 0 or the kind of
// the error (nmrf/error.h); nmrf_error() has the sentence. One matcher and one result at a time.
#include <emscripten.h>

#include <cstdint>
#include <new>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <string>

#include "nmrf/checks.h"
#include "nmrf/log.h"
#include "nmrf/matcher.h"

// Messages for the page; the worker defines Module.on_progress and Module.on_warning.
EM_JS(void, tell_progress, (double done, const char* stage),
      { Module.on_progress(done, UTF8ToString(stage)); });
EM_JS(void, tell_warning, (const char* text), { Module.on_warning(UTF8ToString(text)); });

namespace {

std::optional<nmrf::Matcher> matcher;
nmrf::Disparity result;
nmrf::Alignment correction;  // of the right image, by the last check
std::string text;            // the last error, or the last answer in JSON

template <class Work>
int guarded(const Work& work) {
  try {
    work();
    return 0;
  } catch (const nmrf::Error& error) {
    text = error.what();
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    text = "not enough memory";
    return static_cast<int>(nmrf::ErrorKind::kDevice);
  } catch (const std::exception& error) {
    text = error.what();
    return static_cast<int>(nmrf::ErrorKind::kFailure);
  }
}

nmrf::ImageView rgba(const std::uint8_t* pixels, int width, int height) {
  nmrf::ImageView view{pixels, width, height};
  view.channels = 4;
  return view;
}

}  // namespace

extern "C" {

EMSCRIPTEN_KEEPALIVE const char* nmrf_error() { return text.c_str(); }

// model: the bytes of a .safetensors file, not needed afterwards.
EMSCRIPTEN_KEEPALIVE int nmrf_load(const std::uint8_t* model, std::size_t bytes, int threads) {
  return guarded([&] {
    nmrf::set_log_sink([](nmrf::LogLevel level, const std::string& message) {
      if (level == nmrf::LogLevel::kWarning) tell_warning(message.c_str());
    });
    matcher.reset();
    nmrf::MatcherOptions options;
    options.threads = threads;
    matcher = nmrf::Matcher::load({reinterpret_cast<const std::byte*>(model), bytes}, options);
  });
}

// The pair check as JSON, in nmrf_error(): {"warnings": [...], "swapped": false, ...}. A small
// error of rectification that is sure is "corrected" by the next match, as by the command.
EMSCRIPTEN_KEEPALIVE int nmrf_check(const std::uint8_t* left, int left_width, int left_height,
                                    const std::uint8_t* right, int right_width, int right_height) {
  return guarded([&] {
    correction = {};
    nmrf::PairCheck found = nmrf::check_pair(rgba(left, left_width, left_height),
                                             rgba(right, right_width, right_height));
    nlohmann::json corrected;
    if (found.correctable) {
      correction = found.alignment;
      corrected = {{"offset", correction.offset},
                   {"degrees", correction.turn * 180 / std::numbers::pi},
                   {"scale", 1 + correction.scale}};
      if (found.not_rectified) found.warnings.pop_back();  // its warning is the last
    }
    text = nlohmann::json{{"warnings", found.warnings},           {"swapped", found.swapped},
                          {"not_rectified", found.not_rectified}, {"identical", found.identical},
                          {"conclusive", found.conclusive},       {"corrected", corrected}}
               .dump();
  });
}

// left, right: RGBA. scale: 0 leaves it to the model; the result has the size of the images.
EMSCRIPTEN_KEEPALIVE int nmrf_match(const std::uint8_t* left, int left_width, int left_height,
                                    const std::uint8_t* right, int right_width, int right_height,
                                    double scale) {
  return guarded([&] {
    nmrf::MatchOptions how;
    if (scale > 0) how.scale = scale;
    how.full_size = true;
    how.alignment = correction;
    how.progress = [](const nmrf::Progress& at) {
      tell_progress(at.done, at.stage);
      return true;
    };
    matcher->match(rgba(left, left_width, left_height), rgba(right, right_width, right_height), how,
                   result);
  });
}

EMSCRIPTEN_KEEPALIVE const float* nmrf_map() { return result.map.data(); }
EMSCRIPTEN_KEEPALIVE const float* nmrf_confidence() { return result.confidence.data(); }
EMSCRIPTEN_KEEPALIVE const std::uint8_t* nmrf_mask() { return result.mask.data(); }
EMSCRIPTEN_KEEPALIVE int nmrf_width() { return result.map.width(); }
EMSCRIPTEN_KEEPALIVE int nmrf_height() { return result.map.height(); }

// Gives the working memory back, so that the next size finds room.
EMSCRIPTEN_KEEPALIVE void nmrf_release() {
  if (matcher) matcher->release_idle();
}

}  // extern "C"
