# `cmake --install` and what find_package(nmrf) needs.
include(CMakePackageConfigHelpers)

# The command finds libnmrf beside it; both find a libtorch or OpenCV that is in no system folder.
file(RELATIVE_PATH _to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(nmrf PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(nmrf_command PROPERTIES
  INSTALL_RPATH "$ORIGIN/${_to_lib}" INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS nmrf EXPORT nmrfTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS nmrf_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/nmrf DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_BINARY_DIR}/generated/nmrf/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nmrf)
install(FILES LICENSE NOTICE README.md CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Where the command looks for the shipped model: ../share/nmrf/models.
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/nmrf/models
  FILES_MATCHING PATTERN "*.safetensors" PATTERN "README.md")

install(EXPORT nmrfTargets NAMESPACE nmrf:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nmrf)
configure_package_config_file(cmake/nmrfConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/nmrfConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nmrf)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/nmrfConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nmrfConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/nmrfConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nmrf)
