// SPDX-License-Identifier: Apache-2.0
// Failures on demand.
#include <chrono>

#include "sim_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {
namespace {

TEST_CASE("the n-th call fails, once", "[driver][sim][fault]") {
  SimFixture f;
  ExtentHandle out;
  f.driver.fail(DriverCall::create, 3);
  CHECK(f.driver.create({}, kPage, {}, out) == success);
  CHECK(f.driver.create({}, kPage, {}, out) == success);
  const ExtentHandle before = out;
  CHECK(f.driver.create({}, kPage, {}, out) == out_of_memory);
  CHECK(out == before);
  CHECK(f.driver.create({}, kPage, {}, out) == success);
  CHECK(f.driver.faults_hit() == 1);
  CHECK(f.driver.extent_bytes() == kPage * 3);
}

TEST_CASE("from the n-th call on all fail until the rules are cleared", "[driver][sim][fault]") {
  SimFixture f;
  const VaRange at = f.mapped(f.extent());
  f.driver.fail(DriverCall::unmap, 1, true, unknown);
  CHECK(f.driver.unmap(at) == unknown);
  CHECK(f.driver.unmap(at) == unknown);
  f.driver.clear_faults();
  CHECK(f.driver.unmap(at) == success);
  CHECK(f.driver.faults_hit() == 2);
}

TEST_CASE("rules for several calls hold at once", "[driver][sim][fault]") {
  SimFixture f;
  EventHandle event;
  ExtentHandle extent;
  f.driver.fail(DriverCall::event_create, 1);
  f.driver.fail(DriverCall::create, 1);
  f.driver.fail(DriverCall::create, 2, false, unknown);
  CHECK(f.driver.create({}, kPage, {}, extent) == out_of_memory);
  CHECK(f.driver.create({}, kPage, {}, extent) == unknown);
  CHECK(f.driver.create({}, kPage, {}, extent) == success);
  CHECK(f.driver.event_create({}, event) == out_of_memory);
  CHECK(f.driver.event_create({}, event) == success);
}

TEST_CASE("of two rules for one call the one set first says how it fails", "[driver][sim][fault]") {
  SimFixture f;
  ExtentHandle extent;
  f.driver.fail(DriverCall::create, 1, false, unknown);
  f.driver.fail(DriverCall::create, 1, true, out_of_memory);
  CHECK(f.driver.create({}, kPage, {}, extent) == unknown);
  CHECK(f.driver.create({}, kPage, {}, extent) == out_of_memory);
  CHECK(f.driver.faults_hit() == 2);
}

TEST_CASE("a failing call costs its price and is counted", "[driver][sim][fault]") {
  SimFixture f;
  ExtentHandle out;
  f.driver.fail(DriverCall::create, 1);
  CHECK(f.driver.create({}, kPage, {}, out) == out_of_memory);
  CHECK(f.driver.now() == microseconds(13));
  CHECK(f.driver.meter().read().count(DriverCall::create) == 1);
  CHECK(f.driver.meter().read().reserved_peak == 0_B);
}

TEST_CASE("every kind of call can be made to fail", "[driver][sim][fault]") {
  SimFixture f;
  for (std::size_t i = 0; i < kDriverCallCount; ++i) {
    f.driver.fail(static_cast<DriverCall>(i), 1, true, unknown);
  }
  SimDriver& d = f.driver;
  ExtentHandle extent;
  VaRange range{};
  EventHandle event;
  StreamId id{};
  MemoryInfo info;
  DeviceAddress address;
  bool capturing = false;
  int fd = -1;
  const std::array codes{d.create({}, kPage, {}, extent),
                         d.map(range, extent),
                         d.set_access(range, {}),
                         d.unmap(range),
                         d.release(extent),
                         d.reserve(kPage, {}, range),
                         d.unreserve(range),
                         d.event_create({}, event),
                         d.event_record({}, event, {}),
                         d.event_query(event),
                         d.event_destroy(event),
                         d.stream_wait({}, {}, event),
                         d.stream_id({}, {}, id),
                         d.stream_capturing({}, {}, capturing),
                         d.memory_info({}, info),
                         d.memset({}, address, 0, kPage, {}),
                         d.export_handle(extent, fd),
                         d.import_handle({}, fd, kPage, extent),
                         d.trim_pools({}),
                         d.read({}, address, {})};
  STATIC_REQUIRE(codes.size() == kDriverCallCount);
  for (const DriverCode code : codes) CHECK(code == unknown);
  CHECK(d.malloc_plain({}, kPage, address) == unknown);
  CHECK(d.free_plain(address) == unknown);
  CHECK(d.faults_hit() == kDriverCallCount + 2);
}

TEST_CASE("a delayed call takes real time", "[driver][sim][fault]") {
  SimFixture f;
  f.driver.delay(DriverCall::create, milliseconds(5));
  const auto before = std::chrono::steady_clock::now();
  f.extent();
  // A sleep never ends early, so this bound holds on any machine.
  CHECK(std::chrono::steady_clock::now() - before >= std::chrono::milliseconds(5));
  CHECK(f.driver.now() == microseconds(13));
}

}  // namespace
}  // namespace bursar::test
