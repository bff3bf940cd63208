// SPDX-License-Identifier: Apache-2.0
// The detector: memory that goes away while work may use it, and work without memory.
#include "driver/sim/sim_access_history.hpp"
#include "sim_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {
namespace {

SimOptions watched(int devices = 1) {
  SimOptions options;
  options.detector = true;
  options.devices = devices;
  return options;
}

std::size_t unmapped_in_use(const SimFixture& f) {
  return count(f.driver, Violation::Kind::unmapped_in_use);
}

TEST_CASE("an unmap before the host has seen the work complete is reported",
          "[driver][sim][detector]") {
  SimFixture f(watched());
  const StreamHandle s = f.driver.create_stream();
  const VaRange at = f.mapped(f.extent());
  f.use(s, at, 1);
  SECTION("at once") {
    f.must(f.driver.unmap(at));
    CHECK(unmapped_in_use(f) == 1);
  }
  SECTION("later, when nobody has looked") {
    f.driver.advance_to(milliseconds(1000));
    f.must(f.driver.unmap(at));
    CHECK(unmapped_in_use(f) == 1);
  }
  SECTION("but not after a synchronization") {
    f.driver.synchronize(s);
    f.must(f.driver.unmap(at));
    CHECK(f.driver.violations().empty());
  }
  SECTION("nor after an event query that said yes") {
    const EventHandle event = f.recorded(s);
    f.driver.advance_to(milliseconds(1000));
    f.must(f.driver.event_query(event));
    f.must(f.driver.unmap(at));
    CHECK(f.driver.violations().empty());
  }
}

TEST_CASE("an event recorded before the last use does not allow an unmap",
          "[driver][sim][detector]") {
  SimFixture f(watched());
  const StreamHandle s = f.driver.create_stream();
  const VaRange at = f.mapped(f.extent());
  f.use(s, at, 1);
  const EventHandle event = f.recorded(s);
  f.use(s, at, 1);
  f.driver.advance_to(milliseconds(1000));
  f.must(f.driver.event_query(event));
  f.must(f.driver.unmap(at));
  CHECK(unmapped_in_use(f) == 1);
}

TEST_CASE("an unmap looks at its own mapping's uses only", "[driver][sim][detector]") {
  SimFixture f(watched());
  const StreamHandle s = f.driver.create_stream();
  const ExtentHandle extent = f.extent();
  const VaRange unused = f.mapped(extent);
  const VaRange used = f.mapped(extent);
  f.use(s, used, 1);
  f.must(f.driver.unmap(unused));
  CHECK(f.driver.violations().empty());
  f.must(f.driver.unmap(used));
  CHECK(unmapped_in_use(f) == 1);
}

TEST_CASE("every stream that used a mapping must be done", "[driver][sim][detector]") {
  SimFixture f(watched());
  const StreamHandle a = f.driver.create_stream();
  const StreamHandle b = f.driver.create_stream();
  const VaRange at = f.mapped(f.extent());
  f.use(a, at, 1);
  f.use(b, at, 1);
  f.driver.synchronize(b);
  f.must(f.driver.unmap(at));
  CHECK(unmapped_in_use(f) == 1);
}

TEST_CASE("an extent that goes while work may use it is reported", "[driver][sim][detector]") {
  SimFixture f(watched());
  const StreamHandle s = f.driver.create_stream();
  const ExtentHandle extent = f.extent();
  const VaRange at = f.mapped(extent);
  f.use(s, at, 1);
  SECTION("by release after an early unmap") {
    f.must(f.driver.unmap(at));
    f.must(f.driver.release(extent));
    CHECK(count(f.driver, Violation::Kind::released_in_use) == 1);
  }
  SECTION("not by a release that the mapping outlives") {
    f.must(f.driver.release(extent));
    CHECK(f.driver.violations().empty());
    f.must(f.driver.unmap(at));
    CHECK(count(f.driver, Violation::Kind::released_in_use) == 1);
  }
}

TEST_CASE("free_plain waits for the device, so it is never too early", "[driver][sim][detector]") {
  SimFixture f(watched());
  DeviceAddress address;
  f.must(f.driver.malloc_plain({}, kPage, address));
  f.use(f.driver.create_stream(), {address, kPage}, 1);
  f.must(f.driver.free_plain(address));
  CHECK(f.driver.violations().empty());
  CHECK(f.driver.now() >= milliseconds(1));
}

TEST_CASE("work is reported that is given addresses without memory", "[driver][sim][detector]") {
  SimFixture f(watched());
  const auto unmapped = [&] { return count(f.driver, Violation::Kind::access_unmapped); };
  const VaRange at = f.range(4_MiB);
  f.use({}, at, 1);
  CHECK(unmapped() == 1);
  f.must(f.driver.map({at.begin, kPage}, f.extent()));
  f.use({}, at, 1);
  CHECK(unmapped() == 2);  // no access rights yet
  f.must(f.driver.set_access({at.begin, kPage}, std::array{DeviceId{}}));
  f.use({}, at, 1, 0_B, kPage);
  CHECK(unmapped() == 2);
  f.use({}, at, 1, 0_B, kPage + 1_B);
  CHECK(unmapped() == 3);
}

TEST_CASE("a memset without memory or rights is refused and reported", "[driver][sim][detector]") {
  SimFixture f(watched());
  const VaRange at = f.range();
  CHECK(f.driver.memset({}, at.begin, 0, 512_B, {}) == invalid_value);
  f.must(f.driver.map(at, f.extent()));
  CHECK(f.driver.memset({}, at.begin, 0, 512_B, {}) == invalid_value);
  f.must(f.driver.set_access(at, std::array{DeviceId{}}));
  CHECK(f.driver.memset({}, at.begin, 0, kPage, {}) == success);
  CHECK(f.driver.memset({}, at.begin, 0, kPage + 1_B, {}) == invalid_value);
  CHECK(count(f.driver, Violation::Kind::access_unmapped) == 3);
  CHECK(f.driver.memset({}, at.begin, 0, Bytes::max(), {}) == invalid_value);
}

TEST_CASE("work of a device needs that device's access rights", "[driver][sim][detector]") {
  SimFixture f(watched(2));
  const StreamHandle peer = f.driver.create_stream({1});
  const VaRange at = f.mapped(f.extent());
  f.use(peer, at, 1);
  CHECK(count(f.driver, Violation::Kind::access_unmapped) == 1);
  f.must(f.driver.set_access(at, std::array{DeviceId{1}}));
  f.use(peer, at, 1);
  f.use({}, at, 1);
  CHECK(count(f.driver, Violation::Kind::access_unmapped) == 1);
}

TEST_CASE("the history forgets what the host has seen complete", "[driver][sim][detector]") {
  SimAccessHistory history;
  SimClock host;
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    const SimEpoch work{0, i};
    CHECK(history.record({i * 512, i * 512 + 512}, work, i, host, host).empty());
    host.see(work);
  }
  CHECK(history.segment_count() < 200);
}

TEST_CASE("the number of violations kept is bounded", "[driver][sim][detector]") {
  SimFixture f(watched());
  const VaRange at = f.range();
  for (int i = 0; i < 2000; ++i) f.use({}, at, 1);
  CHECK(f.driver.violations().size() == 1000);
}

}  // namespace
}  // namespace bursar::test
