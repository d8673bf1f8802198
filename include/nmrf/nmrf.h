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
 * Rules. A function that can fail returns an nmrf_status and leaves a sentence in its handle (the
 * result, where there are two). No exception leaves a function. Set `size` of every struct to its
 * sizeof and the rest to zero: zero means the default. Later versions append fields; a library
 * that is older than its header refuses a field it does not know, unless it is zero. Strings are
 * UTF-8 and end with 0.
 */
#ifndef NMRF_NMRF_H
#define NMRF_NMRF_H

#include <stddef.h>
#include <stdint.h>

#include "nmrf/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when a program compiled before must be compiled anew; compare with nmrf_abi(). */
#define NMRF_ABI 1
NMRF_API int nmrf_abi(void);
NMRF_API const char* nmrf_version(void); /* "0.2.0" */

/* The values are the exit codes of the command nmrf. */
typedef enum nmrf_status {
  NMRF_OK = 0,
  NMRF_FAILURE = 1,    /* a failure that fits nowhere else */
  NMRF_USAGE = 2,      /* arguments contradict each other or this header */
  NMRF_INPUT = 3,      /* an image, a calibration or another input file */
  NMRF_MODEL = 4,      /* a weight file or model options */
  NMRF_DEVICE = 5,     /* no such device, or not enough memory */
  NMRF_CANCELLED = 130 /* the progress callback asked to stop */
} nmrf_status;

/* Receives the library's messages, all threads' and one at a time; NULL drops them. Must not call
 * nmrf_set_log. */
typedef enum nmrf_log_level { NMRF_LOG_DEBUG, NMRF_LOG_INFO, NMRF_LOG_WARNING } nmrf_log_level;
typedef void (*nmrf_log_callback)(nmrf_log_level level, const char* text, void* user);
NMRF_API void nmrf_set_log(nmrf_log_callback log, void* user);

/* Pixels of the caller; read during a call only. */
typedef enum nmrf_order { NMRF_RGB, NMRF_BGR } nmrf_order;
typedef struct nmrf_image {
  size_t size;
  const void* data;
  int32_t width, height; /* pixels */
  ptrdiff_t stride;      /* bytes from row to row, negative if stored bottom up; 0: no gaps */
  int32_t channels;      /* 1 grey, 2 grey and alpha, 3 colour (0: 3), 4 colour and alpha */
  int32_t bits;          /* per channel, 8 (0: 8) or 16; alpha is ignored */
  int32_t order;         /* nmrf_order */
  int32_t reserved;      /* 0 */
} nmrf_image;

/* Where the right image shows what it should show at (x, y), both from the image's middle:
 * (x - turn y + scale x, y + offset + turn x + scale y + keystone x y). All zero: nothing is wrong.
 * A value without a size field; it does not grow. */
typedef struct nmrf_alignment {
  double offset;   /* px */
  double turn;     /* px per px, about radians */
  double scale;    /* px per px: 0.01 for an image that is 1 % larger */
  double keystone; /* 1 / px */
} nmrf_alignment;

/* ---- A loaded model with its threads; safe to use from several threads at once. */
typedef struct nmrf_matcher nmrf_matcher;

/* Arithmetic of message passing and convolutions; NMRF_PRECISION_AUTO: what costs no accuracy. */
typedef enum nmrf_precision {
  NMRF_PRECISION_AUTO,
  NMRF_FLOAT32,
  NMRF_INT8 /* differs between CPUs with and without VNNI */
} nmrf_precision;

typedef struct nmrf_matcher_options {
  size_t size;
  int32_t threads;        /* the calling one included; 0: one per core */
  int32_t max_disp;       /* largest disparity, pixels of the matched images; 0: the model's own */
  const char* const* set; /* changes to the model's options, "seeds.labels=2"; ends with NULL */
  int32_t precision;      /* nmrf_precision */
  int32_t reserved;       /* 0 */
} nmrf_matcher_options;

/* Read a model (.safetensors, or the authors' .pth) from a file or from its bytes, which need not
 * outlive the call. options may be NULL. *matcher is a handle in case of failure too, for its
 * message: free it. It is NULL only when there is no memory at all. */
NMRF_API nmrf_status nmrf_matcher_load(const char* path, const nmrf_matcher_options* options,
                                       nmrf_matcher** matcher);
NMRF_API nmrf_status nmrf_matcher_load_memory(const void* bytes, size_t count,
                                              const nmrf_matcher_options* options,
                                              nmrf_matcher** matcher);
/* What went wrong at load; "" if nothing did. */
NMRF_API const char* nmrf_matcher_message(const nmrf_matcher* matcher);
NMRF_API int32_t nmrf_matcher_max_disp(const nmrf_matcher* matcher); /* 0: nothing is loaded */
NMRF_API int32_t nmrf_matcher_threads(const nmrf_matcher* matcher);  /* 0: nothing is loaded */
/* NMRF_FLOAT32 or NMRF_INT8; NMRF_PRECISION_AUTO: nothing is loaded */
NMRF_API nmrf_precision nmrf_matcher_precision(const nmrf_matcher* matcher);
/* Gives back the buffers that no call is using. */
NMRF_API void nmrf_matcher_release_idle(const nmrf_matcher* matcher);
/* Sequences made of the matcher stay valid. NULL is allowed, in the other free functions too. */
NMRF_API void nmrf_matcher_free(nmrf_matcher* matcher);

/* ---- The maps of one pair, reused from call to call; one thread at a time. */
typedef struct nmrf_result nmrf_result;
NMRF_API nmrf_result* nmrf_result_new(void); /* NULL: out of memory */
NMRF_API void nmrf_result_free(nmrf_result* result);
/* Of the last call with this result; "" if it succeeded. */
NMRF_API const char* nmrf_result_message(const nmrf_result* result);

/* Bits of the mask; 0: matched. */
enum {
  NMRF_OCCLUDED = 1,    /* hidden in the other view (nmrf_check_consistency) */
  NMRF_OUT_OF_VIEW = 2, /* its match lies outside the other image (the same) */
  NMRF_FILLED = 4       /* the disparity comes from pixels around it, not from a match */
};

/* Rows follow each other without a gap. The maps belong to the result and are valid until its next
 * use. A map that the result does not have is NULL. */
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

/* Buffers of the caller; NULL for a map that is not wanted. */
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
typedef enum nmrf_view { NMRF_LEFT, NMRF_RIGHT } nmrf_view;

/* done: 0 to 1. Called between stages on the calling thread; any value but 0 cancels. */
typedef int (*nmrf_progress_callback)(double done, const char* stage, void* user);

typedef struct nmrf_match_options {
  size_t size;
  int32_t view;      /* nmrf_view: the image that the disparity is of */
  int32_t full_size; /* with a scale: resize the result back to the images' size */
  double scale;      /* resize the images before matching; 0: the model's choice, 1: as they are */
  nmrf_progress_callback progress;
  void* user; /* given to the callback */
  /* 1: measure whether the right image lies a little too high or low, is turned or of another
   * scale, and correct that where it is sure; pairs that fit stay as they are. */
  int32_t align;
  int32_t reserved;                /* 0 */
  const nmrf_alignment* alignment; /* a correction that is known, instead of measuring one */
} nmrf_match_options;

/* left, right: rectified, of one size. options may be NULL. */
NMRF_API nmrf_status nmrf_match(const nmrf_matcher* matcher, const nmrf_image* left,
                                const nmrf_image* right, const nmrf_match_options* options,
                                nmrf_result* result);

/* Left-right consistency of two results of one pair: sets NMRF_OCCLUDED and NMRF_OUT_OF_VIEW in the
 * mask of `own` where `other`, of the other view, differs by more than `threshold` pixels. */
NMRF_API nmrf_status nmrf_check_consistency(nmrf_result* own, const nmrf_result* other,
                                            nmrf_view own_view, float threshold);

/* ---- Video: keeps what one frame teaches about the next; one thread at a time. */
typedef struct nmrf_sequence nmrf_sequence;
/* *sequence is a handle in case of failure too, as with nmrf_matcher_load. */
NMRF_API nmrf_status nmrf_sequence_new(const nmrf_matcher* matcher,
                                       const nmrf_match_options* options, nmrf_sequence** sequence);
/* What went wrong in nmrf_sequence_new; "" if nothing did. */
NMRF_API const char* nmrf_sequence_message(const nmrf_sequence* sequence);
NMRF_API nmrf_status nmrf_sequence_next(nmrf_sequence* sequence, const nmrf_image* left,
                                        const nmrf_image* right, nmrf_result* result);
/* Forgets the frames before, as after a cut. */
NMRF_API void nmrf_sequence_restart(nmrf_sequence* sequence);
/* 1: the last frame was found to follow the one before. */
NMRF_API int nmrf_sequence_continued(const nmrf_sequence* sequence);
NMRF_API void nmrf_sequence_free(nmrf_sequence* sequence);

/* ---- Is this a rectified pair, in the right order? */
typedef struct nmrf_pair_check {
  size_t size;
  int32_t conclusive;     /* 1: enough corners were found to say anything */
  int32_t matches;        /* corners found in both images */
  int32_t swapped;        /* 1: the right image was given first */
  int32_t not_rectified;  /* 1: matches do not lie on the same rows */
  int32_t identical;      /* 1: one image was given twice */
  int32_t warnings;       /* number of lines in the text */
  double vertical_offset; /* median of y_left - y_right, pixels */
  double vertical_rms;    /* of the fitted vertical offset over the image, pixels */
  double horizontal;      /* median of x_left - x_right, pixels */
  double negative_share;  /* of the corners that moved, the share with x_left < x_right */
  /* A small error of rectification, and its standard error in px where it is worst. */
  nmrf_alignment alignment;
  double alignment_error;
  int32_t correctable; /* 1: surely there and worth correcting; nmrf_match_options.align does */
  int32_t reserved;
} nmrf_pair_check;
/* text, of text_size bytes, receives the warnings, one per line, or what went wrong; it is cut when
 * the room does not suffice and may be NULL. */
NMRF_API nmrf_status nmrf_check_pair(const nmrf_image* left, const nmrf_image* right,
                                     nmrf_pair_check* check, char* text, size_t text_size);

#ifdef __cplusplus
}
#endif

#endif
