// SPDX-License-Identifier: Apache-2.0
// GrowthPlanner: where a request that missed will live, and which extents are chosen for it.
#include <bursar/allocator/growth_planner.hpp>

#include <algorithm>
#include <deque>
#include <vector>

#include <bursar/driver/sim_driver.hpp>

#include "unit/allocator/printing.hpp"

namespace bursar::test {

using namespace bursar::literals;

namespace {

constexpr Bytes kPage = 2_MiB;

/// Requests of every size are served by moving, as where nothing can be stitched.
AllocatorOptions moves_only() {
  AllocatorOptions options;
  options.stitch_limit = Bytes::max();
  options.small_limit = 1_MiB;
  return options;
}

/// Two arenas whose memory is pretended: extents that say where they are mapped, and no driver.
class PlannerFixture {
 public:
  PlannerFixture() {
    for (BlockMap* map : {&mine.small, &mine.large, &other.small, &other.large}) {
      auto range = AddressRange::reserve(driver, {}, kPage, 256_MiB, 256_MiB);
      map->add_range(std::move(*range));
    }
    slot = streams.slot_of(StreamId{1});
  }
  static DeviceAddress at(const BlockMap& map, Bytes offset) {
    return map.first(0)->begin + offset;
  }
  /// Idle memory of extents of `pages` pages each, from `offset` on.
  Block* idle(BlockMap& map, Bytes offset, std::uint32_t extents, std::uint32_t pages = 1,
              FencePoint freed = {}) {
    return map.make_idle(back(map, offset, extents, pages), freed);
  }
  /// The same between two live pages, so that a new block cannot use it in its place.
  Block* enclosed(BlockMap& map, Bytes offset, std::uint32_t extents, FencePoint freed = {}) {
    live(map, offset - kPage, kPage);
    live(map, offset + kPage * extents, kPage);
    return idle(map, offset, extents, 1, freed);
  }
  Block* live(BlockMap& map, Bytes offset, Bytes size) {
    Block* block = back(map, offset, static_cast<std::uint32_t>((size + kPage - 1_B) / kPage), 1);
    Block* used = map.cut(block, block->begin, size);
    map.make_live(used, size, slot);
    if (used->next->state == BlockState::moving) map.make_idle(used->next, {});
    return used;
  }
  Request want(Bytes size) const {
    Request request;
    request.requested = request.size = size;
    request.alignment = 512_B;
    request.slot = slot;
    return request;
  }
  /// The plan for `request`; `mine` has no other arena to take from unless told.
  GrowthPlan plan(const Request& request, Bytes spare = {}, bool from_other = true) {
    Arena* const others[] = {&other};
    GrowthPlan out;
    const std::span<Arena* const> all(others, from_other ? 1u : 0u);
    REQUIRE(planner.plan(mine, all, request, spare, growth, out));
    return out;
  }

  Bytes growth = 8_MiB;  ///< size of new extents
  SimDriver driver;
  AllocatorOptions options = moves_only();
  StreamTable streams;
  BlockStore store;
  Arena mine{store, DomainId{0}, DeviceId{}};
  Arena other{store, DomainId{1}, DeviceId{}};
  StreamSlot slot = kAnyStream;
  GrowthPlanner planner{options, kPage, true, streams};

 private:
  Block* back(BlockMap& map, Bytes offset, std::uint32_t count, std::uint32_t pages) {
    const VaRange where{at(map, offset), kPage * count * pages};
    Block* block = map.gather(map.find(where.begin), where);
    for (std::uint32_t i = 0; i < count; ++i) {
      Extent& extent = extents_.emplace_back();
      extent.pages = PageCount{pages};
      extent.size = kPage * pages;
      extent.domain = map.domain();
      extent.state = ExtentState::mapped;
      extent.mapped_at = where.begin + extent.size * i;
      block->range->set_extent({extent.mapped_at, extent.size}, &extent);
    }
    return block;
  }

  std::deque<Extent> extents_;
};

std::vector<std::uint32_t> pages_of(const GrowthPlan& plan) {
  std::vector<std::uint32_t> pages;
  for (const GrowthStep& step : plan.steps)
    pages.push_back(pages_for(step.target.size, kPage).value);
  return pages;
}

}  // namespace

TEST_CASE("small requests have a zone of their own", "[allocator][planner]") {
  PlannerFixture f;
  CHECK(&f.planner.zone_of(f.mine, f.want(1_MiB - 512_B)) == &f.mine.small);
  CHECK(&f.planner.zone_of(f.mine, f.want(1_MiB)) == &f.mine.large);
  Request pinned = f.want(512_B);
  pinned.pinned = true;
  CHECK(&f.planner.zone_of(f.mine, pinned) == &f.mine.large);
}

TEST_CASE("the place that needs the fewest new pages is chosen", "[allocator][planner]") {
  PlannerFixture f;
  BlockMap& map = f.mine.large;
  f.live(map, 8_MiB, 3_MiB);  // leaves 1 MiB idle at 11 MiB
  const GrowthPlan plan = f.plan(f.want(3_MiB), {}, false);
  CHECK(plan.place.begin == f.at(map, 11_MiB));
  CHECK(pages_of(plan) == std::vector<std::uint32_t>{1});
  CHECK(plan.site->where() == VaRange{f.at(map, 11_MiB), 3_MiB});
}

TEST_CASE("a block may end in the idle begin of a page", "[allocator][planner]") {
  PlannerFixture f;
  BlockMap& map = f.mine.large;
  f.idle(map, 8_MiB, 1);
  Block* tail = map.cut(map.find(f.at(map, 8_MiB)), f.at(map, 9_MiB), 1_MiB);
  map.make_live(tail, 1_MiB, f.slot);
  const GrowthPlan plan = f.plan(f.want(3_MiB), {}, false);
  CHECK(plan.place == VaRange{f.at(map, 6_MiB), 3_MiB});
  CHECK(plan.steps.size() == 1);
}

TEST_CASE("among equals the lowest address is chosen", "[allocator][planner]") {
  PlannerFixture f;
  f.live(f.mine.large, 4_MiB, 4_MiB);
  CHECK(f.plan(f.want(4_MiB), {}, false).place.begin == f.at(f.mine.large, 0_B));
}

TEST_CASE("a place honors the alignment", "[allocator][planner]") {
  PlannerFixture f;
  f.live(f.mine.large, 0_B, 3_MiB);
  Request request = f.want(3_MiB);
  request.alignment = 16_MiB;
  const GrowthPlan plan = f.plan(request, {}, false);
  CHECK(plan.place.begin.value % (16_MiB).count == 0);
}

TEST_CASE("the middle of a large block takes large extents, its ends one-page ones",
          "[allocator][planner]") {
  PlannerFixture f;
  BlockMap& map = f.mine.large;
  f.live(map, 0_B, 1_MiB);
  const GrowthPlan plan = f.plan(f.want(64_MiB), {}, false);
  REQUIRE(plan.place.begin == f.at(map, 1_MiB));
  const std::vector<std::uint32_t> pages = pages_of(plan);
  // The last page is shared with what comes after.
  CHECK(pages.front() == 4);
  CHECK(pages.back() == 1);
  CHECK(*std::max_element(pages.begin(), pages.end()) == 4);
}

TEST_CASE("small blocks are backed by one-page extents", "[allocator][planner]") {
  PlannerFixture f;
  CHECK(pages_of(f.plan(f.want(1000_KiB), {}, false)) == std::vector<std::uint32_t>{1});
}

TEST_CASE("no new extent is larger than asked", "[allocator][planner]") {
  PlannerFixture f;
  f.growth = 4_MiB;
  for (const std::uint32_t pages : pages_of(f.plan(f.want(64_MiB), {}, false))) CHECK(pages <= 2);
}

TEST_CASE("own idle extents are taken before others', large zone first, highest address first",
          "[allocator][planner]") {
  PlannerFixture f;
  const DeviceAddress low = f.enclosed(f.mine.large, 100_MiB, 1)->begin;
  const DeviceAddress high = f.enclosed(f.mine.large, 200_MiB, 1)->begin;
  f.idle(f.mine.small, 50_MiB, 1);
  f.idle(f.other.large, 50_MiB, 3);
  const auto sources = [&](Bytes size) {
    std::vector<DeviceAddress> begins;
    const GrowthPlan plan = f.plan(f.want(size));
    for (const GrowthStep& step : plan.steps) {
      if (step.source != nullptr) begins.push_back(step.source->begin);
    }
    return begins;
  };
  const DeviceAddress small = f.at(f.mine.small, 50_MiB);
  const DeviceAddress theirs = f.at(f.other.large, 54_MiB);
  CHECK(sources(8_MiB) == std::vector<DeviceAddress>{high, low, small, theirs});
}

TEST_CASE("what is not needed of the sources stays idle", "[allocator][planner]") {
  PlannerFixture f;
  f.enclosed(f.mine.large, 100_MiB, 8);
  const GrowthPlan plan = f.plan(f.want(4_MiB));
  CHECK(plan.steps.size() == 2);
  CHECK(f.mine.large.bytes(BlockState::idle) == 12_MiB);
}

TEST_CASE("others' extents are left alone where enough is spare", "[allocator][planner]") {
  PlannerFixture f;
  f.idle(f.other.large, 50_MiB, 4);
  const GrowthPlan plan = f.plan(f.want(4_MiB), 4_MiB);
  CHECK(plan.fresh_bytes() == 4_MiB);
  CHECK(f.other.large.bytes(BlockState::idle) == 8_MiB);
}

TEST_CASE("an extent larger than every hole is not taken", "[allocator][planner]") {
  PlannerFixture f;
  f.idle(f.other.large, 64_MiB, 1, 8);
  const GrowthPlan plan = f.plan(f.want(8_MiB));
  CHECK(plan.fresh_bytes() == 8_MiB);
}

TEST_CASE("larger sources are placed first", "[allocator][planner]") {
  PlannerFixture f;
  f.idle(f.other.large, 64_MiB, 1, 4);
  f.enclosed(f.mine.large, 100_MiB, 2);
  const GrowthPlan plan = f.plan(f.want(12_MiB));
  CHECK(pages_of(plan) == std::vector<std::uint32_t>{4, 1, 1});
}

TEST_CASE("memory of a stream whose work runs is moved by alias, on that stream alone",
          "[allocator][planner]") {
  PlannerFixture f;
  f.enclosed(f.mine.large, 100_MiB, 2, {f.slot, 5});
  Request request = f.want(4_MiB);
  SECTION("the stream itself") {
    const GrowthPlan plan = f.plan(request);
    REQUIRE(plan.steps.size() == 2);
    CHECK(plan.fresh_bytes() == 0_B);
    CHECK(plan.steps[0].alias);
    CHECK(plan.steps[0].freed.batch == 5);
    CHECK(plan.site_freed.slot == f.slot);
    CHECK(plan.site_freed.batch == 5);
  }
  SECTION("another stream") {
    request.slot = f.streams.slot_of(StreamId{2});
    CHECK(f.plan(request).fresh_bytes() == 4_MiB);
  }
  SECTION("another stream, once the work is done") {
    request.slot = f.streams.slot_of(StreamId{2});
    f.streams.at(f.slot).passed_batch = 5;
    f.mine.large.release_batch(f.slot, 5);
    const GrowthPlan plan = f.plan(request);
    CHECK(plan.fresh_bytes() == 0_B);
    CHECK_FALSE(plan.steps[0].alias);
  }
}

TEST_CASE("without aliases memory whose work runs is not moved", "[allocator][planner]") {
  PlannerFixture f;
  const GrowthPlanner plain(f.options, kPage, false, f.streams);
  const FencePoint running{f.slot, 5};
  f.idle(f.other.large, 100_MiB, 4, 1, running);
  std::vector<MoveSource> sources;
  plain.collect(f.other.large, f.slot, {}, PageCount{8}, 8_MiB, sources);
  CHECK(sources.empty());
  f.streams.at(f.slot).passed_batch = 5;
  plain.collect(f.other.large, f.slot, {}, PageCount{8}, 8_MiB, sources);
  CHECK(sources.size() == 4);
}

TEST_CASE("a dedicated request takes whole vacant pages and no source", "[allocator][planner]") {
  PlannerFixture f;
  f.idle(f.mine.large, 0_B, 4);
  Request request = f.want(3_MiB);
  request.pinned = true;
  request.alignment = GENERATE(512_B, 32_MiB);
  const GrowthPlan plan = f.plan(request);
  CHECK(plan.dedicated);
  REQUIRE(plan.steps.size() == 1);
  CHECK(plan.steps[0].source == nullptr);
  CHECK(plan.steps[0].target.size == 4_MiB);
  CHECK(plan.steps[0].target.begin.value % request.alignment.count == 0);
  CHECK(f.mine.large.bytes(BlockState::idle) == 8_MiB);
}

TEST_CASE("a zone without room says so and stays as it was", "[allocator][planner]") {
  PlannerFixture f;
  GrowthPlan plan;
  CHECK_FALSE(f.planner.plan(f.mine, {}, f.want(300_MiB), {}, kPage, plan));
  CHECK(plan.site == nullptr);
  CHECK(f.mine.large.bytes(BlockState::moving) == 0_B);
}

}  // namespace bursar::test
