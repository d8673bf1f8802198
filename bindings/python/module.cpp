// The Python module nmrf._nmrf; nmrf/__init__.py shows its names to users. Library functions run
// without the GIL throughout: the log sink takes it while it holds the lock of the log.
#include <pybind11/pybind11.h>

#include "arrays.h"
#include "nmrf/error.h"
#include "nmrf/log.h"
#include "nmrf/version.h"

namespace nmrf::python {
namespace {

const char* exception_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "UsageError";
    case ErrorKind::kInput:
      return "InputError";
    case ErrorKind::kModel:
      return "ModelError";
    case ErrorKind::kDevice:
      return "DeviceError";
    case ErrorKind::kCancelled:
      return "Cancelled";
    case ErrorKind::kFailure:
      break;
  }
  return "Error";
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const py::object type = py::module_::import("nmrf._errors").attr(exception_name(error.kind()));
    PyErr_SetString(type.ptr(), error.what());
  }
}

// Messages go to logging.getLogger("nmrf"), which shows warnings on stderr unless told otherwise.
void log_to_python(LogLevel level, const std::string& text) {
  if (!Py_IsInitialized()) return;
  py::gil_scoped_acquire gil;
  try {
    const py::object logger = py::module_::import("logging").attr("getLogger")("nmrf");
    const char* method = level == LogLevel::kWarning ? "warning"
                         : level == LogLevel::kInfo  ? "info"
                                                     : "debug";
    logger.attr(method)("%s", text);
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("nmrf log");
  }
}

void stop_logging() {
  py::gil_scoped_release unlocked;
  set_log_sink({});
}

}  // namespace
}  // namespace nmrf::python

PYBIND11_MODULE(_nmrf, module) {
  using namespace nmrf::python;
  py::options options;
  options.disable_function_signatures();
  module.attr("__version__") = NMRF_VERSION;
  py::register_exception_translator(&translate);
  add_matching(module);
  add_files(module);
  add_geometry(module);
  add_rectification(module);
  nmrf::set_log_sink(&log_to_python);
  py::module_::import("atexit").attr("register")(py::cpp_function(&stop_logging));
}
