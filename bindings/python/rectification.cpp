#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <memory>

#include "arrays.h"
#include "nmrf/rectify.h"

namespace nmrf::python {
namespace {

namespace fs = std::filesystem;

// Numbers row by row as a float64 array of that shape, copied.
template <std::size_t count>
py::array matrix(const std::array<double, count>& values, const std::vector<py::ssize_t>& shape) {
  return py::array_t<double>(shape, values.data());
}

template <std::size_t count>
std::array<double, count> numbers(const py::object& given, const char* name) {
  const auto array = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(given);
  if (!array) PyErr_Clear();
  if (!array || array.size() != static_cast<py::ssize_t>(count))
    throw py::value_error(fmt::format("{}: expected {} numbers", name, count));
  std::array<double, count> result;
  std::copy_n(array.data(), count, result.begin());
  return result;
}

Camera camera_of(double fx, double fy, double cx, double cy, const std::vector<double>& distortion,
                 bool fisheye, int width, int height) {
  return {fx, fy, cx, cy, fisheye ? Lens::kFisheye : Lens::kPinhole, distortion, width, height};
}

StereoRig rig_of(const Camera& left, const Camera& right, const py::object& rotation,
                 const py::object& translation) {
  StereoRig rig;
  rig.left = left;
  rig.right = right;
  rig.rotation = numbers<9>(rotation, "the rotation");
  rig.translation = numbers<3>(translation, "the translation");
  rig.validate();
  return rig;
}

void add_rig(py::module_& module) {
  py::class_<Camera>(module, "Camera", R"(One camera as it is, before rectification.

fx, fy, cx, cy: focal lengths and principal point, pixels.
distortion: OpenCV's k1 k2 p1 p2 [k3 [k4 k5 k6 [s1 s2 s3 s4]]]; k1 to k4 of a fisheye.
fisheye: the equidistant model of cv::fisheye.
width, height: of the images that the numbers hold for; 0: unknown.)")
      .def(py::init(&camera_of), py::kw_only(), py::arg("fx"), py::arg("fy"), py::arg("cx"),
           py::arg("cy"), py::arg("distortion") = std::vector<double>(), py::arg("fisheye") = false,
           py::arg("width") = 0, py::arg("height") = 0)
      .def_readonly("fx", &Camera::fx)
      .def_readonly("fy", &Camera::fy)
      .def_readonly("cx", &Camera::cx)
      .def_readonly("cy", &Camera::cy)
      .def_readonly("distortion", &Camera::distortion)
      .def_property_readonly("fisheye", [](const Camera& c) { return c.lens == Lens::kFisheye; })
      .def_readonly("width", &Camera::width)
      .def_readonly("height", &Camera::height)
      .def("__repr__", [](const Camera& c) {
        return fmt::format("<nmrf.Camera {}x{} fx={:g} fy={:g} cx={:g} cy={:g}{} [{:g}]>", c.width,
                           c.height, c.fx, c.fy, c.cx, c.cy,
                           c.lens == Lens::kFisheye ? " fisheye" : "",
                           fmt::join(c.distortion, ", "));
      });
  py::class_<StereoRig>(module, "Rig", R"(Two cameras as they are: nmrf.read_rig, or of numbers.

A point X in the left camera's frame lies at rotation @ X + translation in the right one's.
rotation: (3, 3). translation: (3,), metres.)")
      .def(py::init(&rig_of), py::arg("left"), py::arg("right"), py::arg("rotation"),
           py::arg("translation"))
      .def_readonly("left", &StereoRig::left)
      .def_readonly("right", &StereoRig::right)
      .def_property_readonly("rotation",
                             [](const StereoRig& rig) {
                               return matrix(rig.rotation, {3, 3});
                             })
      .def_property_readonly("translation",
                             [](const StereoRig& rig) { return matrix(rig.translation, {3}); })
      .def_readonly("source", &StereoRig::source, "Files and recognised format.");
  module.def(
      "read_rig",
      [](const py::args& files) {
        std::vector<fs::path> paths;
        for (const auto& file : files) paths.push_back(file.cast<fs::path>());
        for (const fs::path& path : paths) expect_file(path.string());
        py::gil_scoped_release unlocked;
        return read_rig(paths);
      },
      R"(Reads OpenCV, Kalibr, ROS or KITTI files, told apart by their content.

files: one, or two of a pair (left, right).)");
}

}  // namespace

void add_rectification(py::module_& module) {
  add_rig(module);
  py::class_<Rectifier>(module, "Rectifier", R"(Takes out lens distortion and the cameras' turn.

alpha: 0: only pixels that both cameras see; 1: everything they see, black around it.
width, height: of the rectified images; 0: as the cameras' images.)")
      .def(py::init([](const StereoRig& rig, double alpha, int width, int height) {
             py::gil_scoped_release unlocked;
             return std::make_unique<Rectifier>(
                 rig, RectifyOptions{.alpha = alpha, .width = width, .height = height});
           }),
           py::arg("rig"), py::kw_only(), py::arg("alpha") = 0.0, py::arg("width") = 0,
           py::arg("height") = 0)
      .def(
          "rectify",
          [](const Rectifier& rectifier, const py::object& left, const py::object& right,
             bool bgr) {
            const auto pair = pair_argument(left, right, bgr);
            Image rectified[2];
            {
              py::gil_scoped_release unlocked;
              rectified[0] = rectifier.left(pair.first.view);
              rectified[1] = rectifier.right(pair.second.view);
            }
            return py::make_tuple(colour_array(std::move(rectified[0]), bgr),
                                  colour_array(std::move(rectified[1]), bgr));
          },
          py::arg("left"), py::arg("right"), py::kw_only(), py::arg("bgr") = false,
          R"(The rectified pair (left, right), uint8 (H, W, 3).

bgr: the arrays are in OpenCV's order, and so are the results.)")
      .def_property_readonly("calibration", &Rectifier::calibration, "Of the rectified pair.")
      .def_property_readonly(
          "p1",
          [](const Rectifier& r) {
            return matrix(r.projections().left, {3, 4});
          },
          "Projection of the rectified left camera, (3, 4).")
      .def_property_readonly(
          "p2",
          [](const Rectifier& r) {
            return matrix(r.projections().right, {3, 4});
          },
          "Projection of the rectified right camera, (3, 4).")
      .def_property_readonly(
          "q",
          [](const Rectifier& r) {
            return matrix(r.projections().q, {4, 4});
          },
          "OpenCV's matrix from disparity to depth, (4, 4).")
      .def_property_readonly(
          "r1",
          [](const Rectifier& r) {
            return matrix(r.left_rotation(), {3, 3});
          },
          "Rotation from the left camera to the rectified one, (3, 3).")
      .def_property_readonly(
          "r2",
          [](const Rectifier& r) {
            return matrix(r.right_rotation(), {3, 3});
          },
          "Rotation from the right camera to the rectified one, (3, 3).")
      .def(
          "write_calibration",
          [](const Rectifier& rectifier, const fs::path& path) {
            py::gil_scoped_release unlocked;
            write_calibration(path, rectifier);
          },
          py::arg("path"), "The rectified pair's calibration as OpenCV yml.");
}

}  // namespace nmrf::python
