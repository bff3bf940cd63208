// SPDX-License-Identifier: Apache-2.0
// Passthrough: what a memory checker needs, on a simulated device that knows what is mapped.
#include <algorithm>
#include <set>
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {
namespace {

constexpr Bytes kPage = 2_MiB;

AllocatorOptions passthrough() {
  AllocatorOptions options = moving();
  options.passthrough = true;
  return options;
}

/// The extent that holds the address; its size is 0 when there is none.
SnapshotExtent extent_around(const AllocatorFixture& f, DeviceAddress address) {
  for (const SnapshotExtent& extent : f.allocator.snapshot(f.device).extents) {
    if (VaRange{extent.mapped_at, extent.size}.contains(address)) return extent;
  }
  return {};
}

/// Whether the device can write a byte there.
bool is_memory(AllocatorFixture& f, DeviceAddress address) {
  return f.driver->memset(f.device, address, 0, 1_B, f.a) == DriverCode::success;
}

/// Every mapping has an unmapped page before and behind it.
bool all_guarded(const AllocatorFixture& f) {
  const Snapshot s = f.allocator.snapshot(f.device);
  std::vector<VaRange> mapped;
  for (const SnapshotExtent& extent : s.extents) mapped.push_back({extent.mapped_at, extent.size});
  std::sort(mapped.begin(), mapped.end());
  for (std::size_t i = 0; i + 1 < mapped.size(); ++i) {
    if (mapped[i].end() + kPage > mapped[i + 1].begin) return false;
  }
  return std::all_of(mapped.begin(), mapped.end(), [&](const VaRange& mapping) {
    return std::any_of(s.ranges.begin(), s.ranges.end(), [&](const VaRange& range) {
      return range.begin + kPage <= mapping.begin && mapping.end() + kPage <= range.end();
    });
  });
}

}  // namespace

TEST_CASE("a passthrough block ends where its mapping ends, down to its alignment",
          "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough());
  for (const Bytes size : {1_B, 16_B, 1000_B, 4096_B, 2_MiB, 3_MiB + 1_B}) {
    for (const Bytes alignment : {1_B, 16_B, 256_B, 4096_B, 2_MiB, 8_MiB}) {
      CAPTURE(size, alignment);
      AllocateOptions options = f.on(f.a);
      options.alignment = alignment;
      const DeviceAddress block = to_address(f.allocator.allocate(size.count, options));
      CHECK(block.value % std::max(alignment, 16_B).count == 0);
      const SnapshotExtent extent = extent_around(f, block);
      const DeviceAddress mapping_end = extent.mapped_at + extent.size;
      REQUIRE(block + size <= mapping_end);
      CHECK(mapping_end - (block + size) < std::min(std::max(alignment, 16_B), kPage));
      CHECK(extent.size == round_up(size, kPage));
    }
  }
}

TEST_CASE("a byte past a passthrough block and one before its first page are no memory",
          "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough());
  (void)f.get(2_MiB);
  const DeviceAddress block = to_address(f.get(2_MiB));
  (void)f.get(2_MiB);
  CHECK(is_memory(f, block));
  CHECK(is_memory(f, block + (2_MiB - 1_B)));
  CHECK_FALSE(is_memory(f, block + 2_MiB));
  CHECK_FALSE(is_memory(f, block - 1_B));
}

TEST_CASE("passthrough mappings never touch, whatever comes and goes", "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough());
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 60; ++i) {
    AllocateOptions options = f.on(i % 2 == 0 ? f.a : f.b);
    options.alignment = i % 7 == 0 ? 8_MiB : 1_B;
    blocks.push_back(f.allocator.allocate((300_KiB * (i % 17 + 1)).count, options));
    if (i % 3 == 2) {
      f.free(blocks[i / 2]);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i / 2));
    }
    REQUIRE(all_guarded(f));
  }
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a freed passthrough block is unmapped once its work is done",
          "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough());
  void* block = f.get(1000_B);
  f.use(f.a, block, 1000_B, 1, 10);
  f.free(block);
  f.fence();
  CHECK(f.stats().pending == kPage);
  CHECK(extent_around(f, to_address(block)).size == kPage);
  f.pass(11);
  f.look();
  CHECK(f.stats().reserved == 0_B);
  CHECK(f.driver->violations().empty());
  CHECK_FALSE(is_memory(f, to_address(block)));
}

TEST_CASE("nothing is cached in passthrough mode", "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough());
  for (int i = 0; i < 5; ++i) f.free(f.get(1000_B));
  CHECK(f.stats().cache_hits == 0);
  CHECK(f.stats().idle == 0_B);
  CHECK(f.calls(DriverCall::create) == 5);
}

TEST_CASE("addresses of freed passthrough blocks are used again late, but are",
          "[allocator][passthrough]") {
  AllocatorOptions options = passthrough();
  options.address_factor = 2;
  AllocatorFixture f(any_vmm_shape(), options, 64_MiB);
  std::set<void*> seen;
  std::size_t fresh = 0;
  for (int i = 0; i < 200; ++i) {
    void* block = f.get(1000_B);
    fresh += seen.insert(block).second && fresh == static_cast<std::size_t>(i) ? 1 : 0;
    f.free(block);
    f.fence();
  }
  // Each takes a page and leaves one unmapped, of twice the device's 32 pages.
  CHECK(fresh >= 30);
  CHECK(seen.size() <= 64);
  CHECK(f.stats().address_space == 128_MiB);
}

TEST_CASE("a passthrough block may be as large as the device", "[allocator][passthrough]") {
  AllocatorOptions options = passthrough();
  options.address_factor = 1;
  AllocatorFixture f(any_vmm_shape(), options, 64_MiB);
  for (int i = 0; i < 3; ++i) {
    AllocateOptions aligned = f.on(f.a);
    aligned.alignment = 16_MiB;
    void* block = f.allocator.allocate((64_MiB).count, aligned);
    CHECK(all_guarded(f));
    f.free(block);
    f.fence();
  }
}

TEST_CASE("a domain pays for its passthrough mappings, and its limit holds",
          "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough());
  const DomainId domain = f.domain(6_MiB);
  void* first = f.get(3_MiB, f.a, domain);
  f.get(100_B, f.a, domain);
  CHECK(f.stats(domain).reserved == 6_MiB);
  CHECK(kind_of(f.ask(1_B, f.a, domain)) == ErrorKind::over_budget);
  f.work(f.a, 10);
  f.free(first);
  CHECK(f.ask(4_MiB, f.a, domain).ok());  // waits until the freed one may go
  CHECK(f.stats(domain).reserved == 6_MiB);
}

TEST_CASE("a full device waits for passthrough blocks that are being given back",
          "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough(), 64_MiB);
  void* block = f.get(60_MiB);
  CHECK(kind_of(f.ask(8_MiB, f.b)) == ErrorKind::device_oom);
  f.use(f.a, block, 60_MiB, 1, 10);
  f.free(block);
  f.get(1000_B);  // names the stream: the fence
  CHECK(f.ask(8_MiB, f.b).ok());
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a passthrough block is what was asked and no more", "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough());
  void* block = f.get(1000_B);
  CHECK(f.allocator.usable_size(block) == 1000);
  CHECK(f.allocator.owns(block));
  CHECK(f.allocator.owns(bytes_of(block) + 999));
  CHECK_FALSE(f.allocator.owns(bytes_of(block) + 1000));
  CHECK_FALSE(f.allocator.owns(bytes_of(block) - 1));
  CHECK_FALSE(f.allocator.try_deallocate(bytes_of(block) - 16).ok());
  CHECK(f.allocator.try_deallocate(block).ok());
}

TEST_CASE("a recorded stream keeps a passthrough block mapped", "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough());
  void* block = f.get(1000_B);
  REQUIRE(f.allocator.record_stream(block, f.b).ok());
  f.use(f.b, block, 1000_B, 1, 10);
  f.free(block);
  f.fence();
  CHECK(f.stats().pending == kPage);
  f.pass(11);
  f.fence();
  f.look();
  CHECK(f.stats().reserved == 0_B);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a shareable passthrough block begins with its extent", "[allocator][passthrough]") {
  AllocatorFixture f(any_vmm_shape(), passthrough());
  const DeviceAddress block = to_address(f.allocator.allocate(1000, f.with(BlockFlags::shareable)));
  CHECK(extent_around(f, block).mapped_at == block);
  CHECK(all_guarded(f));
}

TEST_CASE("passthrough is refused where nothing can be mapped", "[allocator][passthrough]") {
  AllocatorFixture f(Shape{CapabilityLevel::no_vmm, 1}, passthrough());
  const result<void*> block = f.ask(1000_B, f.a);
  CHECK(kind_of(block) == ErrorKind::not_supported);
  CHECK_THAT(std::string(block.failure().message), contains("passthrough"));
}

}  // namespace bursar::test
