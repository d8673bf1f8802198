// Between NumPy arrays and the library's images and maps.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>

#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf::python {

namespace py = pybind11;

// A view of an array's pixels, and the array that owns them.
struct ImageArgument {
  py::array array;
  ImageView view;
};

// HxW, HxWx1 to HxWx4 of uint8 or uint16, of any strides: a view where rows are packed, else of a
// copy. `name` stands for the image in messages. Raises ValueError.
ImageArgument image_argument(const py::object& object, bool bgr, const std::string& name);

// The same with a name for each of a pair.
inline std::pair<ImageArgument, ImageArgument> pair_argument(const py::object& left,
                                                             const py::object& right, bool bgr) {
  return {image_argument(left, bgr, "the left image"),
          image_argument(right, bgr, "the right image")};
}

// A copy of an HxW array of real numbers. Raises ValueError.
FloatMap float_map(const py::object& object, const std::string& name);
ByteMap byte_map(const py::object& object, const std::string& name);

// An array that shares the map's memory and keeps `owner`, the object that holds the map, alive;
// None for an empty map.
template <class T>
py::object shared_array(Map<T>& map, const py::handle& owner) {
  if (map.empty()) return py::none();
  return py::array_t<T>({map.height(), map.width()}, map.data(), owner);
}

// A capsule that owns a value moved into it, as the base of arrays.
template <class T>
std::pair<T*, py::capsule> own(T value) {
  auto kept = std::make_unique<T>(std::move(value));
  T* pointer = kept.get();
  py::capsule capsule(pointer, [](void* memory) { delete static_cast<T*>(memory); });
  kept.release();
  return {pointer, std::move(capsule)};
}

// An array that owns a map or image moved into it.
template <class T>
py::object owning_array(Map<T> map) {
  auto [kept, capsule] = own(std::move(map));
  return shared_array(*kept, capsule);
}
py::array owning_array(Image image);
// The same of an RGB image; with `bgr` in OpenCV's order.
py::object colour_array(Image image, bool bgr);

// Raises FileNotFoundError where Python programs expect it.
void expect_file(const std::string& path);

// The parts of the module.
void add_matching(py::module_& module);
void add_files(py::module_& module);
void add_geometry(py::module_& module);
void add_rectification(py::module_& module);

}  // namespace nmrf::python
