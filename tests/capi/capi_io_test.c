#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <math.h>
#include <stdlib.h>

#include "capi_test.h"
#include "nmrf/nmrf_io.h"

#define PAIR NMRF_SOURCE_DIR "/examples/pair/"

static char folder[] = "/tmp/nmrf_capi_XXXXXX";
static char path_buffer[256];
static const char* in_folder(const char* name) {
  snprintf(path_buffer, sizeof path_buffer, "%s/%s", folder, name);
  return path_buffer;
}

static void test_images(nmrf_io* io) {
  nmrf_picture* picture = (nmrf_picture*)io; /* must be replaced */
  CHECK(nmrf_io_read_image(io, "/nowhere.png", &picture) == NMRF_INPUT);
  CHECK(picture == NULL);
  CHECK_TEXT(nmrf_io_message(io), "/nowhere.png");
  CHECK(nmrf_io_read_image(io, NULL, &picture) == NMRF_USAGE);
  CHECK(nmrf_io_read_image(io, PAIR "left.png", NULL) == NMRF_USAGE);

  nmrf_image image = left_image();
  CHECK(nmrf_io_write_image(io, in_folder("left.png"), &image) == NMRF_OK);
  CHECK(nmrf_io_write_image(io, in_folder("left.xyz"), &image) == NMRF_USAGE);
  CHECK(nmrf_io_read_image(io, in_folder("left.png"), &picture) == NMRF_OK);
  nmrf_image back = {.size = sizeof back};
  nmrf_picture_view(picture, &back);
  CHECK(back.width == kWidth && back.height == kHeight && back.channels == 3 && back.bits == 8);
  CHECK(!memcmp(back.data, left_pixels, sizeof left_pixels));
  nmrf_picture_free(picture);
  remove(in_folder("left.png"));
}

static void test_pair_check(nmrf_io* io) {
  nmrf_picture *left = NULL, *right = NULL;
  CHECK(nmrf_io_read_image(io, PAIR "left.png", &left) == NMRF_OK);
  CHECK(nmrf_io_read_image(io, PAIR "right.png", &right) == NMRF_OK);
  nmrf_image views[2] = {{.size = sizeof views[0]}, {.size = sizeof views[0]}};
  nmrf_picture_view(left, &views[0]);
  nmrf_picture_view(right, &views[1]);
  nmrf_pair_check check = {.size = sizeof check};
  char text[400], few[5];
  CHECK(nmrf_check_pair(&views[0], &views[1], &check, text, sizeof text) == NMRF_OK);
  CHECK(check.conclusive == 1 && check.warnings == 0 && check.horizontal > 0 && text[0] == 0);
  CHECK(nmrf_check_pair(&views[1], &views[0], &check, text, sizeof text) == NMRF_OK);
  CHECK(check.swapped == 1 && check.warnings == 1 && check.identical == 0);
  CHECK(nmrf_check_pair(&views[1], &views[0], &check, few, sizeof few) == NMRF_OK);
  CHECK(strlen(few) == 4 && !strncmp(few, text, 4));
  CHECK(nmrf_check_pair(&views[0], &views[0], &check, text, sizeof text) == NMRF_OK);
  CHECK(check.identical == 1 && check.warnings > 0);
  nmrf_picture_free(left);
  nmrf_picture_free(right);
}

static void test_geometry(nmrf_io* io, const nmrf_result* result, const nmrf_maps* maps) {
  nmrf_calibration calibration = {.size = sizeof calibration};
  CHECK(nmrf_io_read_calibration(io, PAIR "calib.txt", &calibration) == NMRF_OK);
  CHECK(calibration.fx > 0 && calibration.baseline > 0 && calibration.width == 576);
  const double fx = calibration.fx;
  CHECK(nmrf_io_scale_calibration(io, 0.5, 0.5, &calibration) == NMRF_OK);
  CHECK(calibration.fx == 0.5 * fx && calibration.width == 288);
  CHECK(nmrf_io_scale_calibration(io, 0, 1, &calibration) == NMRF_USAGE);
  CHECK(nmrf_io_read_calibration(io, PAIR "left.png", &calibration) == NMRF_INPUT);

  nmrf_calibration own = {
      .size = sizeof own, .fx = 100, .fy = 100, .cx = 33, .cy = 21, .baseline = 0.1};
  static float depth[kHeight][kWidth];
  CHECK(nmrf_io_depth(io, result, &own, 1, depth[0], 0) == NMRF_OK);
  for (int i = 0; i < kWidth * kHeight; ++i) {
    const float d = maps->disparity[i];
    if (d > 0 && isfinite(d)) CHECK(fabsf(depth[0][i] - 10 / d) < 1e-3f * depth[0][i]);
  }
  CHECK(nmrf_io_depth(io, result, &own, 1, NULL, 0) == NMRF_USAGE);
  nmrf_calibration wrong = own;
  wrong.baseline = -1;
  CHECK(nmrf_io_depth(io, result, &wrong, 1, depth[0], 0) == NMRF_INPUT);
  CHECK(nmrf_io_write_depth(io, in_folder("depth.png"), result, &own, 0) == NMRF_OK);
  CHECK(remove(in_folder("depth.png")) == 0);

  nmrf_image image = left_image();
  nmrf_cloud* all = NULL;
  nmrf_cloud* some = NULL;
  nmrf_cloud_options options = {.size = sizeof options, .filled = 1, .occluded = 1};
  CHECK(nmrf_io_point_cloud(io, result, &image, &own, &options, &all) == NMRF_OK);
  options.stride = 3;
  CHECK(nmrf_io_point_cloud(io, result, &image, &own, &options, &some) == NMRF_OK);
  size_t count = 0, fewer = 0;
  const nmrf_point* points = nmrf_cloud_points(all, &count);
  nmrf_cloud_points(some, &fewer);
  CHECK(count > 0 && count <= kWidth * kHeight && fewer > 0 && fewer < count / 8);
  CHECK(points[0].z > 0 && points[0].red == left_pixels[0][0][0] &&
        points[0].blue == left_pixels[0][0][2]);
  CHECK(nmrf_io_write_ply(io, in_folder("cloud.ply"), all) == NMRF_OK);
  CHECK(remove(in_folder("cloud.ply")) == 0);
  nmrf_cloud_free(all);
  nmrf_cloud_free(some);
  options.min_confidence = 2;
  CHECK(nmrf_io_point_cloud(io, result, &image, &own, &options, &all) == NMRF_USAGE);
  CHECK(all == NULL);
}

void test_io(const nmrf_matcher* matcher) {
  CHECK(mkdtemp(folder) != NULL);
  nmrf_io* io = nmrf_io_new();
  test_images(io);
  test_pair_check(io);

  nmrf_result *result = nmrf_result_new(), *read = nmrf_result_new();
  CHECK(nmrf_io_write_disparity(io, in_folder("map.pfm"), result) == NMRF_USAGE);
  nmrf_image left = left_image(), right = right_image();
  nmrf_match_options how = {.size = sizeof how, .scale = 1};
  CHECK(nmrf_match(matcher, &left, &right, &how, result) == NMRF_OK);
  nmrf_maps maps = {.size = sizeof maps}, back = {.size = sizeof back};
  CHECK(nmrf_result_maps(result, &maps) == NMRF_OK);
  CHECK(nmrf_io_write_disparity(io, in_folder("map.pfm"), result) == NMRF_OK);
  CHECK(nmrf_io_read_disparity(io, in_folder("map.pfm"), 0, read) == NMRF_OK);
  CHECK(nmrf_result_maps(read, &back) == NMRF_OK);
  CHECK(back.width == kWidth && back.confidence == NULL && back.mask == NULL);
  CHECK(!memcmp(back.disparity, maps.disparity, kWidth * kHeight * sizeof(float)));
  CHECK(remove(in_folder("map.pfm")) == 0);
  CHECK(nmrf_io_read_disparity(io, PAIR "disparity.png", 0, read) == NMRF_OK);
  CHECK(nmrf_result_maps(read, &back) == NMRF_OK && back.width == 576);

  test_geometry(io, result, &maps);
  nmrf_result_free(result);
  nmrf_result_free(read);
  nmrf_io_free(io);
  CHECK(remove(folder) == 0);
}
