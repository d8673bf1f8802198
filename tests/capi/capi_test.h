/* What the files of this test share. A failed check is counted and the test goes on. */
#ifndef NMRF_TESTS_CAPI_TEST_H
#define NMRF_TESTS_CAPI_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "nmrf/nmrf.h"

extern int failures;

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

#define CHECK_TEXT(text, part)                                                         \
  do {                                                                                 \
    if (strstr(text, part) == NULL) {                                                  \
      fprintf(stderr, "%s:%d: \"%s\" lacks \"%s\"\n", __FILE__, __LINE__, text, part); \
      ++failures;                                                                      \
    }                                                                                  \
  } while (0)

enum { kWidth = 67, kHeight = 43 };

/* Two views of a textured wall, 5 pixels apart; RGB. */
extern uint8_t left_pixels[kHeight][kWidth][3], right_pixels[kHeight][kWidth][3];
nmrf_image left_image(void);
nmrf_image right_image(void);

void test_io(const nmrf_matcher* matcher);

#ifdef __cplusplus
extern "C"
#endif
    /* The same match through the C++ interface; the maps must be equal bit by bit. */
    int
    same_as_cpp(const char* model, int max_disp, const nmrf_maps* maps);

#endif
