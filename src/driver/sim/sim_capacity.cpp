// SPDX-License-Identifier: Apache-2.0
// How much of the simulated device's memory is taken, in one process.
#include "sim_capacity.hpp"

#include <atomic>
#include <vector>

namespace bursar {
inline namespace v0 {
namespace {

class PrivateCapacity final : public SimCapacity {
 public:
  explicit PrivateCapacity(const SimOptions& options)
      : free_(static_cast<std::size_t>(options.devices)) {
    for (auto& free : free_) free.store((options.capacity - options.context).count);
  }

  bool take(DeviceId device, Bytes bytes) noexcept override {
    std::atomic<std::uint64_t>& free = of(device);
    std::uint64_t now = free.load(std::memory_order_relaxed);
    while (now >= bytes.count) {
      if (free.compare_exchange_weak(now, now - bytes.count, std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  void give(DeviceId device, Bytes bytes) noexcept override {
    of(device).fetch_add(bytes.count, std::memory_order_relaxed);
  }
  Bytes free(DeviceId device) noexcept override {
    return Bytes{of(device).load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t>& of(DeviceId device) {
    return free_[static_cast<std::size_t>(device.value)];
  }
  std::vector<std::atomic<std::uint64_t>> free_;
};

}  // namespace

std::unique_ptr<SimCapacity> make_private_capacity(const SimOptions& options) {
  return std::make_unique<PrivateCapacity>(options);
}

}  // namespace v0
}  // namespace bursar
