// SPDX-License-Identifier: Apache-2.0
// The allocator's promises to work that runs on the device, with kernels that run until they are
// told to end as witnesses: while one runs, nobody else gets its memory. Cases without such kernels
// are tagged [memcheck], for compute-sanitizer.
#include <cstdint>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/allocator/out_of_memory.hpp>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;
using namespace bursar::literals;

namespace {

constexpr Bytes kSize = 32_MiB;

/// An allocator with one domain that can hold one block of kSize and no more: whoever allocates
/// that much gets the same memory or is refused. Nothing waits.
struct OneBlockDomain {
  CachingAllocator allocator{gpu_driver(), at_once()};
  DomainId domain = *allocator.create_domain({.name = "one block", .limit = kSize});

  result<void*> take(const Stream& stream) {
    return allocator.try_allocate(kSize.count, {.stream = stream.handle(), .domain = domain});
  }
  /// The same once all that `stream` was given is done. A first attempt may only put the fence.
  result<void*> take_after(const Stream& stream) {
    result<void*> block = take(stream);
    for (int attempt = 0; attempt < 3 && !block; ++attempt) {
      stream.synchronize();
      block = take(stream);
    }
    return block;
  }
  static AllocatorOptions at_once() {
    AllocatorOptions options = gpu_options();
    options.wait_limit = Duration{0};
    return options;
  }
};

}  // namespace

TEST_CASE("memory freed on a stream serves that stream at once, its kernel still running",
          "[allocator][cuda][gpu]") {
  if (!reuses_at_once()) SKIP_TEST(kReusesLater);
  OneBlockDomain test;
  const Stream stream;
  Gate gate;
  MismatchCounter mismatches;
  const auto first = test.take(stream);
  REQUIRE(first.ok());
  gate.hold(stream);
  fill(*first, kSize, 1, stream);
  mismatches.expect(*first, kSize, 1, stream);
  REQUIRE(test.allocator.try_deallocate(*first).ok());
  const auto second = test.take(stream);
  REQUIRE(second.ok());
  CHECK(stream.busy());
  fill(*second, kSize, 2, stream);
  mismatches.expect(*second, kSize, 2, stream);
  gate.open();
  CHECK(mismatches.total() == 0);
  CHECK(test.allocator.validate().ok());
}

TEST_CASE("memory freed on a stream serves another only after the kernel before the free has ended",
          "[allocator][cuda][gpu]") {
  OneBlockDomain test;
  const Stream giver;
  const Stream taker;
  Gate gate;
  const auto block = test.take(giver);
  REQUIRE(block.ok());
  gate.hold(giver);
  REQUIRE(test.allocator.try_deallocate(*block).ok());
  REQUIRE(test.allocator.retire_stream(giver.handle()).ok());

  const auto early = test.take(taker);
  REQUIRE_FALSE(early.ok());
  CHECK(early.failure().kind == ErrorKind::over_budget);
  CHECK(giver.busy());

  gate.open();
  giver.synchronize();
  CHECK(test.take(taker).ok());
  CHECK(test.allocator.validate().ok());
}

TEST_CASE("a recorded stream holds the block after its home stream has freed it",
          "[allocator][cuda][gpu]") {
  OneBlockDomain test;
  const Stream home;
  const Stream reader;
  Gate gate;
  const auto block = test.take(home);
  REQUIRE(block.ok());
  gate.hold(reader);
  REQUIRE(test.allocator.record_stream(*block, reader.handle()).ok());
  REQUIRE(test.allocator.try_deallocate(*block).ok());
  REQUIRE(test.allocator.retire_stream(reader.handle()).ok());

  const auto early = test.take(home);
  REQUIRE_FALSE(early.ok());
  CHECK(early.failure().kind == ErrorKind::over_budget);
  CHECK(reader.busy());

  gate.open();
  reader.synchronize();
  CHECK(test.take_after(home).ok());
  CHECK(test.allocator.validate().ok());
}

TEST_CASE("another stream works beside a running kernel, in memory of its own",
          "[allocator][cuda][gpu]") {
  CachingAllocator allocator(gpu_driver(), gpu_options());
  const Stream slow;
  const Stream quick;
  Gate gate;
  MismatchCounter mismatches;
  void* held = allocator.allocate(kSize.count, {.stream = slow.handle()});
  fill(held, kSize, 1, slow);
  gate.hold(slow);
  mismatches.expect(held, kSize, 1, slow);
  allocator.deallocate(held);
  for (std::uint32_t value = 2; value < 20; ++value) {
    void* block = allocator.allocate(kSize.count, {.stream = quick.handle()});
    fill(block, kSize, value, quick);
    mismatches.expect(block, kSize, value, quick);
    allocator.deallocate(block);
  }
  quick.synchronize();
  CHECK(slow.busy());
  gate.open();
  CHECK(mismatches.total() == 0);
  CHECK(allocator.validate().ok());
}

TEST_CASE("what a retired stream freed serves others after the stream is gone",
          "[allocator][cuda][gpu][memcheck]") {
  OneBlockDomain test;
  const Stream heir;
  for (int round = 0; round < 20; ++round) {
    const Stream mortal;
    const auto block = test.take(mortal);
    REQUIRE(block.ok());
    fill(*block, kSize, 1, mortal);
    REQUIRE(test.allocator.try_deallocate(*block).ok());
    REQUIRE(test.allocator.retire_stream(mortal.handle()).ok());
    mortal.synchronize();
  }
  CHECK(test.take(heir).ok());
  CHECK(test.allocator.validate().ok());
}

TEST_CASE("a domain's limit refuses what is beyond it, and only there",
          "[allocator][cuda][gpu][memcheck]") {
  CachingAllocator allocator(gpu_driver(), gpu_options());
  const Stream stream;
  const DomainId domain = *allocator.create_domain({.name = "small", .limit = 64_MiB});
  const AllocateOptions options{.stream = stream.handle(), .domain = domain};
  std::vector<void*> blocks;
  error refusal{};
  while (refusal.asked == Bytes{}) {
    const auto block = allocator.try_allocate((10_MiB).count, options);
    if (block) {
      blocks.push_back(*block);
      REQUIRE(blocks.size() <= 6);
    } else {
      refusal = block.failure();
      REQUIRE(refusal.asked > Bytes{});
    }
  }
  CHECK(blocks.size() == 6);
  CHECK(refusal.kind == ErrorKind::over_budget);
  CHECK(refusal.limit == 64_MiB);
  CHECK(allocator.domain_stats(domain).reserved <= 64_MiB);
  CHECK_THROWS_AS(allocator.allocate((10_MiB).count, options), OutOfMemory);
  CHECK(allocator.try_allocate((100_MiB).count, {.stream = stream.handle()}).ok());
  for (void* block : blocks) allocator.deallocate(block);
  CHECK(allocator.validate().ok());
}

TEST_CASE("a request beyond the device fails and costs nothing",
          "[allocator][cuda][gpu][memcheck]") {
  CachingAllocator allocator(gpu_driver(), gpu_options());
  const Bytes total = gpu_driver()->device_info({}).total;
  const auto block = allocator.try_allocate((total * 2).count);
  REQUIRE_FALSE(block.ok());
  CHECK(block.failure().kind == ErrorKind::device_oom);
  CHECK(allocator.stats().reserved == Bytes{});
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("a pinned block is one extent of its own", "[allocator][cuda][gpu][memcheck]") {
  CachingAllocator allocator(gpu_driver(), gpu_options());
  const Stream stream;
  MismatchCounter mismatches;
  const Bytes size = 100_MiB;
  void* block =
      allocator.allocate(size.count, {.stream = stream.handle(), .flags = BlockFlags::pinned});
  const Snapshot snapshot = allocator.snapshot();
  const VaRange range{to_address(block), size};
  int inside = 0;
  for (const SnapshotExtent& extent : snapshot.extents) {
    if (extent.mapped_at < range.end() && range.begin < extent.mapped_at + extent.size) {
      ++inside;
      CHECK(extent.mapped_at == range.begin);
      CHECK(extent.size >= size);
    }
  }
  CHECK(inside == 1);
  fill(block, size, 3, stream);
  mismatches.expect(block, size, 3, stream);
  CHECK(mismatches.total() == 0);
  allocator.deallocate(block);
}

TEST_CASE("trim gives idle memory back to the device", "[allocator][cuda][gpu][memcheck]") {
  const auto driver = gpu_driver();
  const Bytes held_before = driver->meter().read().reserved;
  CachingAllocator allocator(driver, gpu_options());
  const Stream stream;
  void* block = allocator.allocate((256_MiB).count, {.stream = stream.handle()});
  fill(block, 256_MiB, 1, stream);
  allocator.deallocate(block);
  CHECK(driver->meter().read().reserved > held_before);
  REQUIRE(allocator.retire_stream(stream.handle()).ok());
  stream.synchronize();
  const Bytes given = allocator.trim();
  CHECK((given >= 256_MiB || !reuses_at_once()));  // else it went back by itself
  CHECK(driver->meter().read().reserved == held_before);
  CHECK(allocator.validate().ok());
}
