// SPDX-License-Identifier: Apache-2.0
// ExtentGate: asked before each extent is created. Whoever keeps limits implements it.
//
// Payment comes before the driver call and by compare-and-swap, so that no two requests can pass a
// limit together, and a doomed large request never makes a small one that fits fail.
#pragma once

#include <utility>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>
#include <bursar/core/result.hpp>

namespace bursar {
inline namespace v0 {

/// Thread-safe; called under the device's VMM lock, so it must not block or call the driver.
class ExtentGate {
 public:
  virtual ~ExtentGate() = default;
  /// Charges `bytes` to `domain`, or refuses with over_budget (limit and what is free filled in).
  virtual result<void> charge(DomainId domain, DeviceId device, Bytes bytes) noexcept = 0;
  /// Returns a charge.
  virtual void refund(DomainId domain, DeviceId device, Bytes bytes) noexcept = 0;
};

/// A charge taken and not yet used: returned by its destructor unless committed.
class ExtentReservation {
 public:
  static result<ExtentReservation> take(ExtentGate& gate, DomainId domain, DeviceId device,
                                        Bytes bytes) noexcept {
    if (result<void> charged = gate.charge(domain, device, bytes); !charged) {
      return charged.failure();
    }
    return ExtentReservation(gate, domain, device, bytes);
  }
  ExtentReservation(ExtentReservation&& other) noexcept
      : gate_(std::exchange(other.gate_, nullptr)),
        domain_(other.domain_),
        device_(other.device_),
        bytes_(other.bytes_) {}
  ExtentReservation& operator=(ExtentReservation&&) = delete;
  ~ExtentReservation() {
    if (gate_ != nullptr) gate_->refund(domain_, device_, bytes_);
  }
  /// The extent exists: its charge stays until it is released.
  void commit() noexcept { gate_ = nullptr; }

 private:
  ExtentReservation(ExtentGate& gate, DomainId domain, DeviceId device, Bytes bytes) noexcept
      : gate_(&gate), domain_(domain), device_(device), bytes_(bytes) {}

  ExtentGate* gate_;
  DomainId domain_;
  DeviceId device_;
  Bytes bytes_;
};

}  // namespace v0
}  // namespace bursar
