// SPDX-License-Identifier: Apache-2.0
// SimCapacity: how much memory the simulated devices have and who holds it.
//
// Either one process has the devices to itself, or several share them through a file. Only amounts
// are shared, never contents.
#pragma once

#include <memory>

#include <bursar/driver/sim_driver.hpp>

namespace bursar {
inline namespace v0 {

/// Thread-safe.
class SimCapacity {
 public:
  virtual ~SimCapacity() = default;
  /// Takes `bytes` of the device, or nothing when less is free.
  virtual bool take(DeviceId device, Bytes bytes) noexcept = 0;
  virtual void give(DeviceId device, Bytes bytes) noexcept = 0;
  virtual Bytes free(DeviceId device) noexcept = 0;
};

/// This process alone.
std::unique_ptr<SimCapacity> make_private_capacity(const SimOptions& options);

/// Shared through the file `options.shared_state`, made when it does not exist. Throws
/// Error(driver_fault) when it cannot be used, and when the contexts do not fit.
std::unique_ptr<SimCapacity> make_shared_capacity(const SimOptions& options);

}  // namespace v0
}  // namespace bursar
