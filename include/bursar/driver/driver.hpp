// SPDX-License-Identifier: Apache-2.0
// Driver: the one seam to CUDA. Everything above it runs unchanged on a GPU and on the simulated
// device.
//
// Two dozen functions, each one driver call, each returning the driver's own code and touching
// nothing else. Driver calls cost microseconds, so a virtual call is free. The clock is part of the
// seam: on the simulated device time is what the calls cost.
//
// Preconditions hold for every implementation:
//   - sizes and addresses given to reserve/map/unmap are multiples of the device's granularity;
//   - an extent is mapped whole, and unmap takes exactly one mapping;
//   - a stream handle is only used inside the call it was given to. The library above passes on
//     only handles that its own caller named in the very same call, since handles dangle;
//   - no function changes the calling thread's current device or CUDA's last-error state.
// Thread-safety: all functions may be called from any thread. None throws.
#pragma once

#include <cstddef>
#include <span>

#include <bursar/driver/call_meter.hpp>
#include <bursar/driver/driver_types.hpp>

namespace bursar {
inline namespace v0 {

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  // -- devices ------------------------------------------------------------------------------
  virtual int device_count() const noexcept = 0;
  /// Probed once, at construction. Precondition: 0 <= device.value < device_count().
  virtual const DeviceInfo& device_info(DeviceId device) const noexcept = 0;
  virtual DriverCode memory_info(DeviceId device, MemoryInfo& out) noexcept = 0;
  /// Gives back what the driver's own pools (cuMemPoolTrimTo, graph memory) hold unused.
  virtual DriverCode trim_pools(DeviceId device) noexcept = 0;

  // -- physical memory ----------------------------------------------------------------------
  /// Creates an extent of `size` bytes. `out` is untouched on failure.
  virtual DriverCode create(DeviceId device, Bytes size, ExtentProperties properties,
                            ExtentHandle& out) noexcept = 0;
  virtual DriverCode release(ExtentHandle extent) noexcept = 0;
  /// A file descriptor that names the extent, owned by the caller (close it).
  virtual DriverCode export_handle(ExtentHandle extent, int& fd_out) noexcept = 0;
  /// The extent behind `fd`; the descriptor stays the caller's. `size` is what the exporter said.
  virtual DriverCode import_handle(DeviceId device, int fd, Bytes size,
                                   ExtentHandle& out) noexcept = 0;

  // -- addresses ----------------------------------------------------------------------------
  /// Reserves addresses. `hint` 0 lets the driver choose; it is only a wish otherwise.
  virtual DriverCode reserve(Bytes size, DeviceAddress hint, VaRange& out) noexcept = 0;
  virtual DriverCode unreserve(VaRange range) noexcept = 0;
  /// Maps the whole extent at `range`, whose size is the extent's. No access yet.
  virtual DriverCode map(VaRange range, ExtentHandle extent) noexcept = 0;
  /// Gives the devices read and write access to one or more whole mappings that cover `range`.
  virtual DriverCode set_access(VaRange range, std::span<const DeviceId> devices) noexcept = 0;
  /// Takes away the one mapping at `range`. Does not wait for work that still uses it.
  virtual DriverCode unmap(VaRange range) noexcept = 0;

  // -- memory without VMM -------------------------------------------------------------------
  /// cudaMalloc / cudaFree, for level no_vmm and for peers in benchmarks. Metered as create and
  /// release. `free_plain` may wait for the device.
  virtual DriverCode malloc_plain(DeviceId device, Bytes size, DeviceAddress& out) noexcept = 0;
  virtual DriverCode free_plain(DeviceAddress address) noexcept = 0;

  // -- streams and events -------------------------------------------------------------------
  /// `device` says whose default stream a null handle means.
  /// capture_unsupported for a stream under capture, whose id the driver does not tell: ask before.
  virtual DriverCode stream_id(DeviceId device, StreamHandle stream, StreamId& out) noexcept = 0;
  virtual DriverCode stream_capturing(DeviceId device, StreamHandle stream, bool& out) noexcept = 0;
  virtual DriverCode event_create(DeviceId device, EventHandle& out) noexcept = 0;
  virtual DriverCode event_destroy(EventHandle event) noexcept = 0;
  virtual DriverCode event_record(DeviceId device, EventHandle event,
                                  StreamHandle stream) noexcept = 0;
  /// success: all work before the record is done. not_ready: it is not. Never spoils a capture.
  virtual DriverCode event_query(EventHandle event) noexcept = 0;
  /// Work given to `stream` from now on starts after the event.
  virtual DriverCode stream_wait(DeviceId device, StreamHandle stream,
                                 EventHandle event) noexcept = 0;
  /// Sets `size` bytes at `address` to `value`, in stream order.
  virtual DriverCode memset(DeviceId device, DeviceAddress address, std::uint8_t value, Bytes size,
                            StreamHandle stream) noexcept = 0;
  /// Copies `out.size()` bytes at `address` to the host, on a stream of the driver's own, and waits
  /// for that copy alone. It comes after nothing that was given to any stream: what wrote the
  /// bytes must be known to be done. Never spoils a capture.
  virtual DriverCode read(DeviceId device, DeviceAddress address,
                          std::span<std::byte> out) noexcept = 0;

  // -- clock and figures --------------------------------------------------------------------
  /// Time since some fixed point: real, or virtual on the simulated device.
  virtual Duration now() const noexcept = 0;
  /// Lets `duration` pass: sleeps, or moves the virtual clock.
  virtual void sleep_for(Duration duration) noexcept = 0;
  virtual CallMeter& meter() noexcept = 0;
};

}  // namespace v0
}  // namespace bursar
