// SPDX-License-Identifier: Apache-2.0
// CudaDriver: the driver API behind the seam.
//
// Every call does three things around the driver's: it makes sure of a context, keeps captures from
// being spoiled, and meters. The driver API has no last-error state, and the runtime's is its own,
// so both are left as found.
#include <bursar/driver/cuda_driver.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <bursar/core/log.hpp>

#include "device_probe.hpp"
#include "driver_start.hpp"
#include "entry_points.hpp"
#include "fork_watch.hpp"
#include "held_memory.hpp"
#include "primary_contexts.hpp"
#include "read_streams.hpp"
#include "relaxed_capture.hpp"

namespace bursar {
inline namespace v0 {
namespace {

constexpr std::size_t kMaxDevices = 64;

/// Whether a call may spoil a capture under way when the thread is not in relaxed mode.
enum class Capture { harmless, spoils };

CUdeviceptr raw(DeviceAddress address) { return static_cast<CUdeviceptr>(address.value); }
CUstream raw(StreamHandle stream) { return static_cast<CUstream>(stream.value); }
CUevent raw(EventHandle event) { return static_cast<CUevent>(event.value); }

class CudaDriver final : public Driver {
 public:
  CudaDriver(const EntryPoints& api, const std::vector<CUdevice>& devices)
      : api_(api),
        fork_generation_(fork_generation()),
        devices_(devices),
        contexts_(api_, devices),
        reads_(api_, devices.size()) {}

  /// Fails when not one device can be probed.
  result<void> probe();

  int device_count() const noexcept override { return static_cast<int>(infos_.size()); }
  const DeviceInfo& device_info(DeviceId device) const noexcept override {
    return infos_[static_cast<std::size_t>(device.value)];
  }
  DriverCode memory_info(DeviceId device, MemoryInfo& out) noexcept override;
  DriverCode trim_pools(DeviceId device) noexcept override;

  DriverCode create(DeviceId device, Bytes size, ExtentProperties properties,
                    ExtentHandle& out) noexcept override;
  DriverCode release(ExtentHandle extent) noexcept override;
  DriverCode export_handle(ExtentHandle extent, int& fd_out) noexcept override;
  DriverCode import_handle(DeviceId device, int fd, Bytes size,
                           ExtentHandle& out) noexcept override;

  DriverCode reserve(Bytes size, DeviceAddress hint, VaRange& out) noexcept override;
  DriverCode unreserve(VaRange range) noexcept override;
  DriverCode map(VaRange range, ExtentHandle extent) noexcept override;
  DriverCode set_access(VaRange range, std::span<const DeviceId> devices) noexcept override;
  DriverCode unmap(VaRange range) noexcept override;

  DriverCode malloc_plain(DeviceId device, Bytes size, DeviceAddress& out) noexcept override;
  DriverCode free_plain(DeviceAddress address) noexcept override;

  DriverCode stream_id(DeviceId device, StreamHandle stream, StreamId& out) noexcept override;
  DriverCode stream_capturing(DeviceId device, StreamHandle stream, bool& out) noexcept override;
  DriverCode event_create(DeviceId device, EventHandle& out) noexcept override;
  DriverCode event_destroy(EventHandle event) noexcept override;
  DriverCode event_record(DeviceId device, EventHandle event,
                          StreamHandle stream) noexcept override;
  DriverCode event_query(EventHandle event) noexcept override;
  DriverCode stream_wait(DeviceId device, StreamHandle stream, EventHandle event) noexcept override;
  DriverCode memset(DeviceId device, DeviceAddress address, std::uint8_t value, Bytes size,
                    StreamHandle stream) noexcept override;
  DriverCode read(DeviceId device, DeviceAddress at, std::span<std::byte> out) noexcept override {
    return run(DriverCall::read, device, Capture::spoils,
               [&] { return reads_.read(device, at, out); });
  }
  Duration now() const noexcept override {
    const auto since_epoch = std::chrono::steady_clock::now().time_since_epoch();
    return Duration{std::chrono::nanoseconds(since_epoch).count()};
  }
  void sleep_for(Duration duration) noexcept override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(duration.ns));
  }
  CallMeter& meter() noexcept override { return meter_; }

 private:
  bool forked() const noexcept { return fork_generation() != fork_generation_; }
  /// One metered driver call in the context of `device`, or in any context where none is named.
  template <class Call>
  DriverCode run(DriverCall kind, std::optional<DeviceId> device, Capture capture,
                 Call&& call) noexcept;
  /// Gives back what `held` knows under `key` by `call` and counts its bytes as released.
  template <class Call>
  DriverCode give_back(HeldMemory& held, std::uint64_t key, Call&& call) noexcept;
  /// Counts memory just made; where the host has no memory for the entry, `undo` and out_of_memory.
  template <class Undo>
  DriverCode hold(HeldMemory& held, std::uint64_t key, HeldMemory::Piece piece,
                  Undo&& undo) noexcept;

  const EntryPoints api_;
  const std::uint32_t fork_generation_;
  const std::vector<CUdevice> devices_;
  PrimaryContexts contexts_;
  ReadStreams reads_;  ///< goes before the contexts that its streams live in
  std::vector<DeviceInfo> infos_;
  HeldMemory extents_;  ///< by handle
  HeldMemory plain_;    ///< by address
  CallMeter meter_;
};

result<void> CudaDriver::probe() {
  CUresult first_failure = CUDA_SUCCESS;
  std::size_t failures = 0;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    DeviceInfo& info = infos_.emplace_back();
    info.id = DeviceId{static_cast<std::int32_t>(i)};
    const CUresult code = probe_device(api_, contexts_, devices_[i], info);
    if (code == CUDA_SUCCESS) continue;
    if (failures++ == 0) first_failure = code;
    log(LogLevel::warning, "device " + std::to_string(i) + " cannot be probed, CUresult " +
                               std::to_string(static_cast<int>(code)));
  }
  if (failures == devices_.size()) {
    return error{.kind = first_failure == CUDA_ERROR_OUT_OF_MEMORY ? ErrorKind::device_oom
                                                                   : ErrorKind::driver_fault,
                 .driver_code = static_cast<int>(first_failure),
                 .message = "no CUDA device can be used: each refused a context"};
  }
  // A context costs some 520 MiB: of several devices only those that are used will keep one.
  if (devices_.size() > 1) contexts_.release_all();
  return {};
}

template <class Call>
DriverCode CudaDriver::run(DriverCall kind, std::optional<DeviceId> device, Capture capture,
                           Call&& call) noexcept {
  if (forked()) return DriverCode::not_initialized;
  CUcontext context = contexts_.any();
  CUresult code = device ? contexts_.get(*device, context) : CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return static_cast<DriverCode>(code);

  const Duration begin = now();
  if (const ContextScope scope(api_, context, !device); scope.code() != CUDA_SUCCESS) {
    code = scope.code();
  } else if (capture == Capture::spoils) {
    const RelaxedCapture relaxed(api_);
    code = call();
  } else {
    code = call();
  }
  meter_.add(kind, now() - begin);
  return static_cast<DriverCode>(code);
}

template <class Call>
DriverCode CudaDriver::give_back(HeldMemory& held, std::uint64_t key, Call&& call) noexcept {
  if (forked()) return DriverCode::not_initialized;  // before any lock: the parent may hold it
  HeldMemory::Entry entry = held.take(key);
  std::optional<DeviceId> device;
  if (!entry.empty()) device = entry.mapped().device;
  const DriverCode code = run(DriverCall::release, device, Capture::spoils, call);
  if (entry.empty()) return code;
  if (code == DriverCode::success) {
    meter_.released(entry.mapped().size);
  } else {
    held.put_back(std::move(entry));
  }
  return code;
}

template <class Undo>
DriverCode CudaDriver::hold(HeldMemory& held, std::uint64_t key, HeldMemory::Piece piece,
                            Undo&& undo) noexcept {
  if (!held.add(key, piece)) {
    undo();
    return DriverCode::out_of_memory;
  }
  meter_.created(piece.size);
  return DriverCode::success;
}

// -- devices ---------------------------------------------------------------------------------

DriverCode CudaDriver::memory_info(DeviceId device, MemoryInfo& out) noexcept {
  return run(DriverCall::memory_info, device, Capture::spoils, [&] {
    std::size_t free = 0;
    std::size_t total = 0;
    const CUresult code = api_.mem_get_info(&free, &total);
    if (code == CUDA_SUCCESS) out = {Bytes{free}, Bytes{total}};
    return code;
  });
}

DriverCode CudaDriver::trim_pools(DeviceId device) noexcept {
  return run(DriverCall::trim_pools, device, Capture::spoils, [&] {
    const CUdevice handle = devices_[static_cast<std::size_t>(device.value)];
    for (const auto get_pool : {api_.device_get_default_mem_pool, api_.device_get_mem_pool}) {
      CUmemoryPool pool = nullptr;
      CUresult code = get_pool(&pool, handle);
      if (code == CUDA_SUCCESS) code = api_.mem_pool_trim_to(pool, 0);
      if (code != CUDA_SUCCESS) return code;
    }
    return api_.device_graph_mem_trim(handle);
  });
}

// -- physical memory -------------------------------------------------------------------------

DriverCode CudaDriver::create(DeviceId device, Bytes size, ExtentProperties properties,
                              ExtentHandle& out) noexcept {
  CUmemGenericAllocationHandle handle = 0;
  const DriverCode code = run(DriverCall::create, device, Capture::spoils, [&] {
    const DeviceInfo& info = device_info(device);
    if (info.capability == CapabilityLevel::no_vmm) return CUDA_ERROR_NOT_SUPPORTED;
    if (properties.shareable && !info.shareable_fd) return CUDA_ERROR_NOT_SUPPORTED;
    const CUmemAllocationProp asked = allocation_properties(info, properties);
    return api_.mem_create(&handle, size.count, &asked, 0);
  });
  if (code != DriverCode::success) return code;
  const DriverCode held = hold(extents_, handle, {size, device}, [&] { api_.mem_release(handle); });
  if (held == DriverCode::success) out = ExtentHandle{handle};
  return held;
}

DriverCode CudaDriver::release(ExtentHandle extent) noexcept {
  return give_back(extents_, extent.value, [&] { return api_.mem_release(extent.value); });
}

DriverCode CudaDriver::export_handle(ExtentHandle extent, int& fd_out) noexcept {
  return run(DriverCall::export_handle, {}, Capture::spoils, [&] {
    int fd = -1;
    const CUresult code = api_.mem_export(&fd, extent.value, kFileDescriptor, 0);
    if (code == CUDA_SUCCESS) fd_out = fd;
    return code;
  });
}

DriverCode CudaDriver::import_handle(DeviceId device, int fd, Bytes /*size*/,
                                     ExtentHandle& out) noexcept {
  // Not counted as held: the bytes are the exporter's.
  return run(DriverCall::import_handle, device, Capture::spoils, [&] {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult code = api_.mem_import(&handle, to_os_handle(fd), kFileDescriptor);
    if (code == CUDA_SUCCESS) out = ExtentHandle{handle};
    return code;
  });
}

// -- addresses -------------------------------------------------------------------------------

DriverCode CudaDriver::reserve(Bytes size, DeviceAddress hint, VaRange& out) noexcept {
  return run(DriverCall::reserve, {}, Capture::spoils, [&] {
    CUdeviceptr begin = 0;
    const CUresult code = api_.mem_address_reserve(&begin, size.count, 0, raw(hint), 0);
    if (code == CUDA_SUCCESS) out = {DeviceAddress{begin}, size};
    return code;
  });
}

DriverCode CudaDriver::unreserve(VaRange range) noexcept {
  return run(DriverCall::unreserve, {}, Capture::spoils,
             [&] { return api_.mem_address_free(raw(range.begin), range.size.count); });
}

DriverCode CudaDriver::map(VaRange range, ExtentHandle extent) noexcept {
  return run(DriverCall::map, {}, Capture::spoils,
             [&] { return api_.mem_map(raw(range.begin), range.size.count, 0, extent.value, 0); });
}

DriverCode CudaDriver::set_access(VaRange range, std::span<const DeviceId> devices) noexcept {
  std::array<CUmemAccessDesc, kMaxDevices> access{};
  if (devices.empty() || devices.size() > access.size()) return DriverCode::invalid_value;
  std::transform(devices.begin(), devices.end(), access.begin(), [](DeviceId device) {
    return CUmemAccessDesc{{CU_MEM_LOCATION_TYPE_DEVICE, device.value},
                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  });
  return run(DriverCall::set_access, {}, Capture::spoils, [&] {
    return api_.mem_set_access(raw(range.begin), range.size.count, access.data(), devices.size());
  });
}

DriverCode CudaDriver::unmap(VaRange range) noexcept {
  return run(DriverCall::unmap, {}, Capture::spoils,
             [&] { return api_.mem_unmap(raw(range.begin), range.size.count); });
}

// -- memory without VMM ----------------------------------------------------------------------

DriverCode CudaDriver::malloc_plain(DeviceId device, Bytes size, DeviceAddress& out) noexcept {
  CUdeviceptr address = 0;
  const DriverCode code = run(DriverCall::create, device, Capture::spoils,
                              [&] { return api_.mem_alloc(&address, size.count); });
  if (code != DriverCode::success) return code;
  const DriverCode held = hold(plain_, address, {size, device}, [&] { api_.mem_free(address); });
  if (held == DriverCode::success) out = DeviceAddress{address};
  return held;
}

DriverCode CudaDriver::free_plain(DeviceAddress address) noexcept {
  return give_back(plain_, address.value, [&] { return api_.mem_free(raw(address)); });
}

// -- streams and events ----------------------------------------------------------------------

DriverCode CudaDriver::stream_id(DeviceId device, StreamHandle stream, StreamId& out) noexcept {
  return run(DriverCall::stream_id, device, Capture::harmless, [&] {
    // Asking the id of a stream under capture was seen to fail (error 900) and to spoil the
    // capture, in relaxed mode too; so it is not asked.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult asked = api_.stream_is_capturing(raw(stream), &status);
    if (asked == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) {
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    unsigned long long id = 0;
    const CUresult code = api_.stream_get_id(raw(stream), &id);
    if (code == CUDA_SUCCESS) out = StreamId{id};
    return code;
  });
}

DriverCode CudaDriver::stream_capturing(DeviceId device, StreamHandle stream, bool& out) noexcept {
  return run(DriverCall::stream_capturing, device, Capture::harmless, [&] {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult code = api_.stream_is_capturing(raw(stream), &status);
    // The legacy default stream cannot be captured itself, but while a blocking stream is, any use
    // of it would join, and so spoil, that capture.
    const bool implicit = code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (code == CUDA_SUCCESS || implicit) out = implicit || status != CU_STREAM_CAPTURE_STATUS_NONE;
    return implicit ? CUDA_SUCCESS : code;
  });
}

DriverCode CudaDriver::event_create(DeviceId device, EventHandle& out) noexcept {
  return run(DriverCall::event_create, device, Capture::harmless, [&] {
    CUevent event = nullptr;
    const CUresult code = api_.event_create(&event, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) out = EventHandle{event};
    return code;
  });
}

DriverCode CudaDriver::event_destroy(EventHandle event) noexcept {
  return run(DriverCall::event_destroy, {}, Capture::harmless,
             [&] { return api_.event_destroy(raw(event)); });
}

DriverCode CudaDriver::event_record(DeviceId device, EventHandle event,
                                    StreamHandle stream) noexcept {
  return run(DriverCall::event_record, device, Capture::harmless,
             [&] { return api_.event_record(raw(event), raw(stream)); });
}

DriverCode CudaDriver::event_query(EventHandle event) noexcept {
  return run(DriverCall::event_query, {}, Capture::spoils,
             [&] { return api_.event_query(raw(event)); });
}

DriverCode CudaDriver::stream_wait(DeviceId device, StreamHandle stream,
                                   EventHandle event) noexcept {
  return run(DriverCall::stream_wait, device, Capture::harmless, [&] {
    return api_.stream_wait_event(raw(stream), raw(event), CU_EVENT_WAIT_DEFAULT);
  });
}

DriverCode CudaDriver::memset(DeviceId device, DeviceAddress address, std::uint8_t value,
                              Bytes size, StreamHandle stream) noexcept {
  return run(DriverCall::memset, device, Capture::harmless,
             [&] { return api_.memset_d8_async(raw(address), value, size.count, raw(stream)); });
}

}  // namespace

result<std::shared_ptr<Driver>> open_cuda_driver() {
  result<EntryPoints> api = load_entry_points();
  if (!api) return api.failure();
  result<std::vector<CUdevice>> devices = start_driver(*api);
  if (!devices) return devices.failure();
  auto driver = std::make_shared<CudaDriver>(*api, *devices);
  if (result<void> probed = driver->probe(); !probed) return probed.failure();
  return std::shared_ptr<Driver>(std::move(driver));
}

}  // namespace v0
}  // namespace bursar
