# SPDX-License-Identifier: Apache-2.0
# Everything Bursar uses that it does not contain. Only fmt and threads are required; what else is
# missing leaves out what needs it, and a message says so.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

# An older toolkit counts as absent. libcuda is never linked, only loaded at run time: the toolkit
# gives headers to the library and a compiler to the GPU tests.
set(BURSAR_HAVE_CUDA 0)
if(NOT BURSAR_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 12.4 QUIET)
  if(CUDAToolkit_FOUND)
    set(BURSAR_HAVE_CUDA 1)
    message(STATUS "CUDA Toolkit ${CUDAToolkit_VERSION}: building the CUDA driver")
  elseif(BURSAR_CUDA STREQUAL "ON")
    message(FATAL_ERROR "BURSAR_CUDA is ON but no CUDA Toolkit 12.4 or newer was found")
  endif()
endif()
if(NOT BURSAR_HAVE_CUDA)
  message(STATUS "No CUDA Toolkit 12.4 or newer: left out are the CUDA driver and the GPU tests")
endif()

set(BURSAR_HAVE_CLI 0)
if(BURSAR_BUILD_CLI)
  set(missing "")
  foreach(package IN ITEMS CLI11 nlohmann_json ZLIB)
    find_package(${package} QUIET)
    if(NOT ${package}_FOUND)
      list(APPEND missing ${package})
    endif()
  endforeach()
  if(missing)
    list(JOIN missing ", " missing)
    message(STATUS "No ${missing}: left out are the bursar command and the replay of traces")
  else()
    set(BURSAR_HAVE_CLI 1)
  endif()
endif()
