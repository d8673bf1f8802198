# `cmake --install` and what find_package(nmrf) needs.
include(CMakePackageConfigHelpers)

install(TARGETS nmrf EXPORT nmrfTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(DIRECTORY include/nmrf DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_BINARY_DIR}/generated/nmrf/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nmrf)
install(TARGETS nmrf_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT nmrfTargets NAMESPACE nmrf:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nmrf)
configure_package_config_file(cmake/nmrfConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/nmrfConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nmrf)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/nmrfConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nmrfConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/nmrfConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nmrf)
