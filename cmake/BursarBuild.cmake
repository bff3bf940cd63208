# SPDX-License-Identifier: Apache-2.0
# How our own code is compiled. Nothing here reaches the code of a program that uses Bursar.

if(NOT BURSAR_CHECK_LEVEL MATCHES "^[0-3]$")
  message(FATAL_ERROR "BURSAR_CHECK_LEVEL is ${BURSAR_CHECK_LEVEL}: it is 0, 1, 2 or 3")
endif()

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(BURSAR_CCACHE ccache)
  mark_as_advanced(BURSAR_CCACHE)
  if(BURSAR_CCACHE)
    foreach(language IN ITEMS CXX CUDA)
      if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
        set(CMAKE_${language}_COMPILER_LAUNCHER ${BURSAR_CCACHE})
      endif()
    endforeach()
  endif()
endif()

# Linked privately by every target of ours.
add_library(bursar_warnings INTERFACE)
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  list(APPEND warnings -Wno-maybe-uninitialized)  # g++ sees it where only the sanitizer reads
endif()
if(BURSAR_WERROR)
  list(APPEND warnings -Werror)
endif()
target_compile_options(bursar_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
