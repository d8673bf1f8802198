// Augmentation of training samples: colours, erased patches, scaling, flips, crop.
#pragma once

#include "core/fields.h"
#include "core/rng.h"
#include "data/sample.h"

namespace nmrf {

// Ranges of the colour jitter and of the scaling.
struct AugmentRanges {
  double brightness;      // factor in 1 -+ this
  double contrast;        // factor in 1 -+ this
  double saturation_low;  // factor between these two
  double saturation_high;
  double hue;        // shift in -+ this, 1 = once around the colour circle
  double scale_low;  // both images scaled by 2^[low, high]; 0, 0 = not at all
  double scale_high;
};

// The defaults are those of the published model's training.
struct AugmentOptions {
  bool enabled = true;  // false: only the crop, from the middle of the image
  int crop_height = 384;
  int crop_width = 768;
  AugmentRanges dense{0.4, 0.4, 0.0, 1.4, 0.5 / 3.14, 0.0, 0.0};
  AugmentRanges sparse{0.3, 0.3, 0.7, 1.3, 0.3 / 3.14, -0.2, 0.4};
  double asymmetric = 0.2;
  double eraser = 0.5;
  int eraser_low = 50;
  int eraser_high = 100;
  int eraser_count = 2;
  double mirror = 0.0;
  double flip = 0.0;
  double scale_disp = 0.0;
  bool keep_clean = false;  // also Sample::clean_left and clean_right; set by what needs them

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("enabled", self.enabled, "false: no augmentation, centre crop");
    visit("crop_height", self.crop_height, "pixels; 0 = image size; smaller images are padded");
    visit("crop_width", self.crop_width, "pixels; 0 = image size; smaller images are padded");
    ranges(self.dense, visit, kDenseKeys);
    ranges(self.sparse, visit, kSparseKeys);
    visit("asymmetric", self.asymmetric, "probability of independent colour changes per image");
    visit("eraser", self.eraser, "probability of erasing patches of the right image");
    visit("eraser_low", self.eraser_low, "smallest side of an erased patch, pixels");
    visit("eraser_high", self.eraser_high, "largest side of an erased patch, pixels");
    visit("eraser_count", self.eraser_count, "maximum number of patches");
    visit("mirror", self.mirror,
          "probability of mirroring and swapping the pair; needs truth of the right view");
    visit("flip", self.flip, "probability of flipping the pair vertically");
    visit("scale_disp", self.scale_disp,
          "px: limit enlargement so that 98 % of the disparities stay below this; 0 = no limit");
  }
  // Throws Error(kUsage) naming the setting.
  void validate() const;

 private:
  using Keys = std::array<const char*, 7>;
  static constexpr Keys kDenseKeys{
      "dense.brightness", "dense.contrast",  "dense.saturation_low", "dense.saturation_high",
      "dense.hue",        "dense.scale_low", "dense.scale_high"};
  static constexpr Keys kSparseKeys{
      "sparse.brightness", "sparse.contrast",  "sparse.saturation_low", "sparse.saturation_high",
      "sparse.hue",        "sparse.scale_low", "sparse.scale_high"};
  template <class Ranges, class Visitor>
  static void ranges(Ranges& self, Visitor&& visit, const Keys& key) {
    visit(key[0], self.brightness, "factor within 1 -+ this");
    visit(key[1], self.contrast, "factor within 1 -+ this");
    visit(key[2], self.saturation_low, "smallest factor");
    visit(key[3], self.saturation_high, "largest factor");
    visit(key[4], self.hue, "shift within -+ this; 1 = full colour circle");
    visit(key[5], self.scale_low, "smallest scale, power of two");
    visit(key[6], self.scale_high, "largest scale, power of two");
  }
};

// Augments `sample` by its dense or sparse rules; all randomness comes from `rng`, and the same
// generator state gives the same result bit for bit. The steps, in this order: colours, mirror and
// flip, erased patches, scaling, crop. The result has crop_height x crop_width pixels: an image
// smaller than the crop is padded at the right and the bottom (images by their border, truth as
// unknown, masks and ids by 0).
Sample augment(Sample sample, const AugmentOptions& options, Rng& rng);

// The parts, for tests and other users.
namespace augment_parts {

// Brightness, contrast, saturation and hue in random order, the same for all images of the list
// (the contrast turns around their common mean). CV_8UC3, in place.
void jitter_colours(std::vector<cv::Mat*> images, const AugmentRanges& ranges, Rng& rng);

// Fills 1..eraser_count rectangles with the image's mean colour. CV_8UC3, in place.
void erase_patches(cv::Mat& image, const AugmentOptions& options, Rng& rng);

// Mirrors both images and swaps them, so that the right view becomes the left one. Needs
// right_disparity; masks and ids, known for the left view only, are dropped. Segments change sides
// too: without right_segments the mirrored sample has none.
void mirror_and_swap(Sample& sample);

// Turns everything upside down.
void flip_vertically(Sample& sample);

// Resizes to `size`; disparity is scaled by the ratio of widths. Dense truth takes the nearest
// pixel; of sparse truth each known pixel moves to its nearest new place, the closest wins.
void resize(Sample& sample, cv::Size size);

// The window at (x, y); parts outside the image are padded as described at augment().
void crop(Sample& sample, cv::Rect window);

}  // namespace augment_parts
}  // namespace nmrf
