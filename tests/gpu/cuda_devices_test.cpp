// SPDX-License-Identifier: Apache-2.0
// Machines with two GPUs: which one is current is none of the library's business.
#include <cstddef>

#include <bursar/allocator/caching_allocator.hpp>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;

TEST_CASE("memory of one device is had while another is current", "[allocator][cuda][gpu]") {
  const auto driver = gpu_driver();
  if (driver->device_count() < 2) SKIP_TEST("there is only one device");
  constexpr Bytes kSize{8u << 20};
  constexpr DeviceId kOther{1};
  CachingAllocator allocator(driver);
  check(cudaSetDevice(0));
  void* block = allocator.allocate(kSize.count, {.device = kOther});
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, block));
  CHECK(attributes.device == kOther.value);
  CHECK(driver->memset(kOther, to_address(block), 1, kSize, {}) == DriverCode::success);
  int current = -1;
  check(cudaGetDevice(&current));
  CHECK(current == 0);
  check(cudaSetDevice(1));
  check(cudaDeviceSynchronize());
  check(cudaSetDevice(0));
  allocator.deallocate(block);
  CHECK(allocator.stats({}).reserved == Bytes{});
}
