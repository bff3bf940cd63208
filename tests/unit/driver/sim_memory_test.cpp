// SPDX-License-Identifier: Apache-2.0
// Extents, reservations and mappings: what the simulated driver does, and what it refuses because
// the hardware does.
#include <bursar/core/error.hpp>

#include "support/catch.hpp"

#include "sim_fixture.hpp"

namespace bursar::test {
namespace {

constexpr std::array kDevice0{DeviceId{0}};

SimOptions with_level(CapabilityLevel level) {
  SimOptions options;
  options.capability = level;
  return options;
}

TEST_CASE("an extent's bytes return when it is released", "[driver][sim]") {
  SimFixture f;
  const ExtentHandle extent = f.extent(8_MiB);
  CHECK(f.driver.extent_bytes() == 8_MiB);
  CHECK(f.driver.release(extent) == success);
  CHECK(f.driver.extent_bytes() == 0_B);
}

TEST_CASE("a released extent's bytes return only after its last unmap", "[driver][sim]") {
  SimFixture f;
  const ExtentHandle extent = f.extent();
  const VaRange a = f.mapped(extent);
  const VaRange b = f.mapped(extent);
  CHECK(f.driver.release(extent) == success);
  CHECK(f.driver.unmap(a) == success);
  CHECK(f.driver.extent_bytes() == kPage);
  CHECK(f.driver.unmap(b) == success);
  CHECK(f.driver.extent_bytes() == 0_B);
}

TEST_CASE("create refuses sizes that are no multiple of the page", "[driver][sim]") {
  SimFixture f;
  ExtentHandle out;
  CHECK(f.driver.create({}, 0_B, {}, out) == invalid_value);
  CHECK(f.driver.create({}, 3_MiB, {}, out) == invalid_value);
  CHECK(f.driver.create({1}, kPage, {}, out) == invalid_device);
  CHECK_FALSE(out);
}

TEST_CASE("create succeeds until the capacity is used up", "[driver][sim]") {
  SimOptions options;
  options.capacity = 9_MiB;
  SimFixture f(options);
  ExtentHandle out;
  f.extent(6_MiB);
  CHECK(f.driver.create({}, 4_MiB, {}, out) == out_of_memory);
  CHECK(f.driver.create({}, 2_MiB, {}, out) == success);
  MemoryInfo info;
  CHECK(f.driver.memory_info({}, info) == success);
  CHECK(info.free == 1_MiB);
  CHECK(info.total == 9_MiB);
}

TEST_CASE("a context takes its share of each device", "[driver][sim]") {
  SimOptions options;
  options.devices = 2;
  options.capacity = 1_GiB;
  options.context = 520_MiB;
  SimFixture f(options);
  MemoryInfo info;
  CHECK(f.driver.memory_info({1}, info) == success);
  CHECK(info.free == 504_MiB);
}

TEST_CASE("each device has a capacity of its own", "[driver][sim]") {
  SimOptions options;
  options.devices = 2;
  options.capacity = 4_MiB;
  SimFixture f(options);
  f.extent(4_MiB, {0});
  ExtentHandle out;
  CHECK(f.driver.create({0}, kPage, {}, out) == out_of_memory);
  CHECK(f.driver.create({1}, 4_MiB, {}, out) == success);
}

TEST_CASE("an extent is released once", "[driver][sim]") {
  SimFixture f;
  const ExtentHandle extent = f.extent();
  CHECK(f.driver.release(extent) == success);
  CHECK(f.driver.release(extent) == invalid_value);
  CHECK(f.driver.release({12345}) == invalid_value);
}

TEST_CASE("an extent is mapped whole or not at all", "[driver][sim]") {
  SimFixture f;
  const ExtentHandle extent = f.extent(4_MiB);
  const VaRange r = f.range(16_MiB);
  CHECK(f.driver.map({r.begin, 2_MiB}, extent) == not_supported);
  CHECK(f.driver.map({r.begin, 6_MiB}, extent) == invalid_value);
  CHECK(f.driver.map({r.begin + 1_MiB, 4_MiB}, extent) == invalid_value);
  CHECK(f.driver.map({r.begin, 4_MiB}, {999}) == invalid_value);
  CHECK(f.driver.mapping_count() == 0);
}

TEST_CASE("map refuses addresses that are occupied", "[driver][sim]") {
  SimFixture f;
  const VaRange r = f.range(16_MiB);
  REQUIRE(f.driver.map({r.begin + 4_MiB, 4_MiB}, f.extent(4_MiB)) == success);
  const ExtentHandle second = f.extent(4_MiB);
  CHECK(f.driver.map({r.begin + 2_MiB, 4_MiB}, second) == invalid_value);
  CHECK(f.driver.map({r.begin + 4_MiB, 4_MiB}, second) == invalid_value);
  CHECK(f.driver.map({r.begin + 6_MiB, 4_MiB}, second) == invalid_value);
  CHECK(f.driver.map({r.begin + 8_MiB, 4_MiB}, second) == success);
}

TEST_CASE("map refuses addresses outside a reservation", "[driver][sim]") {
  SimFixture f;
  const VaRange r = f.range(4_MiB);
  const ExtentHandle extent = f.extent(4_MiB);
  CHECK(f.driver.map({r.begin + 2_MiB, 4_MiB}, extent) == invalid_value);
  CHECK(f.driver.map({r.begin + 4_MiB, 4_MiB}, extent) == invalid_value);
  CHECK(f.driver.map({r.begin - 4_MiB, 4_MiB}, extent) == invalid_value);
}

TEST_CASE("set_access takes one or more whole mappings", "[driver][sim]") {
  SimFixture f;
  const VaRange r = f.range(16_MiB);
  REQUIRE(f.driver.map({r.begin, 4_MiB}, f.extent(4_MiB)) == success);
  REQUIRE(f.driver.map({r.begin + 4_MiB, 2_MiB}, f.extent(2_MiB)) == success);
  CHECK(f.driver.set_access({r.begin, 6_MiB}, kDevice0) == success);
  CHECK(f.driver.set_access({r.begin, 2_MiB}, kDevice0) == invalid_value);
  CHECK(f.driver.set_access({r.begin + 2_MiB, 4_MiB}, kDevice0) == invalid_value);
  CHECK(f.driver.set_access({r.begin, 8_MiB}, kDevice0) == invalid_value);
  CHECK(f.driver.set_access({r.begin + 8_MiB, 2_MiB}, kDevice0) == invalid_value);
  CHECK(f.driver.set_access({r.begin, 6_MiB}, {}) == invalid_value);
  CHECK(f.driver.set_access({r.begin, 6_MiB}, std::array{DeviceId{1}}) == invalid_device);
}

TEST_CASE("unmap takes exactly one mapping", "[driver][sim]") {
  SimFixture f;
  const VaRange r = f.range(16_MiB);
  REQUIRE(f.driver.map({r.begin, 4_MiB}, f.extent(4_MiB)) == success);
  REQUIRE(f.driver.map({r.begin + 4_MiB, 4_MiB}, f.extent(4_MiB)) == success);
  CHECK(f.driver.unmap({r.begin, 2_MiB}) == invalid_value);
  CHECK(f.driver.unmap({r.begin + 2_MiB, 2_MiB}) == invalid_value);
  CHECK(f.driver.unmap({r.begin, 8_MiB}) == invalid_value);
  CHECK(f.driver.unmap({r.begin, 4_MiB}) == success);
  CHECK(f.driver.unmap({r.begin, 4_MiB}) == invalid_value);
  CHECK(f.driver.mapping_count() == 1);
}

TEST_CASE("unreserve takes exactly one reservation without mappings", "[driver][sim]") {
  SimFixture f;
  const VaRange r = f.range(8_MiB);
  const VaRange mapping{r.begin + 4_MiB, 4_MiB};
  REQUIRE(f.driver.map(mapping, f.extent(4_MiB)) == success);
  CHECK(f.driver.unreserve(r) == invalid_value);
  REQUIRE(f.driver.unmap(mapping) == success);
  CHECK(f.driver.unreserve({r.begin, 4_MiB}) == invalid_value);
  CHECK(f.driver.unreserve(mapping) == invalid_value);
  CHECK(f.driver.reserved_addresses() == 8_MiB);
  CHECK(f.driver.unreserve(r) == success);
  CHECK(f.driver.reserved_addresses() == 0_B);
}

TEST_CASE("reserve refuses what is too large", "[driver][sim]") {
  SimOptions options;
  options.max_reservation = 1_GiB;
  SimFixture f(options);
  VaRange out{};
  CHECK(f.driver.reserve(1_GiB + kPage, {}, out) == out_of_memory);
  CHECK(f.driver.reserve(3_MiB, {}, out) == invalid_value);
  CHECK(f.driver.reserve(1_GiB, {}, out) == success);
}

TEST_CASE("a process gets less than 128 TiB of addresses in all", "[driver][sim]") {
  SimFixture f;
  const Bytes most = 1024_GiB * 64;
  const VaRange first = f.range(most);
  const VaRange second = f.range(most - 1_GiB);
  VaRange out{};
  CHECK(f.driver.reserve(2_GiB, {}, out) == out_of_memory);
  CHECK(f.driver.unreserve(second) == success);
  CHECK(f.driver.reserve(2_GiB, {}, out) == success);
  CHECK_FALSE(first.contains(out.begin));
}

TEST_CASE("reserve follows a hint to free addresses only", "[driver][sim]") {
  SimFixture f;
  const VaRange a = f.range(64_MiB);
  REQUIRE(f.driver.unreserve(a) == success);
  VaRange b{};
  REQUIRE(f.driver.reserve(32_MiB, a.begin, b) == success);
  CHECK(b.begin == a.begin);
  VaRange c{};
  REQUIRE(f.driver.reserve(32_MiB, a.begin + 16_MiB, c) == success);
  CHECK(c.begin >= b.end());
  REQUIRE(f.driver.unreserve(b) == success);
  VaRange d{};
  REQUIRE(f.driver.reserve(c.begin - a.begin + kPage, a.begin, d) == success);
  CHECK(d.begin >= c.end());
}

TEST_CASE("without aliases an extent has one mapping", "[driver][sim]") {
  SimFixture f(with_level(CapabilityLevel::no_aliases));
  const ExtentHandle extent = f.extent();
  const VaRange at = f.mapped(extent);
  const VaRange other = f.range();
  CHECK(f.driver.map(other, extent) == not_supported);
  REQUIRE(f.driver.unmap(at) == success);
  CHECK(f.driver.map(other, extent) == success);
}

TEST_CASE("without VMM only plain memory is to be had", "[driver][sim]") {
  SimFixture f(with_level(CapabilityLevel::no_vmm));
  ExtentHandle extent;
  VaRange range{};
  int fd = -1;
  CHECK(f.driver.create({}, kPage, {}, extent) == not_supported);
  CHECK(f.driver.release({1}) == not_supported);
  CHECK(f.driver.reserve(kPage, {}, range) == not_supported);
  CHECK(f.driver.unreserve(range) == not_supported);
  CHECK(f.driver.map(range, {1}) == not_supported);
  CHECK(f.driver.set_access(range, kDevice0) == not_supported);
  CHECK(f.driver.unmap(range) == not_supported);
  CHECK(f.driver.export_handle({1}, fd) == not_supported);
  CHECK(f.driver.import_handle({}, 0, kPage, extent) == not_supported);
  DeviceAddress address;
  CHECK(f.driver.malloc_plain({}, kPage, address) == success);
  CHECK(f.driver.free_plain(address) == success);
}

TEST_CASE("plain memory counts as an extent and not as a mapping", "[driver][sim]") {
  SimFixture f;
  DeviceAddress address;
  REQUIRE(f.driver.malloc_plain({}, 1000_B, address) == success);
  CHECK(f.driver.extent_bytes() == 1_KiB);
  CHECK(f.driver.mapping_count() == 0);
  CHECK(f.driver.unmap({address, 1_KiB}) == invalid_value);
  CHECK(f.driver.unreserve({address, kPage}) == invalid_value);
  CHECK(f.driver.free_plain(address + 512_B) == invalid_value);
  CHECK(f.driver.free_plain(address) == success);
  CHECK(f.driver.free_plain(address) == invalid_value);
  CHECK(f.driver.extent_bytes() == 0_B);
}

TEST_CASE("malloc_plain refuses nothing and too much", "[driver][sim]") {
  SimFixture f;
  DeviceAddress address;
  CHECK(f.driver.malloc_plain({}, 0_B, address) == invalid_value);
  CHECK(f.driver.malloc_plain({}, 25_GiB, address) == out_of_memory);
  CHECK(f.driver.malloc_plain({}, Bytes::max(), address) == out_of_memory);
  CHECK(f.driver.malloc_plain({-1}, kPage, address) == invalid_device);
}

TEST_CASE("options that contradict each other are refused", "[driver][sim]") {
  const auto refused = [](auto&& change) {
    SimOptions options;
    change(options);
    CHECK_THROWS_AS(SimDriver(options), Error);
  };
  refused([](SimOptions& o) { o.devices = 0; });
  refused([](SimOptions& o) { o.devices = 17; });
  refused([](SimOptions& o) { o.granularity = 3_MiB; });
  refused([](SimOptions& o) { o.context = 25_GiB; });
  refused([](SimOptions& o) { o.capacity = 1_MiB; });
  refused([](SimOptions& o) { o.max_reservation = 1_MiB; });
  refused([](SimOptions& o) { o.death_delay = milliseconds(-1); });
  refused([](SimOptions& o) {
    o.backed = true;
    o.granularity = 512_B;
  });
}

}  // namespace
}  // namespace bursar::test
