// SPDX-License-Identifier: Apache-2.0
// Scrub on a real device: kernels look for what others have written.
#include <bursar/allocator/caching_allocator.hpp>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;
using namespace bursar::literals;

namespace {

constexpr Bytes kSize = 64_MiB;

AllocatorOptions scrubbing(Scrub scrub) {
  AllocatorOptions options;
  options.scrub = scrub;
  return options;
}

}  // namespace

TEST_CASE("with scrub=always reused memory is zero, behind a kernel that still runs",
          "[allocator][cuda][gpu]") {
  CachingAllocator allocator(gpu_driver(), scrubbing(Scrub::always));
  const Stream stream;
  Gate gate;
  MismatchCounter mismatches;
  const AllocateOptions on{.stream = stream.handle()};
  void* first = allocator.allocate(kSize.count, on);
  gate.hold(stream);
  fill(first, kSize, 0x5c5c5c5c, stream);
  allocator.deallocate(first);
  void* second = allocator.allocate(kSize.count, on);
  CHECK(second == first);
  CHECK(stream.busy());
  mismatches.expect(second, kSize, 0, stream);
  gate.open();
  CHECK(mismatches.total() == 0);
}

TEST_CASE("with scrub=cross_domain a domain reads nothing that another has written",
          "[allocator][cuda][gpu]") {
  CachingAllocator allocator(gpu_driver(), scrubbing(Scrub::cross_domain));
  const DomainId giver = *allocator.create_domain({.name = "giver"});
  const DomainId taker = *allocator.create_domain({.name = "taker"});
  const Stream theirs;
  const Stream ours;
  MismatchCounter mismatches;
  void* secret = allocator.allocate(kSize.count, {.stream = theirs.handle(), .domain = giver});
  fill(secret, kSize, 0x5c5c5c5c, theirs);
  allocator.deallocate(secret);
  REQUIRE(allocator.retire_stream(theirs.handle()).ok());
  theirs.synchronize();
  for (const Bytes size : {1000_B, 100_KiB, 5_MiB, 40_MiB}) {
    void* block = allocator.allocate(size.count, {.stream = ours.handle(), .domain = taker});
    mismatches.expect(block, size, 0, ours);
  }
  CHECK(mismatches.total() == 0);
  CHECK(allocator.domain_stats(taker).extents_moved > 0);
  CHECK(allocator.validate().ok());
}
