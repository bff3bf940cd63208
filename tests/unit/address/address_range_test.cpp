// SPDX-License-Identifier: Apache-2.0
// AddressRange: asked for generously, stepped down when refused, its table made where it is used.
#include <bursar/address/address_range.hpp>

#include <bursar/driver/sim_driver.hpp>

#include "support/catch.hpp"

namespace bursar::test {

using namespace bursar::literals;

namespace {
constexpr Bytes kPage = 2_MiB;

SimOptions refusing_above(Bytes most) {
  SimOptions options;
  options.max_reservation = most;
  return options;
}
}  // namespace

TEST_CASE("a range is as large as wanted where that is allowed", "[address][address_range]") {
  SimDriver driver;
  {
    const auto range = AddressRange::reserve(driver, {}, kPage, 1_GiB, kPage);
    REQUIRE(range.ok());
    CHECK((*range)->where().size == 1_GiB);
    CHECK(driver.reserved_addresses() == 1_GiB);
  }
  CHECK(driver.reserved_addresses() == 0_B);
}

TEST_CASE("a range steps down by halves when refused", "[address][address_range]") {
  SimDriver driver(refusing_above(100_MiB));
  const auto range = AddressRange::reserve(driver, {}, kPage, 1_GiB, kPage);
  REQUIRE(range.ok());
  CHECK((*range)->where().size == 64_MiB);
}

TEST_CASE("a range never steps below the least it must have", "[address][address_range]") {
  SimDriver driver(refusing_above(100_MiB));
  const auto least = AddressRange::reserve(driver, {}, kPage, 1_GiB, 90_MiB);
  REQUIRE(least.ok());
  CHECK((*least)->where().size == 90_MiB);
  const auto refused = AddressRange::reserve(driver, {}, kPage, 1_GiB, 102_MiB);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().kind == ErrorKind::va_exhausted);
}

TEST_CASE("a range does not ask again after a fatal error", "[address][address_range]") {
  SimDriver driver;
  driver.fail(DriverCall::reserve, 1, true, DriverCode::illegal_address);
  const auto refused = AddressRange::reserve(driver, {}, kPage, 1_GiB, kPage);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().kind == ErrorKind::device_lost);
  CHECK(driver.faults_hit() == 1);
}

TEST_CASE("the page table is made chunk by chunk", "[address][address_range]") {
  SimDriver driver;
  const auto made = AddressRange::reserve(driver, {}, kPage, 16_GiB, kPage);
  AddressRange& range = **made;
  const Bytes before = range.metadata();
  const DeviceAddress far = range.where().begin + 9_GiB;
  CHECK(range.find_slot(far) == nullptr);
  Extent extent;
  range.set_extent({far, 4_MiB}, &extent);
  CHECK(range.extent_at(far + 3_MiB) == &extent);
  CHECK(range.extent_at(far + 4_MiB) == nullptr);
  CHECK(range.find_slot(range.where().begin) == nullptr);
  CHECK(range.metadata() - before == Bytes{512 * sizeof(PageSlot)});
}

TEST_CASE("backed bytes count parts of pages and pass over unused chunks", "[address]") {
  SimDriver driver;
  const auto made = AddressRange::reserve(driver, {}, kPage, 16_GiB, kPage);
  AddressRange& range = **made;
  const DeviceAddress begin = range.where().begin;
  Extent extent;
  range.set_extent({begin + 2_MiB, 2_MiB}, &extent);
  range.set_extent({begin + 12_GiB, 6_MiB}, &extent);
  CHECK(range.backed_bytes(range.where()) == 8_MiB);
  CHECK(range.backed_bytes({begin + 3_MiB, 12_GiB}) == 1_MiB + 3_MiB);
  CHECK(range.backed_bytes({begin + 3_MiB, 512_B}) == 512_B);
  CHECK(range.backed_bytes({begin, 1_MiB}) == 0_B);
}

TEST_CASE("a range over memory that lies there gives nothing back", "[address][address_range]") {
  SimDriver driver;
  VaRange where{};
  REQUIRE(driver.reserve(4_MiB, {}, where) == DriverCode::success);
  { const auto range = AddressRange::over(driver, where, kPage); }
  CHECK(driver.reserved_addresses() == 4_MiB);
  CHECK(driver.meter().read().count(DriverCall::unreserve) == 0);
}

}  // namespace bursar::test
