// SPDX-License-Identifier: Apache-2.0
// SimFaults: which calls fail or dawdle on demand.
//
// A test that makes the n-th call fail, for every n, proves every error path there is. Rules are
// guarded by the driver's lock; whether any rule or delay exists is read without it.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <vector>

#include <bursar/driver/driver_types.hpp>

namespace bursar {
inline namespace v0 {

class SimFaults {
 public:
  /// Needs the driver's lock, as do clear(), take() and hits().
  void add(DriverCall call, std::uint64_t nth, bool forever, DriverCode code);
  void clear();
  /// Counts one call; the code it must fail with, if it must.
  std::optional<DriverCode> take(DriverCall call);
  std::uint64_t hits() const { return hits_; }

  /// True when take() may return a code. Needs no lock.
  bool armed(DriverCall call) const noexcept {
    return armed_[index(call)].load(std::memory_order_acquire);
  }
  void set_delay(DriverCall call, Duration real_time) noexcept {
    delays_[index(call)].store(real_time.ns, std::memory_order_relaxed);
  }
  /// Sleeps the call's delay in real time. Precondition: the driver's lock is not held.
  void dawdle(DriverCall call) const;

 private:
  struct Rule {
    DriverCall call;
    std::uint64_t remaining;  ///< calls until it fails; 0: it fails from now on
    bool forever;
    DriverCode code;
  };
  static constexpr std::size_t index(DriverCall call) { return static_cast<std::size_t>(call); }

  std::vector<Rule> rules_;
  std::uint64_t hits_ = 0;
  std::array<std::atomic<bool>, kDriverCallCount> armed_{};
  std::array<std::atomic<std::int64_t>, kDriverCallCount> delays_{};
};

}  // namespace v0
}  // namespace bursar
