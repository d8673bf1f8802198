#include <fmt/format.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <mutex>
#include <optional>
#include <span>

#include "arrays.h"
#include "nmrf/checks.h"
#include "nmrf/matcher.h"
#include "nmrf/sequence.h"

namespace nmrf::python {
namespace {

View view_named(const std::string& name) {
  if (name != "left" && name != "right")
    throw py::value_error(fmt::format("view is '{}'; expected 'left' or 'right'", name));
  return name == "left" ? View::kLeft : View::kRight;
}

bool on_main_thread() {
  const py::module_ threading = py::module_::import("threading");
  const py::object main = threading.attr("main_thread")().attr("ident");
  return main.equal(threading.attr("get_ident")());
}

// Between stages: the caller's function, and Ctrl-C on the main thread.
std::function<bool(const Progress&)> progress_function(const py::object& callback) {
  const bool watch = on_main_thread();
  if (callback.is_none() && !watch) return {};
  return [callback, watch](const Progress& progress) {
    py::gil_scoped_acquire gil;
    if (watch && PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (callback.is_none()) return true;
    const py::object answer = callback(progress.done, progress.stage);
    return !answer.is(py::bool_(false));
  };
}

MatchOptions match_options(const std::string& view, std::optional<double> scale, bool full_size,
                           bool align, const std::optional<Alignment>& alignment) {
  MatchOptions how;
  how.view = view_named(view);
  how.scale = scale;
  how.full_size = full_size;
  how.align = align;
  how.alignment = alignment;
  return how;
}

constexpr std::pair<const char*, Precision> kPrecisions[] = {
    {"auto", Precision::kAuto}, {"float32", Precision::kFloat32}, {"int8", Precision::kInt8}};

Precision precision_named(const std::string& wanted) {
  for (const auto& [name, precision] : kPrecisions)
    if (wanted == name) return precision;
  throw py::value_error(
      fmt::format("precision is '{}'; expected 'auto', 'float32' or 'int8'", wanted));
}

MatcherOptions matcher_options(std::optional<int> threads, std::optional<int> max_disp,
                               const std::string& precision, const std::vector<std::string>& set) {
  MatcherOptions options;
  options.threads = threads;
  options.max_disp = max_disp;
  options.precision = precision_named(precision);
  options.set = set;
  return options;
}

std::shared_ptr<Matcher> load(const py::object& model, const MatcherOptions& options) {
  if (py::isinstance<py::bytes>(model)) {
    const std::string_view bytes = model.cast<std::string_view>();
    py::gil_scoped_release unlocked;
    return std::make_shared<Matcher>(
        Matcher::load(std::as_bytes(std::span(bytes.data(), bytes.size())), options));
  }
  const py::object named =
      model.is_none() ? py::module_::import("nmrf").attr("bundled_model")() : model;
  py::detail::make_caster<std::filesystem::path> caster;
  if (!caster.load(named, true)) {
    PyErr_Clear();
    throw py::type_error("model: expected a path, the bytes of a model file, or None");
  }
  const auto path = py::detail::cast_op<std::filesystem::path>(caster);
  py::gil_scoped_release unlocked;
  return std::make_shared<Matcher>(Matcher::load(path, options));
}

Disparity match(const Matcher& matcher, const py::object& left, const py::object& right, bool bgr,
                const std::string& view, std::optional<double> scale, bool full_size, bool align,
                const std::optional<Alignment>& alignment, const py::object& progress) {
  const auto pair = pair_argument(left, right, bgr);
  MatchOptions how = match_options(view, scale, full_size, align, alignment);
  how.progress = progress_function(progress);
  Disparity result;
  {
    py::gil_scoped_release unlocked;
    matcher.match(pair.first.view, pair.second.view, how, result);
  }
  return result;
}

// nmrf::Sequence with what it needs: the matcher it refers to, and one caller at a time.
class LockedSequence {
 public:
  LockedSequence(std::shared_ptr<Matcher> matcher, const MatchOptions& how)
      : matcher_(std::move(matcher)), sequence_(*matcher_, how) {}

  Disparity next(const py::object& left, const py::object& right, bool bgr) {
    const auto pair = pair_argument(left, right, bgr);
    Disparity result;
    {
      py::gil_scoped_release unlocked;
      std::lock_guard lock(mutex_);
      sequence_.next(pair.first.view, pair.second.view, result);
    }
    return result;
  }
  void restart() {
    py::gil_scoped_release unlocked;
    std::lock_guard lock(mutex_);
    sequence_.restart();
  }
  bool continued() {
    py::gil_scoped_release unlocked;
    std::lock_guard lock(mutex_);
    return sequence_.continued();
  }

 private:
  std::shared_ptr<Matcher> matcher_;
  std::mutex mutex_;
  Sequence sequence_;
};

Disparity disparity_of(const py::object& map, const py::object& confidence,
                       const py::object& mask) {
  Disparity result;
  result.map = float_map(map, "the disparity map");
  if (!confidence.is_none()) result.confidence = float_map(confidence, "the confidence");
  if (!mask.is_none()) result.mask = byte_map(mask, "the mask");
  if ((!result.confidence.empty() && !result.confidence.same_size(result.map)) ||
      (!result.mask.empty() && !result.mask.same_size(result.map)))
    throw py::value_error("the disparity map, the confidence and the mask differ in size");
  return result;
}

// A property that shares the memory of a map of the result.
template <auto member>
py::object shared_map(py::object& self) {
  return shared_array(self.cast<Disparity&>().*member, self);
}

void add_alignment(py::module_& module) {
  py::class_<Alignment>(module, "Alignment", R"(A small error of rectification of the right image.

The right image shows at (x - turn y + scale x, y + offset + turn x + scale y + keystone x y) what it
should show at (x, y); both are pixels from the image's middle.
offset: px. turn: px per px, about radians. scale: 0.01 for an image that is 1 % larger.
keystone: 1 / px. An Alignment of zeros is false.)")
      .def(py::init([](double offset, double turn, double scale, double keystone) {
             return Alignment{offset, turn, scale, keystone};
           }),
           py::kw_only(), py::arg("offset") = 0.0, py::arg("turn") = 0.0, py::arg("scale") = 0.0,
           py::arg("keystone") = 0.0)
      .def_readonly("offset", &Alignment::offset)
      .def_readonly("turn", &Alignment::turn)
      .def_readonly("scale", &Alignment::scale)
      .def_readonly("keystone", &Alignment::keystone)
      .def("vertical_rms", &Alignment::vertical_rms, py::arg("width"), py::arg("height"),
           "Root mean square of the vertical error over an image of this size, px.")
      .def("__bool__", [](const Alignment& a) { return !a.none(); })
      .def("__repr__", [](const Alignment& a) {
        return fmt::format("nmrf.Alignment(offset={}, turn={}, scale={}, keystone={})", a.offset,
                           a.turn, a.scale, a.keystone);
      });
  module.def(
      "aligned",
      [](const py::object& right, const Alignment& alignment, bool bgr) {
        const ImageArgument image = image_argument(right, bgr, "the right image");
        return colour_array(
            [&] {
              py::gil_scoped_release unlocked;
              return aligned(image.view, alignment);
            }(),
            bgr);
      },
      py::arg("right"), py::arg("alignment"), py::kw_only(), py::arg("bgr") = false,
      R"(The right image as it should have been, uint8 (H, W, 3).

Maps of the right view belong to it when Disparity.alignment is true.
bgr: the array is in OpenCV's order, and so is the result.)");
}

void add_disparity(py::module_& module) {
  py::class_<Disparity>(module, "Disparity", R"(The result of matching one pair.

map: float32 (H, W), x_left - x_right in pixels; +inf where it is unknown.
confidence: float32 (H, W), 0 to 1: probability of an error of at most 1 px (docs/confidence.md).
mask: uint8 (H, W), the sum of OCCLUDED, OUT_OF_VIEW and FILLED; 0 for a matched pixel.
confidence3: float32 (H, W), 0 to 1: probability of an error of at most 3 px.
expected_error: float32 (H, W), px.
posterior: float32 (H, W), 0 to 1: posterior probability of the winning label.
alignment: how the right image was corrected before matching; false when it was not.
The arrays share the memory of this object and are None where there is none, as confidence3 and
expected_error of a model without an error model.
Disparity(map, confidence=None, mask=None) makes one of arrays, which are copied.)")
      .def(py::init(&disparity_of), py::arg("map"), py::arg("confidence") = py::none(),
           py::arg("mask") = py::none())
      .def_property_readonly("map", &shared_map<&Disparity::map>, "Disparity in pixels.")
      .def_property_readonly("confidence", &shared_map<&Disparity::confidence>,
                             "Probability of an error of at most 1 px, 0 to 1.")
      .def_property_readonly("confidence3", &shared_map<&Disparity::confidence3>,
                             "Probability of an error of at most 3 px, 0 to 1.")
      .def_property_readonly("expected_error", &shared_map<&Disparity::expected_error>,
                             "Expected error in pixels.")
      .def_property_readonly("posterior", &shared_map<&Disparity::posterior>,
                             "Posterior probability of the winning label, 0 to 1.")
      .def_readonly("alignment", &Disparity::alignment, "How the right image was corrected.")
      .def_property_readonly("mask", &shared_map<&Disparity::mask>, "What is known of a pixel.")
      .def_property_readonly(
          "shape", [](const Disparity& d) { return py::make_tuple(d.map.height(), d.map.width()); },
          "(height, width)")
      .def(
          "check_consistency",
          [](Disparity& own, const Disparity& other, const std::string& view, float threshold) {
            const View own_view = view_named(view);
            py::gil_scoped_release unlocked;
            check_consistency(own, other, own_view, threshold);
          },
          py::arg("other"), py::arg("view") = "left", py::arg("threshold") = 1.0f,
          R"(Sets OCCLUDED and OUT_OF_VIEW in the mask by comparing with the other view's map.

other: the result of the other view of the same pair.
view: the view of this result.
threshold: largest difference in pixels.)")
      .def("__repr__", [](const Disparity& d) {
        return fmt::format("<nmrf.Disparity {}x{}>", d.map.width(), d.map.height());
      });
  module.attr("OCCLUDED") = static_cast<int>(kOccluded);
  module.attr("OUT_OF_VIEW") = static_cast<int>(kOutOfView);
  module.attr("FILLED") = static_cast<int>(kFilled);
}

void add_matcher(py::module_& module) {
  py::class_<Matcher, std::shared_ptr<Matcher>>(module, "Matcher", R"(A loaded model.

model: a .safetensors or .pth file, its bytes, or None for the model that comes with nmrf.
threads: number of threads; None: one per core.
max_disp: largest disparity searched, in pixels of the matched images; None: the model's own.
precision: "auto" (what costs no accuracy), "float32" or "int8", faster on CPUs with VNNI.
set: changes to the model's options, such as "refinement.count=0".

May be used from several threads at once.)")
      .def(py::init([](const py::object& model, std::optional<int> threads,
                       std::optional<int> max_disp, const std::string& precision,
                       const std::vector<std::string>& set) {
             return load(model, matcher_options(threads, max_disp, precision, set));
           }),
           py::arg("model") = py::none(), py::kw_only(), py::arg("threads") = py::none(),
           py::arg("max_disp") = py::none(), py::arg("precision") = "auto",
           py::arg("set") = std::vector<std::string>())
      .def("match", &match, py::arg("left"), py::arg("right"), py::kw_only(),
           py::arg("bgr") = false, py::arg("view") = "left", py::arg("scale") = py::none(),
           py::arg("full_size") = false, py::arg("align") = false,
           py::arg("alignment") = py::none(), py::arg("progress") = py::none(),
           R"(Disparity of a rectified pair.

left, right: uint8 or uint16 arrays of one size, (H, W), (H, W, 3) or (H, W, 4), RGB.
bgr: the arrays are in OpenCV's order.
view: "left" or "right", the image that the disparity is of.
scale: resize the images by this factor first; 1: as they are; None: the model's choice.
full_size: with a scale, resize the result back to the images' size.
align: measure whether the right image lies a little too high or low, is turned or of another scale,
and correct that where it is sure, as the command does.
alignment: a correction that is known, instead of measuring one.
progress: called with (done, stage) between stages; returning False cancels.)")
      .def_property_readonly("max_disp", &Matcher::max_disp,
                             "Largest disparity, in pixels of the matched images.")
      .def_property_readonly("threads", &Matcher::threads, "Number of threads.")
      .def_property_readonly(
          "precision",
          [](const Matcher& matcher) {
            return kPrecisions[static_cast<std::size_t>(matcher.precision())].first;
          },
          "\"float32\" or \"int8\".")
      .def("release_idle", &Matcher::release_idle, py::call_guard<py::gil_scoped_release>(),
           "Gives back the buffers that no call is using.")
      .def("__repr__", [](const Matcher& matcher) {
        return fmt::format("<nmrf.Matcher max_disp={} threads={}>", matcher.max_disp(),
                           matcher.threads());
      });

  py::class_<LockedSequence>(module, "Sequence", R"(Matches the frames of a video.

Each frame is guided by the map before it, moved along with the image: faster than frame by frame,
and without flicker. A cut is noticed by the images. The options are those of Matcher.match; the
correction by align is that of the first frame.)")
      .def(py::init([](std::shared_ptr<Matcher> matcher, const std::string& view,
                       std::optional<double> scale, bool full_size, bool align,
                       const std::optional<Alignment>& alignment) {
             return std::make_unique<LockedSequence>(
                 std::move(matcher), match_options(view, scale, full_size, align, alignment));
           }),
           py::arg("matcher").none(false), py::kw_only(), py::arg("view") = "left",
           py::arg("scale") = py::none(), py::arg("full_size") = false, py::arg("align") = false,
           py::arg("alignment") = py::none())
      .def("next", &LockedSequence::next, py::arg("left"), py::arg("right"), py::kw_only(),
           py::arg("bgr") = false, "Disparity of the next frame.")
      .def("restart", &LockedSequence::restart, "Forgets the frames before, as after a cut.")
      .def_property_readonly("continued", &LockedSequence::continued,
                             "Whether the last frame was found to follow the one before.");
}

void add_checks(py::module_& module) {
  py::class_<PairCheck>(module, "PairCheck", "What corners found in both images say of a pair.")
      .def_readonly("warnings", &PairCheck::warnings, "Sentences; empty if nothing looks wrong.")
      .def_readonly("matches", &PairCheck::matches, "Corners found in both images.")
      .def_readonly("conclusive", &PairCheck::conclusive, "Enough of them to say anything.")
      .def_readonly("vertical_offset", &PairCheck::vertical_offset,
                    "Median of y_left - y_right, pixels.")
      .def_readonly("vertical_rms", &PairCheck::vertical_rms,
                    "Of the fitted vertical offset, pixels.")
      .def_readonly("horizontal", &PairCheck::horizontal, "Median of x_left - x_right, pixels.")
      .def_readonly("negative_share", &PairCheck::negative_share,
                    "Of the corners that moved, the share with x_left < x_right.")
      .def_readonly("swapped", &PairCheck::swapped, "The right image was given first.")
      .def_readonly("not_rectified", &PairCheck::not_rectified,
                    "Matches do not lie on the same rows.")
      .def_readonly("identical", &PairCheck::identical, "One image was given twice.")
      .def_readonly("alignment", &PairCheck::alignment, "A small error of rectification.")
      .def_readonly("alignment_error", &PairCheck::alignment_error,
                    "Its standard error where it is worst, pixels.")
      .def_readonly("correctable", &PairCheck::correctable,
                    "It is surely there and worth correcting; align=True does.");
  module.def(
      "check_pair",
      [](const py::object& left, const py::object& right, bool bgr) {
        const auto pair = pair_argument(left, right, bgr);
        py::gil_scoped_release unlocked;
        return check_pair(pair.first.view, pair.second.view);
      },
      py::arg("left"), py::arg("right"), py::kw_only(), py::arg("bgr") = false,
      "Looks for swapped, unrectified or identical images.");
}

}  // namespace

void add_matching(py::module_& module) {
  add_alignment(module);
  add_disparity(module);
  add_matcher(module);
  add_checks(module);
}

}  // namespace nmrf::python
