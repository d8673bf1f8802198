# Finds what the project stands on, and looks for the two traps of libtorch builds: the old C++ ABI
# and the reference BLAS.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(hwy REQUIRED)  # SIMD with run-time dispatch
find_package(OpenCV 4 REQUIRED COMPONENTS core imgproc imgcodecs features2d calib3d videoio
  ximgproc)

# Newer libtorch packages look for CUDA when they were built with it; nothing else is needed here.
find_package(Torch REQUIRED)

# A pre-cxx11-ABI libtorch compiles and then fails to link against OpenCV with a wall of undefined
# references to std::string. Say so now.
include(CheckCXXSourceCompiles)
if(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  message(FATAL_ERROR
    "The libtorch at ${TORCH_INSTALL_PREFIX} was built with the old C++ ABI "
    "(_GLIBCXX_USE_CXX11_ABI=0) and cannot be linked with OpenCV or this compiler's std::string. "
    "Take the libtorch download named 'cxx11-abi', or Debian's package libtorch-dev.")
endif()

# nmrf_torch: libtorch without the C++ standard it pins. Its headers are noisy: treat as system.
add_library(nmrf_torch INTERFACE)
target_include_directories(nmrf_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(nmrf_torch INTERFACE ${TORCH_LIBRARIES})
# at::parallel_for is a template: without the compiler's OpenMP it runs on one thread and says nothing.
find_package(OpenMP REQUIRED COMPONENTS CXX)
target_link_libraries(nmrf_torch INTERFACE OpenMP::OpenMP_CXX)

# The BLAS that will really be loaded: with Debian's reference BLAS a GEMM runs 25 times slower.
if(UNIX AND NOT APPLE)
  find_library(NMRF_BLAS_LIBRARY NAMES blas.so.3 libblas.so.3 blas)
  if(NMRF_BLAS_LIBRARY)
    get_filename_component(_blas_real "${NMRF_BLAS_LIBRARY}" REALPATH)
    if(_blas_real MATCHES "/blas/libblas\\.so")
      message(WARNING
        "The BLAS under libtorch is the reference implementation (${_blas_real}); matching will be "
        "about 25 times slower. Install libopenblas-dev.")
    endif()
  endif()
endif()

# Training in several processes needs libtorch's Gloo process group, whose header needs Gloo's own.
find_path(NMRF_GLOO_INCLUDE gloo/rendezvous/store.h HINTS ${TORCH_INCLUDE_DIRS})
if(NMRF_GLOO_INCLUDE)
  set(NMRF_WITH_GLOO ON)
else()
  set(NMRF_WITH_GLOO OFF)
  message(STATUS "Gloo headers not found (libgloo-dev): nmrf train will run in one process only")
endif()
