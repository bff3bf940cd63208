// SPDX-License-Identifier: Apache-2.0
// A build without the CUDA Toolkit has an open_cuda_driver too; it says what is missing.
#include <string_view>

#include <bursar/driver/cuda_driver.hpp>

#include "support/catch.hpp"

using namespace bursar;

TEST_CASE("open_cuda_driver of a build without the toolkit says so", "[driver][cuda]") {
  const auto driver = open_cuda_driver();
  REQUIRE_FALSE(driver.ok());
  CHECK(driver.failure().kind == ErrorKind::not_supported);
  CHECK(std::string_view(driver.failure().message).find("CUDA Toolkit") != std::string_view::npos);
}
