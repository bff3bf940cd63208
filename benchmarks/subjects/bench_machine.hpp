// SPDX-License-Identifier: Apache-2.0
// BenchMachine: the device that latency is measured on, and which allocators there are to compare.
//
// It is a ReplayDevice with its driver, so peers are reached as in a replay. On the simulated
// device wall time is measured, not the virtual clock; as hits make no driver call for memory, it
// is the time of the allocator alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <bursar/driver/driver.hpp>
#include <bursar/driver/sim_driver.hpp>

#include "replay/replay_device.hpp"

namespace bursar {
inline namespace v0 {

class BenchMachine {
 public:
  /// `sim`, `cuda`, or `auto`: cuda where there is a GPU. Throws Error(not_supported) where `cuda`
  /// is not there.
  explicit BenchMachine(std::string_view kind);

  ReplayDevice& device() const noexcept { return *device_; }
  const std::shared_ptr<Driver>& driver() const noexcept { return driver_; }
  /// Null on a GPU.
  SimDriver* simulated() const noexcept { return sim_; }
  /// `bursar` first, then `tcmalloc` where it can be loaded, then those on the same GPU.
  const std::vector<std::string>& allocators() const noexcept { return allocators_; }

 private:
  std::shared_ptr<ReplayDevice> device_;
  std::shared_ptr<Driver> driver_;
  SimDriver* sim_ = nullptr;
  std::vector<std::string> allocators_;
};

/// Streams that exist as long as this does.
class BenchStreams {
 public:
  /// Throws Error(driver_fault).
  BenchStreams(ReplayDevice& device, int count);
  ~BenchStreams();
  BenchStreams(const BenchStreams&) = delete;
  BenchStreams& operator=(const BenchStreams&) = delete;

  const std::vector<StreamHandle>& handles() const noexcept { return handles_; }

 private:
  ReplayDevice& device_;
  std::vector<StreamHandle> handles_;
};

}  // namespace v0
}  // namespace bursar
