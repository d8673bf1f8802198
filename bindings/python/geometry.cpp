#include "nmrf/geometry.h"

#include <fmt/format.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <limits>
#include <optional>
#include <vector>

#include "arrays.h"

namespace nmrf::python {
namespace {

namespace fs = std::filesystem;

// A type of its own: pybind11 would turn a plain vector into a list.
struct Points {
  std::vector<Point> all;
  bool normals = false;
};

// One field of all points, sharing their memory: (N, 3).
template <class T>
py::array field(py::object& self, T* (*first)(Point&)) {
  auto& points = self.cast<Points&>().all;
  if (points.empty()) return py::array_t<T>(std::vector<py::ssize_t>{0, 3});
  return py::array_t<T>(
      {static_cast<py::ssize_t>(points.size()), py::ssize_t{3}},
      {static_cast<py::ssize_t>(sizeof(Point)), static_cast<py::ssize_t>(sizeof(T))},
      first(points[0]), self);
}

// With a Disparity, what was filled in is left out unless asked for; an array has no such pixels.
FloatMap depth_of(const py::object& disparity, const Calibration& calibration, bool filled) {
  if (py::isinstance<Disparity>(disparity)) {
    const auto& d = disparity.cast<const Disparity&>();
    py::gil_scoped_release unlocked;
    return depth_from_disparity(d, calibration, filled);
  }
  const FloatMap map = float_map(disparity, "the disparity map");
  py::gil_scoped_release unlocked;
  return depth_from_disparity(map, calibration);
}

Points cloud_of(const py::object& disparity, const py::object& image,
                const Calibration& calibration, bool bgr, double z_near, double z_far, double edge,
                int stride, bool occluded, bool filled, double min_confidence, bool normals) {
  const ImageArgument pixels = image_argument(image, bgr, "the image");
  PointCloudOptions options;
  options.z_near = z_near;
  options.z_far = z_far;
  options.edge = edge;
  options.stride = stride;
  options.occluded = occluded;
  options.filled = filled;
  options.min_confidence = min_confidence;
  options.normals = normals;
  Disparity made;
  const Disparity* used = &made;
  if (py::isinstance<Disparity>(disparity))
    used = &disparity.cast<const Disparity&>();
  else
    made.map = float_map(disparity, "the disparity map");
  py::gil_scoped_release unlocked;
  return {point_cloud(*used, pixels.view, calibration, options), normals};
}

void add_calibration(py::module_& module) {
  py::class_<Calibration>(module, "Calibration", R"(A rectified pair of pinhole cameras.

fx, fy, cx, cy: focal lengths and principal point of the left camera, pixels.
baseline: metres.
doffs: cx of the right camera minus cx of the left one.
width, height: of the images that the numbers hold for; 0: unknown.)")
      .def(py::init([](double fx, double baseline, double cx, double cy, std::optional<double> fy,
                       double doffs, int width, int height) {
             Calibration c;
             c.fx = fx;
             c.fy = fy.value_or(fx);
             c.cx = cx;
             c.cy = cy;
             c.doffs = doffs;
             c.baseline = baseline;
             c.width = width;
             c.height = height;
             c.source = "the calibration";
             c.validate();
             return c;
           }),
           py::arg("fx"), py::arg("baseline"), py::arg("cx"), py::arg("cy"), py::kw_only(),
           py::arg("fy") = py::none(), py::arg("doffs") = 0.0, py::arg("width") = 0,
           py::arg("height") = 0)
      .def_readwrite("fx", &Calibration::fx)
      .def_readwrite("fy", &Calibration::fy)
      .def_readwrite("cx", &Calibration::cx)
      .def_readwrite("cy", &Calibration::cy)
      .def_readwrite("doffs", &Calibration::doffs)
      .def_readwrite("baseline", &Calibration::baseline)
      .def_readwrite("width", &Calibration::width)
      .def_readwrite("height", &Calibration::height)
      .def_readonly("source", &Calibration::source, "File and recognised format.")
      .def("scaled", &Calibration::scaled, py::arg("sx"), py::arg("sy"),
           "The calibration of the images resized by sx and sy.")
      .def("__repr__", [](const Calibration& c) {
        return fmt::format("<nmrf.Calibration fx={:g} cx={:g} cy={:g} baseline={:g} m>", c.fx, c.cx,
                           c.cy, c.baseline);
      });
  module.def(
      "read_calibration",
      [](const fs::path& path) {
        expect_file(path.string());
        py::gil_scoped_release unlocked;
        return read_calibration(path);
      },
      py::arg("path"),
      "Middlebury, KITTI, OpenCV, K.txt or stereodemo files, told apart by their content.");
}

}  // namespace

void add_geometry(py::module_& module) {
  add_calibration(module);
  module.def(
      "depth",
      [](const py::object& disparity, const Calibration& calibration, bool filled) {
        return owning_array(depth_of(disparity, calibration, filled));
      },
      py::arg("disparity"), py::arg("calibration"), py::kw_only(), py::arg("filled") = false,
      R"(Depth in metres, float32 (H, W), +inf where it is unknown.

disparity: a Disparity, or an array of disparities.
filled: of a Disparity, also the pixels that were filled in.)");

  module.def(
      "depth_sigma",
      [](const Disparity& disparity, const Calibration& calibration, bool filled) {
        return owning_array([&] {
          py::gil_scoped_release unlocked;
          return depth_sigma(disparity, calibration, filled);
        }());
      },
      py::arg("disparity"), py::arg("calibration"), py::kw_only(), py::arg("filled") = false,
      R"(The error of the depth that the expected error of the disparity makes.

float32 (H, W), metres, +inf where the depth is unknown.)");

  py::class_<Points>(module, "PointCloud", R"(Coloured points in the frame of the left camera.

points: float32 (N, 3), metres; +x right, +y down, +z forward.
colors: uint8 (N, 3), RGB.
normals: float32 (N, 3), of length 1, towards the camera, zeros where unknown; None if not asked for.
The arrays share the memory of this object.)")
      .def_property_readonly(
          "points",
          [](py::object& self) { return field<float>(self, [](Point& p) { return &p.x; }); })
      .def_property_readonly("colors",
                             [](py::object& self) {
                               return field<std::uint8_t>(self,
                                                          [](Point& p) { return p.rgb.data(); });
                             })
      .def_property_readonly("normals",
                             [](py::object& self) -> py::object {
                               if (!self.cast<Points&>().normals) return py::none();
                               return field<float>(self, [](Point& p) { return p.normal.data(); });
                             })
      .def(
          "write_ply",
          [](const Points& points, const fs::path& path) {
            py::gil_scoped_release unlocked;
            write_ply(path, points.all, points.normals);
          },
          py::arg("path"), "Writes a binary PLY file, with normals if there are any.")
      .def("__len__", [](const Points& points) { return points.all.size(); });

  module.def("point_cloud", &cloud_of, py::arg("disparity"), py::arg("image"),
             py::arg("calibration"), py::kw_only(), py::arg("bgr") = false, py::arg("z_near") = 0.0,
             py::arg("z_far") = std::numeric_limits<double>::infinity(), py::arg("edge") = 0.0,
             py::arg("stride") = 1, py::arg("occluded") = false, py::arg("filled") = false,
             py::arg("min_confidence") = 0.0, py::arg("normals") = false,
             R"(Coloured points of the matched pixels.

disparity: a Disparity, or an array of disparities.
image: of the same size, for the colours; bgr: in OpenCV's order.
z_near, z_far: metres. stride: every n-th pixel and row.
edge: drops pixels whose neighbours differ by more than this many pixels; 0: none.
occluded, filled: keep pixels hidden in the other view, or filled in.
min_confidence: 0 to 1. normals: also the normals of the surface.)");
}

}  // namespace nmrf::python
