// SPDX-License-Identifier: Apache-2.0
// Allocates on the simulated device through nothing but the public headers.
#include <cstdio>
#include <memory>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/allocator/out_of_memory.hpp>
#include <bursar/driver/sim_driver.hpp>

int main() {
  using namespace bursar::literals;
  const auto device = std::make_shared<bursar::SimDriver>(bursar::SimOptions{.capacity = 64_MiB});
  bursar::CachingAllocator allocator(device);

  void* block = allocator.allocate(1 << 20);
  const bool owned = allocator.owns(block);
  allocator.deallocate(block);

  bool refused = false;
  try {
    allocator.deallocate(allocator.allocate(1 << 30));
  } catch (const bursar::OutOfMemory& e) {  // its type is known on both sides of a shared object
    refused = true;
    std::puts(e.what());
  }
  return owned && refused ? 0 : 1;
}
