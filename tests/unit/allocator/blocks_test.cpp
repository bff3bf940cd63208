// SPDX-License-Identifier: Apache-2.0
// Blocks as callers see them: aligned, large enough, told apart, and found again in the figures.
#include <algorithm>
#include <random>
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {

TEST_CASE("every alignment up to 64 MiB is honored", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  AllocateOptions options = f.on(f.a);
  for (Bytes alignment = 512_B; alignment <= 64_MiB; alignment = alignment * 2) {
    options.alignment = alignment;
    for (const Bytes size : {1_B, 700_KiB, 3_MiB}) {
      void* block = f.allocator.allocate(size.count, options);
      CHECK(to_address(block).value % alignment.count == 0);
      f.free(block);
      f.allocator.trim(0_B, f.device, std::vector<StreamRef>{f.a});
    }
  }
}

TEST_CASE("a block is usable up to its rounded size", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(1000_B);
  CHECK(f.allocator.usable_size(block) == 1024);
  CHECK(f.allocator.usable_size(static_cast<char*>(block) + 512) == 0);
  CHECK(f.allocator.usable_size(nullptr) == 0);
  CHECK(f.driver->memset(f.device, to_address(block), 1, 1024_B, f.a) == DriverCode::success);
  f.free(block);
  CHECK(f.allocator.usable_size(block) == 0);
}

TEST_CASE("owns knows every byte of a live block and of no other", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  auto* block = static_cast<char*>(f.get(5_MiB));
  int local = 0;
  CHECK(f.allocator.owns(block));
  CHECK(f.allocator.owns(block + (5 << 20) - 1));
  CHECK_FALSE(f.allocator.owns(block + (5 << 20)));
  CHECK_FALSE(f.allocator.owns(&local));
  CHECK_FALSE(f.allocator.owns(nullptr));
  f.free(block);
  CHECK_FALSE(f.allocator.owns(block));
}

TEST_CASE("live blocks never overlap", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  std::mt19937 random(5);
  std::vector<VaRange> blocks;
  for (int i = 0; i < 60; ++i) {
    const Bytes size{1 + random() % (3u << 20)};
    blocks.push_back({to_address(f.get(size)), size});
  }
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    REQUIRE(blocks[i - 1].end() <= blocks[i].begin);
  }
}

TEST_CASE("memory freed on a stream serves it again without a driver call",
          "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(6_MiB);
  f.free(block);
  const std::uint64_t calls = f.memory_calls();
  CHECK(f.get(6_MiB) == block);
  CHECK(f.memory_calls() == calls);
  CHECK(f.stats().cache_hits == 1);
}

TEST_CASE("the parts add up after every step of random work", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  std::mt19937 random(7);
  const DomainId domains[] = {kDefaultDomain, f.domain(), f.domain(48_MiB)};
  std::vector<std::pair<void*, Bytes>> blocks;
  Bytes requested{};
  for (int i = 0; i < 400; ++i) {
    const StreamHandle stream = random() % 2 == 0 ? f.a : f.b;
    if (blocks.size() < 20 && random() % 2 == 0) {
      const Bytes size{1 + random() % (1u << (10 + random() % 13))};
      const auto block = f.ask(size, stream, domains[random() % 3]);
      if (!block) continue;
      blocks.emplace_back(*block, size);
      requested += size;
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      if (random() % 4 == 0) REQUIRE(f.allocator.record_stream(blocks.back().first, stream).ok());
      f.work(stream, 1);
      f.free(blocks.back().first);
      requested -= blocks.back().second;
      blocks.pop_back();
    }
    const AllocatorStats s = f.stats();
    REQUIRE(adds_up(s));
    REQUIRE(s.slack == 0_B);
    REQUIRE(s.requested == requested);
    REQUIRE(s.live_blocks == blocks.size());
    REQUIRE(s.reserved == f.driver->extent_bytes());
    AllocatorStats sum;
    for (const DomainId domain : domains) {
      const AllocatorStats part = f.stats(domain);
      REQUIRE(adds_up(part));
      sum.reserved += part.reserved;
      sum.live += part.live;
    }
    REQUIRE(sum.reserved == s.reserved);
    REQUIRE(sum.live == s.live);
  }
}

TEST_CASE("peaks begin anew from what is held", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  void* large = f.get(16_MiB);
  void* small = f.get(1000_B);
  f.free(large);
  CHECK(f.stats().requested_peak == 16_MiB + 1000_B);
  CHECK(f.stats().live_peak == 16_MiB + 1024_B);
  f.allocator.reset_peaks();
  const AllocatorStats s = f.stats();
  CHECK(s.requested_peak == 1000_B);
  CHECK(s.live_peak == 1024_B);
  CHECK(s.reserved_peak == s.reserved);
  CHECK(f.stats(kDefaultDomain).live_peak == 1024_B);
  f.free(small);
}

TEST_CASE("peaks of all domains are peaks of the sum, not sums of peaks", "[allocator]") {
  AllocatorFixture f(any_shape());
  const DomainId domain = f.domain();
  f.free(f.get(8_MiB));
  f.free(f.get(8_MiB, f.a, domain));
  CHECK(f.stats().requested_peak == 8_MiB);
}

TEST_CASE("a snapshot covers every range without a gap", "[allocator][contract]") {
  AllocatorFixture f(any_shape());
  void* kept = f.get(3_MiB);
  f.free(f.get(100_KiB));
  f.free(f.get(9_MiB, f.b, f.domain()));
  const Snapshot s = f.allocator.snapshot(f.device);
  auto block = s.blocks.begin();
  Bytes live{};
  for (const VaRange& range : s.ranges) {
    DeviceAddress at = range.begin;
    for (; block != s.blocks.end() && block->range.begin < range.end(); ++block) {
      REQUIRE(block->range.begin == at);
      at = block->range.end();
      live += block->state == BlockState::live ? block->range.size : 0_B;
    }
    REQUIRE(at == range.end());
  }
  CHECK(block == s.blocks.end());
  CHECK(live == 3_MiB);
  Bytes extents{};
  for (const SnapshotExtent& extent : s.extents) extents += extent.size;
  CHECK(extents == f.stats().reserved);
  CHECK(std::any_of(s.blocks.begin(), s.blocks.end(), [&](const SnapshotBlock& b) {
    return to_pointer(b.range.begin) == kept && b.requested == 3_MiB;
  }));
}

TEST_CASE("each device has memory of its own", "[allocator]") {
  AllocatorFixture f(Shape{CapabilityLevel::full, 2});
  AllocateOptions first = f.on({});
  first.device = DeviceId{0};
  void* block = f.allocator.allocate((4_MiB).count, first);
  CHECK(f.stats().reserved == 0_B);
  CHECK(f.allocator.stats(DeviceId{0}).live == 4_MiB);
  CHECK(f.allocator.owns(block));
  f.free(block);
  CHECK(f.allocator.stats(DeviceId{0}).idle == 4_MiB);
}

}  // namespace bursar::test
