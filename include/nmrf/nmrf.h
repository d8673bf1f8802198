/* The library in plain C, for C programs and for bindings of other languages.
 *
 *   nmrf_matcher *matcher = NULL;
 *   if (nmrf_matcher_load("nmrf-fast.safetensors", NULL, &matcher) != NMRF_OK)
 *     fprintf(stderr, "%s\n", nmrf_matcher_message(matcher));
 *   nmrf_image left = {.size = sizeof left, .data = l, .width = 640, .height = 480};
 *   nmrf_image right = {.size = sizeof right, .data = r, .width = 640, .height = 480};
 *   nmrf_result *result = nmrf_result_new();
 *   nmrf_maps maps = {.size = sizeof maps};
 *   if (nmrf_match(matcher, &left, &right, NULL, result) == NMRF_OK &&
 *       nmrf_result_maps(result, &maps) == NMRF_OK)
 *     printf("%f px\n", maps.disparity[0]);
 *   nmrf_result_free(result);
 *   nmrf_matcher_free(matcher);
 *
 * Link with -lnmrf (pkg-config nmrf). nmrf/nmrf_io.h adds files, depth and point clouds.
 *
 * Rules. A function that can fail returns an nmrf_status and leaves a message in its handle (in
 * the result, if there are two). No exception crosses the interface. Set `size` of every struct to
 * its sizeof and the rest to zero: zero means the default. Later versions append fields; a library
 * older than its header refuses fields it does not know unless they are zero. Strings are UTF-8
 * and null-terminated.
 */
#ifndef NMRF_NMRF_H
#define NMRF_NMRF_H

#include <stddef.h>
#include <stdint.h>

#include "nmrf/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented when programs must be recompiled; compare with nmrf_abi(). */
#define NMRF_ABI 1
NMRF_API int nmrf_abi(void);             /* NMRF_ABI of the library in use */
NMRF_API const char* nmrf_version(void); /* "0.2.0" */

/* The values are the exit codes of the command nmrf. */
typedef enum nmrf_status {
  NMRF_OK = 0,
  NMRF_FAILURE = 1,    /* any other failure */
  NMRF_USAGE = 2,      /* invalid or contradictory arguments */
  NMRF_INPUT = 3,      /* an image, a calibration or another input file */
  NMRF_MODEL = 4,      /* a weight file or model options */
  NMRF_DEVICE = 5,     /* no such device, or not enough memory */
  NMRF_CANCELLED = 130 /* the progress callback asked to stop */
} nmrf_status;

/* Receives the messages of all threads, one at a time; NULL drops them. Must not call
 * nmrf_set_log. */
typedef enum nmrf_log_level { NMRF_LOG_DEBUG, NMRF_LOG_INFO, NMRF_LOG_WARNING } nmrf_log_level;
typedef void (*nmrf_log_callback)(nmrf_log_level level, const char* text, void* user);
NMRF_API void nmrf_set_log(nmrf_log_callback log, void* user);

/* A view of pixels owned by the caller; only read during a call. */
typedef enum nmrf_order { NMRF_RGB, NMRF_BGR } nmrf_order;
typedef struct nmrf_image { /* An image of the caller. */
  size_t size;
  const void* data;
  int32_t width, height; /* pixels */
  ptrdiff_t stride;      /* bytes from row to row, negative if stored bottom up; 0: no gaps */
  int32_t channels;      /* 1 grey, 2 grey and alpha, 3 colour (0: 3), 4 colour and alpha */
  int32_t bits;          /* per channel, 8 (0: 8) or 16; alpha is ignored */
  int32_t order;         /* nmrf_order */
  int32_t reserved;      /* 0 */
} nmrf_image;

/* Where the right image shows the point that belongs at (x, y), both relative to the centre:
 * (x - turn y + scale x, y + offset + turn x + scale y + keystone x y). All zero: no correction.
 * Has no size field and will not grow. */
typedef struct nmrf_alignment {
  double offset;   /* px */
  double turn;     /* px per px, about radians */
  double scale;    /* px per px: 0.01 for an image that is 1 % larger */
  double keystone; /* 1 / px */
} nmrf_alignment;

/* ---- A loaded model with its threads; thread-safe. */
typedef struct nmrf_matcher nmrf_matcher;

/* Arithmetic of message passing and convolutions; NMRF_PRECISION_AUTO: what costs no accuracy. */
typedef enum nmrf_precision {
  NMRF_PRECISION_AUTO,
  NMRF_FLOAT32,
  NMRF_INT8 /* differs between CPUs with and without VNNI */
} nmrf_precision;

typedef struct nmrf_matcher_options { /* Options of a matcher. */
  size_t size;
  int32_t threads;        /* including the calling one; 0: one per core */
  int32_t max_disp;       /* largest disparity, pixels of the matched images; 0: the model's own */
  const char* const* set; /* changes to the model's options, "seeds.labels=2"; ends with NULL */
  int32_t precision;      /* nmrf_precision */
  int32_t reserved;       /* 0 */
} nmrf_matcher_options;

/* Load a model (.safetensors, or the authors' .pth) from a file or from its bytes, which need not
 * outlive the call. options may be NULL. *matcher is set on failure too, to carry the message:
 * free it. It is NULL only when out of memory. */
NMRF_API nmrf_status nmrf_matcher_load(const char* path, const nmrf_matcher_options* options,
                                       nmrf_matcher** matcher);
NMRF_API nmrf_status nmrf_matcher_load_memory(const void* bytes, size_t count,
                                              const nmrf_matcher_options* options,
                                              nmrf_matcher** matcher);
/* Error message of loading; "" if it succeeded. */
NMRF_API const char* nmrf_matcher_message(const nmrf_matcher* matcher);
NMRF_API int32_t nmrf_matcher_max_disp(const nmrf_matcher* matcher); /* 0: nothing is loaded */
NMRF_API int32_t nmrf_matcher_threads(const nmrf_matcher* matcher);  /* 0: nothing is loaded */
/* NMRF_FLOAT32 or NMRF_INT8; NMRF_PRECISION_AUTO: nothing is loaded */
NMRF_API nmrf_precision nmrf_matcher_precision(const nmrf_matcher* matcher);
/* Frees the buffers that no call is using. */
NMRF_API void nmrf_matcher_release_idle(const nmrf_matcher* matcher);
/* Sequences created from the matcher stay valid. NULL is allowed, as in all free functions. */
NMRF_API void nmrf_matcher_free(nmrf_matcher* matcher);

/* ---- The maps of one pair, reusable for further calls; not thread-safe. */
typedef struct nmrf_result nmrf_result;
NMRF_API nmrf_result* nmrf_result_new(void); /* NULL: out of memory */
NMRF_API void nmrf_result_free(nmrf_result* result);
/* Error message of the last call with this result; "" if it succeeded. */
NMRF_API const char* nmrf_result_message(const nmrf_result* result);

/* Bits of the mask; 0: matched. */
enum {
  NMRF_OCCLUDED = 1,    /* hidden in the other view (nmrf_check_consistency) */
  NMRF_OUT_OF_VIEW = 2, /* its match lies outside the other image (the same) */
  NMRF_FILLED = 4       /* filled in from neighbouring pixels, not matched */
};

/* Rows are contiguous. The maps belong to the result and are valid until its next use. Missing maps
 * are NULL. */
typedef struct nmrf_maps {
  size_t size;
  int32_t width, height;
  const float* disparity;  /* x_left - x_right >= 0 in pixels; +infinity: unknown */
  const float* confidence; /* 0 to 1: probability of an error of at most 1 px */
  const uint8_t* mask;
  /* NULL for models without an error model, whose confidence is the posterior. */
  const float* confidence3;    /* 0 to 1: probability of an error of at most 3 px */
  const float* expected_error; /* px */
  const float* posterior;      /* 0 to 1: posterior probability of the winning label */
  nmrf_alignment alignment;    /* how the right image was corrected before matching */
} nmrf_maps;
NMRF_API nmrf_status nmrf_result_maps(nmrf_result* result, nmrf_maps* maps);

/* Buffers of the caller; NULL for maps that are not needed. */
typedef struct nmrf_buffers {
  size_t size;
  int32_t width, height; /* pixels; must be those of the result */
  float* disparity;
  float* confidence;
  uint8_t* mask;
  ptrdiff_t disparity_stride, confidence_stride, mask_stride; /* bytes; 0: no gaps */
  float* confidence3;
  float* expected_error;
  float* posterior;
  ptrdiff_t confidence3_stride, expected_error_stride, posterior_stride;
} nmrf_buffers;
NMRF_API nmrf_status nmrf_result_copy(nmrf_result* result, const nmrf_buffers* to);

/* ---- Matching. */
typedef enum nmrf_view { NMRF_LEFT, NMRF_RIGHT } nmrf_view; /* which image a map belongs to */

/* done: 0 to 1. Called between stages on the calling thread; a non-zero return value cancels. */
typedef int (*nmrf_progress_callback)(double done, const char* stage, void* user);

typedef struct nmrf_match_options { /* Options of one call. */
  size_t size;
  int32_t view;      /* nmrf_view: the image that the disparity belongs to */
  int32_t full_size; /* with a scale: resize the result back to the image size */
  double scale;      /* resize the images before matching; 0: the model's choice, 1: as they are */
  nmrf_progress_callback progress;
  void* user; /* passed to the callback */
  /* 1: measure a small vertical offset, rotation or scale difference of the right image and
   * correct it where the estimate is reliable; well-rectified pairs stay unchanged. */
  int32_t align;
  int32_t reserved;                /* 0 */
  const nmrf_alignment* alignment; /* a known correction instead of a measured one */
} nmrf_match_options;

/* left, right: rectified, of the same size. options may be NULL. */
NMRF_API nmrf_status nmrf_match(const nmrf_matcher* matcher, const nmrf_image* left,
                                const nmrf_image* right, const nmrf_match_options* options,
                                nmrf_result* result);

/* Left-right consistency of two results of one pair: sets NMRF_OCCLUDED and NMRF_OUT_OF_VIEW in the
 * mask of `own` where `other`, of the other view, differs by more than `threshold` pixels. */
NMRF_API nmrf_status nmrf_check_consistency(nmrf_result* own, const nmrf_result* other,
                                            nmrf_view own_view, float threshold);

/* ---- Video: carries state from frame to frame; not thread-safe. */
typedef struct nmrf_sequence nmrf_sequence;
/* *sequence is set on failure too, as with nmrf_matcher_load. */
NMRF_API nmrf_status nmrf_sequence_new(const nmrf_matcher* matcher,
                                       const nmrf_match_options* options, nmrf_sequence** sequence);
/* Error message of nmrf_sequence_new; "" if it succeeded. */
NMRF_API const char* nmrf_sequence_message(const nmrf_sequence* sequence);
NMRF_API nmrf_status nmrf_sequence_next(nmrf_sequence* sequence, const nmrf_image* left,
                                        const nmrf_image* right, nmrf_result* result);
/* Forgets previous frames, as after a cut. */
NMRF_API void nmrf_sequence_restart(nmrf_sequence* sequence);
/* 0: the last frame started anew (the first one, or after a cut). */
NMRF_API int nmrf_sequence_continued(const nmrf_sequence* sequence);
NMRF_API void nmrf_sequence_free(nmrf_sequence* sequence);

/* ---- Is this a rectified pair, in the right order? */
typedef struct nmrf_pair_check { /* Result of nmrf_check_pair. */
  size_t size;
  int32_t conclusive;     /* 1: enough matches for a verdict */
  int32_t matches;        /* consistent corner matches */
  int32_t swapped;        /* 1: the right image was given first */
  int32_t not_rectified;  /* 1: matches do not lie on the same rows */
  int32_t identical;      /* 1: the same image was given twice */
  int32_t warnings;       /* number of lines in the text */
  double vertical_offset; /* median of y_left - y_right, pixels */
  double vertical_rms;    /* of the fitted vertical offset over the image, pixels */
  double horizontal;      /* median of x_left - x_right, pixels */
  double negative_share;  /* share of moving corners with x_left < x_right */
  /* A small rectification error, and its largest standard error in px over the image. */
  nmrf_alignment alignment;
  double alignment_error;
  int32_t correctable; /* 1: reliable and worth correcting, see nmrf_match_options.align */
  int32_t reserved;
} nmrf_pair_check;
/* text, of text_size bytes, receives the warnings, one per line, or the error message, truncated to
 * fit; may be NULL. */
NMRF_API nmrf_status nmrf_check_pair(const nmrf_image* left, const nmrf_image* right,
                                     nmrf_pair_check* check, char* text, size_t text_size);

#ifdef __cplusplus
}
#endif

#endif
