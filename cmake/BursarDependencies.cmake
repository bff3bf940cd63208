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

# They reach other allocators the way the replay does.
set(BURSAR_HAVE_GOOGLE_BENCHMARK 0)
if(BURSAR_BUILD_BENCHMARKS AND BURSAR_HAVE_CLI)
  find_package(benchmark 1.7 QUIET)
  if(benchmark_FOUND)
    set(BURSAR_HAVE_GOOGLE_BENCHMARK 1)
  else()
    message(STATUS "No Google Benchmark 1.7 or newer: left out are the benchmarks of latency and "
      "threads")
  endif()
endif()

# PyTorch, for `bursar replay` to compare with: its headers and libc10, as `pip install torch` has
# them. The module is compiled once to see whether this version of it still offers what we call.
set(BURSAR_TORCH AUTO CACHE STRING
  "Build the comparison with PyTorch's allocator: ON fails without it, AUTO leaves it out")
set_property(CACHE BURSAR_TORCH PROPERTY STRINGS AUTO ON OFF)
set(BURSAR_HAVE_TORCH 0)
if(BURSAR_HAVE_CUDA AND BURSAR_HAVE_CLI AND NOT BURSAR_TORCH STREQUAL "OFF")
  find_program(BURSAR_TORCH_PYTHON python3 DOC "The Python that has PyTorch")
  mark_as_advanced(BURSAR_TORCH_PYTHON)
  set(torch "")
  if(BURSAR_TORCH_PYTHON)
    execute_process(
      COMMAND ${BURSAR_TORCH_PYTHON} -c "import importlib.util as u; s = u.find_spec('torch')
print(list(s.submodule_search_locations)[0] if s else '')"
      OUTPUT_VARIABLE torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(torch AND EXISTS ${torch}/lib/libc10_cuda.so)
    set(BURSAR_TORCH_INCLUDES ${torch}/include)
    set(BURSAR_TORCH_LIBRARIES ${torch}/lib/libc10_cuda.so ${torch}/lib/libc10.so)
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
    set(includes ${BURSAR_TORCH_INCLUDES} ${CUDAToolkit_INCLUDE_DIRS})
    try_compile(BURSAR_TORCH_COMPILES ${PROJECT_BINARY_DIR}/torch_compiles
      SOURCES ${PROJECT_SOURCE_DIR}/src/replay/torch_peer.cpp
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${includes}"
      CXX_STANDARD 20)
    unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
    if(BURSAR_TORCH_COMPILES)
      set(BURSAR_HAVE_TORCH 1)
      message(STATUS "PyTorch in ${torch}: building the comparison with its allocator")
    endif()
  endif()
  if(BURSAR_TORCH STREQUAL "ON" AND NOT BURSAR_HAVE_TORCH)
    message(FATAL_ERROR "BURSAR_TORCH is ON, but ${BURSAR_TORCH_PYTHON} has no PyTorch with CUDA "
      "whose allocator src/replay/torch_peer.cpp compiles with")
  endif()
endif()
