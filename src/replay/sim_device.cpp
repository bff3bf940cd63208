// SPDX-License-Identifier: Apache-2.0
// Trace time and driver time make the clock; lag is a kernel that ends that much after the free.
#include "sim_device.hpp"

#include <algorithm>

#include "driver_target.hpp"

namespace bursar {
inline namespace v0 {
namespace {

SimOptions sim_options(const SimDeviceOptions& options) {
  SimOptions sim;
  // A device has at least a page; its context takes what nobody asked for.
  sim.capacity = std::max(options.capacity, sim.granularity);
  sim.context = sim.capacity - options.capacity;
  sim.detector = options.detector;
  return sim;
}

}  // namespace

SimDevice::SimDevice(const SimDeviceOptions& options)
    : driver_(std::make_shared<SimDriver>(sim_options(options))), gpu_lag_(options.gpu_lag) {}

std::unique_ptr<ReplayTarget> SimDevice::make_target(std::string_view allocator) {
  return allocator == "bursar" ? make_bursar_target(driver_) : make_segment_cache_target(driver_);
}

void SimDevice::destroy_stream(StreamHandle stream) noexcept {
  stream_ends_.erase(stream.value);
  driver_->destroy_stream(stream);
}

void SimDevice::start_pass() noexcept {
  pass_start_ = driver_->now();
  driver_time_before_ = driver_->meter().read().total_time();
}

void SimDevice::reach(Duration trace_time) noexcept {
  const Duration driver_time = driver_->meter().read().total_time() - driver_time_before_;
  driver_->advance_to(pass_start_ + trace_time + driver_time);
}

void SimDevice::use(void* block, Bytes size, StreamHandle stream) {
  if (gpu_lag_ == Duration{}) return;
  const Duration now = driver_->now();
  Duration& end = stream_ends_[stream.value];
  const Duration start = std::max(end, now);
  end = now + gpu_lag_;
  const SimAccess access{to_address(block), size, ++uses_};
  driver_->launch(stream, end - start, {&access, 1});
}

}  // namespace v0
}  // namespace bursar
