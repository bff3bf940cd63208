// SPDX-License-Identifier: Apache-2.0
// HookedDriver: a simulated device on which something else can happen while a call is inside the
// driver. The allocator holds no lock of its own across the calls on events, so whatever another
// thread could do there, one thread can do too, and the same way each time.
#pragma once

#include <functional>
#include <utility>

#include <bursar/driver/sim_driver.hpp>

namespace bursar::test {

class HookedDriver final : public SimDriver {
 public:
  using SimDriver::SimDriver;

  /// Runs once, at the end of the next call that records or asks an event.
  void on_next_event_call(std::function<void()> hook) { hook_ = std::move(hook); }

  DriverCode event_record(DeviceId device, EventHandle event,
                          StreamHandle stream) noexcept override {
    const DriverCode code = SimDriver::event_record(device, event, stream);
    run_hook();
    return code;
  }
  DriverCode event_query(EventHandle event) noexcept override {
    const DriverCode code = SimDriver::event_query(event);
    run_hook();
    return code;
  }

 private:
  void run_hook() {
    if (const std::function<void()> hook = std::exchange(hook_, nullptr)) hook();
  }

  std::function<void()> hook_;
};

}  // namespace bursar::test
