// SPDX-License-Identifier: Apache-2.0
// An ExtentPool and a Mapper over a simulated device, with the lock that both want.
#pragma once

#include <bursar/address/mapper.hpp>
#include <bursar/driver/sim_driver.hpp>
#include <bursar/physical/extent_pool.hpp>

#include "unit/physical/recording_gate.hpp"

namespace bursar::test {

using namespace bursar::literals;

inline constexpr Bytes kPage = 2_MiB;
inline constexpr DomainId kMine{1};
inline constexpr DomainId kOther{2};

class PoolFixture {
 public:
  explicit PoolFixture(SimOptions options = {}) : driver(options) {}
  /// As a heap does at its end: the pool wants to be unmapped.
  ~PoolFixture() {
    driver.clear_faults();
    for (const auto& extent : pool.extents(lock)) {
      if (extent->mapped_at != DeviceAddress{}) {
        (void)driver.unmap({extent->mapped_at, extent->size});
      }
    }
  }

  Extent& make(std::uint32_t pages, DomainId domain = kMine) {
    return **pool.create(lock, PageCount{pages}, domain);
  }
  Extent& spare(std::uint32_t pages, DomainId domain = kMine) {
    Extent& extent = make(pages, domain);
    pool.keep_spare(lock, extent);
    return extent;
  }
  void fail(DriverCall call, std::uint64_t nth = 1) {
    driver.fail(call, nth, false, DriverCode::unknown);
  }
  bool valid() const { return pool.validate(lock).ok(); }

  RecordingGate gate;
  SimDriver driver;
  RankedMutex<LockRank::vmm> mutex;
  ExtentPool pool{driver, {}, gate};
  Mapper mapper{driver, pool, {DeviceId{}}};
  VmmLock lock{mutex};
};

}  // namespace bursar::test
