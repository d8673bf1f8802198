#include "nmrf/nmrf.h"

#include <cstddef>
#include <span>

#include "capi/handles.h"
#include "nmrf/checks.h"
#include "nmrf/log.h"
#include "nmrf/version.h"

namespace nmrf::capi {
namespace {

MatcherOptions matcher_options(const nmrf_matcher_options* given) {
  const nmrf_matcher_options o = read_optional(given, "the matcher's options");
  MatcherOptions options;
  if (o.threads != 0) options.threads = o.threads;
  if (o.max_disp != 0) options.max_disp = o.max_disp;
  for (const char* const* change = o.set; change && *change; ++change)
    options.set.emplace_back(*change);
  check(o.precision >= NMRF_PRECISION_AUTO && o.precision <= NMRF_INT8, ErrorKind::kUsage,
        "precision is {}; expected NMRF_PRECISION_AUTO, NMRF_FLOAT32 or NMRF_INT8", o.precision);
  options.precision = static_cast<Precision>(o.precision);
  return options;
}

static_assert(static_cast<int>(Precision::kAuto) == NMRF_PRECISION_AUTO &&
              static_cast<int>(Precision::kFloat32) == NMRF_FLOAT32 &&
              static_cast<int>(Precision::kInt8) == NMRF_INT8);

nmrf_alignment plain(const Alignment& a) { return {a.offset, a.turn, a.scale, a.keystone}; }

View view_named(int view) {
  check(view == NMRF_LEFT || view == NMRF_RIGHT, ErrorKind::kUsage,
        "view is {}; expected NMRF_LEFT or NMRF_RIGHT", view);
  return view == NMRF_LEFT ? View::kLeft : View::kRight;
}

MatchOptions match_options(const nmrf_match_options* given) {
  const nmrf_match_options o = read_optional(given, "the options");
  MatchOptions how;
  how.view = view_named(o.view);
  how.full_size = o.full_size != 0;
  if (o.scale != 0) how.scale = o.scale;
  how.align = o.align != 0;
  if (o.alignment) how.alignment = alignment_of(*o.alignment);
  if (o.progress)
    how.progress = [o](const Progress& progress) {
      return o.progress(progress.done, progress.stage, o.user) == 0;
    };
  return how;
}

template <class Load>
nmrf_status load(nmrf_matcher** matcher, Load&& load) {
  if (!matcher) return NMRF_USAGE;
  *matcher = new (std::nothrow) nmrf_matcher;
  if (!*matcher) return NMRF_DEVICE;
  return guarded((*matcher)->message,
                 [&] { (*matcher)->matcher = std::make_shared<const Matcher>(load()); });
}

std::shared_ptr<const Matcher> loaded(const nmrf_matcher* matcher) {
  check(matcher && matcher->matcher, ErrorKind::kUsage, "the matcher has no model");
  return matcher->matcher;
}

template <class T>
const T* pixels(const Map<T>& map) {
  return map.empty() ? nullptr : map.data();
}

void put_text(const std::string& text, char* to, std::size_t room) {
  if (!to || room == 0) return;
  const std::size_t count = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), count);
  to[count] = 0;
}

}  // namespace
}  // namespace nmrf::capi

using namespace nmrf::capi;

int nmrf_abi(void) { return NMRF_ABI; }
const char* nmrf_version(void) { return NMRF_VERSION; }

void nmrf_set_log(nmrf_log_callback log, void* user) {
  std::string ignored;
  guarded(ignored, [&] {
    nmrf::LogSink sink;
    if (log)
      sink = [log, user](nmrf::LogLevel level, const std::string& text) {
        log(static_cast<nmrf_log_level>(level), text.c_str(), user);
      };
    nmrf::set_log_sink(std::move(sink));
  });
}

nmrf_status nmrf_matcher_load(const char* path, const nmrf_matcher_options* options,
                              nmrf_matcher** matcher) {
  return load(matcher, [&] {
    nmrf::check(path != nullptr, nmrf::ErrorKind::kUsage, "the path of the model is NULL");
    return nmrf::Matcher::load(path, matcher_options(options));
  });
}

nmrf_status nmrf_matcher_load_memory(const void* bytes, size_t count,
                                     const nmrf_matcher_options* options, nmrf_matcher** matcher) {
  return load(matcher, [&] {
    nmrf::check(bytes != nullptr, nmrf::ErrorKind::kUsage, "the model in memory is NULL");
    return nmrf::Matcher::load(std::span(static_cast<const std::byte*>(bytes), count),
                               matcher_options(options));
  });
}

const char* nmrf_matcher_message(const nmrf_matcher* matcher) {
  return matcher ? matcher->message.c_str() : "there is no matcher";
}
int32_t nmrf_matcher_max_disp(const nmrf_matcher* matcher) {
  return matcher && matcher->matcher ? matcher->matcher->max_disp() : 0;
}
int32_t nmrf_matcher_threads(const nmrf_matcher* matcher) {
  return matcher && matcher->matcher ? matcher->matcher->threads() : 0;
}
nmrf_precision nmrf_matcher_precision(const nmrf_matcher* matcher) {
  return matcher && matcher->matcher ? static_cast<nmrf_precision>(matcher->matcher->precision())
                                     : NMRF_PRECISION_AUTO;
}
void nmrf_matcher_release_idle(const nmrf_matcher* matcher) {
  if (matcher && matcher->matcher) matcher->matcher->release_idle();
}
void nmrf_matcher_free(nmrf_matcher* matcher) { delete matcher; }

nmrf_result* nmrf_result_new(void) { return new (std::nothrow) nmrf_result; }
void nmrf_result_free(nmrf_result* result) { delete result; }
const char* nmrf_result_message(const nmrf_result* result) {
  return result ? result->message.c_str() : "there is no result";
}

nmrf_status nmrf_result_maps(nmrf_result* result, nmrf_maps* maps) {
  if (!result) return NMRF_USAGE;
  return guarded(result->message, [&] {
    const nmrf::Disparity& d = result->disparity;
    write_struct(maps,
                 {.size = 0,
                  .width = d.map.width(),
                  .height = d.map.height(),
                  .disparity = pixels(d.map),
                  .confidence = pixels(d.confidence),
                  .mask = pixels(d.mask),
                  .confidence3 = pixels(d.confidence3),
                  .expected_error = pixels(d.expected_error),
                  .posterior = pixels(d.posterior),
                  .alignment = plain(d.alignment)},
                 "the maps");
  });
}

nmrf_status nmrf_result_copy(nmrf_result* result, const nmrf_buffers* to) {
  if (!result) return NMRF_USAGE;
  return guarded(result->message, [&] {
    const nmrf_buffers b = read_struct(to, "the buffers");
    const nmrf::Disparity& d = result->disparity;
    nmrf::check(b.width == d.map.width() && b.height == d.map.height(), nmrf::ErrorKind::kUsage,
                "the buffers are {}x{} and the result {}x{}", b.width, b.height, d.map.width(),
                d.map.height());
    copy_map(d.map, b.disparity, b.disparity_stride, "disparity");
    copy_map(d.confidence, b.confidence, b.confidence_stride, "confidence");
    copy_map(d.mask, b.mask, b.mask_stride, "mask");
    copy_map(d.confidence3, b.confidence3, b.confidence3_stride, "confidence3");
    copy_map(d.expected_error, b.expected_error, b.expected_error_stride, "expected error");
    copy_map(d.posterior, b.posterior, b.posterior_stride, "posterior");
  });
}

nmrf_status nmrf_match(const nmrf_matcher* matcher, const nmrf_image* left, const nmrf_image* right,
                       const nmrf_match_options* options, nmrf_result* result) {
  if (!result) return NMRF_USAGE;
  return guarded(result->message, [&] {
    loaded(matcher)->match(view_of(left, "the left image"), view_of(right, "the right image"),
                           match_options(options), result->disparity);
  });
}

nmrf_status nmrf_check_consistency(nmrf_result* own, const nmrf_result* other, nmrf_view own_view,
                                   float threshold) {
  if (!own) return NMRF_USAGE;
  return guarded(own->message, [&] {
    nmrf::check(other != nullptr, nmrf::ErrorKind::kUsage, "the result of the other view is NULL");
    nmrf::check_consistency(own->disparity, other->disparity, view_named(own_view), threshold);
  });
}

nmrf_status nmrf_sequence_new(const nmrf_matcher* matcher, const nmrf_match_options* options,
                              nmrf_sequence** sequence) {
  if (!sequence) return NMRF_USAGE;
  *sequence = new (std::nothrow) nmrf_sequence;
  if (!*sequence) return NMRF_DEVICE;
  return guarded((*sequence)->message, [&] {
    nmrf_sequence& s = **sequence;
    s.matcher = loaded(matcher);
    s.sequence = std::make_unique<nmrf::Sequence>(*s.matcher, match_options(options));
  });
}

const char* nmrf_sequence_message(const nmrf_sequence* sequence) {
  return sequence ? sequence->message.c_str() : "there is no sequence";
}

nmrf_status nmrf_sequence_next(nmrf_sequence* sequence, const nmrf_image* left,
                               const nmrf_image* right, nmrf_result* result) {
  if (!result) return NMRF_USAGE;
  return guarded(result->message, [&] {
    nmrf::check(sequence && sequence->sequence, nmrf::ErrorKind::kUsage,
                "the sequence could not be made");
    sequence->sequence->next(view_of(left, "the left image"), view_of(right, "the right image"),
                             result->disparity);
  });
}

void nmrf_sequence_restart(nmrf_sequence* sequence) {
  if (sequence && sequence->sequence) sequence->sequence->restart();
}
int nmrf_sequence_continued(const nmrf_sequence* sequence) {
  return sequence && sequence->sequence && sequence->sequence->continued();
}
void nmrf_sequence_free(nmrf_sequence* sequence) { delete sequence; }

nmrf_status nmrf_check_pair(const nmrf_image* left, const nmrf_image* right, nmrf_pair_check* check,
                            char* text, size_t text_size) {
  std::string message;
  const nmrf_status status = guarded(message, [&] {
    const nmrf::PairCheck found =
        nmrf::check_pair(view_of(left, "the left image"), view_of(right, "the right image"));
    write_struct(check,
                 {.size = 0,
                  .conclusive = found.conclusive,
                  .matches = found.matches,
                  .swapped = found.swapped,
                  .not_rectified = found.not_rectified,
                  .identical = found.identical,
                  .warnings = static_cast<int32_t>(found.warnings.size()),
                  .vertical_offset = found.vertical_offset,
                  .vertical_rms = found.vertical_rms,
                  .horizontal = found.horizontal,
                  .negative_share = found.negative_share,
                  .alignment = plain(found.alignment),
                  .alignment_error = found.alignment_error,
                  .correctable = found.correctable,
                  .reserved = 0},
                 "the check");
    for (const std::string& warning : found.warnings)
      message += (message.empty() ? "" : "\n") + warning;
  });
  put_text(message, text, text_size);
  return status;
}
