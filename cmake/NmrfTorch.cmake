# libtorch, and the two traps of its builds: the old C++ ABI and the reference BLAS.

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

# The precompiled libtorch header, built once and shared by everything that uses tensors.
file(WRITE ${PROJECT_BINARY_DIR}/generated/pch.cpp "// Only carries the precompiled header.\n")
add_library(nmrf_pch OBJECT ${PROJECT_BINARY_DIR}/generated/pch.cpp)
nmrf_common(nmrf_pch)
set_target_properties(nmrf_pch PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(nmrf_pch PUBLIC nmrf_torch)
target_precompile_headers(nmrf_pch PRIVATE <torch/torch.h>)
