// Middlebury, KITTI, OpenCV (yml, xml, json), K.txt and stereodemo, told apart by content.
#include "fuzz/fuzz.h"
#include "nmrf/geometry.h"

NMRF_FUZZ_TARGET({ nmrf::read_calibration(nmrf::fuzz::as_file(input)).scaled(0.5, 0.5); })
