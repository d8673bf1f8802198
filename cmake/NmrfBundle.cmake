# Where installed files find the shared libraries.

# nmrf_install_rpath(TARGET FOLDER): a target installed into FOLDER finds libnmrf in CMAKE_INSTALL_LIBDIR
# below any prefix. Below /usr the system finds it, and packages must not carry a path.
function(nmrf_install_rpath target folder)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    return()
  endif()
  file(RELATIVE_PATH path /prefix/${folder} /prefix/${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${path}")
endfunction()

# nmrf_install_bundled(FOLDER COMPONENT name TARGETS ...): shared libraries and modules in one folder,
# programs in CMAKE_INSTALL_BINDIR, together with the libraries they need beyond those of glibc and GCC.
# The old kind of run path also serves the libraries that these bring along.
function(nmrf_install_bundled folder)
  cmake_parse_arguments(ARG "" "COMPONENT;EXPORT" "TARGETS" ${ARGN})
  file(RELATIVE_PATH path /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${folder})
  foreach(target IN LISTS ARG_TARGETS)
    get_target_property(type ${target} TYPE)
    set(origin "$ORIGIN")
    if(type STREQUAL "EXECUTABLE")
      set(origin "$ORIGIN/${path}")
    elseif(ARG_EXPORT)
      install(TARGETS ${target} EXPORT ${ARG_EXPORT} LIBRARY DESTINATION ${folder}
        COMPONENT ${ARG_COMPONENT})
    endif()
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${origin}")
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  endforeach()
  install(TARGETS ${ARG_TARGETS}
    RUNTIME_DEPENDENCIES
      PRE_EXCLUDE_REGEXES "^(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\\+\\+|libnmrf.*|libpython.*)\\.so"
        "^ld-linux"
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${ARG_COMPONENT}
    LIBRARY DESTINATION ${folder} COMPONENT ${ARG_COMPONENT} NAMELINK_SKIP)
endfunction()
