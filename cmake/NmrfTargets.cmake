# How the targets of this project are made: one function for a floor of the house.

# A compiler cache when the machine has one. The sloppiness lets it serve precompiled headers, the
# base folder other clones and work trees of this source.
if(PROJECT_IS_TOP_LEVEL)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${CCACHE_PROGRAM})
  endif()
endif()

# Flags of every target here, and of nobody else's.
add_library(nmrf_flags INTERFACE)
target_compile_features(nmrf_flags INTERFACE cxx_std_20)
target_compile_options(nmrf_flags INTERFACE -Wall -Wextra
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${PROJECT_BINARY_DIR}/=")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of GCC 12 about std::string.
  target_compile_options(nmrf_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
  if(CCACHE_PROGRAM)
    target_compile_options(nmrf_flags INTERFACE -fpch-preprocess)
  endif()
endif()
if(NMRF_WERROR)
  target_compile_options(nmrf_flags INTERFACE -Werror)
endif()
if(NMRF_SANITIZE)
  target_compile_options(nmrf_flags INTERFACE -fsanitize=${NMRF_SANITIZE} -fno-sanitize=vptr
    -fno-omit-frame-pointer)
  target_link_options(nmrf_flags INTERFACE -fsanitize=${NMRF_SANITIZE} -fno-sanitize=vptr)
endif()
if(NMRF_BUILD_FUZZ)
  target_compile_options(nmrf_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What every target of this project has in common.
function(nmrf_common target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:nmrf_flags>)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# nmrf_floor(io SOURCES pfm.cpp ... BELOW core LINKS PNG::PNG): a floor sees its own folder and those of
# the floors below it, no other: each is reached through a folder of links, so that an include of
# a floor above does not compile.
function(nmrf_floor name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;BELOW;LINKS" ${ARGN})
  set(target nmrf_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  nmrf_common(${target})
  if(NOT EMSCRIPTEN)  # where the static floors become a shared library
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  set(seen ${PROJECT_BINARY_DIR}/floors/${name})
  file(MAKE_DIRECTORY ${seen})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${seen}/${name} SYMBOLIC)
  target_include_directories(${target} PUBLIC ${seen} ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_BINARY_DIR}/generated)
  foreach(floor IN LISTS ARG_BELOW)
    target_link_libraries(${target} PUBLIC nmrf_${floor})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ARG_LINKS})
  if(ARG_TORCH)
    target_link_libraries(${target} PUBLIC nmrf_torch)
    target_precompile_headers(${target} REUSE_FROM nmrf_pch)
  endif()
endfunction()
