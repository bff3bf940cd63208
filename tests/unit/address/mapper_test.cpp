// SPDX-License-Identifier: Apache-2.0
// Mapper: whatever fails, the extent is where it was, or quarantined where it cannot be undone.
#include "support/catch.hpp"
#include "unit/physical/pool_fixture.hpp"

namespace bursar::test {
namespace {

struct MapperFixture : PoolFixture {
  explicit MapperFixture(SimOptions options = {}) : PoolFixture(options) {
    (void)driver.reserve(64_MiB, {}, range);
  }
  DeviceAddress at(Bytes offset) const { return range.begin + offset; }

  VaRange range{};
  Extent& extent = make(2);
};

}  // namespace

TEST_CASE("a mapped extent knows its address and can be taken away", "[address][mapper]") {
  MapperFixture f;
  REQUIRE(f.mapper.map(f.lock, f.extent, f.at(4_MiB)).ok());
  CHECK(f.extent.mapped_at == f.at(4_MiB));
  CHECK(f.extent.state == ExtentState::mapped);
  CHECK(f.driver.mapping_count() == 1);
  REQUIRE(f.mapper.unmap(f.lock, f.extent).ok());
  CHECK(f.extent.mapped_at == DeviceAddress{});
  CHECK(f.driver.mapping_count() == 0);
}

TEST_CASE("a map whose first or second call fails leaves nothing behind", "[address][mapper]") {
  MapperFixture f;
  f.fail(GENERATE(DriverCall::map, DriverCall::set_access));
  const result<void> mapped = f.mapper.map(f.lock, f.extent, f.at(0_B));
  REQUIRE_FALSE(mapped.ok());
  CHECK(mapped.failure().kind == ErrorKind::driver_fault);
  CHECK(f.extent.state == ExtentState::spare);
  CHECK(f.extent.mapped_at == DeviceAddress{});
  CHECK(f.driver.mapping_count() == 0);
}

TEST_CASE("a map that cannot be undone quarantines until the undo works", "[address][mapper]") {
  MapperFixture f;
  f.fail(DriverCall::set_access);
  f.fail(DriverCall::unmap);
  REQUIRE_FALSE(f.mapper.map(f.lock, f.extent, f.at(2_MiB)).ok());
  CHECK(f.extent.state == ExtentState::quarantined);
  CHECK(f.extent.mapped_at == f.at(2_MiB));
  CHECK(f.pool.quarantined() == 4_MiB);
  CHECK(f.valid());

  f.fail(DriverCall::unmap);
  CHECK(f.pool.retry_quarantine(f.lock).empty());
  CHECK(f.pool.quarantined() == 4_MiB);
  const std::vector<VaRange> freed = f.pool.retry_quarantine(f.lock);
  CHECK(freed == std::vector<VaRange>{{f.at(2_MiB), 4_MiB}});
  CHECK(f.pool.reserved() == 0_B);
  CHECK(f.driver.mapping_count() == 0);
}

TEST_CASE("an unmap that fails leaves the extent usable where it is", "[address][mapper]") {
  MapperFixture f;
  REQUIRE(f.mapper.map(f.lock, f.extent, f.at(0_B)).ok());
  f.fail(DriverCall::unmap);
  REQUIRE_FALSE(f.mapper.unmap(f.lock, f.extent).ok());
  CHECK(f.extent.state == ExtentState::mapped);
  CHECK(f.extent.mapped_at == f.at(0_B));
  CHECK(f.driver.mapping_count() == 1);
}

TEST_CASE("a second mapping makes the first an old one", "[address][mapper]") {
  MapperFixture f;
  bool stuck = true;
  REQUIRE(f.mapper.map(f.lock, f.extent, f.at(0_B)).ok());
  REQUIRE(f.mapper.map_again(f.lock, f.extent, f.at(8_MiB), stuck).ok());
  CHECK_FALSE(stuck);
  CHECK(f.extent.mapped_at == f.at(8_MiB));
  CHECK(f.extent.old_mappings == 1);
  f.fail(DriverCall::unmap);
  REQUIRE_FALSE(f.mapper.unmap_old(f.lock, f.extent, f.at(0_B)).ok());
  CHECK(f.extent.old_mappings == 1);
  REQUIRE(f.mapper.unmap_old(f.lock, f.extent, f.at(0_B)).ok());
  CHECK(f.extent.old_mappings == 0);
  CHECK(f.driver.mapping_count() == 1);
}

TEST_CASE("a second mapping that fails leaves the first alone", "[address][mapper]") {
  MapperFixture f;
  bool stuck = true;
  REQUIRE(f.mapper.map(f.lock, f.extent, f.at(0_B)).ok());
  f.fail(GENERATE(DriverCall::map, DriverCall::set_access));
  REQUIRE_FALSE(f.mapper.map_again(f.lock, f.extent, f.at(8_MiB), stuck).ok());
  CHECK_FALSE(stuck);
  CHECK(f.extent.mapped_at == f.at(0_B));
  CHECK(f.extent.old_mappings == 0);
  CHECK(f.driver.mapping_count() == 1);
}

TEST_CASE("a second mapping that cannot be undone is reported as one more old one",
          "[address][mapper]") {
  MapperFixture f;
  bool stuck = false;
  REQUIRE(f.mapper.map(f.lock, f.extent, f.at(0_B)).ok());
  f.fail(DriverCall::set_access);
  f.fail(DriverCall::unmap);
  REQUIRE_FALSE(f.mapper.map_again(f.lock, f.extent, f.at(8_MiB), stuck).ok());
  CHECK(stuck);
  CHECK(f.extent.mapped_at == f.at(0_B));
  CHECK(f.extent.old_mappings == 1);
  REQUIRE(f.mapper.unmap_old(f.lock, f.extent, f.at(8_MiB)).ok());
  CHECK(f.driver.mapping_count() == 1);
}

TEST_CASE("every device of the access list may use a mapping", "[address][mapper]") {
  SimOptions two;
  two.devices = 2;
  MapperFixture f(two);
  Mapper shared(f.driver, f.pool, {DeviceId{0}, DeviceId{1}});
  REQUIRE(shared.map(f.lock, f.extent, f.at(0_B)).ok());
  for (const DeviceId device : {DeviceId{0}, DeviceId{1}}) {
    CHECK(f.driver.memset(device, f.at(0_B), 0, 4_MiB, {}) == DriverCode::success);
  }
}

}  // namespace bursar::test
