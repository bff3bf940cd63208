# SPDX-License-Identifier: Apache-2.0
# Installs the library so that find_package(bursar) finds it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/bursar)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/bursar DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(TARGETS bursar bursar_headers EXPORT bursarTargets)
install(EXPORT bursarTargets NAMESPACE bursar:: DESTINATION ${config_dir})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/bursarConfig.cmake.in
  ${PROJECT_BINARY_DIR}/bursarConfig.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bursarConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/bursarConfig.cmake ${PROJECT_BINARY_DIR}/bursarConfigVersion.cmake
  DESTINATION ${config_dir})
