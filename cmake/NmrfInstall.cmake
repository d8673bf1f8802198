# `cmake --install`, and what find_package(nmrf) and pkg-config need. Components: library, dev, command,
# tools, train and python; NmrfPackage.cmake makes a package of each.
include(CMakePackageConfigHelpers)

set(_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nmrf)
set(_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
if(NMRF_PORTABLE)
  # Together with what the libraries and the command need.
  nmrf_install_bundled(${CMAKE_INSTALL_LIBDIR} TARGETS nmrf nmrf_files nmrf_command
    EXPORT nmrfTargets COMPONENT library)
else()
  install(TARGETS nmrf EXPORT nmrfTargets ${_library})
  if(TARGET nmrf_files)
    nmrf_install_rpath(nmrf_files ${CMAKE_INSTALL_LIBDIR})
    install(TARGETS nmrf_files EXPORT nmrfTargets ${_library})
  endif()
  # The programs stand on static floors: only an OpenCV or libtorch that is in no system folder has to
  # be found by path. nmrf starts the others from its own folder.
  foreach(program command tools_command export_command train_command)
    if(TARGET nmrf_${program})
      set_target_properties(nmrf_${program} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
      string(REPLACE "_command" "" component ${program})
      string(REPLACE export tools component ${component})  # one package of both
      install(TARGETS nmrf_${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        COMPONENT ${component})
    endif()
  endforeach()
endif()
install(DIRECTORY include/nmrf DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(FILES ${PROJECT_BINARY_DIR}/generated/nmrf/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nmrf COMPONENT dev)

# Loaded when a video is read or a window opened, from ../lib/nmrf of the program.
foreach(module nmrf_video nmrf_window)
  if(TARGET ${module})
    set_target_properties(${module} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${module} LIBRARY DESTINATION lib/nmrf COMPONENT tools)
  endif()
endforeach()
if(TARGET nmrf_command)
  # Where the programs look for the shipped model: ../share/nmrf/models.
  install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/nmrf/models COMPONENT library
    FILES_MATCHING PATTERN "*.safetensors" PATTERN "README.md")
  install(FILES packaging/nmrf.bash RENAME nmrf COMPONENT command
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES packaging/_nmrf COMPONENT command
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  # The manual pages are made of what the programs print, once they are built.
  find_program(HELP2MAN help2man)
  if(HELP2MAN AND NOT NMRF_SANITIZE)
    set(_stamp ${PROJECT_BINARY_DIR}/manual.stamp)
    set(_programs nmrf_command)
    foreach(program nmrf_tools_command nmrf_export_command nmrf_train_command)
      if(TARGET ${program})
        list(APPEND _programs ${program})
      endif()
    endforeach()
    add_custom_command(OUTPUT ${_stamp}
      COMMAND ${PROJECT_SOURCE_DIR}/packaging/manual ${PROJECT_BINARY_DIR}/manual
        $<TARGET_FILE:nmrf_command> ${PROJECT_VERSION}
      COMMAND ${CMAKE_COMMAND} -E touch ${_stamp}
      DEPENDS ${_programs} packaging/manual packaging/nmrf.h2m COMMENT "Manual pages")
    add_custom_target(nmrf_manual ALL DEPENDS ${_stamp})
    install(DIRECTORY ${PROJECT_BINARY_DIR}/manual/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
      COMPONENT command)
  endif()
endif()
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")  # packages have their own
  install(FILES LICENSE NOTICE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT library)
endif()

install(EXPORT nmrfTargets NAMESPACE nmrf:: DESTINATION ${_cmake_dir}
  COMPONENT dev)
configure_package_config_file(cmake/nmrfConfig.cmake.in ${PROJECT_BINARY_DIR}/nmrfConfig.cmake
  INSTALL_DESTINATION ${_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/nmrfConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/nmrfConfig.cmake ${PROJECT_BINARY_DIR}/nmrfConfigVersion.cmake
  DESTINATION ${_cmake_dir} COMPONENT dev)

# Relative to the file, so that a prefix can be moved.
set(_pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH NMRF_PC_PREFIX ${_pc_dir} ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/nmrf.pc.in ${PROJECT_BINARY_DIR}/nmrf.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/nmrf.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT dev)
if(TARGET nmrf_files)
  configure_file(cmake/nmrf_io.pc.in ${PROJECT_BINARY_DIR}/nmrf_io.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/nmrf_io.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT dev)
endif()
