#include "nmrf/files.h"

#include <pybind11/stl/filesystem.h>

#include "arrays.h"
#include "nmrf/disparity.h"

namespace nmrf::python {
namespace {

namespace fs = std::filesystem;

// A Disparity or an array.
FloatMap map_argument(const py::object& given) {
  if (py::isinstance<Disparity>(given)) return given.cast<const Disparity&>().map;
  return float_map(given, "the disparity map");
}

template <class Read>
auto read_unlocked(const fs::path& path, Read&& read) {
  expect_file(path.string());
  py::gil_scoped_release unlocked;
  return read(path);
}

}  // namespace

void add_files(py::module_& module) {
  module.def(
      "read_image",
      [](const fs::path& path) {
        return owning_array(read_unlocked(path, [](const fs::path& p) { return read_image(p); }));
      },
      py::arg("path"), R"(A PNG, JPEG, TIFF, PPM, WebP or BMP file as it is stored.

Returns uint8 or uint16, (H, W) or (H, W, channels), RGB. EXIF orientation is ignored.)");
  module.def(
      "write_image",
      [](const fs::path& path, const py::object& image, bool bgr) {
        const ImageArgument pixels = image_argument(image, bgr, "the image");
        py::gil_scoped_release unlocked;
        write_image(path, pixels.view);
      },
      py::arg("path"), py::arg("image"), py::kw_only(), py::arg("bgr") = false,
      "Writes an image; the format comes from the extension.");
  module.def(
      "read_disparity",
      [](const fs::path& path, double divisor) {
        return owning_array(read_unlocked(path, [&](const fs::path& p) {
          return read_disparity(p, {.divisor = divisor, .zero_is_invalid = true});
        }));
      },
      py::arg("path"), py::kw_only(), py::arg("divisor") = 256.0,
      R"(Disparity from .pfm, .npy, .tiff, .png or .pgm: float32 (H, W), +inf where unknown.

divisor: of the values of integer files (KITTI: 256).)");
  module.def(
      "write_disparity",
      [](const fs::path& path, const py::object& disparity) {
        const FloatMap map = map_argument(disparity);
        py::gil_scoped_release unlocked;
        write_disparity(path, map);
      },
      py::arg("path"), py::arg("disparity"),
      R"(Writes a Disparity or an array (H, W) as .pfm, .png (16 bit, 256 times), .npy or .tiff.)");
  module.def(
      "write_depth",
      [](const fs::path& path, const py::object& depth) {
        const FloatMap map = float_map(depth, "the depth map");
        py::gil_scoped_release unlocked;
        write_depth(path, map);
      },
      py::arg("path"), py::arg("depth"),
      "Writes depth in metres as .png (16-bit millimetres), .npy, .tiff or .pfm.");
}

}  // namespace nmrf::python
