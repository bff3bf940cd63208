// SPDX-License-Identifier: Apache-2.0
// ExtentPool: paid for before it exists, spare extents chosen, quarantine kept and retried.
#include "support/catch.hpp"
#include "unit/physical/pool_fixture.hpp"

namespace bursar::test {

TEST_CASE("an extent is paid for and counted while it exists", "[physical][extent_pool]") {
  PoolFixture f;
  Extent& extent = f.make(3);
  CHECK(extent.size == 6_MiB);
  CHECK(f.gate.held[kMine] == 6_MiB);
  CHECK(f.pool.reserved() == 6_MiB);
  REQUIRE(f.pool.release(f.lock, extent).ok());
  CHECK(f.gate.held[kMine] == 0_B);
  CHECK(f.pool.reserved() == 0_B);
  CHECK(f.pool.reserved_peak() == 6_MiB);
  CHECK(f.driver.extent_bytes() == 0_B);
  CHECK(f.valid());
}

TEST_CASE("a gate that refuses keeps the driver from being called", "[physical][extent_pool]") {
  PoolFixture f;
  f.gate.limit = 4_MiB;
  const result<Extent*> refused = f.pool.create(f.lock, PageCount{3}, kMine);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().kind == ErrorKind::over_budget);
  CHECK(f.driver.meter().read().count(DriverCall::create) == 0);
  CHECK(f.gate.held[kMine] == 0_B);
  CHECK(f.pool.reserved() == 0_B);
}

TEST_CASE("a charge is returned when the device refuses", "[physical][extent_pool]") {
  SimOptions small;
  small.capacity = 8_MiB;
  PoolFixture f(small);
  const result<Extent*> refused = f.pool.create(f.lock, PageCount{5}, kMine);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().kind == ErrorKind::device_oom);
  CHECK(refused.failure().asked == 10_MiB);
  CHECK(f.gate.held[kMine] == 0_B);
  CHECK(f.valid());
}

TEST_CASE("an unknown failure of create is never out of memory", "[physical][extent_pool]") {
  PoolFixture f;
  f.fail(DriverCall::create);
  const result<Extent*> refused = f.pool.create(f.lock, PageCount{1}, kMine);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().kind == ErrorKind::driver_fault);
  CHECK(refused.failure().driver_code == static_cast<int>(DriverCode::unknown));
}

TEST_CASE("the largest spare extent that fits is taken", "[physical][extent_pool]") {
  PoolFixture f;
  for (const std::uint32_t pages : {1u, 4u, 16u, 2u}) f.spare(pages);
  CHECK(f.pool.spare() == 46_MiB);
  CHECK(f.pool.take_spare(f.lock, PageCount{8}, kMine)->pages == PageCount{4});
  CHECK(f.pool.take_spare(f.lock, PageCount{3}, kMine)->pages == PageCount{2});
  CHECK(f.pool.take_spare(f.lock, PageCount{1}, kMine)->pages == PageCount{1});
  CHECK(f.pool.take_spare(f.lock, PageCount{15}, kMine) == nullptr);
  CHECK(f.pool.spare() == 32_MiB);
}

TEST_CASE("a spare extent taken by another domain is paid by it", "[physical][extent_pool]") {
  PoolFixture f;
  f.spare(2, kOther);
  REQUIRE(f.pool.take_spare(f.lock, PageCount{2}, kMine) != nullptr);
  CHECK(f.gate.held[kMine] == 4_MiB);
  CHECK(f.gate.held[kOther] == 0_B);
}

TEST_CASE("a spare extent that the domain may not pay stays", "[physical][extent_pool]") {
  PoolFixture f;
  f.spare(2, kOther);
  f.gate.limit = 2_MiB;
  CHECK(f.pool.take_spare(f.lock, PageCount{2}, kMine) == nullptr);
  CHECK(f.gate.held[kOther] == 4_MiB);
  CHECK(f.pool.spare() == 4_MiB);
  CHECK(f.valid());
}

TEST_CASE("spare extents are released largest first until enough is", "[physical][extent_pool]") {
  PoolFixture f;
  for (const std::uint32_t pages : {1u, 8u, 2u}) f.spare(pages);
  CHECK(f.pool.release_spare(f.lock, 17_MiB) == 20_MiB);
  CHECK(f.pool.spare() == 2_MiB);
  CHECK(f.pool.release_spare(f.lock, 64_MiB) == 2_MiB);
  CHECK(f.pool.reserved() == 0_B);
}

TEST_CASE("an extent that cannot be released is quarantined, paid and retried",
          "[physical][extent_pool]") {
  PoolFixture f;
  Extent& extent = f.make(2);
  f.fail(DriverCall::release);
  CHECK(f.pool.release(f.lock, extent).failure().kind == ErrorKind::driver_fault);
  CHECK(f.pool.quarantined() == 4_MiB);
  CHECK(f.pool.reserved() == 4_MiB);
  CHECK(f.gate.held[kMine] == 4_MiB);
  CHECK(f.valid());
  CHECK(f.pool.take_spare(f.lock, PageCount{8}, kMine) == nullptr);

  CHECK(f.pool.retry_quarantine(f.lock).empty());
  CHECK(f.pool.quarantined() == 0_B);
  CHECK(f.gate.held[kMine] == 0_B);
  CHECK(f.driver.extent_bytes() == 0_B);
}

TEST_CASE("spare extents that cannot be released are not counted as given", "[physical]") {
  PoolFixture f;
  f.spare(1);
  f.spare(2);
  f.fail(DriverCall::release);
  CHECK(f.pool.release_spare(f.lock, 6_MiB) == 2_MiB);
  CHECK(f.pool.quarantined() == 4_MiB);
  CHECK(f.pool.spare() == 0_B);
  CHECK(f.valid());
}

TEST_CASE("the peak begins anew from what is held", "[physical][extent_pool]") {
  PoolFixture f;
  Extent& extent = f.make(4);
  f.make(1);
  REQUIRE(f.pool.release(f.lock, extent).ok());
  f.pool.reset_peak();
  CHECK(f.pool.reserved_peak() == 2_MiB);
}

TEST_CASE("a pool gives back every extent at its end", "[physical][extent_pool]") {
  SimDriver driver;
  RecordingGate gate;
  {
    ExtentPool pool(driver, {}, gate);
    RankedMutex<LockRank::vmm> mutex;
    VmmLock lock(mutex);
    pool.keep_spare(lock, **pool.create(lock, PageCount{1}, kMine));
    REQUIRE(pool.create(lock, PageCount{2}, kMine).ok());
    driver.fail(DriverCall::release, 1, false, DriverCode::unknown);
    REQUIRE_FALSE(pool.release(lock, **pool.create(lock, PageCount{3}, kMine)).ok());
    CHECK(driver.extent_bytes() == 12_MiB);
  }
  CHECK(driver.extent_bytes() == 0_B);
  CHECK(gate.held[kMine] == 0_B);
}

TEST_CASE("without VMM an extent is an allocation with an address for life", "[physical]") {
  SimOptions plain;
  plain.capability = CapabilityLevel::no_vmm;
  SimDriver driver(plain);
  RecordingGate gate;
  ExtentPool pool(driver, {}, gate);
  RankedMutex<LockRank::vmm> mutex;
  VmmLock lock(mutex);
  Extent& extent = **pool.create(lock, PageCount{2}, kMine);
  CHECK(extent.state == ExtentState::mapped);
  CHECK(extent.mapped_at != DeviceAddress{});
  REQUIRE(pool.release(lock, extent).ok());
  CHECK(driver.extent_bytes() == 0_B);
}

TEST_CASE("a reservation that is not committed is returned", "[physical][extent_gate]") {
  RecordingGate gate;
  {
    result<ExtentReservation> paid = ExtentReservation::take(gate, kMine, {}, 2_MiB);
    REQUIRE(paid.ok());
    const ExtentReservation moved = std::move(*paid);
    CHECK(gate.held[kMine] == 2_MiB);
  }
  CHECK(gate.held[kMine] == 0_B);
  ExtentReservation::take(gate, kMine, {}, 2_MiB)->commit();
  CHECK(gate.held[kMine] == 2_MiB);
}

}  // namespace bursar::test
