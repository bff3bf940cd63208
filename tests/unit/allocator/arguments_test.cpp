// SPDX-License-Identifier: Apache-2.0
// What a caller may say wrongly: each mistake has a documented answer and changes nothing.
#include <cstdint>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {

using enum ErrorKind;

TEST_CASE("zero bytes are a null pointer and cost nothing", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  CHECK(f.get(0_B) == nullptr);
  CHECK(*f.ask(0_B, f.a) == nullptr);
  CHECK(f.all_calls() == 0);
}

TEST_CASE("freeing null is ignored", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  CHECK_NOTHROW(f.allocator.deallocate(nullptr));
  CHECK_NOTHROW(f.allocator.deallocate(nullptr, f.a));
  CHECK(f.stats().deallocations == 0);
}

TEST_CASE("a pointer that is no live block is refused and nothing changes",
          "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  auto* live = static_cast<char*>(f.get(4_MiB));
  void* freed = f.get(8_MiB);
  f.free(freed);
  const AllocatorStats before = f.stats();
  int local = 0;
  for (void* bad : {static_cast<void*>(&local), freed, static_cast<void*>(live + 512),
                    static_cast<void*>(live - 512)}) {
    CHECK(kind_of(f.allocator.try_deallocate(bad)) == invalid_argument);
    CHECK(kind_of(f.allocator.try_deallocate(bad, f.b)) == invalid_argument);
    CHECK(kind_of(f.allocator.record_stream(bad, f.b)) == invalid_argument);
    CHECK_THROWS_AS(f.allocator.deallocate(bad), Error);
  }
  CHECK(f.stats().live == before.live);
  CHECK(f.stats().idle == before.idle);
  CHECK(f.stats().deallocations == before.deallocations);
}

TEST_CASE("a size that cannot be represented is invalid", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  for (const std::uint64_t size : {SIZE_MAX, SIZE_MAX - 511, (SIZE_MAX >> 1) + 1}) {
    CHECK(kind_of(f.ask(Bytes{size}, f.a)) == invalid_argument);
  }
  CHECK(f.all_calls() == 0);
}

TEST_CASE("more than the device has is out of memory at once, caches kept",
          "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  f.free(f.get(8_MiB));
  const std::uint64_t calls = f.all_calls();
  CHECK(kind_of(f.ask(257_MiB, f.a)) == device_oom);
  CHECK_THROWS_AS(f.get(1_GiB), OutOfMemory);
  CHECK(f.all_calls() == calls);
  CHECK(f.stats().idle == 8_MiB);
  CHECK(f.stats().out_of_memory == 2);
}

TEST_CASE("an alignment is a power of two of at most 1 GiB", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  AllocateOptions options = f.on(f.a);
  for (const Bytes bad : {0_B, 3_B, 513_B, 2_GiB}) {
    options.alignment = bad;
    CHECK(kind_of(f.allocator.try_allocate(512, options)) == invalid_argument);
  }
  options.alignment = 1_B;
  CHECK(to_address(f.allocator.allocate(512, options)).value % 512 == 0);
}

TEST_CASE("an unknown or closed domain is refused", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  CHECK(kind_of(f.ask(512_B, f.a, DomainId{7})) == invalid_argument);
  const DomainId domain = f.domain();
  REQUIRE(f.allocator.close_domain(domain).ok());
  CHECK(kind_of(f.ask(512_B, f.a, domain)) == invalid_argument);
  CHECK(kind_of(f.allocator.close_domain(domain)) == invalid_argument);
  CHECK(kind_of(f.allocator.set_limit(domain, 1_MiB)) == invalid_argument);
  CHECK(kind_of(f.allocator.close_domain(DomainId{9})) == invalid_argument);
  CHECK(kind_of(f.allocator.close_domain(kDefaultDomain)) == invalid_argument);
  CHECK_THROWS_AS(f.stats(DomainId{9}), Error);
}

TEST_CASE("an unknown device is refused", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  const DeviceId bad{GENERATE(-1, 2, 99)};
  AllocateOptions options = f.on(f.a);
  options.device = bad;
  CHECK(kind_of(f.allocator.try_allocate(512, options)) == invalid_argument);
  CHECK_THROWS_AS(f.allocator.allocate(512, options), Error);
  CHECK(kind_of(f.allocator.stream(f.a, bad)) == invalid_argument);
  CHECK(kind_of(f.allocator.retire_stream(f.a, bad)) == invalid_argument);
  CHECK(f.allocator.trim(0_B, bad) == 0_B);
  CHECK_THROWS_AS(f.allocator.stats(bad), Error);
  CHECK_THROWS_AS(f.allocator.snapshot(bad), Error);
}

TEST_CASE("a stream that does not exist any more is refused", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(512_B);
  const StreamHandle gone = f.driver->create_stream(f.device);
  f.driver->destroy_stream(gone);
  CHECK(kind_of(f.ask(512_B, gone)) == invalid_argument);
  CHECK(kind_of(f.allocator.stream(gone, f.device)) == invalid_argument);
  CHECK(kind_of(f.allocator.try_deallocate(block, gone)) == invalid_argument);
  CHECK(kind_of(f.allocator.record_stream(block, gone)) == invalid_argument);
  CHECK(kind_of(f.allocator.retire_stream(gone, f.device)) == invalid_argument);
  CHECK(f.stats().live_blocks == 1);
}

TEST_CASE("an allocator is not made from nothing or from contradictions", "[allocator]") {
  CHECK_THROWS_AS(CachingAllocator(nullptr), Error);
  const auto driver = std::make_shared<SimDriver>(SimOptions{});
  AllocatorOptions options = moving();
  options.max_extent = 1_MiB;  // less than a page
  CHECK_THROWS_AS(CachingAllocator(driver, options), Error);
  options.max_extent = 3_MiB;
  CHECK_THROWS_AS(CachingAllocator(driver, options), Error);
}

TEST_CASE("an allocator that was asked for nothing has called the driver for nothing",
          "[allocator]") {
  AllocatorFixture f(any_shape());
  CHECK(f.all_calls() == 0);
  CHECK(f.allocator.trim(0_B, f.device) == 0_B);
  CHECK(f.allocator.validate().ok());
  CHECK(f.stats().reserved == 0_B);
}

}  // namespace bursar::test
