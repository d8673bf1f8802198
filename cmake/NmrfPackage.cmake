# `cpack`: Debian packages (preset package: cpack -G DEB), a package per component, and an archive that
# runs from any folder (preset portable: cpack -G TGZ). See packaging/ and `make package`.
set(NMRF_MAINTAINER "The nmrf authors <authors@nmrf.invalid>" CACHE STRING
  "Maintainer of the packages: name and address")
if(NMRF_PYTHON_WHEEL OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

set(CPACK_PACKAGE_NAME nmrf)
set(CPACK_PACKAGE_VENDOR "The nmrf authors")
# CPack's default: anything else would come before each package's own summary.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${CMAKE_PROJECT_NAME} built using CMake")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
string(TOLOWER ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} _machine)
set(CPACK_PACKAGE_FILE_NAME nmrf-${PROJECT_VERSION}-${_machine})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${NMRF_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src)

# nmrf_deb(component package section summary description)
set(CPACK_COMPONENTS_ALL "")
macro(nmrf_deb component package section summary text)
  string(TOUPPER ${component} _upper)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_DEBIAN_${_upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${_upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${_upper}_DESCRIPTION "${summary}\n${text}")
  # Every package has its licence and its changes.
  set(_doc ${PROJECT_BINARY_DIR}/package/${package})
  file(MAKE_DIRECTORY ${_doc})
  configure_file(packaging/copyright.in ${_doc}/copyright @ONLY)
  configure_file(packaging/changelog.in ${_doc}/changelog.Debian @ONLY)
  file(COPY_FILE CHANGELOG.md ${_doc}/changelog)
  execute_process(COMMAND gzip -9nf changelog.Debian changelog WORKING_DIRECTORY ${_doc}
    COMMAND_ERROR_IS_FATAL ANY)
  install(DIRECTORY ${_doc} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc COMPONENT ${component})
endmacro()

if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(_own "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
  # As a paragraph of a control file: lines begin with a blank, empty ones hold a dot.
  file(READ LICENSE NMRF_LICENSE_PARAGRAPH)
  string(STRIP "${NMRF_LICENSE_PARAGRAPH}" NMRF_LICENSE_PARAGRAPH)
  string(REPLACE "\n" "\n " NMRF_LICENSE_PARAGRAPH " ${NMRF_LICENSE_PARAGRAPH}")
  string(REPLACE "\n \n" "\n .\n" NMRF_LICENSE_PARAGRAPH "${NMRF_LICENSE_PARAGRAPH}")
  nmrf_deb(library libnmrf0 libs "stereo matching by a Neural Markov Random Field (library)"
    "Turns a rectified pair of images into a dense map of disparities, on a
CPU. This package holds the shared libraries and a trained model.")
  # What dpkg-shlibdeps asks, and the trigger that every package of shared libraries has.
  file(WRITE ${PROJECT_BINARY_DIR}/package/shlibs
    "libnmrf 0 libnmrf0 (= ${_own})\nlibnmrf_io 0 libnmrf0 (= ${_own})\n")
  file(WRITE ${PROJECT_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
    ${PROJECT_BINARY_DIR}/package/shlibs ${PROJECT_BINARY_DIR}/package/triggers)
  nmrf_deb(dev libnmrf-dev libdevel "stereo matching by a Neural Markov Random Field (development)"
    "Turns a rectified pair of images into a dense map of disparities, on a
CPU. This package holds the headers for C and C++ and the files for CMake
and pkg-config.")
  set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libnmrf0 (= ${_own})")
  set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
  nmrf_deb(command nmrf science "stereo matching by a Neural Markov Random Field"
    "Turns rectified pairs of images into disparity maps, depth maps and point
clouds, on a CPU. The command also converts and describes models and
measures speed.")
  set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "libnmrf0 (= ${_own})")
  set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "nmrf-tools, nmrf-train")
  if(TARGET nmrf_tools_command)
    nmrf_deb(tools nmrf-tools science "evaluation and rendering for stereo matching by nmrf"
      "Adds commands to nmrf: the figures and archives of the stereo benchmarks,
rendered scenes with exact disparity, curves of training runs. Also lets
nmrf read videos.")
    set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "nmrf (= ${_own})")
  endif()
  if(TARGET nmrf_train_command)
    nmrf_deb(train nmrf-train science "training of networks for stereo matching by nmrf"
      "Adds a command to nmrf: training and fine-tuning of networks with
libtorch.")
    set(CPACK_DEBIAN_TRAIN_PACKAGE_DEPENDS "nmrf-tools (= ${_own})")
  endif()
  if(NMRF_BUILD_PYTHON)
    nmrf_deb(python python3-nmrf python "stereo matching by a Neural Markov Random Field (Python)"
      "Turns a rectified pair of NumPy arrays into a dense map of disparities, on
a CPU.")
    math(EXPR _next "${Python_VERSION_MINOR} + 1")
    set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
      "libnmrf0 (= ${_own}), python3 (>= 3.${Python_VERSION_MINOR}), python3 (<< 3.${_next}), python3-numpy")
  endif()
endif()
include(CPack)
