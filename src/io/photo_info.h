// What a camera writes beside the pixels of a JPEG file: EXIF, and the index of an MPO file.
//
// These parts are read with doubt: whatever is damaged, out of bounds or implausible counts as
// absent.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nmrf/image.h"

namespace nmrf {

struct PhotoInfo {
  // How to turn the stored image to see it upright, by EXIF's numbers 1 (as it is) to 8.
  int orientation = 1;
  std::optional<double> focal_35mm;    // mm; on film of 36 x 24 mm, by the diagonal
  std::optional<double> focal_mm;      // mm, of the lens itself
  std::optional<double> sensor_px_mm;  // pixels per mm of the sensor, along rows
  std::optional<double> sensor_width;  // px of the image that this holds for

  // Focal length in pixels of a view that is `width` x `height`, stored in a file of
  // `file_width` pixels.
  std::optional<double> focal_px(int width, int height, int file_width) const;
};

// Of a JPEG file; nothing of note for other files.
PhotoInfo photo_info(std::string_view file);

// The image turned upright.
Image upright(const Image& image, int orientation);

// An MPO file: JPEG pictures one after the other, the left view first.
struct MultiPicture {
  std::string_view right;          // the bytes of the second view
  std::optional<double> baseline;  // metres, where the camera tells
};
// Takes the index of the file or, where it is missing or wrong, the next picture after the first.
// Throws Error(kInput) when there is no second picture. `name` stands for the file in messages.
MultiPicture multi_picture(std::string_view file, const std::string& name);

}  // namespace nmrf
