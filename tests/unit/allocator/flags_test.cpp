// SPDX-License-Identifier: Apache-2.0
// Pinned and shareable blocks: an extent of their own for as long as they live.
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {
namespace {

/// The extent mapped at `block`; null when none begins there.
const SnapshotExtent* extent_at(const Snapshot& snapshot, const void* block) {
  const auto found = std::find_if(
      snapshot.extents.begin(), snapshot.extents.end(),
      [&](const SnapshotExtent& extent) { return extent.mapped_at == to_address(block); });
  return found == snapshot.extents.end() ? nullptr : &*found;
}

/// Every miss is stitched if it can be.
AllocatorOptions stitching() {
  AllocatorOptions options;
  options.growth_divisor = 64;
  options.extent_share = 1'000'000;
  options.guard = options.wide_guard = options.map_price = 0;
  return options;
}

/// The driver's handles that can be exported; the simulated ones are small.
std::vector<ExtentHandle> exportable(SimDriver& driver) {
  std::vector<ExtentHandle> found;
  for (std::uint64_t handle = 1; handle < 256; ++handle) {
    int fd = -1;
    if (driver.export_handle(ExtentHandle{handle}, fd) != DriverCode::success) continue;
    close(fd);
    found.push_back(ExtentHandle{handle});
  }
  return found;
}

}  // namespace

TEST_CASE("a pinned block is one fresh extent of its own", "[allocator][contract][pinned]") {
  AllocatorFixture f(any_vmm_shape());
  f.free(f.get(16_MiB));
  void* block = f.allocator.allocate((9_MiB).count, f.with(BlockFlags::pinned));
  const Snapshot s = f.allocator.snapshot(f.device);
  const SnapshotExtent* extent = extent_at(s, block);
  REQUIRE(extent != nullptr);
  CHECK(extent->size == 10_MiB);
  CHECK(f.allocator.usable_size(block) == (10_MiB).count);
}

TEST_CASE("a pinned block honors alignments above a page", "[allocator][pinned]") {
  AllocatorFixture f(any_vmm_shape());
  f.get(3_MiB);
  AllocateOptions options = f.with(BlockFlags::pinned);
  options.alignment = GENERATE(512_B, 2_MiB, 16_MiB, 64_MiB);
  void* block = f.allocator.allocate((3_MiB).count, options);
  CHECK(to_address(block).value % options.alignment.count == 0);
  const Snapshot s = f.allocator.snapshot(f.device);
  CHECK(extent_at(s, block) != nullptr);
}

TEST_CASE("a pinned block is neither trimmed nor moved while it lives",
          "[allocator][contract][pinned]") {
  AllocatorFixture f(any_shape(), {}, 64_MiB);
  void* block = f.allocator.allocate((8_MiB).count, f.with(BlockFlags::pinned));
  const StreamRef streams[] = {f.a};
  CHECK(f.allocator.trim(0_B, f.device, streams) == 0_B);
  f.free(f.get(48_MiB, f.a, f.domain()));
  CHECK(kind_of(f.ask(60_MiB, f.a)) == ErrorKind::device_oom);
  CHECK(f.driver->memset(f.device, to_address(block), 1, 8_MiB, f.a) == DriverCode::success);
  CHECK(f.stats().extents_moved + f.stats().live_blocks >= 1);
}

TEST_CASE("under any pressure a pinned block stays the one mapping of its one extent",
          "[allocator][pinned]") {
  const AllocatorOptions options = GENERATE(moving(), stitching());
  AllocatorFixture f(any_vmm_shape(), options, 96_MiB);
  const DomainId other = f.domain();
  std::vector<void*> pinned;
  std::vector<std::uint64_t> extents;
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) {  // between blocks that come and go
    blocks.push_back(f.get(4_MiB));
    pinned.push_back(f.allocator.allocate((3_MiB).count, f.with(BlockFlags::pinned)));
    extents.push_back(extent_at(f.allocator.snapshot(f.device), pinned.back())->id);
    blocks.push_back(f.get(4_MiB));
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) f.free(blocks[i]);
  f.free(f.get(14_MiB));
  f.free(f.get(21_MiB, f.b, other));
  f.fence();
  f.free(f.get(60_MiB, f.b));  // takes back whatever can be
  f.fence();
  CHECK_FALSE(f.ask(80_MiB, f.a, other).ok());

  const Snapshot s = f.allocator.snapshot(f.device);
  for (std::size_t i = 0; i < pinned.size(); ++i) {
    REQUIRE(extent_at(s, pinned[i]) != nullptr);
    CHECK(extent_at(s, pinned[i])->id == extents[i]);
    CHECK(extent_at(s, pinned[i])->size == 4_MiB);
  }
  for (std::size_t i = 1; i < blocks.size(); i += 2) f.free(blocks[i]);
  f.fence();
  const StreamRef streams[] = {f.a, f.b};
  f.allocator.trim(0_B, f.device, streams);
  CHECK(f.driver->mapping_count() == pinned.size());  // no view and no old mapping has one
  CHECK(f.stats().reserved == 16_MiB);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a pinned block neither uses cached memory nor leaves any", "[allocator][pinned]") {
  AllocatorFixture f(any_vmm_shape(), stitching());
  f.free(f.get(16_MiB));
  std::set<std::uint64_t> known;
  for (const SnapshotExtent& e : f.allocator.snapshot(f.device).extents) known.insert(e.id);
  void* block = f.allocator.allocate((8_MiB).count, f.with(BlockFlags::pinned));
  const std::uint64_t id = extent_at(f.allocator.snapshot(f.device), block)->id;
  CHECK(known.count(id) == 0);
  f.free(block);
  f.fence();
  for (const SnapshotExtent& e : f.allocator.snapshot(f.device).extents) CHECK(e.id != id);
  CHECK(f.stats().spare == 0_B);
}

TEST_CASE("a freed pinned block is pending until its fence, then given back",
          "[allocator][contract][pinned]") {
  AllocatorFixture f(any_vmm_shape());
  f.get(512_B);
  const Bytes before = f.stats().reserved;
  void* block = f.allocator.allocate((8_MiB).count, f.with(BlockFlags::pinned));
  f.use(f.a, block, 8_MiB, 1, 10);
  f.free(block);
  f.get(512_B);  // names the stream: the fence
  CHECK(f.stats().pending == 8_MiB);
  f.pass(11);
  f.look();
  CHECK(f.stats().pending == 0_B);
  CHECK(f.stats().reserved == before);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a pinned block waits for streams recorded on it", "[allocator][pinned]") {
  AllocatorFixture f(any_vmm_shape());
  void* block = f.allocator.allocate((8_MiB).count, f.with(BlockFlags::pinned));
  REQUIRE(f.allocator.record_stream(block, f.b).ok());
  f.use(f.b, block, 8_MiB, 1, 10);
  f.free(block);
  f.get(512_B);
  f.look();
  CHECK(f.stats().pending == 8_MiB);
  f.get(512_B, f.b);
  f.pass(11);
  f.look();
  f.get(512_B);
  f.look();
  CHECK(f.stats().pending == 0_B);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a pinned request takes memory back from the cache when the device is full",
          "[allocator][pinned]") {
  AllocatorFixture f(any_vmm_shape(), {}, 64_MiB);
  f.free(f.get(60_MiB));
  CHECK(f.allocator.try_allocate((32_MiB).count, f.with(BlockFlags::pinned)).ok());
}

TEST_CASE("exactly the extent of a shareable block can be exported",
          "[allocator][contract][shareable]") {
  AllocatorFixture f(any_vmm_shape());
  f.get(4_MiB);
  void* block = f.allocator.allocate((3_MiB).count, f.with(BlockFlags::shareable));
  const Snapshot s = f.allocator.snapshot(f.device);
  REQUIRE(extent_at(s, block) != nullptr);
  CHECK(extent_at(s, block)->size == 4_MiB);
  const std::vector<ExtentHandle> handles = exportable(*f.driver);
  REQUIRE(handles.size() == 1);
  int fd = -1;
  REQUIRE(f.driver->export_handle(handles[0], fd) == DriverCode::success);
  CHECK(lseek(fd, 0, SEEK_END) == static_cast<off_t>((4_MiB).count));
  close(fd);
}

TEST_CASE("a shareable block is fresh, and its slack holds nothing", "[allocator][shareable]") {
  Shape shape;
  shape.backed = true;
  AllocatorFixture f(std::make_shared<DirtyDriver>(sim_options(shape, 64_MiB)), moving());
  void* cached = f.get(4_MiB);
  std::memset(cached, 0x5C, (4_MiB).count);
  f.free(cached);
  const std::uint64_t created = f.calls(DriverCall::create);
  void* block = f.allocator.allocate((3_MiB).count, f.with(BlockFlags::shareable));
  CHECK(f.calls(DriverCall::create) == created + 1);
  CHECK(all_are(bytes_of(block) + (3_MiB).count, (1_MiB).count, 0));
  CHECK(all_are(block, (3_MiB).count, DirtyDriver::kDirt));
}

TEST_CASE("a freed shareable block is given back after its fence and never cached",
          "[allocator][shareable]") {
  AllocatorFixture f(any_vmm_shape(), stitching());
  void* block = f.allocator.allocate((3_MiB).count, f.with(BlockFlags::shareable));
  f.use(f.a, block, 3_MiB, 1, 10);
  f.free(block);
  f.fence();
  CHECK(f.stats().pending == 4_MiB);
  CHECK(exportable(*f.driver).size() == 1);
  f.get(3_MiB);
  f.pass(11);
  f.look();
  CHECK(exportable(*f.driver).empty());
  CHECK(f.stats().pending == 0_B);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a shareable block is refused where nothing can be exported",
          "[allocator][contract][shareable]") {
  AllocatorFixture f(Shape{CapabilityLevel::no_vmm, 1});
  CHECK(kind_of(f.allocator.try_allocate(512, f.with(BlockFlags::shareable))) ==
        ErrorKind::not_supported);
  CHECK(f.stats().reserved == 0_B);
}

TEST_CASE("a shareable block's slack is cleared in stream order", "[allocator][shareable]") {
  AllocatorFixture f(any_vmm_shape());
  const std::uint64_t cleared = f.calls(DriverCall::memset);
  (void)f.allocator.allocate((2_MiB).count, f.with(BlockFlags::shareable));
  CHECK(f.calls(DriverCall::memset) == cleared);
  (void)f.allocator.allocate((3_MiB).count, f.with(BlockFlags::shareable));
  CHECK(f.calls(DriverCall::memset) == cleared + 1);
  f.driver->fail(DriverCall::memset, 1, false, DriverCode::unknown);
  CHECK(kind_of(f.allocator.try_allocate((3_MiB).count, f.with(BlockFlags::shareable))) ==
        ErrorKind::driver_fault);
  CHECK(f.stats().live_blocks == 2);
}

}  // namespace bursar::test
