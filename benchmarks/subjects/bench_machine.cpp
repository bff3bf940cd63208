// SPDX-License-Identifier: Apache-2.0
// Left out of the comparison: cuda_malloc, which caches nothing, and segment_cache, which stands in
// for utilization only.
#include "bench_machine.hpp"

#include <bursar/driver/cuda_driver.hpp>

#include "replay/cuda_device.hpp"
#include "replay/sim_device.hpp"
#include "tcmalloc_rig.hpp"

namespace bursar {
inline namespace v0 {

BenchMachine::BenchMachine(std::string_view kind) {
  if (kind != "sim") {
    const result<std::shared_ptr<Driver>> gpu = open_cuda_driver();
    if (gpu) driver_ = *gpu;
    if (!gpu && kind == "cuda") throw Error(gpu.failure());
  }
  if (driver_) {
    device_ = make_cuda_device(driver_, std::nullopt);
  } else {
    auto device = std::make_shared<SimDevice>();
    sim_ = &device->driver();
    driver_ = std::shared_ptr<Driver>(device, sim_);
    device_ = std::move(device);
  }
  allocators_.emplace_back("bursar");
  if (find_tcmalloc() != nullptr) allocators_.emplace_back("tcmalloc");
  for (const std::string_view name : device_->allocators()) {
    if (name == "cuda_async" || name.starts_with("torch")) allocators_.emplace_back(name);
  }
}

BenchStreams::BenchStreams(ReplayDevice& device, int count) : device_(device) {
  for (int i = 0; i < count; ++i) handles_.push_back(device.create_stream());
}

BenchStreams::~BenchStreams() {
  for (const StreamHandle stream : handles_) device_.destroy_stream(stream);
}

}  // namespace v0
}  // namespace bursar
