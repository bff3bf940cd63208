// SPDX-License-Identifier: Apache-2.0
// What calls cost on the simulated driver's clock, and that every one of them is metered.
#include "driver/sim/sim_prices.hpp"
#include "sim_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {
namespace {

constexpr std::array kDevice0{DeviceId{0}};

Duration nanoseconds(std::int64_t ns) { return Duration{ns}; }

/// What `call` takes on the driver's clock.
template <typename Call>
Duration cost(SimFixture& f, Call&& call) {
  const Duration before = f.driver.now();
  call();
  return f.driver.now() - before;
}

/// What one extent's life costs, call by call.
struct LifeCost {
  Duration create, map, set_access, unmap, release;
};
LifeCost life_of(Bytes size) {
  SimFixture f;
  const VaRange at = f.range(size);
  ExtentHandle extent;
  LifeCost c{};
  c.create = cost(f, [&] { extent = f.extent(size); });
  c.map = cost(f, [&] { f.must(f.driver.map(at, extent)); });
  c.set_access = cost(f, [&] { f.must(f.driver.set_access(at, kDevice0)); });
  c.unmap = cost(f, [&] { f.must(f.driver.unmap(at)); });
  c.release = cost(f, [&] { f.must(f.driver.release(extent)); });
  return c;
}

TEST_CASE("VMM calls cost what was measured at the measured sizes", "[driver][sim]") {
  const LifeCost page = life_of(2_MiB);
  CHECK(page.create == microseconds(13));
  CHECK(page.map == nanoseconds(1200));
  CHECK(page.set_access == microseconds(28));
  CHECK(page.unmap == microseconds(18));
  CHECK(page.release == microseconds(14));
  const LifeCost large = life_of(1_GiB);
  CHECK(large.create == microseconds(53));
  CHECK(large.map == nanoseconds(2400));
  CHECK(large.set_access == microseconds(82));
  CHECK(large.unmap == microseconds(36));
  CHECK(large.release == microseconds(633));
  CHECK(life_of(4_GiB).release == microseconds(2796));
}

TEST_CASE("every price is its row's at a row and the mean half way to the next", "[driver][sim]") {
  const SimPrices prices(false);
  const auto rows = sim_price_rows();
  REQUIRE(rows.size() == 7);
  for (const auto column :
       {&SimPriceRow::create, &SimPriceRow::map, &SimPriceRow::set_access, &SimPriceRow::unmap,
        &SimPriceRow::release, &SimPriceRow::malloc_plain, &SimPriceRow::free_plain}) {
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
      const auto& [low, high] = std::pair(rows[i], rows[i + 1]);
      CHECK(prices.sized(column, low.size) == low.*column);
      CHECK(prices.sized(column, high.size) == high.*column);
      const std::int64_t mean = ((low.*column).ns + (high.*column).ns) / 2;
      CHECK(prices.sized(column, (low.size + high.size) / 2) == Duration{mean});
    }
  }
}

TEST_CASE("between measured sizes the price is interpolated", "[driver][sim]") {
  const LifeCost between = life_of(48_MiB);  // half way from 32 to 64 MiB
  CHECK(between.create == nanoseconds(23'500));
  CHECK(between.release == microseconds(47));
}

TEST_CASE("above the last measured size the price goes on as between the last two",
          "[driver][sim]") {
  CHECK(life_of(7_GiB).release == microseconds(2796 + 2163));
}

TEST_CASE("below the first measured size the price is the first one's", "[driver][sim]") {
  SimOptions options;
  options.granularity = 64_KiB;
  SimFixture f(options);
  CHECK(cost(f, [&] { f.extent(64_KiB); }) == microseconds(13));
}

TEST_CASE("set_access over several mappings costs as much as one call for each", "[driver][sim]") {
  SimFixture f;
  const VaRange at = f.range(6_MiB);
  for (Bytes offset : {0_MiB, 2_MiB, 4_MiB}) {
    f.must(f.driver.map({at.begin + offset, kPage}, f.extent()));
  }
  CHECK(cost(f, [&] { f.must(f.driver.set_access(at, kDevice0)); }) == microseconds(3 * 28));
}

TEST_CASE("how many extents are alive changes no price", "[driver][sim]") {
  SimFixture f;
  for (int i = 0; i < 1000; ++i) f.mapped(f.extent());
  CHECK(cost(f, [&] { f.extent(); }) == microseconds(13));
}

TEST_CASE("plain memory costs what cudaMalloc and cudaFree do", "[driver][sim]") {
  SimFixture f;
  DeviceAddress address;
  CHECK(cost(f, [&] { f.must(f.driver.malloc_plain({}, 64_MiB, address)); }) == microseconds(77));
  CHECK(cost(f, [&] { f.must(f.driver.free_plain(address)); }) == microseconds(77));
}

TEST_CASE("free_plain waits for the device and costs the wait", "[driver][sim]") {
  SimFixture f;
  DeviceAddress address;
  f.must(f.driver.malloc_plain({}, 2_MiB, address));
  f.driver.launch({}, milliseconds(200));
  const Duration before = f.driver.meter().read().total_time();
  CHECK(cost(f, [&] { f.must(f.driver.free_plain(address)); }) ==
        milliseconds(200) + microseconds(39));
  CHECK(f.driver.meter().read().total_time() - before == milliseconds(200) + microseconds(39));
}

TEST_CASE("small calls cost their flat price", "[driver][sim]") {
  SimFixture f;
  StreamId id{};
  bool capturing = false;
  MemoryInfo info;
  CHECK(cost(f, [&] { f.range(); }) == microseconds(3));
  CHECK(cost(f, [&] { f.must(f.driver.stream_id({}, {}, id)); }) == nanoseconds(24));
  CHECK(cost(f, [&] { f.must(f.driver.stream_capturing({}, {}, capturing)); }) == nanoseconds(22));
  CHECK(cost(f, [&] { f.must(f.driver.memory_info({}, info)); }) == nanoseconds(6500));
  const EventHandle event = f.event();
  CHECK(cost(f, [&] { f.must(f.driver.event_record({}, event, {})); }) == nanoseconds(230));
  CHECK(cost(f, [&] { f.must(f.driver.event_query(event)); }) == nanoseconds(250));
  CHECK(cost(f, [&] { f.must(f.driver.stream_wait({}, {}, event)); }) == nanoseconds(200));
}

TEST_CASE("a create that does not fit costs 3.5 ms", "[driver][sim]") {
  SimFixture f;
  ExtentHandle out;
  CHECK(cost(f, [&] { CHECK(f.driver.create({}, 32_GiB, {}, out) == out_of_memory); }) ==
        microseconds(3500));
}

TEST_CASE("free of charge the clock stands still", "[driver][sim]") {
  SimOptions options;
  options.free_of_charge = true;
  SimFixture f(options);
  ExtentHandle out;
  f.mapped(f.extent());
  CHECK(f.driver.create({}, 32_GiB, {}, out) == out_of_memory);
  CHECK(f.driver.now() == Duration{});
  CHECK(f.driver.meter().read().count(DriverCall::create) == 2);
}

TEST_CASE("the meter counts every call, its price and the bytes held", "[driver][sim]") {
  SimFixture f;
  const ExtentHandle extent = f.extent(8_MiB);
  const VaRange at = f.mapped(extent, 8_MiB);
  CHECK(f.driver.unmap({at.begin, 2_MiB}) == invalid_value);
  f.must(f.driver.unmap(at));
  f.must(f.driver.release(extent));
  const MeterReading r = f.driver.meter().read();
  CHECK(r.count(DriverCall::create) == 1);
  CHECK(r.count(DriverCall::map) == 1);
  CHECK(r.count(DriverCall::set_access) == 1);
  CHECK(r.count(DriverCall::unmap) == 2);
  CHECK(r.count(DriverCall::release) == 1);
  CHECK(r.count(DriverCall::reserve) == 1);
  CHECK(r.total_time() == f.driver.now());
  CHECK(r.reserved == 0_B);
  CHECK(r.reserved_peak == 8_MiB);
}

}  // namespace
}  // namespace bursar::test
