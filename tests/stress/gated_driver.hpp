// SPDX-License-Identifier: Apache-2.0
// GatedDriver: a simulated device on which one call of a kind stays inside the driver for as long
// as the test says. So "slow" needs no clock: the call is over when the test has seen enough.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include <bursar/driver/sim_driver.hpp>

namespace bursar::test {

class GatedDriver final : public SimDriver {
 public:
  using SimDriver::SimDriver;

  /// The next call of this kind stays inside until open().
  void close(DriverCall call) {
    const std::scoped_lock lock(mutex_);
    closed_ = static_cast<int>(call);
    inside_ = false;
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    closed_ = kNone;
    inside_ = false;
    changed_.notify_all();
  }
  /// Waits until a call is inside.
  void wait_inside() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return inside_; });
  }

  DriverCode create(DeviceId device, Bytes size, ExtentProperties properties,
                    ExtentHandle& out) noexcept override {
    pass(DriverCall::create);
    return SimDriver::create(device, size, properties, out);
  }
  DriverCode release(ExtentHandle extent) noexcept override {
    pass(DriverCall::release);
    return SimDriver::release(extent);
  }
  DriverCode map(VaRange range, ExtentHandle extent) noexcept override {
    pass(DriverCall::map);
    return SimDriver::map(range, extent);
  }
  DriverCode set_access(VaRange range, std::span<const DeviceId> devices) noexcept override {
    pass(DriverCall::set_access);
    return SimDriver::set_access(range, devices);
  }
  DriverCode unmap(VaRange range) noexcept override {
    pass(DriverCall::unmap);
    return SimDriver::unmap(range);
  }
  DriverCode event_record(DeviceId device, EventHandle event,
                          StreamHandle stream) noexcept override {
    pass(DriverCall::event_record);
    return SimDriver::event_record(device, event, stream);
  }
  DriverCode event_query(EventHandle event) noexcept override {
    pass(DriverCall::event_query);
    return SimDriver::event_query(event);
  }

 private:
  static constexpr int kNone = -1;

  void pass(DriverCall call) {
    std::unique_lock lock(mutex_);
    if (closed_ != static_cast<int>(call) || inside_) return;  // one only: others go on
    inside_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return closed_ == kNone; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int closed_ = kNone;
  bool inside_ = false;
};

}  // namespace bursar::test
