#include "arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <filesystem>

namespace nmrf::python {
namespace {

std::string shape_of(const py::array& array) {
  return py::str(array.attr("shape")).cast<std::string>();
}

py::array array_of(const py::object& object, const std::string& name) {
  py::array array = py::array::ensure(object);
  if (!array) {
    PyErr_Clear();
    throw py::value_error(
        fmt::format("{} is no array (type {})", name,
                    py::str(py::type::of(object).attr("__name__")).cast<std::string>()));
  }
  return array;
}

void expect_size(const py::array& array, const std::string& name) {
  if (array.shape(0) > INT_MAX || array.shape(1) > INT_MAX)
    throw py::value_error(fmt::format("{} has the shape {}: too large", name, shape_of(array)));
}

template <class T, class Target>
Target map_of(const py::object& object, const std::string& name) {
  const py::array given = array_of(object, name);
  if (given.ndim() != 2 || std::string("fiu").find(given.dtype().kind()) == std::string::npos)
    throw py::value_error(fmt::format("{} has the shape {} and the type {}; expected HxW numbers",
                                      name, shape_of(given),
                                      py::str(given.dtype()).cast<std::string>()));
  expect_size(given, name);
  const auto array = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(given);
  if (!array) throw py::error_already_set();
  Target map(static_cast<int>(array.shape(1)), static_cast<int>(array.shape(0)));
  std::copy_n(array.data(), map.size(), map.data());
  return map;
}

}  // namespace

ImageArgument image_argument(const py::object& object, bool bgr, const std::string& name) {
  py::array array = array_of(object, name);
  if (array.ndim() != 2 && array.ndim() != 3)
    throw py::value_error(
        fmt::format("{} has the shape {}; expected HxW, HxWx3 or HxWx4", name, shape_of(array)));
  const py::ssize_t bytes = array.itemsize();
  if (array.dtype().kind() != 'u' || (bytes != 1 && bytes != 2))
    throw py::value_error(fmt::format("{} has the type {}; expected uint8 or uint16", name,
                                      py::str(array.dtype()).cast<std::string>()));
  expect_size(array, name);
  const bool colour = array.ndim() == 3;
  const py::ssize_t channels = colour ? array.shape(2) : 1;
  const bool packed = array.strides(1) == channels * bytes &&
                      (!colour || array.strides(2) == bytes) && array.strides(0) != 0 &&
                      array.strides(0) % bytes == 0 &&
                      reinterpret_cast<std::uintptr_t>(array.data()) % bytes == 0;
  if (!packed || !array.dtype().attr("isnative").cast<bool>())
    array = py::module_::import("numpy").attr("ascontiguousarray")(
        array, bytes == 1 ? py::dtype::of<std::uint8_t>() : py::dtype::of<std::uint16_t>());
  const ImageView view{array.data(),
                       static_cast<int>(array.shape(1)),
                       static_cast<int>(array.shape(0)),
                       array.strides(0),
                       static_cast<int>(std::min<py::ssize_t>(channels, INT_MAX)),
                       static_cast<int>(8 * bytes),
                       bgr ? ChannelOrder::kBgr : ChannelOrder::kRgb};
  return {std::move(array), view};
}

FloatMap float_map(const py::object& object, const std::string& name) {
  return map_of<float, FloatMap>(object, name);
}
ByteMap byte_map(const py::object& object, const std::string& name) {
  return map_of<std::uint8_t, ByteMap>(object, name);
}

py::array owning_array(Image image) {
  auto [kept, capsule] = own(std::move(image));
  std::vector<py::ssize_t> shape{kept->height(), kept->width()};
  if (kept->channels() > 1) shape.push_back(kept->channels());
  if (kept->bits() == 16)
    return py::array_t<std::uint16_t>(shape, reinterpret_cast<std::uint16_t*>(kept->data()),
                                      capsule);
  return py::array_t<std::uint8_t>(shape, kept->data(), capsule);
}

py::object colour_array(Image image, bool bgr) {
  py::array array = owning_array(std::move(image));
  if (!bgr) return array;
  return array[py::make_tuple(py::ellipsis(), py::slice(py::none(), py::none(), py::int_(-1)))];
}

void expect_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return;
  errno = ENOENT;
  PyErr_SetFromErrnoWithFilename(PyExc_FileNotFoundError, path.c_str());
  throw py::error_already_set();
}

}  // namespace nmrf::python
