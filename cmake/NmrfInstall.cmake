# `cmake --install`, and what find_package(nmrf) and pkg-config need.
include(CMakePackageConfigHelpers)

set(_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nmrf)
install(TARGETS nmrf EXPORT nmrfTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/nmrf DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/generated/nmrf/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nmrf)
if(TARGET nmrf_files)
  set_target_properties(nmrf_files PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS nmrf_files EXPORT nmrfTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# The programs stand on static floors: only an OpenCV or libtorch that is in no system folder has to be
# found by path. nmrf starts the others from its own folder.
foreach(program nmrf_command nmrf_tools_command nmrf_export_command nmrf_train_command)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
# Loaded when a video is read, from ../lib/nmrf of the program.
if(TARGET nmrf_video)
  set_target_properties(nmrf_video PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS nmrf_video LIBRARY DESTINATION lib/nmrf)
endif()
if(TARGET nmrf_command)
  # Where the programs look for the shipped model: ../share/nmrf/models.
  install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/nmrf/models
    FILES_MATCHING PATTERN "*.safetensors" PATTERN "README.md")
endif()
install(FILES LICENSE NOTICE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT nmrfTargets NAMESPACE nmrf:: DESTINATION ${_cmake_dir})
configure_package_config_file(cmake/nmrfConfig.cmake.in ${PROJECT_BINARY_DIR}/nmrfConfig.cmake
  INSTALL_DESTINATION ${_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/nmrfConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/nmrfConfig.cmake ${PROJECT_BINARY_DIR}/nmrfConfigVersion.cmake
  DESTINATION ${_cmake_dir})

# Relative to the file, so that a prefix can be moved.
set(_pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH NMRF_PC_PREFIX ${_pc_dir} ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/nmrf.pc.in ${PROJECT_BINARY_DIR}/nmrf.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/nmrf.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET nmrf_files)
  configure_file(cmake/nmrf_io.pc.in ${PROJECT_BINARY_DIR}/nmrf_io.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/nmrf_io.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
