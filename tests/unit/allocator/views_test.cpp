// SPDX-License-Identifier: Apache-2.0
// Blocks stitched from idle memory that lies apart, and the views that remain of them.
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {
namespace {

/// One-page extents, and no growth while idle memory can serve.
AllocatorOptions stitching() {
  AllocatorOptions options;
  options.growth_divisor = 1'000'000;
  options.extent_share = 1'000'000;
  options.guard = options.wide_guard = 0;
  options.map_price = 0;
  return options;
}

class ViewsFixture : public AllocatorFixture {
 public:
  explicit ViewsFixture(AllocatorOptions options = stitching())
      : AllocatorFixture(Shape{}, options) {}

  /// `count` idle blocks of `size`, each beside a live one.
  void scatter(int count, Bytes size) {
    for (int i = 0; i < 2 * count; ++i) (i % 2 == 0 ? idle : live).push_back(get(size));
    for (void* block : idle) free(block);
  }
  void free_all() {
    for (void* block : live) free(block);
    live.clear();
  }
  std::vector<void*> idle;
  std::vector<void*> live;
};

}  // namespace

TEST_CASE("idle memory that lies apart serves one block without a new extent",
          "[allocator][views]") {
  ViewsFixture f;
  f.scatter(4, 4_MiB);
  const std::uint64_t created = f.calls(DriverCall::create);
  void* block = f.get(16_MiB);
  f.use(f.a, block, 16_MiB, 1, 1);
  CHECK(f.calls(DriverCall::create) == created);
  CHECK(f.stats().idle == 0_B);
  CHECK(f.allocator.usable_size(block) == (16_MiB).count);
  CHECK(f.allocator.validate().ok());
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a view serves its size again without a driver call", "[allocator][views]") {
  ViewsFixture f;
  f.scatter(4, 4_MiB);
  void* block = f.get(16_MiB);
  f.free(block);
  const std::uint64_t before = f.memory_calls();
  CHECK(f.get(16_MiB) == block);
  CHECK(f.memory_calls() == before);
}

TEST_CASE("memory leased by a view is not handed out at home", "[allocator][views]") {
  ViewsFixture f;
  f.scatter(4, 4_MiB);
  void* block = f.get(16_MiB);
  f.use(f.a, block, 16_MiB, 1, 1);
  for (std::uint64_t i = 0; i < 4; ++i) f.use(f.a, f.get(4_MiB), 4_MiB, 2 + i, 1);
  CHECK(f.stats().live == 48_MiB);
  CHECK(f.allocator.validate().ok());
  f.free(block);
  const std::uint64_t created = f.calls(DriverCall::create);
  for (int i = 0; i < 4; ++i) f.get(4_MiB);
  CHECK(f.calls(DriverCall::create) == created);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("the ends of a stitched block share extents with other blocks", "[allocator][views]") {
  ViewsFixture f;
  f.scatter(3, 3_MiB);  // idle: 1 MiB ends and beginnings between live blocks
  const Bytes reserved = f.stats().reserved;
  f.get(8_MiB);
  CHECK(f.stats().reserved <= reserved + 2_MiB);
  CHECK(f.allocator.validate().ok());
}

TEST_CASE("a block in a view is owned from end to end, and freed once", "[allocator][views]") {
  ViewsFixture f;
  f.scatter(4, 4_MiB);
  char* block = static_cast<char*>(f.get(16_MiB));
  CHECK(f.allocator.owns(block));
  CHECK(f.allocator.owns(block + (16_MiB).count - 1));
  CHECK(kind_of(f.allocator.try_deallocate(block + 512)) == ErrorKind::invalid_argument);
  CHECK_FALSE(f.allocator.owns(f.idle[0]));  // leased, not handed out
  CHECK(kind_of(f.allocator.try_deallocate(f.idle[0])) == ErrorKind::invalid_argument);
  f.free(block);
  CHECK_FALSE(f.allocator.owns(block));
  CHECK(kind_of(f.allocator.try_deallocate(block)) == ErrorKind::invalid_argument);
}

TEST_CASE("a recorded stream keeps all of a stitched block pending", "[allocator][views]") {
  ViewsFixture f;
  f.scatter(4, 4_MiB);
  void* block = f.get(16_MiB);
  REQUIRE(f.allocator.record_stream(block, f.b));
  f.free(block);
  CHECK(f.stats().pending == 16_MiB);
  f.get(512_B, f.b);  // names the stream: the fence
  f.look();
  CHECK(f.stats().pending == 0_B);
  CHECK(f.allocator.validate().ok());
}

TEST_CASE("work of one stream on a view keeps its memory from others", "[allocator][views]") {
  ViewsFixture f;
  f.scatter(4, 4_MiB);
  f.get(512_B, f.b);
  void* block = f.get(16_MiB);
  f.use(f.a, block, 16_MiB, 1, 50);
  f.free(block);
  const Bytes idle = f.stats().idle;
  for (std::uint64_t i = 0; i < 4; ++i) f.use(f.b, f.get(4_MiB, f.b), 4_MiB, 2 + i, 1);
  CHECK(f.driver->violations().empty());
  CHECK(f.stats().idle == idle);
}

TEST_CASE("trim takes views away before it releases their extents", "[allocator][views]") {
  ViewsFixture f;
  f.scatter(4, 4_MiB);
  f.free(f.get(16_MiB));
  f.free_all();
  f.allocator.trim(0_B, f.device, std::vector<StreamRef>{f.a});
  CHECK(f.stats().reserved == 0_B);
  CHECK(f.driver->mapping_count() == 0);
  CHECK(f.allocator.validate().ok());
  CHECK(f.driver->violations().empty());
}

TEST_CASE("views are bounded", "[allocator][views]") {
  AllocatorOptions options = stitching();
  options.max_views = 4;
  ViewsFixture f(options);
  f.scatter(8, 4_MiB);
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    f.free(f.get(Bytes{(8_MiB).count + (i % 13) * (1_MiB).count + 512 * i}));
    most = std::max(most, f.driver->mapping_count());
  }
  CHECK(f.allocator.validate().ok());
  const std::size_t homes = f.allocator.snapshot(f.device).extents.size();
  CHECK(most <= homes + 5 * 12);
}

TEST_CASE("a view whose work still runs is not taken away", "[allocator][views]") {
  AllocatorOptions options = stitching();
  options.max_views = 1;
  ViewsFixture f(options);
  f.scatter(4, 4_MiB);
  void* block = f.get(16_MiB);
  f.use(f.a, block, 16_MiB, 1, 50);
  f.free(block);
  f.free(f.live.back());
  f.live.pop_back();
  f.use(f.a, f.get(20_MiB), 20_MiB, 2, 50);  // does not fit the view: another one
  f.look();
  CHECK(f.driver->violations().empty());
  CHECK(f.allocator.validate().ok());
}

TEST_CASE("a stitch that fails half way leaves all memory as it was", "[allocator][views][fault]") {
  const DriverCall call = GENERATE(DriverCall::map, DriverCall::set_access);
  const std::uint64_t nth = GENERATE(1u, 2u, 5u, 8u);
  ViewsFixture f;
  f.scatter(4, 4_MiB);
  const AllocatorStats before = f.stats();
  const std::size_t mappings = f.driver->mapping_count();
  f.driver->fail(call, nth, false, DriverCode::invalid_value);
  const result<void*> block = f.ask(16_MiB, f.a);
  REQUIRE(f.driver->faults_hit() == 1);
  CHECK(kind_of(block) == ErrorKind::driver_fault);
  CHECK(f.stats().idle == before.idle);
  CHECK(f.driver->mapping_count() == mappings);
  CHECK(f.allocator.validate().ok());
  CHECK(f.ask(16_MiB, f.a));
}

TEST_CASE("a mapping that cannot be undone is taken away later", "[allocator][views][fault]") {
  ViewsFixture f;
  f.scatter(4, 4_MiB);
  const std::size_t mappings = f.driver->mapping_count();
  f.driver->fail(DriverCall::set_access, 3, false, DriverCode::invalid_value);
  f.driver->fail(DriverCall::unmap, 1, true, DriverCode::invalid_value);
  CHECK_FALSE(f.ask(16_MiB, f.a));
  CHECK(f.driver->mapping_count() == mappings + 3);
  CHECK(f.allocator.validate().ok());
  f.driver->clear_faults();
  f.look();
  CHECK(f.driver->mapping_count() == mappings);
  CHECK(f.allocator.validate().ok());
}

TEST_CASE("nothing is stitched where aliases are off or unknown", "[allocator][views]") {
  AllocatorOptions options = stitching();
  const bool able = GENERATE(true, false);
  options.alias_moves = !able;
  AllocatorFixture f(Shape{able ? CapabilityLevel::full : CapabilityLevel::no_aliases, 1}, options);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(f.get(4_MiB));
  for (std::size_t i = 0; i < blocks.size(); i += 2) f.free(blocks[i]);
  f.get(16_MiB);
  CHECK(f.driver->mapping_count() == f.allocator.snapshot(f.device).extents.size());
}

}  // namespace bursar::test
