// SPDX-License-Identifier: Apache-2.0
// Domains: limits that hold, idle memory that moves between them, and extents that never mix.
#include <random>
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {

using enum ErrorKind;

TEST_CASE("a limit refuses growth and names what is free and the limit",
          "[allocator][contract][domain]") {
  AllocatorFixture f(any_shape());
  const DomainId domain = f.domain(8_MiB);
  f.get(6_MiB, f.a, domain);
  try {
    f.get(4_MiB, f.a, domain);
    FAIL("the limit was passed");
  } catch (const OutOfMemory& oom) {
    const OomReport& report = oom.report();
    CHECK(report.cause.kind == over_budget);
    CHECK(report.cause.limit == 8_MiB);
    CHECK(report.cause.asked == 4_MiB);
    CHECK(report.cause.free + report.domain_held.reserved == 8_MiB);
    CHECK(report.domain == domain);
  }
  CHECK(f.stats(domain).reserved <= 8_MiB);
  CHECK(f.stats(domain).out_of_memory == 1);
}

TEST_CASE("a limit leaves other domains alone", "[allocator][contract][domain]") {
  AllocatorFixture f(any_shape());
  const DomainId tight = f.domain(2_MiB);
  CHECK(kind_of(f.ask(16_MiB, f.a, tight)) == over_budget);
  CHECK(f.ask(16_MiB, f.a, f.domain()).ok());
}

TEST_CASE("a domain at its limit reclaims its own idle memory", "[allocator][contract][domain]") {
  AllocatorFixture f(any_shape());
  const DomainId domain = f.domain(16_MiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(f.get(2_MiB, f.a, domain));
  for (std::size_t i = 0; i < 8; i += 2) f.free(blocks[i]);
  CHECK(f.ask(8_MiB, f.a, domain).ok());
  CHECK(f.driver->meter().read().reserved_peak <= 16_MiB);
  CHECK(kind_of(f.ask(2_MiB, f.a, domain)) == over_budget);
}

TEST_CASE("large idle extents make way for small blocks at a limit",
          "[allocator][contract][domain]") {
  AllocatorFixture f(any_shape());
  const DomainId domain = f.domain(32_MiB);
  f.free(f.get(32_MiB, f.a, domain));
  std::vector<void*> blocks;
  for (int i = 0; i < 30; ++i) blocks.push_back(f.get(1000_KiB, f.a, domain));
  CHECK(f.stats(domain).reserved <= 32_MiB);
}

TEST_CASE("idle memory of other domains serves when the device is full",
          "[allocator][contract][domain]") {
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  const DomainId rich = f.domain();
  const DomainId poor = f.domain();
  f.free(f.get(48_MiB, f.a, rich));
  CHECK(f.ask(40_MiB, f.a, poor).ok());
  CHECK(f.stats(rich).reserved <= 24_MiB);
  CHECK(f.stats(poor).reserved >= 40_MiB);
}

TEST_CASE("a domain over its limit takes nothing from others", "[allocator][contract][domain]") {
  AllocatorFixture f(any_shape());
  const DomainId tight = f.domain(4_MiB);
  f.free(f.get(16_MiB));
  CHECK(kind_of(f.ask(8_MiB, f.a, tight)) == over_budget);
  CHECK(f.stats(kDefaultDomain).idle + f.stats(tight).idle >= 16_MiB);
}

TEST_CASE("a lowered limit refuses growth and takes nothing away",
          "[allocator][contract][domain]") {
  AllocatorFixture f(any_shape());
  const DomainId domain = f.domain(32_MiB);
  void* block = f.get(16_MiB, f.a, domain);
  REQUIRE(f.allocator.set_limit(domain, 8_MiB).ok());
  CHECK(f.allocator.owns(block));
  CHECK(kind_of(f.ask(2_MiB, f.a, domain)) == over_budget);
  f.free(block);
  CHECK(f.ask(16_MiB, f.a, domain).ok());  // cached memory is paid for already
}

TEST_CASE("live blocks of a closed domain stay valid and charged", "[allocator][domain]") {
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  const DomainId domain = f.domain();
  void* live = f.get(4_MiB, f.a, domain);
  f.free(f.get(40_MiB, f.a, domain));
  REQUIRE(f.allocator.close_domain(domain).ok());
  CHECK(f.allocator.usable_size(live) == (4_MiB).count);
  CHECK(f.stats(domain).live == 4_MiB);
  CHECK(f.ask(48_MiB, f.a).ok());  // what was idle is free for others
  f.free(live);
  f.allocator.trim(0_B, f.device, std::vector<StreamRef>{f.a});
  CHECK(f.stats(domain).reserved == 0_B);
}

TEST_CASE("an extent never holds blocks of two domains", "[allocator][contract][domain]") {
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  const DomainId domains[] = {kDefaultDomain, f.domain(), f.domain(24_MiB)};
  std::mt19937 random(3);
  std::vector<void*> blocks;
  for (int i = 0; i < 300; ++i) {
    const Bytes size{1 + random() % (1u << (12 + random() % 11))};
    if (const auto block = f.ask(size, f.a, domains[random() % 3])) blocks.push_back(*block);
    if (blocks.size() < 12) continue;
    std::swap(blocks[random() % blocks.size()], blocks.back());
    f.free(blocks.back());
    blocks.pop_back();
    if (i % 10 != 0) continue;
    const Snapshot s = f.allocator.snapshot(f.device);
    for (const SnapshotExtent& extent : s.extents) {
      const VaRange where{extent.mapped_at, extent.size};
      for (const SnapshotBlock& block_seen : s.blocks) {
        const bool apart = block_seen.range.end() <= where.begin ||
                           where.end() <= block_seen.range.begin ||
                           extent.mapped_at == DeviceAddress{};
        if (!apart) REQUIRE(block_seen.domain == extent.domain);
      }
    }
  }
  CHECK(f.allocator.validate().ok());
}

}  // namespace bursar::test
