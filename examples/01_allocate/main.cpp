// SPDX-License-Identifier: Apache-2.0
// Links Bursar, allocates in stream order, and looks at where the bytes are.
#include <cstdio>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/driver/cuda_driver.hpp>
#include <bursar/driver/sim_driver.hpp>

int main() {
  // The GPU where there is one, else the simulated device: what follows is the same for both.
  bursar::result<std::shared_ptr<bursar::Driver>> gpu = bursar::open_cuda_driver();
  const auto driver = gpu ? *gpu : std::make_shared<bursar::SimDriver>();

  bursar::CachingAllocator allocator(driver);
  // The legacy default stream; pass a cudaStream_t as bursar::StreamHandle{stream}.
  void* weights = allocator.allocate(100 << 20);
  void* batch = allocator.allocate(3 << 20);
  // ... kernels use them ...
  allocator.deallocate(batch);               // ordered on its stream: no need to wait
  void* next = allocator.allocate(2 << 20);  // the same memory again, no driver call
  const bursar::AllocatorStats stats = allocator.stats();
  std::printf("%s: live %.0f MiB of %.0f MiB reserved\n", driver->device_info({}).name.c_str(),
              static_cast<double>(stats.live.count) / (1 << 20),
              static_cast<double>(stats.reserved.count) / (1 << 20));
  allocator.deallocate(next);
  allocator.deallocate(weights);
}
