# Installs the build into a temporary prefix, builds examples/ against it with find_package, and runs
# them and the installed command on the bundled pair.
set(work ${BUILD}/examples_installed)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  list(JOIN ARGN " " line)
  message("$ ${line}\n${out}")
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "exit code ${code}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

# A PFM of 576 x 432: a header and 4 bytes per pixel.
function(expect_map path)
  file(SIZE ${path} size)
  if(size LESS 995328 OR size GREATER 995388)
    message(FATAL_ERROR "${path} has ${size} bytes; expected a PFM of 576x432")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# The headers must not ask their users for libtorch; only opencv.h is for users of OpenCV.
file(GLOB headers ${prefix}/include/nmrf/*.h)
if(NOT headers)
  message(FATAL_ERROR "no header was installed")
endif()
foreach(header IN LISTS headers)
  file(STRINGS ${header} found REGEX "#include.*(torch|ATen|c10)")
  if(NOT header MATCHES "/opencv.h$")
    file(STRINGS ${header} cv REGEX "#include.*opencv")
    list(APPEND found ${cv})
  endif()
  if(found)
    message(FATAL_ERROR "${header}: ${found}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/examples -B ${work}/build
  "-DCMAKE_PREFIX_PATH=${prefix};${PREFIX_PATH}")
run(${CMAKE_COMMAND} --build ${work}/build)

# The library alone: neither libtorch nor a BLAS nor OpenCV.
file(GLOB library ${prefix}/lib*/libnmrf.so ${prefix}/lib*/*/libnmrf.so)
run(ldd ${library})
if(out MATCHES "torch|blas|opencv|gdal|gomp")
  message(FATAL_ERROR "libnmrf needs more than it should")
endif()
run(ldd ${prefix}/bin/nmrf)
if(out MATCHES "torch|blas|opencv|gdal|gomp")
  message(FATAL_ERROR "nmrf needs more than it should")
endif()

# With pkg-config instead of CMake.
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB pc ${prefix}/lib*/pkgconfig ${prefix}/lib*/*/pkgconfig)
  set(ENV{PKG_CONFIG_PATH} ${pc})
  run(sh -c "${CXX} -std=c++20 ${SOURCE}/examples/minimal.cpp -o ${work}/by_pkg_config \
    $(${PKG_CONFIG} --cflags --libs nmrf_io)")
  run(sh -c "${CC} -std=c11 -pedantic-errors ${SOURCE}/examples/c/match.c -o ${work}/c_by_pkg_config \
    $(${PKG_CONFIG} --cflags --libs nmrf_io)")
endif()

set(pair ${SOURCE}/examples/pair/left.png ${SOURCE}/examples/pair/right.png)
run(${work}/build/minimal formula:fast ${pair} ${work}/minimal.pfm)
expect_map(${work}/minimal.pfm)
run(${work}/build/match_c formula:fast ${pair} ${work}/match_c.pfm)
expect_map(${work}/match_c.pfm)
run(${work}/build/like_sgbm formula:fast ${pair} ${work}/like_sgbm.pfm)
expect_map(${work}/like_sgbm.pfm)
if(NOT out MATCHES "CV_16S")
  message(FATAL_ERROR "the adapter did not return CV_16S")
endif()

run(${prefix}/bin/nmrf --version)
run(${prefix}/bin/nmrf match ${pair} --model formula:fast -o ${work}/match.pfm
  --calib ${SOURCE}/examples/pair/calib.txt)
expect_map(${work}/match.pfm)
if(NOT EXISTS ${work}/match_cloud.ply)
  message(FATAL_ERROR "the installed command wrote no point cloud")
endif()
# The Python package finds the libraries and the model below the prefix.
file(GLOB python ${prefix}/lib/python3*/*-packages)
if(python)
  run(${CMAKE_COMMAND} -E env PYTHONPATH=${python} ${PYTHON} -c
    "print(__import__('nmrf').Matcher())")
  if(NOT out MATCHES "nmrf.Matcher max_disp")
    message(FATAL_ERROR "the installed Python package does not load its model")
  endif()
endif()

# One network, one result.
file(SHA256 ${work}/match.pfm expected)
foreach(other minimal match_c)
  file(SHA256 ${work}/${other}.pfm found)
  if(NOT found STREQUAL expected)
    message(FATAL_ERROR "${other} and nmrf match disagree")
  endif()
endforeach()
