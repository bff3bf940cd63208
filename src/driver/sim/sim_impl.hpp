// SPDX-License-Identifier: Apache-2.0
// SimDriver::Impl: the parts of the simulated driver, the lock around them and the frame that every
// driver call runs in: dawdle, count, fail on demand, do, charge the clock.
#pragma once

#include <concepts>

#include <bursar/core/lock_rank.hpp>

#include "sim_faults.hpp"
#include "sim_memory.hpp"
#include "sim_prices.hpp"
#include "sim_streams.hpp"

namespace bursar {
inline namespace v0 {

/// Another number in a forked child than in its parent.
std::uint64_t sim_fork_depth() noexcept;

struct SimDriver::Impl {
  using Lock = lock_proof<LockRank::driver>;

  explicit Impl(const SimOptions& o);

  /// Runs one driver call under the lock. `price` is a Duration, or a function that looks it up
  /// under the lock; `body(cost)` does the call and may change what it costs.
  template <typename Price, typename Body>
  DriverCode call(DriverCall kind, Price&& price, Body&& body) noexcept {
    if (forked()) return DriverCode::not_initialized;
    faults.dawdle(kind);
    Lock lock(mutex);
    Duration cost{};
    if constexpr (std::invocable<Price>) {
      cost = price();
    } else {
      cost = price;
    }
    const std::optional<DriverCode> fault = faults.take(kind);
    const DriverCode code = fault ? *fault : body(cost);
    charge(kind, cost);
    return code;
  }
  /// The same for a flat price.
  template <typename Body>
  DriverCode call(DriverCall kind, Body&& body) noexcept {
    return call(kind, prices.flat(kind), [&](Duration&) { return body(); });
  }
  /// The same for a call that a device without VMM refuses.
  template <typename Price, typename Body>
  DriverCode vmm_call(DriverCall kind, Price&& price, Body&& body) noexcept {
    return call(kind, price, [&](Duration& cost) {
      if (options.capability == CapabilityLevel::no_vmm) return DriverCode::not_supported;
      if constexpr (std::invocable<Body, Duration&>) {
        return body(cost);
      } else {
        return body();
      }
    });
  }
  /// Runs a driver call that needs no lock, unless a fault rule waits for it.
  template <typename Body>
  DriverCode call_unlocked(DriverCall kind, Body&& body) noexcept {
    if (forked()) return DriverCode::not_initialized;
    faults.dawdle(kind);
    charge(kind, prices.flat(kind));
    if (faults.armed(kind)) {
      Lock lock(mutex);
      if (const std::optional<DriverCode> fault = faults.take(kind)) return *fault;
    }
    return body();
  }

  /// Runs a call that only looks at a stream: `read(stream)`, without the lock where that can be.
  template <typename Read>
  DriverCode with_stream(DriverCall kind, DeviceId device, StreamHandle handle,
                         Read&& read) noexcept {
    return call_unlocked(kind, [&] {
      if (!valid(device)) return DriverCode::invalid_device;
      SimStream* stream = streams.find_unlocked(device, handle);
      if (stream == nullptr) {  // a per-thread default stream, or none
        Lock lock(mutex);
        stream = find_stream(device, handle, to_string(kind));
      }
      if (stream == nullptr) return DriverCode::invalid_handle;
      read(*stream);
      return DriverCode::success;
    });
  }

  void charge(DriverCall kind, Duration cost) noexcept {
    clock.fetch_add(cost.ns, std::memory_order_relaxed);
    meter.add(kind, cost);
  }
  Duration now() const noexcept { return Duration{clock.load(std::memory_order_relaxed)}; }
  void advance_to(Duration time) noexcept;

  /// True in a child of the process that made this driver: as on a GPU, no call works there.
  bool forked() const noexcept { return sim_fork_depth() != fork_depth; }
  bool valid(DeviceId device) const noexcept {
    return device.value >= 0 && device.value < options.devices;
  }
  /// The stream behind a handle; a handle of none is a violation. Precondition: device is valid.
  SimStream* find_stream(DeviceId device, StreamHandle stream, const char* call);
  void dangling(StreamHandle stream, const char* call);
  /// `call` spoils this capture.
  DriverCode spoil(SimStream& stream, const char* call);
  /// Spoils every capture under way; false when there is none.
  bool spoil_captures(const char* call);

  const SimOptions options;
  const std::uint64_t fork_depth = sim_fork_depth();
  const SimPrices prices;
  std::vector<DeviceInfo> devices;
  CallMeter meter;
  std::atomic<std::int64_t> clock{0};
  SimFaults faults;
  RankedMutex<LockRank::driver> mutex;
  std::unique_ptr<SimDetector> detector;
  std::unique_ptr<SimCapacity> capacity;
  SimStreams streams;
  SimMemory memory;
};

}  // namespace v0
}  // namespace bursar
