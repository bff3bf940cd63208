// SPDX-License-Identifier: Apache-2.0
// Idle extents that serve elsewhere: at once where the device can map an extent twice, when their
// work is done where it cannot.
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {
namespace {

/// Idle extents of one page, each beside a live one, freed on `a` behind work of 100 ms.
void scatter(AllocatorFixture& f, int extents) {
  std::vector<void*> blocks;
  for (int i = 0; i < 2 * extents; ++i) blocks.push_back(f.get(2_MiB));
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    f.use(f.a, blocks[i], 2_MiB, i + 1, 100 / extents);
    f.free(blocks[i]);
  }
}

}  // namespace

TEST_CASE("an idle extent serves elsewhere on its stream without waiting",
          "[allocator][move][alias]") {
  AllocatorFixture f(Shape{CapabilityLevel::full, GENERATE(1, 2)});
  scatter(f, 8);
  const std::uint64_t created = f.calls(DriverCall::create);
  void* block = f.get(16_MiB);
  f.use(f.a, block, 16_MiB, 100, 1);
  CHECK(f.calls(DriverCall::create) == created);
  CHECK(f.stats().extents_moved == 8);
  CHECK(f.driver->now() < milliseconds(90));
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a moved extent's old mapping goes only after its work is done",
          "[allocator][move][alias]") {
  AllocatorFixture f(Shape{CapabilityLevel::full, 1});
  scatter(f, 8);
  f.get(16_MiB);
  CHECK(f.driver->mapping_count() == 24);
  f.get(512_B);  // names the stream: the fence
  f.look();
  CHECK(f.driver->mapping_count() == 25);
  f.pass(110);
  f.look();
  CHECK(f.driver->mapping_count() == 17);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("no extent moves while its work runs where aliases are off or unknown",
          "[allocator][move]") {
  AllocatorOptions options = moving();
  const bool able = GENERATE(true, false);
  options.alias_moves = !able;
  AllocatorFixture f(Shape{able ? CapabilityLevel::full : CapabilityLevel::no_aliases, 1}, options);
  scatter(f, 8);
  const std::uint64_t created = f.calls(DriverCall::create);
  f.get(16_MiB);
  CHECK(f.stats().extents_moved == 0);
  CHECK(f.calls(DriverCall::create) > created);
  CHECK(f.driver->mapping_count() == f.allocator.snapshot(f.device).extents.size());
  CHECK(f.driver->violations().empty());
}

TEST_CASE("extents whose work is done move instead of being created", "[allocator][move]") {
  AllocatorFixture f(any_vmm_shape());
  f.get(512_B);
  scatter(f, 8);
  f.get(512_B);
  f.pass(110);
  const std::uint64_t created = f.calls(DriverCall::create);
  void* block = f.get(16_MiB);
  f.use(f.a, block, 16_MiB, 100, 1);
  CHECK(f.calls(DriverCall::create) == created);
  CHECK(f.stats().extents_moved == 8);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("another stream's idle extents do not move before a fence", "[allocator][move]") {
  AllocatorFixture f(any_vmm_shape());
  f.get(512_B, f.b);
  scatter(f, 8);
  f.get(512_B);
  void* block = f.get(16_MiB, f.b);
  f.use(f.b, block, 16_MiB, 100, 1);
  CHECK(f.stats().extents_moved == 0);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("an extent moved twice leaves two old mappings behind", "[allocator][move][alias]") {
  AllocatorFixture f(Shape{CapabilityLevel::full, 1});
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(f.get(2_MiB));
  f.use(f.a, blocks[0], 2_MiB, 1, 50);
  f.use(f.a, blocks[2], 2_MiB, 2, 50);
  f.free(blocks[0]);
  f.free(blocks[2]);
  void* first = f.get(4_MiB);
  f.use(f.a, first, 4_MiB, 3, 50);
  f.free(first);
  f.free(blocks[1]);
  void* second = f.get(6_MiB);
  f.use(f.a, second, 6_MiB, 4, 50);
  CHECK(f.allocator.validate().ok());
  CHECK(f.driver->violations().empty());
  f.free(second);
  f.pass(300);
  f.allocator.trim(0_B, f.device, std::vector<StreamRef>{f.a});
  f.look();
  CHECK(f.driver->mapping_count() == f.allocator.snapshot(f.device).extents.size());
  CHECK(f.driver->violations().empty());
}

TEST_CASE("an extent whose old mapping could not be taken away still moves",
          "[allocator][move][alias][fault]") {
  AllocatorFixture f(Shape{CapabilityLevel::full, 1});
  const DomainId other = f.domain();
  f.get(512_B);
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(f.get(2_MiB));
  f.work(f.a, 10);
  f.free(blocks[0]);
  f.free(blocks[2]);
  void* moved = f.get(4_MiB);
  REQUIRE(f.stats().extents_moved == 2);
  f.free(moved);
  f.pass(20);
  f.driver->fail(DriverCall::unmap, 1, true, DriverCode::unknown);
  f.get(512_B);
  f.look();
  REQUIRE(f.driver->mapping_count() == f.allocator.snapshot(f.device).extents.size() + 2);
  f.driver->clear_faults();
  f.driver->fail(DriverCall::unmap, 1, false, DriverCode::unknown);
  f.driver->fail(DriverCall::unmap, 2, false, DriverCode::unknown);
  const bool fails = GENERATE(false, true);
  if (fails) f.driver->fail(DriverCall::map, 1, false, DriverCode::unknown);
  CHECK(f.ask(8_MiB, f.a, other).ok() != fails);
  CHECK(f.allocator.validate().ok());
  f.driver->clear_faults();
  f.look();
  f.look();
  CHECK(f.driver->mapping_count() == f.allocator.snapshot(f.device).extents.size() -
                                         (f.stats().spare + f.stats().quarantine) / 2_MiB);
}

TEST_CASE("trim leaves an extent alone whose old mapping still stands",
          "[allocator][move][alias][fault]") {
  AllocatorFixture f(Shape{CapabilityLevel::full, 1});
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(f.get(2_MiB));
  f.work(f.a, 10);
  f.free(blocks[0]);
  f.free(blocks[2]);
  f.free(f.get(4_MiB));
  REQUIRE(f.stats().extents_moved == 2);
  f.pass(20);
  f.driver->fail(DriverCall::unmap, 1, false, DriverCode::unknown);
  f.driver->fail(DriverCall::unmap, 2, false, DriverCode::unknown);
  const StreamRef streams[] = {f.a};
  CHECK(f.allocator.trim(0_B, f.device, streams) == 0_B);
  CHECK(f.stats().idle == 4_MiB);
  CHECK(f.stats().quarantine == 0_B);
  CHECK(f.allocator.trim(0_B, f.device, streams) == 4_MiB);
  CHECK(f.driver->mapping_count() == 2);
}

TEST_CASE("a block begins in the idle end of one page and ends in the next", "[allocator][move]") {
  AllocatorFixture f(any_vmm_shape());
  f.get(3_MiB);
  REQUIRE(f.stats().idle == 1_MiB);
  f.get(3_MiB);
  CHECK(f.stats().idle == 0_B);
  CHECK(f.stats().reserved == 6_MiB);
}

}  // namespace bursar::test
