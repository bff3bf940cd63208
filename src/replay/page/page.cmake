# SPDX-License-Identifier: Apache-2.0
# Compiles the fixed parts of the report's page in, as strings; BURSAR_PAGE_PARTS is their source.
set(page ${CMAKE_CURRENT_LIST_DIR})
set(scripts page_tools.js page_chart.js page_map.js page.js)

set(BURSAR_PAGE_SCRIPT "")
foreach(script IN LISTS scripts)
  file(READ ${page}/${script} text)
  string(APPEND BURSAR_PAGE_SCRIPT "${text}")
endforeach()
file(READ ${page}/page.css BURSAR_PAGE_STYLE)

set(BURSAR_PAGE_PARTS ${CMAKE_CURRENT_BINARY_DIR}/page_parts.cpp)
configure_file(${page}/page_parts.cpp.in ${BURSAR_PAGE_PARTS} @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${page}/page.css ${page}/page_tools.js ${page}/page_chart.js ${page}/page_map.js ${page}/page.js)
