# Joins the viewer into one classic script that defines createViewer, for pages without modules:
#   cmake -DOUT=viewer.js -P web/viewer/bundle.cmake
# or include() it and call nmrf_join_viewer(FILE). The style is viewer.css beside it.
set(NMRF_VIEWER_FOLDER ${CMAKE_CURRENT_LIST_DIR})

function(nmrf_join_viewer out)
  set(all "")
  foreach(part colors points files map_view cloud_view viewer)
    file(READ ${NMRF_VIEWER_FOLDER}/${part}.js text)
    string(REGEX REPLACE "(^|\n)import [^\n]*" "\\1" text "${text}")
    string(REGEX REPLACE "(^|\n)export " "\\1" text "${text}")
    string(APPEND all "${text}")
  endforeach()
  file(WRITE ${out} "const createViewer = (() => {\n${all}return createViewer;\n})();\n")
endfunction()

if(OUT)
  nmrf_join_viewer(${OUT})
endif()
