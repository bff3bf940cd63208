// SPDX-License-Identifier: Apache-2.0
// CallMeter: how often each driver function was called, what it cost, how much memory it holds.
//
// Every figure this project publishes about driver calls and reserved bytes is counted here, at the
// seam, by the driver implementation itself, and not by the allocator that is being judged.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <bursar/driver/driver_types.hpp>

namespace bursar {
inline namespace v0 {

/// A copy of a meter's figures.
struct MeterReading {
  std::array<std::uint64_t, kDriverCallCount> calls{};
  std::array<std::int64_t, kDriverCallCount> nanoseconds{};
  Bytes reserved{};       ///< bytes of extents that exist now, all devices
  Bytes reserved_peak{};  ///< the most there ever were since reset_peak()

  std::uint64_t count(DriverCall call) const { return calls[static_cast<std::size_t>(call)]; }
  /// Time inside the driver, all threads and all calls together.
  Duration total_time() const {
    std::int64_t sum = 0;
    for (std::int64_t ns : nanoseconds) sum += ns;
    return Duration{sum};
  }
};

/// Thread-safe. Counts successes and failures alike; bytes only on success.
class CallMeter {
 public:
  void add(DriverCall call, Duration cost) noexcept {
    const auto i = static_cast<std::size_t>(call);
    calls_[i].fetch_add(1, std::memory_order_relaxed);
    nanoseconds_[i].fetch_add(cost.ns, std::memory_order_relaxed);
  }
  void created(Bytes bytes) noexcept {
    const std::uint64_t now =
        reserved_.fetch_add(bytes.count, std::memory_order_relaxed) + bytes.count;
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  void released(Bytes bytes) noexcept {
    reserved_.fetch_sub(bytes.count, std::memory_order_relaxed);
  }

  /// The peak becomes what is held now.
  void reset_peak() noexcept {
    peak_.store(reserved_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

  MeterReading read() const noexcept {
    MeterReading r;
    for (std::size_t i = 0; i < kDriverCallCount; ++i) {
      r.calls[i] = calls_[i].load(std::memory_order_relaxed);
      r.nanoseconds[i] = nanoseconds_[i].load(std::memory_order_relaxed);
    }
    r.reserved = Bytes{reserved_.load(std::memory_order_relaxed)};
    r.reserved_peak = Bytes{peak_.load(std::memory_order_relaxed)};
    return r;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kDriverCallCount> calls_{};
  std::array<std::atomic<std::int64_t>, kDriverCallCount> nanoseconds_{};
  std::atomic<std::uint64_t> reserved_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace v0
}  // namespace bursar
