// SPDX-License-Identifier: Apache-2.0
// SimDriver's own functions: options, streams and work, the clock, faults, what is true. The driver
// calls are in sim_calls.cpp.
#include <bursar/driver/sim_driver.hpp>

#include <pthread.h>

#include <algorithm>

#include <fmt/format.h>
#include <bursar/core/error.hpp>

#include "sim_impl.hpp"

namespace bursar {
inline namespace v0 {
namespace {

constexpr int kMaxDevices = 16;
constexpr Bytes kHostPage{4096};

[[noreturn]] void refuse(const char* message) {
  throw Error(error{ErrorKind::invalid_argument, 0, message});
}

const SimOptions& checked(const SimOptions& o) {
  if (o.devices < 1 || o.devices > kMaxDevices) refuse("SimOptions::devices must be 1 to 16");
  if (!is_power_of_two(o.granularity)) refuse("SimOptions::granularity must be a power of two");
  if (o.backed && o.granularity < kHostPage) {
    refuse("SimOptions::granularity must be at least 4 KiB when backed");
  }
  if (o.capacity < o.granularity) refuse("SimOptions::capacity is less than a page");
  if (o.context > o.capacity) refuse("SimOptions::context is larger than the capacity");
  if (o.max_reservation < o.granularity) refuse("SimOptions::max_reservation is less than a page");
  if (o.death_delay < Duration{}) refuse("SimOptions::death_delay is negative");
  return o;
}

std::vector<DeviceInfo> describe(const SimOptions& options) {
  std::vector<DeviceInfo> devices(static_cast<std::size_t>(options.devices));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    DeviceInfo& info = devices[i];
    info.id = DeviceId{static_cast<std::int32_t>(i)};
    info.name = "simulated device";
    info.uuid = {'b', 'u', 'r', 's', 'a', 'r', '-', 's', 'i', 'm'};
    info.uuid.back() = static_cast<std::uint8_t>(i);
    info.total = options.capacity;
    info.granularity = options.granularity;
    info.capability = options.capability;
    info.shareable_fd = options.capability != CapabilityLevel::no_vmm;
  }
  return devices;
}

/// Counts the forks between the first process that made a SimDriver and this one.
std::atomic<std::uint64_t> g_fork_depth{0};

void watch_forks() {
  [[maybe_unused]] static const int once = ::pthread_atfork(
      nullptr, nullptr, [] { g_fork_depth.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace

std::uint64_t sim_fork_depth() noexcept { return g_fork_depth.load(std::memory_order_relaxed); }

// -- the parts ----------------------------------------------------------------------------------

SimDriver::Impl::Impl(const SimOptions& o)
    : options(checked(o)),
      prices(o.free_of_charge),
      devices(describe(o)),
      detector(o.detector ? std::make_unique<SimDetector>() : nullptr),
      capacity(o.shared_state.empty() ? make_private_capacity(o) : make_shared_capacity(o)),
      streams(o.devices, detector.get()),
      memory(options, *capacity, meter, detector.get()) {}

void SimDriver::Impl::advance_to(Duration time) noexcept {
  std::int64_t now = clock.load(std::memory_order_relaxed);
  while (now < time.ns && !clock.compare_exchange_weak(now, time.ns, std::memory_order_relaxed)) {
  }
}

SimStream* SimDriver::Impl::find_stream(DeviceId device, StreamHandle handle, const char* call) {
  SimStream* stream = streams.find(device, handle);
  if (stream == nullptr) dangling(handle, call);
  return stream;
}

void SimDriver::Impl::dangling(StreamHandle handle, const char* call) {
  if (detector == nullptr) return;
  detector->report(Violation::Kind::dangling_stream,
                   fmt::format("{} was given {}, which is no stream", call, handle.value));
}

DriverCode SimDriver::Impl::spoil(SimStream& stream, const char* call) {
  stream.spoiled = true;
  if (detector != nullptr) {
    detector->report(Violation::Kind::capture_spoiled,
                     fmt::format("{} spoils the capture of stream {}", call, stream.id.load()));
  }
  return DriverCode::capture_unsupported;
}

bool SimDriver::Impl::spoil_captures(const char* call) {
  for (SimStream* stream : streams.captures()) spoil(*stream, call);
  return !streams.captures().empty();
}

SimDriver::SimDriver(const SimOptions& options) {
  watch_forks();
  impl_ = std::make_unique<Impl>(options);
}

SimDriver::~SimDriver() = default;

// -- streams and work ---------------------------------------------------------------------------

StreamHandle SimDriver::create_stream(DeviceId device) {
  if (!impl_->valid(device)) refuse("create_stream: no such device");
  Impl::Lock lock(impl_->mutex);
  return impl_->streams.create(device);
}

void SimDriver::destroy_stream(StreamHandle stream) {
  Impl::Lock lock(impl_->mutex);
  if (!impl_->streams.destroy(stream)) impl_->dangling(stream, "destroy_stream");
}

void SimDriver::launch(StreamHandle handle, Duration duration, std::span<const SimAccess> accesses,
                       DeviceId device) {
  if (!impl_->valid(device)) refuse("launch: no such device");
  Impl::Lock lock(impl_->mutex);
  SimStream* stream = impl_->find_stream(device, handle, "launch");
  if (stream == nullptr || stream->capturing.load()) return;
  impl_->streams.extend(*stream, std::max(impl_->now(), stream->end) + duration);
  if (impl_->detector == nullptr) return;
  impl_->detector->begin_work(stream->agent);
  for (const SimAccess& access : accesses) {
    impl_->memory.access(stream->device, {access.address, access.size}, access.generation);
  }
}

void SimDriver::synchronize(StreamHandle handle, DeviceId device) {
  if (!impl_->valid(device)) refuse("synchronize: no such device");
  Impl::Lock lock(impl_->mutex);
  SimStream* stream = impl_->find_stream(device, handle, "synchronize");
  if (stream == nullptr) return;
  if (stream->capturing.load()) return void(impl_->spoil(*stream, "synchronize"));
  impl_->advance_to(stream->end);
  if (impl_->detector != nullptr) impl_->detector->host_sees_stream(stream->agent);
}

void SimDriver::synchronize_device(DeviceId device) {
  if (!impl_->valid(device)) refuse("synchronize_device: no such device");
  Impl::Lock lock(impl_->mutex);
  if (impl_->spoil_captures("synchronize_device")) return;
  impl_->advance_to(impl_->streams.device_end(device));
  if (impl_->detector != nullptr) impl_->detector->host_sees_device(device);
}

void SimDriver::begin_capture(StreamHandle handle, DeviceId device) {
  if (!impl_->valid(device)) refuse("begin_capture: no such device");
  Impl::Lock lock(impl_->mutex);
  SimStream* stream = impl_->find_stream(device, handle, "begin_capture");
  if (stream != nullptr) impl_->streams.begin_capture(*stream);
}

bool SimDriver::end_capture(StreamHandle handle, DeviceId device) {
  if (!impl_->valid(device)) refuse("end_capture: no such device");
  Impl::Lock lock(impl_->mutex);
  SimStream* stream = impl_->find_stream(device, handle, "end_capture");
  return stream != nullptr && impl_->streams.end_capture(*stream);
}

// -- clock and faults ---------------------------------------------------------------------------

void SimDriver::advance_to(Duration time) noexcept { impl_->advance_to(time); }

void SimDriver::fail(DriverCall call, std::uint64_t nth, bool forever, DriverCode code) {
  Impl::Lock lock(impl_->mutex);
  impl_->faults.add(call, nth, forever, code);
}

void SimDriver::clear_faults() {
  Impl::Lock lock(impl_->mutex);
  impl_->faults.clear();
}

std::uint64_t SimDriver::faults_hit() const {
  Impl::Lock lock(impl_->mutex);
  return impl_->faults.hits();
}

void SimDriver::delay(DriverCall call, Duration real_time) {
  impl_->faults.set_delay(call, real_time);
}

// -- what is true -------------------------------------------------------------------------------

std::vector<Violation> SimDriver::violations() const {
  Impl::Lock lock(impl_->mutex);
  return impl_->detector != nullptr ? impl_->detector->violations() : std::vector<Violation>{};
}

Bytes SimDriver::extent_bytes() const {
  Impl::Lock lock(impl_->mutex);
  return impl_->memory.extent_bytes();
}

std::size_t SimDriver::mapping_count() const {
  Impl::Lock lock(impl_->mutex);
  return impl_->memory.mapping_count();
}

Bytes SimDriver::reserved_addresses() const {
  Impl::Lock lock(impl_->mutex);
  return impl_->memory.reserved_addresses();
}

std::size_t SimDriver::event_count() const {
  Impl::Lock lock(impl_->mutex);
  return impl_->streams.event_count();
}

}  // namespace v0
}  // namespace bursar
