// SPDX-License-Identifier: Apache-2.0
// EventPool: unused events of one device, since creating one costs more than recording it.
#pragma once

#include <mutex>
#include <vector>

#include <bursar/core/lock_rank.hpp>
#include <bursar/driver/driver.hpp>

namespace bursar {
inline namespace v0 {

/// Thread-safe. The driver is called outside its lock.
class EventPool {
 public:
  EventPool(Driver& driver, DeviceId device) : driver_(driver), device_(device) {}
  /// Destroys the events that were returned.
  ~EventPool() {
    for (const EventHandle event : unused_) (void)driver_.event_destroy(event);
  }
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  DriverCode take(EventHandle& out) {
    {
      const std::scoped_lock lock(mutex_);
      if (!unused_.empty()) {
        out = unused_.back();
        unused_.pop_back();
        return DriverCode::success;
      }
    }
    return driver_.event_create(device_, out);
  }
  void give_back(EventHandle event) {
    const std::scoped_lock lock(mutex_);
    unused_.push_back(event);
  }

 private:
  Driver& driver_;
  DeviceId device_;
  RankedMutex<LockRank::event_pool> mutex_;
  std::vector<EventHandle> unused_;
};

}  // namespace v0
}  // namespace bursar
