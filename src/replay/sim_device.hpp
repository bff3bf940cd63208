// SPDX-License-Identifier: Apache-2.0
// SimDevice: a replay on the simulated device, with the clock that a program would have seen.
#pragma once

#include <memory>
#include <unordered_map>

#include <bursar/driver/sim_driver.hpp>

#include "replay_device.hpp"

namespace bursar {
inline namespace v0 {

struct SimDeviceOptions {
  Bytes capacity{Bytes{143'771ull << 20}};  ///< that of an H200
  Duration gpu_lag{};     ///< how far each stream runs behind the frees of its blocks
  bool detector = false;  ///< SimOptions::detector
};

class SimDevice final : public ReplayDevice {
 public:
  explicit SimDevice(const SimDeviceOptions& options = {});

  std::string name() const override { return "sim"; }
  std::vector<std::string_view> allocators() const override { return {"bursar", "segment_cache"}; }
  std::unique_ptr<ReplayTarget> make_target(std::string_view allocator) override;
  StreamHandle create_stream() override { return driver_->create_stream(); }
  void destroy_stream(StreamHandle stream) noexcept override;
  void synchronize() noexcept override { driver_->synchronize_device(); }
  Duration gpu_lag() const override { return gpu_lag_; }
  void start_pass() noexcept override;
  void reach(Duration trace_time) noexcept override;
  void use(void* block, Bytes size, StreamHandle stream) override;

  SimDriver& driver() noexcept { return *driver_; }

 private:
  std::shared_ptr<SimDriver> driver_;
  Duration gpu_lag_;
  Duration pass_start_{};                            ///< when trace time was 0
  Duration driver_time_before_{};                    ///< spent in the driver up to then
  std::unordered_map<void*, Duration> stream_ends_;  ///< when the work given to a stream is done
  std::uint64_t uses_ = 0;
};

}  // namespace v0
}  // namespace bursar
