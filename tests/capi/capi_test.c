#include "capi_test.h"

#include <math.h>
#include <stdlib.h>

#define MODEL NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors"

int failures = 0;
uint8_t left_pixels[kHeight][kWidth][3], right_pixels[kHeight][kWidth][3];

static uint8_t texture(int x, int y, int channel) {
  uint32_t hash = (uint32_t)(x / 2 * 7919 + y / 2 * 104729 + channel * 31);
  hash = (hash ^ (hash >> 7)) * 2654435761u;
  return (uint8_t)(hash >> 24);
}

static void make_images(void) {
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (int c = 0; c < 3; ++c) {
        left_pixels[y][x][c] = texture(x, y, c);
        right_pixels[y][x][c] = texture(x + 5, y, c);
      }
}

nmrf_image left_image(void) {
  nmrf_image image = {
      .size = sizeof image, .data = left_pixels, .width = kWidth, .height = kHeight};
  return image;
}
nmrf_image right_image(void) {
  nmrf_image image = {
      .size = sizeof image, .data = right_pixels, .width = kWidth, .height = kHeight};
  return image;
}

static void test_version(void) {
  CHECK(nmrf_abi() == NMRF_ABI);
  CHECK(nmrf_version()[0] != 0);
}

static void test_loading(void) {
  nmrf_matcher* matcher = NULL;
  CHECK(nmrf_matcher_load("/nowhere/model.safetensors", NULL, &matcher) == NMRF_MODEL);
  CHECK(matcher != NULL);
  CHECK_TEXT(nmrf_matcher_message(matcher), "/nowhere/model.safetensors");
  CHECK(nmrf_matcher_max_disp(matcher) == 0);

  /* A matcher without a model says so. */
  nmrf_image left = left_image(), right = right_image();
  nmrf_result* result = nmrf_result_new();
  CHECK(nmrf_match(matcher, &left, &right, NULL, result) == NMRF_USAGE);
  CHECK_TEXT(nmrf_result_message(result), "no model");
  nmrf_sequence* sequence = NULL;
  CHECK(nmrf_sequence_new(matcher, NULL, &sequence) == NMRF_USAGE);
  CHECK_TEXT(nmrf_sequence_message(sequence), "no model");
  CHECK(nmrf_sequence_next(sequence, &left, &right, result) == NMRF_USAGE);
  nmrf_sequence_free(sequence);
  nmrf_result_free(result);
  nmrf_matcher_free(matcher);

  CHECK(nmrf_matcher_load(NULL, NULL, &matcher) == NMRF_USAGE);
  nmrf_matcher_free(matcher);
  CHECK(nmrf_matcher_load(MODEL, NULL, NULL) == NMRF_USAGE);
  CHECK(nmrf_matcher_load_memory("no model", 8, NULL, &matcher) == NMRF_MODEL);
  nmrf_matcher_free(matcher);

  const char* wrong[] = {"seeds.nonsense=2", NULL};
  nmrf_matcher_options options = {.size = sizeof options, .set = wrong};
  CHECK(nmrf_matcher_load("formula:fast", &options, &matcher) != NMRF_OK);
  CHECK_TEXT(nmrf_matcher_message(matcher), "nonsense");
  nmrf_matcher_free(matcher);
  nmrf_matcher_free(NULL);
  nmrf_sequence_free(NULL);
  nmrf_result_free(NULL);
}

/* Structs of programs compiled with older and newer headers. */
static void test_struct_sizes(void) {
  nmrf_matcher* matcher = NULL;
  nmrf_matcher_options unset = {.threads = 1};
  CHECK(nmrf_matcher_load("formula:fast", &unset, &matcher) == NMRF_USAGE);
  CHECK_TEXT(nmrf_matcher_message(matcher), "sizeof");
  nmrf_matcher_free(matcher);

  /* An older header that had `threads` alone: what follows is not read. */
  nmrf_matcher_options old = {
      .size = offsetof(nmrf_matcher_options, max_disp), .threads = 1, .max_disp = -7};
  CHECK(nmrf_matcher_load("formula:fast", &old, &matcher) == NMRF_OK);
  CHECK(nmrf_matcher_threads(matcher) == 1);
  nmrf_matcher_free(matcher);

  struct {
    nmrf_matcher_options known;
    int64_t later;
  } newer = {{.size = sizeof newer, .threads = 1, .max_disp = 64}, 0};
  CHECK(nmrf_matcher_load("formula:fast", &newer.known, &matcher) == NMRF_OK);
  CHECK(nmrf_matcher_max_disp(matcher) == 64);
  nmrf_matcher_free(matcher);
  newer.later = 1;
  CHECK(nmrf_matcher_load("formula:fast", &newer.known, &matcher) == NMRF_USAGE);
  CHECK_TEXT(nmrf_matcher_message(matcher), "newer library");
  nmrf_matcher_free(matcher);
}

static void test_match(const nmrf_matcher* matcher) {
  nmrf_image left = left_image(), right = right_image();
  nmrf_match_options options = {.size = sizeof options, .scale = 1};
  nmrf_result* result = nmrf_result_new();
  CHECK(nmrf_match(matcher, &left, &right, &options, result) == NMRF_OK);
  CHECK(strcmp(nmrf_result_message(result), "") == 0);
  nmrf_maps maps = {.size = sizeof maps};
  CHECK(nmrf_result_maps(result, &maps) == NMRF_OK);
  CHECK(maps.width == kWidth && maps.height == kHeight);
  CHECK(same_as_cpp(MODEL, 64, &maps));
  int close = 0;
  for (int i = 0; i < kWidth * kHeight; ++i) close += fabsf(maps.disparity[i] - 5) < 1;
  CHECK(close > kWidth * kHeight / 2);

  /* Into buffers of the caller's, with gaps, and bottom up. */
  enum { kRoom = kWidth + 6 };
  static float disparity[kHeight][kRoom], confidence[kHeight][kWidth];
  static float posterior[kHeight][kWidth], confidence3[kHeight][kWidth],
      expected_error[kHeight][kWidth];
  static uint8_t mask[kHeight][kWidth];
  nmrf_buffers buffers = {.size = sizeof buffers,
                          .width = kWidth,
                          .height = kHeight,
                          .disparity = disparity[kHeight - 1],
                          .confidence = confidence[0],
                          .mask = mask[0],
                          .disparity_stride = -(ptrdiff_t)sizeof disparity[0],
                          .confidence3 = confidence3[0],
                          .expected_error = expected_error[kHeight - 1],
                          .posterior = posterior[0],
                          .expected_error_stride = -(ptrdiff_t)sizeof expected_error[0]};
  CHECK(nmrf_result_copy(result, &buffers) == NMRF_OK);
  for (int y = 0; y < kHeight; ++y) {
    CHECK(!memcmp(disparity[kHeight - 1 - y], maps.disparity + y * kWidth, kWidth * sizeof(float)));
    CHECK(!memcmp(confidence[y], maps.confidence + y * kWidth, kWidth * sizeof(float)));
    CHECK(!memcmp(mask[y], maps.mask + y * kWidth, kWidth));
    CHECK(!memcmp(posterior[y], maps.posterior + y * kWidth, kWidth * sizeof(float)));
    CHECK(!memcmp(confidence3[y], maps.confidence3 + y * kWidth, kWidth * sizeof(float)));
    CHECK(!memcmp(expected_error[kHeight - 1 - y], maps.expected_error + y * kWidth,
                  kWidth * sizeof(float)));
    CHECK(disparity[y][kWidth] == 0);
  }
  /* A program whose nmrf_maps ends with the mask. */
  nmrf_maps old = {.size = offsetof(nmrf_maps, confidence3), .posterior = confidence3[0]};
  CHECK(nmrf_result_maps(result, &old) == NMRF_OK);
  CHECK(old.mask == maps.mask && old.posterior == confidence3[0]);
  buffers.width = kWidth - 1;
  CHECK(nmrf_result_copy(result, &buffers) == NMRF_USAGE);
  CHECK_TEXT(nmrf_result_message(result), "66x43");
  buffers.width = kWidth;
  buffers.disparity_stride = 8;
  CHECK(nmrf_result_copy(result, &buffers) == NMRF_USAGE);

  /* Other layouts of the same pixels give the same map: BGR, a stride, 16 bits. */
  static uint16_t wide[2][kHeight][kWidth + 3][4];
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (int c = 0; c < 3; ++c) {
        wide[0][y][x][2 - c] = (uint16_t)(257 * left_pixels[y][x][c]);
        wide[1][y][x][2 - c] = (uint16_t)(257 * right_pixels[y][x][c]);
      }
  nmrf_image pair[2];
  for (int i = 0; i < 2; ++i) {
    nmrf_image image = {.size = sizeof image,
                        .data = wide[i],
                        .width = kWidth,
                        .height = kHeight,
                        .stride = sizeof wide[i][0],
                        .channels = 4,
                        .bits = 16,
                        .order = NMRF_BGR};
    pair[i] = image;
  }
  nmrf_result* other = nmrf_result_new();
  nmrf_maps other_maps = {.size = sizeof other_maps};
  CHECK(nmrf_match(matcher, &pair[0], &pair[1], &options, other) == NMRF_OK);
  CHECK(nmrf_result_maps(other, &other_maps) == NMRF_OK);
  CHECK(!memcmp(maps.disparity, other_maps.disparity, kWidth * kHeight * sizeof(float)));

  /* The right view, and both against each other. */
  options.view = NMRF_RIGHT;
  CHECK(nmrf_match(matcher, &left, &right, &options, other) == NMRF_OK);
  CHECK(nmrf_check_consistency(result, other, NMRF_LEFT, 1) == NMRF_OK);
  CHECK(nmrf_result_maps(result, &maps) == NMRF_OK);
  CHECK((maps.mask[kWidth * 20] & NMRF_OUT_OF_VIEW) != 0); /* column 0 of a wall at 5 px */
  CHECK((maps.mask[kWidth * 20 + 40] & (NMRF_OUT_OF_VIEW | NMRF_OCCLUDED)) == 0);

  /* A factor: of the scaled images, or back at full size. */
  options.view = NMRF_LEFT;
  options.scale = 2;
  CHECK(nmrf_match(matcher, &left, &right, &options, other) == NMRF_OK);
  CHECK(nmrf_result_maps(other, &other_maps) == NMRF_OK);
  CHECK(other_maps.width == 2 * kWidth && other_maps.height == 2 * kHeight);
  options.full_size = 1;
  CHECK(nmrf_match(matcher, &left, &right, &options, other) == NMRF_OK);
  CHECK(nmrf_result_maps(other, &other_maps) == NMRF_OK);
  CHECK(other_maps.width == kWidth);
  nmrf_result_free(other);
  nmrf_result_free(result);
}

static void test_bad_pairs(const nmrf_matcher* matcher) {
  nmrf_image left = left_image(), right = right_image();
  nmrf_result* result = nmrf_result_new();
  nmrf_maps maps = {.size = sizeof maps};
  CHECK(nmrf_result_maps(result, &maps) == NMRF_OK);
  CHECK(maps.width == 0 && maps.disparity == NULL && maps.mask == NULL);

  right.width = 40;
  CHECK(nmrf_match(matcher, &left, &right, NULL, result) == NMRF_INPUT);
  CHECK_TEXT(nmrf_result_message(result), "67x43 but the right one is 40x43");
  right = right_image();
  right.channels = 7;
  CHECK(nmrf_match(matcher, &left, &right, NULL, result) == NMRF_INPUT);
  CHECK_TEXT(nmrf_result_message(result), "7 channels");
  right = right_image();
  right.order = 9;
  CHECK(nmrf_match(matcher, &left, &right, NULL, result) == NMRF_USAGE);
  right = right_image();
  right.data = NULL;
  CHECK(nmrf_match(matcher, &left, &right, NULL, result) == NMRF_INPUT);
  CHECK(nmrf_match(matcher, &left, NULL, NULL, result) == NMRF_USAGE);
  CHECK(nmrf_match(matcher, &left, &left, NULL, NULL) == NMRF_USAGE);
  nmrf_match_options options = {.size = sizeof options, .scale = -1};
  CHECK(nmrf_match(matcher, &left, &left, &options, result) == NMRF_USAGE);
  CHECK_TEXT(nmrf_result_message(result), "scale is -1");
  options.scale = 1;
  options.view = 2;
  CHECK(nmrf_match(matcher, &left, &left, &options, result) == NMRF_USAGE);
  nmrf_result_free(result);
}

static void test_precision(void) {
  nmrf_matcher_options options = {.size = sizeof options, .threads = 2, .precision = NMRF_INT8};
  nmrf_matcher* matcher = NULL;
  CHECK(nmrf_matcher_load(MODEL, &options, &matcher) == NMRF_OK);
  CHECK(nmrf_matcher_precision(matcher) == NMRF_INT8);
  nmrf_image left = left_image(), right = right_image();
  nmrf_match_options how = {.size = sizeof how, .scale = 1};
  nmrf_result* result = nmrf_result_new();
  CHECK(nmrf_match(matcher, &left, &right, &how, result) == NMRF_OK);
  nmrf_result_free(result);
  nmrf_matcher_free(matcher);
  options.precision = 7;
  CHECK(nmrf_matcher_load(MODEL, &options, &matcher) == NMRF_USAGE);
  CHECK_TEXT(nmrf_matcher_message(matcher), "precision is 7");
  CHECK(nmrf_matcher_precision(matcher) == NMRF_PRECISION_AUTO);
  nmrf_matcher_free(matcher);
}

/* A right image that lies 3 rows too low, corrected by what is known of it. Whether the library
 * finds that itself: capi_io_test.c. */
static void test_alignment(const nmrf_matcher* matcher) {
  static uint8_t low[kHeight][kWidth][3];
  for (int y = 0; y < kHeight; ++y) memcpy(low[y], right_pixels[y > 3 ? y - 3 : 0], sizeof low[y]);
  nmrf_image left = left_image(), right = right_image(), moved = right_image();
  moved.data = low;
  nmrf_alignment alignment = {.offset = 3};
  nmrf_match_options how = {.size = sizeof how, .scale = 1, .alignment = &alignment};
  nmrf_result *straight = nmrf_result_new(), *corrected = nmrf_result_new();
  nmrf_maps maps = {.size = sizeof maps}, other = {.size = sizeof other};
  CHECK(nmrf_match(matcher, &left, &moved, &how, corrected) == NMRF_OK);
  CHECK(nmrf_result_maps(corrected, &other) == NMRF_OK);
  CHECK(other.alignment.offset == 3 && other.alignment.turn == 0);
  how.alignment = NULL;
  how.align = 1; /* too little to see: stays as it is */
  CHECK(nmrf_match(matcher, &left, &right, &how, straight) == NMRF_OK);
  CHECK(nmrf_result_maps(straight, &maps) == NMRF_OK);
  CHECK(maps.alignment.offset == 0 && same_as_cpp(MODEL, 64, &maps));
  int close = 0;
  for (int i = 0; i < kWidth * (kHeight - 12); ++i)
    close += fabsf(maps.disparity[i] - other.disparity[i]) < 0.1f;
  CHECK(close > kWidth * (kHeight - 12) * 9 / 10);
  alignment.turn = NAN;
  how.alignment = &alignment;
  CHECK(nmrf_match(matcher, &left, &moved, &how, corrected) == NMRF_USAGE);
  CHECK_TEXT(nmrf_result_message(corrected), "not finite");
  nmrf_result_free(straight);
  nmrf_result_free(corrected);
}

struct calls {
  int count, stop_after;
  double last;
};
static int on_progress(double done, const char* stage, void* user) {
  struct calls* calls = user;
  CHECK(done >= calls->last && done <= 1 && stage[0] != 0);
  calls->last = done;
  return ++calls->count == calls->stop_after;
}

static void test_progress(const nmrf_matcher* matcher) {
  nmrf_image left = left_image(), right = right_image();
  struct calls calls = {0, -1, 0};
  nmrf_match_options options = {
      .size = sizeof options, .scale = 1, .progress = on_progress, .user = &calls};
  nmrf_result* result = nmrf_result_new();
  CHECK(nmrf_match(matcher, &left, &right, &options, result) == NMRF_OK);
  CHECK(calls.count > 3 && calls.last == 1);
  struct calls stopping = {0, 2, 0};
  options.user = &stopping;
  CHECK(nmrf_match(matcher, &left, &right, &options, result) == NMRF_CANCELLED);
  CHECK(stopping.count == 2);
  CHECK_TEXT(nmrf_result_message(result), "cancelled");
  nmrf_result_free(result);
}

static void on_log(nmrf_log_level level, const char* text, void* user) {
  if (level == NMRF_LOG_WARNING && strstr(text, "untrained")) ++*(int*)user;
}

static void test_log(void) {
  int warnings = 0;
  nmrf_matcher* matcher = NULL;
  nmrf_set_log(on_log, &warnings);
  CHECK(nmrf_matcher_load("formula:fast", NULL, &matcher) == NMRF_OK);
  CHECK(warnings == 1);
  nmrf_matcher_free(matcher);
  nmrf_set_log(NULL, NULL);
  CHECK(nmrf_matcher_load("formula:fast", NULL, &matcher) == NMRF_OK);
  CHECK(warnings == 1);
  nmrf_matcher_free(matcher);
}

static void test_sequence(void) {
  nmrf_matcher_options options = {.size = sizeof options, .threads = 2, .max_disp = 64};
  nmrf_matcher* matcher = NULL;
  CHECK(nmrf_matcher_load(MODEL, &options, &matcher) == NMRF_OK);
  nmrf_match_options how = {.size = sizeof how, .scale = 1};
  nmrf_sequence* sequence = NULL;
  CHECK(nmrf_sequence_new(matcher, &how, &sequence) == NMRF_OK);
  nmrf_matcher_free(matcher); /* the sequence keeps what it needs */
  nmrf_image left = left_image(), right = right_image();
  nmrf_result* result = nmrf_result_new();
  nmrf_maps maps = {.size = sizeof maps};
  for (int frame = 0; frame < 3; ++frame) {
    CHECK(nmrf_sequence_next(sequence, &left, &right, result) == NMRF_OK);
    CHECK(nmrf_result_maps(result, &maps) == NMRF_OK);
    CHECK(same_as_cpp(MODEL, 64, &maps));
    CHECK(nmrf_sequence_continued(sequence) == 0);
    nmrf_sequence_restart(sequence);
  }
  CHECK(nmrf_sequence_next(sequence, &left, &right, result) == NMRF_OK);
  CHECK(nmrf_sequence_next(sequence, &left, &right, result) == NMRF_OK);
  CHECK(nmrf_sequence_continued(sequence) == 1);
  nmrf_result_free(result);
  nmrf_sequence_free(sequence);
}

static void test_memory(void) {
  FILE* file = fopen(MODEL, "rb");
  CHECK(file != NULL);
  if (!file) return;
  fseek(file, 0, SEEK_END);
  const size_t count = (size_t)ftell(file);
  rewind(file);
  void* bytes = malloc(count);
  CHECK(fread(bytes, 1, count, file) == count);
  fclose(file);
  nmrf_matcher* matcher = NULL;
  CHECK(nmrf_matcher_load_memory(bytes, count, NULL, &matcher) == NMRF_OK);
  free(bytes);
  CHECK(nmrf_matcher_max_disp(matcher) > 0 && nmrf_matcher_threads(matcher) > 0);
  nmrf_matcher_release_idle(matcher);
  nmrf_matcher_free(matcher);
}

/* Images that show too little; capi_io_test.c has a pair that says more. */
static void test_pair_check(void) {
  nmrf_image left = left_image(), right = right_image();
  nmrf_pair_check check = {.size = sizeof check, .warnings = 9};
  char text[200] = "untouched";
  CHECK(nmrf_check_pair(&left, &right, &check, text, sizeof text) == NMRF_OK);
  CHECK(check.conclusive == 0 && check.warnings == 0 && text[0] == 0);
  CHECK(nmrf_check_pair(&left, &right, &check, NULL, 0) == NMRF_OK);
  CHECK(nmrf_check_pair(&left, &right, NULL, text, sizeof text) == NMRF_USAGE);
  nmrf_image narrow = left_image();
  narrow.width = 50;
  CHECK(nmrf_check_pair(&left, &narrow, &check, text, sizeof text) == NMRF_INPUT);
  CHECK_TEXT(text, "50x43");
}

int main(void) {
  make_images();
  nmrf_matcher_options options = {.size = sizeof options, .threads = 2, .max_disp = 64};
  nmrf_matcher* matcher = NULL;
  CHECK(nmrf_matcher_load(MODEL, &options, &matcher) == NMRF_OK);
  CHECK_TEXT(nmrf_matcher_message(matcher), "");
  CHECK(nmrf_matcher_max_disp(matcher) == 64);
  test_version();
  test_loading();
  test_struct_sizes();
  test_match(matcher);
  test_precision();
  test_alignment(matcher);
  test_bad_pairs(matcher);
  test_progress(matcher);
  test_log();
  test_sequence();
  test_memory();
  test_pair_check();
#ifdef NMRF_WITH_IO
  test_io(matcher);
#endif
  nmrf_matcher_free(matcher);
  if (failures) fprintf(stderr, "%d checks failed\n", failures);
  return failures != 0;
}
