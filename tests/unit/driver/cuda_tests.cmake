# SPDX-License-Identifier: Apache-2.0
# CudaDriver without a GPU: over a pretended libcuda.so.1, or in a build without the toolkit.

if(NOT BURSAR_HAVE_CUDA)
  bursar_add_test(NAME cuda_no_toolkit_test SOURCES cuda_no_toolkit_test.cpp)
  return()
endif()

add_library(fake_libcuda SHARED fake_libcuda.cpp)
target_compile_features(fake_libcuda PRIVATE cxx_std_20)
target_include_directories(fake_libcuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(fake_libcuda PRIVATE bursar_warnings)
# The loader knows a library by its soname, so that is the real one's.
set_target_properties(fake_libcuda PROPERTIES
  OUTPUT_NAME cuda
  SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_libcuda)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/empty_libcuda/libcuda.so.1 "")

bursar_add_test(NAME cuda_driver_test SOURCES cuda_driver_calls_test.cpp cuda_driver_start_test.cpp)
target_include_directories(cuda_driver_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_definitions(cuda_driver_test PRIVATE
  FAKE_LIBCUDA_PATH="$<TARGET_FILE:fake_libcuda>"
  EMPTY_LIBCUDA_DIR="${CMAKE_CURRENT_BINARY_DIR}/empty_libcuda")
add_dependencies(cuda_driver_test fake_libcuda)
