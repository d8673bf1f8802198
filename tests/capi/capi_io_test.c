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

  /* The right image 2 rows too low: noticed, measured and taken out. */
  CHECK(nmrf_check_pair(&views[0], &views[1], &check, NULL, 0) == NMRF_OK);
  CHECK(check.correctable == 0 && check.negative_share < 0.1);
  const nmrf_alignment up = {.offset = -2}, down = {.offset = 2};
  nmrf_picture *low = NULL, *back = NULL;
  nmrf_image views_of[2] = {{.size = sizeof views_of[0]}, {.size = sizeof views_of[0]}};
  CHECK(nmrf_io_align_image(io, &views[1], &up, &low) == NMRF_OK);
  nmrf_picture_view(low, &views_of[0]);
  CHECK(nmrf_check_pair(&views[0], &views_of[0], &check, NULL, 0) == NMRF_OK);
  CHECK(check.correctable == 1 && fabs(check.alignment.offset - 2) < 0.4 &&
        check.alignment_error > 0 && check.alignment_error < 0.25);
  CHECK(nmrf_io_align_image(io, &views_of[0], &down, &back) == NMRF_OK);
  nmrf_picture_view(back, &views_of[1]);
  const size_t row = 3 * (size_t)views[1].width;
  CHECK(!memcmp(views_of[1].data, views[1].data, row * (size_t)(views[1].height - 2)));
  nmrf_picture_free(low);
  nmrf_picture_free(back);
  CHECK(nmrf_io_align_image(io, &views[1], NULL, &back) == NMRF_USAGE && back == NULL);
  nmrf_picture_free(left);
  nmrf_picture_free(right);
}

static void test_rectification(nmrf_io* io) {
  /* Two equal cameras side by side: nothing changes. */
  const nmrf_camera camera = {
      .fx = 60, .fy = 60, .cx = 33, .cy = 21, .width = kWidth, .height = kHeight};
  nmrf_rig rig = {.size = sizeof rig,
                  .left = camera,
                  .right = camera,
                  .rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                  .translation = {-0.1, 0, 0}};
  nmrf_image left = left_image(), right = right_image();
  nmrf_rectifier* rectifier = NULL;
  nmrf_picture* pictures[2] = {NULL, NULL};
  CHECK(nmrf_io_rectifier(io, &rig, NULL, &rectifier) == NMRF_OK);
  CHECK(nmrf_io_rectify(io, rectifier, &left, &right, &pictures[0], &pictures[1]) == NMRF_OK);
  for (int i = 0; i < 2; ++i) {
    nmrf_image view = {.size = sizeof view};
    nmrf_picture_view(pictures[i], &view);
    CHECK(view.width == kWidth && view.height == kHeight);
    const uint8_t *got = view.data, *given = i ? right_pixels[0][0] : left_pixels[0][0];
    int differ = 0;
    for (int k = 0; k < kWidth * kHeight * 3; ++k) differ += abs(got[k] - given[k]) > 1;
    CHECK(differ == 0);
    nmrf_picture_free(pictures[i]);
  }
  nmrf_calibration calibration = {.size = sizeof calibration};
  CHECK(nmrf_io_rectified_calibration(io, rectifier, &calibration) == NMRF_OK);
  CHECK(fabs(calibration.fx - 60) < 1e-6 && fabs(calibration.baseline - 0.1) < 1e-9);
  CHECK(nmrf_io_write_calibration(io, in_folder("rectified.yml"), rectifier) == NMRF_OK);
  nmrf_calibration read = {.size = sizeof read};
  CHECK(nmrf_io_read_calibration(io, in_folder("rectified.yml"), &read) == NMRF_OK);
  CHECK(fabs(read.fx - calibration.fx) < 1e-6 && fabs(read.baseline - 0.1) < 1e-9);
  CHECK(remove(in_folder("rectified.yml")) == 0);
  left.width = 40;
  CHECK(nmrf_io_rectify(io, rectifier, &left, &right, &pictures[0], &pictures[1]) == NMRF_INPUT);
  CHECK(pictures[0] == NULL && pictures[1] == NULL);
  CHECK(nmrf_io_rectify(io, NULL, &right, &right, &pictures[0], &pictures[1]) == NMRF_USAGE);
  nmrf_rectifier_free(rectifier);

  rig.left.coefficients = 13;
  CHECK(nmrf_io_rectifier(io, &rig, NULL, &rectifier) == NMRF_USAGE);
  CHECK(rectifier == NULL);
  CHECK_TEXT(nmrf_io_message(io), "13 coefficients");
  rig.left.coefficients = 0;
  rig.translation[0] = 0.1;
  CHECK(nmrf_io_rectifier(io, &rig, NULL, &rectifier) == NMRF_INPUT); /* swapped */

  /* A file of OpenCV's. */
  FILE* file = fopen(in_folder("stereo.yml"), "w");
  CHECK(file != NULL);
  if (!file) return;
  fputs(
      "%YAML:1.0\nimage_width: 640\nimage_height: 480\n"
      "M1: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n"
      "   data: [ 500, 0, 320, 0, 501, 240, 0, 0, 1 ]\n"
      "D1: !!opencv-matrix\n   rows: 1\n   cols: 5\n   dt: d\n"
      "   data: [ -0.3, 0.1, 0.001, -0.002, -0.01 ]\n"
      "M2: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n"
      "   data: [ 502, 0, 321, 0, 503, 241, 0, 0, 1 ]\n"
      "D2: !!opencv-matrix\n   rows: 1\n   cols: 5\n   dt: d\n"
      "   data: [ -0.2, 0, 0, 0, 0 ]\n"
      "R: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n"
      "   data: [ 1, 0, 0, 0, 1, 0, 0, 0, 1 ]\n"
      "T: !!opencv-matrix\n   rows: 3\n   cols: 1\n   dt: d\n"
      "   data: [ -0.12, 0, 0 ]\n",
      file);
  fclose(file);
  const char* files[] = {in_folder("stereo.yml"), NULL};
  CHECK(nmrf_io_read_rig(io, files, &rig) == NMRF_OK);
  CHECK(rig.left.fy == 501 && rig.left.coefficients == 5 && rig.left.distortion[4] == -0.01);
  CHECK(rig.right.cx == 321 && rig.left.width == 640 && rig.left.lens == NMRF_PINHOLE);
  CHECK(rig.translation[0] == -0.12 && rig.rotation[8] == 1);
  nmrf_rectify_options options = {.size = sizeof options, .alpha = 1, .width = 320, .height = 240};
  CHECK(nmrf_io_rectifier(io, &rig, &options, &rectifier) == NMRF_OK);
  CHECK(nmrf_io_rectified_calibration(io, rectifier, &calibration) == NMRF_OK);
  CHECK(calibration.width == 320 && fabs(calibration.baseline - 0.12) < 1e-9);
  nmrf_rectifier_free(rectifier);
  CHECK(remove(in_folder("stereo.yml")) == 0);
  const char* none[] = {NULL};
  CHECK(nmrf_io_read_rig(io, none, &rig) != NMRF_OK);
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
  static float depth[kWidth * kHeight];
  CHECK(nmrf_io_depth(io, result, &own, 1, depth, 0) == NMRF_OK);
  for (int i = 0; i < kWidth * kHeight; ++i) {
    const float d = maps->disparity[i];
    if (d > 0 && isfinite(d)) CHECK(fabsf(depth[i] - 10 / d) < 1e-3f * depth[i]);
  }
  CHECK(nmrf_io_depth(io, result, &own, 1, NULL, 0) == NMRF_USAGE);
  static float sigma[kWidth * kHeight];
  CHECK(nmrf_io_depth_sigma(io, result, &own, 1, sigma, 0) == NMRF_OK);
  for (int i = 0; i < kWidth * kHeight; ++i) {
    const float d = maps->disparity[i], expected = depth[i] * maps->expected_error[i] / d;
    if (d > 0 && isfinite(d)) CHECK(fabsf(sigma[i] - expected) <= 1e-3f * expected);
  }
  nmrf_calibration wrong = own;
  wrong.baseline = -1;
  CHECK(nmrf_io_depth(io, result, &wrong, 1, depth, 0) == NMRF_INPUT);
  CHECK(nmrf_io_write_depth(io, in_folder("depth.png"), result, &own, 0) == NMRF_OK);
  CHECK(remove(in_folder("depth.png")) == 0);

  nmrf_image image = left_image();
  nmrf_cloud* all = NULL;
  nmrf_cloud* some = NULL;
  nmrf_cloud_options options = {.size = sizeof options, .filled = 1, .occluded = 1};
  CHECK(nmrf_io_point_cloud(io, result, &image, &own, &options, &all) == NMRF_OK);
  options.stride = 3;
  options.normals = 1;
  CHECK(nmrf_io_point_cloud(io, result, &image, &own, &options, &some) == NMRF_OK);
  size_t count = 0, fewer = 0;
  const nmrf_point* points = nmrf_cloud_points(all, &count);
  const nmrf_point* with_normals = nmrf_cloud_points(some, &fewer);
  size_t known = 0;
  for (size_t i = 0; i < fewer; ++i) known += with_normals[i].normal[2] < 0;
  CHECK(known > fewer / 2 && points[0].normal[2] == 0);
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
  test_rectification(io);

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
