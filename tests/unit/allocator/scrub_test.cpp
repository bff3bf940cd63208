// SPDX-License-Identifier: Apache-2.0
// Scrub: whose bytes may still be seen in memory that is handed out.
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {
namespace {

constexpr unsigned char kSecret = 0x5C;

AllocatorOptions scrubbing(Scrub scrub) {
  AllocatorOptions options = moving();
  options.scrub = scrub;
  return options;
}

/// A device of real memory whose new extents are not zero.
struct DirtyFixture : AllocatorFixture {
  DirtyFixture(Shape shape, const AllocatorOptions& options, Bytes capacity = 64_MiB)
      : AllocatorFixture(std::make_shared<DirtyDriver>(real(shape, capacity)), options) {}

  static SimOptions real(Shape shape, Bytes capacity) {
    shape.backed = true;
    return sim_options(shape, capacity);
  }
  /// Something of `domain` lies in all memory that it then leaves idle, its work done.
  void leave_secrets(DomainId domain, Bytes bytes) {
    void* block = get(bytes, a, domain);
    std::memset(block, kSecret, bytes.count);
    free(block);
    fence();
  }
  bool shows_nothing(void* block) { return all_are(block, allocator.usable_size(block), 0); }
};

std::uint64_t memsets(const AllocatorFixture& f) { return f.calls(DriverCall::memset); }

}  // namespace

TEST_CASE("memory is not cleared unless asked for", "[allocator][scrub]") {
  DirtyFixture f(any_shape(), scrubbing(Scrub::never));
  f.leave_secrets(kDefaultDomain, 4_MiB);
  void* block = f.get(4_MiB);
  CHECK(all_are(block, (4_MiB).count, kSecret));
  CHECK(memsets(f) == 0);
}

TEST_CASE("with scrub=always every block is cleared when it is handed out",
          "[allocator][contract][scrub]") {
  DirtyFixture f(any_shape(), scrubbing(Scrub::always));
  f.leave_secrets(kDefaultDomain, 8_MiB);
  for (const Bytes size : {1_B, 1000_B, 512_KiB, 3_MiB}) {
    CHECK(f.shows_nothing(f.get(size)));
    CHECK(f.shows_nothing(f.get(size, f.b)));
  }
  CHECK(f.driver->violations().empty());
}

TEST_CASE("with scrub=always stitched and dedicated blocks are cleared too", "[allocator][scrub]") {
  AllocatorOptions options = scrubbing(Scrub::always);
  options.stitch_limit = 2_MiB;
  options.guard = options.wide_guard = options.map_price = 0;
  DirtyFixture f({}, options);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(f.get(2_MiB));
  for (std::size_t i = 0; i < 8; i += 2) {
    std::memset(blocks[i], kSecret, (2_MiB).count);
    f.free(blocks[i]);
  }
  const std::uint64_t created = f.calls(DriverCall::create);
  CHECK(f.shows_nothing(f.get(8_MiB)));
  CHECK(f.calls(DriverCall::create) == created);
  CHECK(f.shows_nothing(f.allocator.allocate(1000, f.with(BlockFlags::pinned))));
  CHECK(f.shows_nothing(f.allocator.allocate(1000, f.with(BlockFlags::shareable))));
}

TEST_CASE("a block that cannot be cleared is not handed out, and not lost", "[allocator][scrub]") {
  AllocatorFixture f(any_shape(), scrubbing(Scrub::always));
  f.free(f.get(4_MiB));
  const Bytes idle = f.stats().idle;
  f.driver->fail(DriverCall::memset, 1, false, DriverCode::unknown);
  CHECK(kind_of(f.ask(4_MiB, f.a)) == ErrorKind::driver_fault);
  CHECK(f.stats().live_blocks == 0);
  CHECK(f.stats().idle == idle);
  CHECK(f.ask(4_MiB, f.a).ok());
  CHECK(f.stats().idle == 0_B);
}

TEST_CASE("a domain never reads what another has written", "[allocator][contract][scrub]") {
  DirtyFixture f(any_shape(), scrubbing(Scrub::cross_domain), 32_MiB);
  const DomainId giver = f.domain();
  const DomainId taker = f.domain();
  f.leave_secrets(giver, 32_MiB);
  std::vector<void*> blocks;
  for (const Bytes size : {1000_B, 300_KiB, 3_MiB, 12_MiB, 100_B, 200_KiB}) {
    blocks.push_back(f.get(size, f.a, taker));
    CHECK(f.shows_nothing(blocks.back()));
  }
  CHECK(f.driver->violations().empty());
}

TEST_CASE("extents that move between domains are cleared, those that stay are not",
          "[allocator][scrub]") {
  DirtyFixture f(any_vmm_shape(), scrubbing(Scrub::cross_domain), 32_MiB);
  const DomainId giver = f.domain();
  const DomainId taker = f.domain();
  f.leave_secrets(giver, 32_MiB);
  const std::uint64_t created = f.calls(DriverCall::create);
  CHECK(f.shows_nothing(f.get(8_MiB, f.a, taker)));
  CHECK(f.calls(DriverCall::create) == created);
  CHECK(f.stats(taker).extents_moved > 0);

  const std::uint64_t cleared = memsets(f);
  void* kept = f.get(8_MiB, f.a, giver);
  CHECK(all_are(kept, (8_MiB).count, kSecret));
  CHECK(memsets(f) == cleared);
}

TEST_CASE("an extent that is still mapped where it was before is cleared for its new domain",
          "[allocator][scrub]") {
  DirtyFixture f({}, scrubbing(Scrub::cross_domain), 16_MiB);
  const DomainId giver = f.domain();
  const DomainId taker = f.domain();
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(f.get(2_MiB, f.a, giver));
  f.work(f.a, 5);
  for (std::size_t i = 0; i < 8; i += 2) f.free(blocks[i]);
  f.leave_secrets(giver, 8_MiB);  // by alias: the old mappings wait for the work
  f.driver->fail(DriverCall::unmap, 1, true, DriverCode::unknown);
  f.pass(6);
  f.look();
  const std::size_t mappings = f.driver->mapping_count();
  CHECK(f.shows_nothing(f.get(4_MiB, f.a, taker)));
  CHECK(f.driver->mapping_count() > mappings);
  f.driver->clear_faults();
  CHECK(f.driver->violations().empty());
}

TEST_CASE("what a domain moves within itself is not cleared", "[allocator][scrub]") {
  DirtyFixture f(any_vmm_shape(), scrubbing(Scrub::cross_domain));
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(f.get(2_MiB));
  for (std::size_t i = 0; i < 8; i += 2) f.free(blocks[i]);
  f.fence();
  const std::uint64_t cleared = memsets(f);
  f.get(8_MiB);
  CHECK(f.stats().extents_moved == 4);
  CHECK(memsets(f) == cleared);
}

TEST_CASE("a spare that another domain left is cleared", "[allocator][scrub]") {
  DirtyFixture f(any_vmm_shape(), scrubbing(Scrub::cross_domain), 32_MiB);
  const DomainId giver = f.domain();
  const DomainId taker = f.domain();
  f.leave_secrets(giver, 2_MiB);
  f.driver->fail(DriverCall::map, 1, false, DriverCode::unknown);
  REQUIRE_FALSE(f.ask(100_B, f.a, taker).ok());  // half a move: unmapped, and not mapped again
  REQUIRE(f.stats().spare == 2_MiB);
  const std::uint64_t created = f.calls(DriverCall::create);
  CHECK(f.shows_nothing(f.get(100_B, f.a, taker)));
  CHECK(f.calls(DriverCall::create) == created);
}

TEST_CASE("what is left of cleared memory serves other streams after the clearing only",
          "[allocator][scrub]") {
  const bool stitched = GENERATE(false, true);
  AllocatorOptions options = scrubbing(Scrub::cross_domain);
  if (stitched) {
    options.stitch_limit = 512_KiB;
    options.guard = options.wide_guard = options.map_price = 0;
  }
  AllocatorFixture f(any_shape(), options);
  const DomainId giver = f.domain();
  const DomainId taker = f.domain();
  f.free(f.get(2_MiB, f.a, giver));
  f.fence();
  f.work(f.a, 10);  // the clearing comes after this
  const Bytes size = stitched ? 700_KiB : 1000_B;
  void* first = f.get(size, f.a, taker);
  void* other = f.get(size, f.b, taker);
  f.use(f.a, first, size, 1, 1);
  f.use(f.b, other, size, 2, 1);
  const Bytes reserved = f.stats(taker).reserved;
  f.fence();
  f.pass(20);
  f.fence();
  void* later = f.get(size, f.b, taker);
  f.use(f.b, later, size, 3, 1);
  CHECK(f.stats(taker).reserved == reserved);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("memory that cannot be cleared stays with nobody and is not lost", "[allocator][scrub]") {
  DirtyFixture f(any_shape(), scrubbing(Scrub::cross_domain), 32_MiB);
  const DomainId giver = f.domain();
  const DomainId taker = f.domain();
  f.leave_secrets(giver, 32_MiB);
  f.driver->fail(DriverCall::memset, 1, false, DriverCode::unknown);
  CHECK(kind_of(f.ask(8_MiB, f.a, taker)) == ErrorKind::driver_fault);
  CHECK(f.stats().quarantine == 0_B);
  CHECK(f.stats().reserved == f.driver->extent_bytes());
  CHECK(f.stats(taker).idle == 0_B);
  CHECK(f.shows_nothing(f.get(8_MiB, f.a, taker)));
  CHECK(f.driver->violations().empty());
}

}  // namespace bursar::test
