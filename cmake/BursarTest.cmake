# SPDX-License-Identifier: Apache-2.0
# bursar_add_test(NAME name SOURCES file... [LABELS label...] [TIMEOUT seconds]
#                 [LIBRARIES target...])
#
# One executable of Catch2 test cases, run as one ctest of the same name. It sees <bursar/...>,
# "support/..." of tests/ and the private headers of src/. Labels select what to run: unit (the
# default), fault, stress, fuzz, gate, gpu, and proof for those gpu tests that are long and report
# figures. GPU tests never run beside each other.

function(bursar_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "SOURCES;LABELS;LIBRARIES")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bursar_add_test: NAME and SOURCES, and nothing unknown: ${ARGV}")
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()

  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE bursar::bursar bursar_test_main bursar_warnings
    ${arg_LIBRARIES})
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/src)

  # NoAssertions: a test case that asserts nothing cannot fail, so it fails.
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} --warn NoAssertions)
  set_tests_properties(${arg_NAME} PROPERTIES
    LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 4)
  if("gpu" IN_LIST arg_LABELS)
    set_tests_properties(${arg_NAME} PROPERTIES RESOURCE_LOCK gpu)
  endif()
endfunction()
