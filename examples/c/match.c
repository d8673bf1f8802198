/* Two images and a model in, a disparity map out, from C.
 *
 *   cc -std=c11 match.c -o match $(pkg-config --cflags --libs nmrf_io)
 *   ./match model.safetensors left.png right.png disparity.pfm
 */
#include <nmrf/nmrf_io.h>
#include <stdio.h>

static void on_log(nmrf_log_level level, const char* text, void* user) {
  (void)user;
  if (level == NMRF_LOG_WARNING) fprintf(stderr, "warning: %s\n", text);
}

static int on_progress(double done, const char* stage, void* user) {
  (void)user;
  fprintf(stderr, "\r%3.0f %% %-20s", 100 * done, stage);
  return 0; /* anything else cancels */
}

static int failed(nmrf_status status, const char* message) {
  fprintf(stderr, "error: %s\n", message);
  return (int)status;
}

static int run(char** paths, nmrf_io* io, nmrf_picture** left, nmrf_picture** right,
               nmrf_matcher** matcher, nmrf_result* result) {
  nmrf_status status;
  if ((status = nmrf_io_read_image(io, paths[1], left)) ||
      (status = nmrf_io_read_image(io, paths[2], right)))
    return failed(status, nmrf_io_message(io));
  if ((status = nmrf_matcher_load(paths[0], NULL, matcher)))
    return failed(status, nmrf_matcher_message(*matcher));

  nmrf_image views[2] = {{.size = sizeof(nmrf_image)}, {.size = sizeof(nmrf_image)}};
  nmrf_picture_view(*left, &views[0]);
  nmrf_picture_view(*right, &views[1]);
  nmrf_match_options options = {.size = sizeof options, .progress = on_progress};
  status = nmrf_match(*matcher, &views[0], &views[1], &options, result);
  fputc('\n', stderr);
  if (status) return failed(status, nmrf_result_message(result));
  if ((status = nmrf_io_write_disparity(io, paths[3], result)))
    return failed(status, nmrf_io_message(io));

  nmrf_maps maps = {.size = sizeof maps};
  nmrf_result_maps(result, &maps);
  const int middle = maps.height / 2 * maps.width + maps.width / 2;
  printf("%s: %dx%d, %.2f px in the middle, confidence %.2f%s\n", paths[3], (int)maps.width,
         (int)maps.height, maps.disparity[middle], maps.confidence[middle],
         maps.mask[middle] & NMRF_FILLED ? ", filled in" : "");
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: match MODEL LEFT RIGHT DISPARITY.pfm\n");
    return NMRF_USAGE;
  }
  if (nmrf_abi() != NMRF_ABI) {
    fprintf(stderr, "compiled for ABI %d of nmrf, but found %d\n", NMRF_ABI, nmrf_abi());
    return NMRF_FAILURE;
  }
  nmrf_set_log(on_log, NULL);
  nmrf_io* io = nmrf_io_new();
  nmrf_result* result = nmrf_result_new();
  nmrf_picture *left = NULL, *right = NULL;
  nmrf_matcher* matcher = NULL;
  const int code = run(argv + 1, io, &left, &right, &matcher, result);
  nmrf_matcher_free(matcher);
  nmrf_picture_free(left);
  nmrf_picture_free(right);
  nmrf_result_free(result);
  nmrf_io_free(io);
  return code;
}
