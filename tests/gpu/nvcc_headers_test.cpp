// SPDX-License-Identifier: Apache-2.0
// Needs the CUDA Toolkit, no GPU.
#include "nvcc_headers.hpp"

#include "support/catch.hpp"

TEST_CASE("units and handles compare in code that nvcc compiled", "[core][nvcc]") {
  CHECK(bursar::test::units_compare_in_cuda_files());
}
