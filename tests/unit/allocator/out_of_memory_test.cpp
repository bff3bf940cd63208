// SPDX-License-Identifier: Apache-2.0
// Out of memory: what is tried, how long, what is reported, and what is never taken for it.
#include <algorithm>
#include <string>
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {

using enum ErrorKind;

namespace {

Bytes reclaimed(const OomReport& report, ReclaimStep step) {
  return report.reclaimed[static_cast<std::size_t>(step)];
}

/// The report of an allocation that must fail.
OomReport report_of(AllocatorFixture& f, Bytes bytes, DomainId domain = kDefaultDomain) {
  try {
    f.get(bytes, f.a, domain);
  } catch (const OutOfMemory& oom) {
    return oom.report();
  }
  FAIL("the allocation succeeded");
  return {};
}

}  // namespace

TEST_CASE("the report says what was asked and who holds what", "[allocator][contract][oom]") {
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  const DomainId domain = f.domain();
  f.get(40_MiB);
  f.get(16_MiB, f.a, domain);
  const OomReport report = report_of(f, 32_MiB, domain);
  CHECK(report.cause.kind == device_oom);
  CHECK(report.cause.asked == 32_MiB);
  CHECK(report.cause.device == f.device);
  CHECK(report.cause.free == 64_MiB - report.held.reserved);
  CHECK(report.domain == domain);
  CHECK(report.held.live == 56_MiB);
  CHECK(report.domain_held.live == 16_MiB);
  CHECK(adds_up(report.held));
  CHECK(report.elapsed > Duration{});
  CHECK(report.elapsed < milliseconds(2000));
}

TEST_CASE("the text of an out-of-memory error tells the whole story", "[allocator][oom]") {
  AllocatorFixture f(Shape{}, {}, 64_MiB);
  f.get(40_MiB);
  std::string text;
  try {
    f.get(60_MiB);
  } catch (const std::bad_alloc& oom) {
    text = oom.what();
  }
  for (const char* part : {"device_oom", "60.0 MiB asked", "device 0", "40.0 live", "domain 0",
                           "Reclaimed", "ms of trying"}) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("a doomed request does not count its own memory as reclaimed", "[allocator][oom]") {
  AllocatorFixture f(any_shape(), {}, 256_MiB);
  const DomainId domain = f.domain(60_MiB);
  const OomReport report = report_of(f, 64_MiB, domain);
  Bytes sum{};
  for (const Bytes bytes : report.reclaimed) sum += bytes;
  CHECK(sum == 0_B);
  CHECK(f.calls(DriverCall::create) <= 40);
  CHECK(f.calls(DriverCall::release) == 0);
}

TEST_CASE("what the ladder reclaimed is never more than was held idle", "[allocator][oom]") {
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  const DomainId domain = f.domain(40_MiB);
  const DomainId other = f.domain();
  f.get(16_MiB, f.a, domain);
  f.free(f.get(8_MiB, f.a, domain));
  void* theirs = f.get(24_MiB, f.a, other);
  f.get(2_MiB, f.a, other);
  f.free(theirs);
  const OomReport report = report_of(f, 44_MiB, domain);
  CHECK(reclaimed(report, ReclaimStep::own_idle) <= 8_MiB);
  CHECK(reclaimed(report, ReclaimStep::other_domains) <= 24_MiB);
  CHECK(f.stats(domain).live == 16_MiB);
}

TEST_CASE("idle memory of other domains is released and reported", "[allocator][oom]") {
  // At a limit of extents too large to move, they are released and made anew.
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  const DomainId other = f.domain();
  f.free(f.get(60_MiB, f.a, other));
  std::vector<void*> small;
  for (int i = 0; i < 60; ++i) small.push_back(f.get(1_MiB - 512_B));
  CHECK(f.driver->meter().read().reserved_peak <= 64_MiB);
  CHECK(f.stats(other).reserved <= 4_MiB);
}

TEST_CASE("an allocation waits for GPU work that holds what would serve",
          "[allocator][contract][oom]") {
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  void* block = f.get(48_MiB);
  f.get(512_B, f.b);
  f.use(f.a, block, 48_MiB, 1, 500);
  f.free(block);
  f.get(512_B);  // names the stream: the fence
  void* mine = f.get(40_MiB, f.b);
  f.use(f.b, mine, 40_MiB, 2, 1);
  CHECK(f.driver->now() >= milliseconds(500));
  CHECK(f.driver->now() < milliseconds(600));
  CHECK(f.driver->violations().empty());
}

TEST_CASE("an allocation waits no longer than its limit", "[allocator][contract][oom]") {
  AllocatorOptions options = moving();
  options.wait_limit = milliseconds(GENERATE(0, 300));
  AllocatorFixture f(any_shape(), options, 64_MiB);
  void* block = f.get(48_MiB);
  f.get(512_B, f.b);
  f.use(f.a, block, 48_MiB, 1, 5000);
  f.free(block);
  f.get(512_B);
  const Duration start = f.driver->now();
  CHECK(kind_of(f.ask(40_MiB, f.b)) == device_oom);
  const Duration waited = f.driver->now() - start;
  CHECK(waited >= options.wait_limit);
  CHECK(waited < options.wait_limit + milliseconds(50));
  f.pass(5000);
  CHECK(f.ask(40_MiB, f.b).ok());
  CHECK(f.driver->violations().empty());
}

TEST_CASE("nothing is waited for when no work is under way", "[allocator][contract][oom]") {
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  f.get(48_MiB);
  CHECK(kind_of(f.ask(40_MiB, f.a)) == device_oom);
  CHECK(f.driver->now() < milliseconds(100));
}

TEST_CASE("running out changes nothing for blocks and caches that are live",
          "[allocator][contract][oom]") {
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  void* live = f.get(32_MiB);
  for (int i = 0; i < 3; ++i) CHECK(kind_of(f.ask(48_MiB, f.a)) == device_oom);
  CHECK(f.allocator.owns(live));
  CHECK(f.stats().live == 32_MiB);
  CHECK(f.stats().out_of_memory == 3);
  CHECK(f.ask(30_MiB, f.a).ok());
}

TEST_CASE("a refusal the driver gives for another reason is not out of memory",
          "[allocator][contract][oom][fault]") {
  AllocatorFixture f(any_shape());
  f.driver->fail(DriverCall::create, 1, false, DriverCode::unknown);
  CHECK(kind_of(f.ask(4_MiB, f.a)) == driver_fault);
  f.driver->fail(DriverCall::create, 1, false, DriverCode::unknown);
  CHECK_THROWS_AS(f.get(4_MiB), Error);
  CHECK(f.stats().out_of_memory == 0);
  CHECK(f.ask(4_MiB, f.a).ok());
}

TEST_CASE("no addresses left is an error of its own", "[allocator][oom][fault]") {
  AllocatorFixture f(any_vmm_shape());
  f.driver->fail(DriverCall::reserve, 1, true);
  CHECK(kind_of(f.ask(4_MiB, f.a)) == va_exhausted);
  f.driver->clear_faults();
  CHECK(f.ask(4_MiB, f.a).ok());
}

TEST_CASE("after a fatal error allocations fail fast and frees are accepted",
          "[allocator][contract][fault]") {
  AllocatorFixture f(any_shape());
  void* blocks[] = {f.get(4_MiB), f.get(4_MiB), f.get(4_MiB), f.get(4_MiB)};
  f.free(blocks[3]);
  const bool at_create = GENERATE(true, false);
  f.driver->fail(at_create ? DriverCall::create : DriverCall::stream_capturing, 1, false,
                 DriverCode::illegal_address);
  CHECK(kind_of(f.ask(64_MiB, f.a)) == device_lost);

  for (std::size_t call = 0; call < kDriverCallCount; ++call) {
    f.driver->fail(static_cast<DriverCall>(call), 1, true, DriverCode::illegal_address);
  }
  const std::uint64_t calls = f.memory_calls();
  CHECK(kind_of(f.ask(64_MiB, f.a)) == device_lost);
  CHECK(f.allocator.try_deallocate(blocks[0]).ok());
  CHECK(f.allocator.try_deallocate(blocks[1], f.a).ok());
  CHECK(f.allocator.try_deallocate(blocks[2], f.b).ok());
  CHECK(f.stats().live == 0_B);
  CHECK(f.memory_calls() == calls);

  f.driver->clear_faults();
  CHECK(kind_of(f.ask(4_MiB, f.a)) == device_lost);  // not even what is cached
  CHECK_THROWS_AS(f.get(64_MiB), Error);
}

}  // namespace bursar::test
