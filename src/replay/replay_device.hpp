// SPDX-License-Identifier: Apache-2.0
// ReplayDevice: where a replay takes place, and what time means there.
//
// On a GPU events follow each other as fast as they can. On the simulated device time in a replay
// is trace time plus driver time, and a block can be given a kernel that is still running when the
// program frees it, as programs that run ahead of their GPU do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <bursar/driver/driver.hpp>

#include "replay_target.hpp"

namespace bursar {
inline namespace v0 {

/// One thread at a time.
class ReplayDevice {
 public:
  ReplayDevice() = default;
  ReplayDevice(const ReplayDevice&) = delete;
  ReplayDevice& operator=(const ReplayDevice&) = delete;
  virtual ~ReplayDevice() = default;

  /// "sim", or the GPU's name.
  virtual std::string name() const = 0;
  /// The allocators it can be asked for, `bursar` first.
  virtual std::vector<std::string_view> allocators() const = 0;
  /// Precondition: `allocator` is one of allocators(). Throws Error, for bad options in
  /// BURSAR_CONF with kind invalid_argument.
  virtual std::unique_ptr<ReplayTarget> make_target(std::string_view allocator) = 0;

  /// Throws Error(driver_fault).
  virtual StreamHandle create_stream() = 0;
  virtual void destroy_stream(StreamHandle stream) noexcept = 0;
  /// Waits for all work.
  virtual void synchronize() noexcept = 0;

  /// How much later than its free a block's last kernel ends.
  virtual Duration gpu_lag() const { return {}; }
  /// Trace time 0 is now.
  virtual void start_pass() noexcept {}
  /// Called before each event.
  virtual void reach(Duration /*trace_time*/) noexcept {}
  /// Called before each free: the last use of a block.
  virtual void use(void* /*block*/, Bytes /*size*/, StreamHandle /*stream*/) {}
};

}  // namespace v0
}  // namespace bursar
