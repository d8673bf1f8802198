/* Files, rectification, depth and point clouds in plain C. The rules of nmrf/nmrf.h apply
 * here too.
 *
 *   nmrf_io *io = nmrf_io_new();
 *   nmrf_picture *left = NULL;
 *   nmrf_image image = {.size = sizeof image};
 *   if (nmrf_io_read_image(io, "left.png", &left) != NMRF_OK) puts(nmrf_io_message(io));
 *   nmrf_picture_view(left, &image);
 *
 * Link with -lnmrf_io -lnmrf (pkg-config nmrf_io).
 */
#ifndef NMRF_NMRF_IO_H
#define NMRF_NMRF_IO_H

#include "nmrf/nmrf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Carries the message of the last call; not thread-safe. */
typedef struct nmrf_io nmrf_io;
NMRF_API nmrf_io* nmrf_io_new(void); /* NULL: out of memory */
NMRF_API const char* nmrf_io_message(const nmrf_io* io);
NMRF_API void nmrf_io_free(nmrf_io* io);

/* An image that owns its pixels. The view is valid until it is freed; image->size must be set. */
typedef struct nmrf_picture nmrf_picture;
NMRF_API void nmrf_picture_view(const nmrf_picture* picture, nmrf_image* image);
NMRF_API void nmrf_picture_free(nmrf_picture* picture);

/* PNG, JPEG, TIFF, PPM/PGM, WebP or BMP as stored; *picture is NULL on failure. */
NMRF_API nmrf_status nmrf_io_read_image(nmrf_io* io, const char* path, nmrf_picture** picture);
/* The format comes from the extension. Files are written under a temporary name and renamed. */
NMRF_API nmrf_status nmrf_io_write_image(nmrf_io* io, const char* path, const nmrf_image* image);

/* The corrected right image, 8-bit RGB, as used for matching (nmrf_maps.alignment).
 * Maps of the right view belong to it. */
NMRF_API nmrf_status nmrf_io_align_image(nmrf_io* io, const nmrf_image* right,
                                         const nmrf_alignment* alignment, nmrf_picture** picture);

/* .pfm, .npy, .tiff, .png and .pgm; integers are divided by `divisor` (0: 256). The result has a
 * disparity map, no confidence and no mask. */
NMRF_API nmrf_status nmrf_io_read_disparity(nmrf_io* io, const char* path, double divisor,
                                            nmrf_result* result);
/* .pfm, .png (16 bit, 256 times the disparity), .npy or .tiff. */
NMRF_API nmrf_status nmrf_io_write_disparity(nmrf_io* io, const char* path,
                                             const nmrf_result* result);

/* A rectified pair of pinhole cameras; in pixels of the left image, except the baseline. */
typedef struct nmrf_calibration {
  size_t size;
  double fx, fy, cx, cy; /* focal lengths and principal point of the left camera */
  double doffs;          /* cx of the right camera minus cx of the left one */
  double baseline;       /* metres */
  int32_t width, height; /* of the images the numbers hold for; 0: unknown */
} nmrf_calibration;

/* Middlebury, KITTI, OpenCV, K.txt or stereodemo files, recognised by content. */
NMRF_API nmrf_status nmrf_io_read_calibration(nmrf_io* io, const char* path,
                                              nmrf_calibration* calibration);
/* The calibration of the images resized by sx and sy. */
NMRF_API nmrf_status nmrf_io_scale_calibration(nmrf_io* io, double sx, double sy,
                                               nmrf_calibration* calibration);

/* Depth in metres, +infinity where unknown, into a buffer of the size of the result; stride in
 * bytes, 0: no gaps. Filled-in pixels are unknown unless `filled` is set. */
NMRF_API nmrf_status nmrf_io_depth(nmrf_io* io, const nmrf_result* result,
                                   const nmrf_calibration* calibration, int filled, float* depth,
                                   ptrdiff_t stride);
/* Depth error in metres from the expected disparity error, in the same way.
 * NMRF_USAGE for a result without expected errors. */
NMRF_API nmrf_status nmrf_io_depth_sigma(nmrf_io* io, const nmrf_result* result,
                                         const nmrf_calibration* calibration, int filled,
                                         float* sigma, ptrdiff_t stride);
/* Writes depth: .png (16-bit millimetres), .npy, .tiff or .pfm (metres). */
NMRF_API nmrf_status nmrf_io_write_depth(nmrf_io* io, const char* path, const nmrf_result* result,
                                         const nmrf_calibration* calibration, int filled);

/* ---- Rectification: removes lens distortion and the rotation between the cameras. */
typedef enum nmrf_lens {               /* Distortion model. */
                         NMRF_PINHOLE, /* OpenCV's k1 k2 p1 p2 [k3 [k4 k5 k6 [s1 s2 s3 s4]]] */
                         NMRF_FISHEYE  /* equidistant, k1 to k4 */
} nmrf_lens;

typedef struct nmrf_camera { /* Intrinsics and distortion of one camera. */
  double fx, fy, cx, cy;     /* px */
  int32_t width, height;     /* of the images the numbers hold for; 0: unknown */
  int32_t lens;              /* nmrf_lens */
  int32_t coefficients;      /* number of those below */
  double distortion[12];
} nmrf_camera;

/* A point X in the left camera frame is rotation * X + translation in the right camera frame. */
typedef struct nmrf_rig {
  size_t size;
  nmrf_camera left, right;
  double rotation[9];    /* row-major */
  double translation[3]; /* metres */
} nmrf_rig;

/* files: OpenCV, Kalibr, ROS (left, right) or KITTI files, recognised by content; the list ends
 * with NULL. */
NMRF_API nmrf_status nmrf_io_read_rig(nmrf_io* io, const char* const* files, nmrf_rig* rig);

typedef struct nmrf_rectify_options { /* Crop and size of rectified images. */
  size_t size;
  double alpha;          /* 0: crop to what both cameras see; 1: keep all, black borders */
  int32_t width, height; /* of the rectified images; 0: as the camera images */
} nmrf_rectify_options;

/* Computes the remapping tables of both cameras once; thread-safe. options may be NULL.
 * *rectifier is NULL on failure. */
typedef struct nmrf_rectifier nmrf_rectifier;
NMRF_API nmrf_status nmrf_io_rectifier(nmrf_io* io, const nmrf_rig* rig,
                                       const nmrf_rectify_options* options,
                                       nmrf_rectifier** rectifier);
/* The rectified images, 8-bit RGB; both are NULL on failure. */
NMRF_API nmrf_status nmrf_io_rectify(nmrf_io* io, const nmrf_rectifier* rectifier,
                                     const nmrf_image* left, const nmrf_image* right,
                                     nmrf_picture** rectified_left, nmrf_picture** rectified_right);
/* Calibration of the rectified images. */
NMRF_API nmrf_status nmrf_io_rectified_calibration(nmrf_io* io, const nmrf_rectifier* rectifier,
                                                   nmrf_calibration* calibration);
/* Same as OpenCV yml, with P1, P2 and Q. */
NMRF_API nmrf_status nmrf_io_write_calibration(nmrf_io* io, const char* path,
                                               const nmrf_rectifier* rectifier);
NMRF_API void nmrf_rectifier_free(nmrf_rectifier* rectifier);

/* In the frame of the left camera: +x right, +y down, +z forward, metres. */
typedef struct nmrf_point {
  float x, y, z;
  uint8_t red, green, blue, reserved;
  float normal[3]; /* of the surface, towards the camera; zeros: unknown */
} nmrf_point;

typedef struct nmrf_cloud_options { /* Which pixels become points. */
  size_t size;
  double z_near, z_far;     /* metres; z_far 0: no limit */
  double edge;              /* drop pixels whose neighbours differ by more px; 0: none */
  double min_confidence;    /* 0 to 1 */
  int32_t stride;           /* every n-th pixel and row; 0: 1 */
  int32_t occluded, filled; /* 1: keep pixels that are occluded, or filled in */
  int32_t normals;          /* 1: also estimate normals from neighbouring pixels */
} nmrf_cloud_options;

typedef struct nmrf_cloud nmrf_cloud; /* a point cloud */
/* image: of the size of the result, for the colours. options may be NULL. *cloud is NULL on
 * failure. */
NMRF_API nmrf_status nmrf_io_point_cloud(nmrf_io* io, const nmrf_result* result,
                                         const nmrf_image* image,
                                         const nmrf_calibration* calibration,
                                         const nmrf_cloud_options* options, nmrf_cloud** cloud);
/* The points, valid until the cloud is freed, and their number. */
NMRF_API const nmrf_point* nmrf_cloud_points(const nmrf_cloud* cloud, size_t* count);
/* With normals if they were requested. */
NMRF_API nmrf_status nmrf_io_write_ply(nmrf_io* io, const char* path, const nmrf_cloud* cloud);
NMRF_API void nmrf_cloud_free(nmrf_cloud* cloud);

#ifdef __cplusplus
}
#endif

#endif
