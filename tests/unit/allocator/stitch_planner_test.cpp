// SPDX-License-Identifier: Apache-2.0
// StitchPlanner: which idle pieces make up a block.
#include <bursar/allocator/stitch_planner.hpp>

#include <deque>

#include <bursar/driver/sim_driver.hpp>

#include "support/catch.hpp"

namespace bursar::test {

using namespace bursar::literals;

namespace {

constexpr Bytes kPage = 2_MiB;
constexpr StreamSlot kSlot = 1;

/// A zone of extents of 8 MiB, all live; tests set parts idle.
class StitchFixture {
 public:
  StitchFixture() {
    auto range = AddressRange::reserve(driver_, {}, kPage, 256_MiB, 256_MiB);
    home.add_range(std::move(*range));
    for (std::uint64_t i = 0; i < 8; ++i) {
      extents.push_back({});
      extents.back().size = 8_MiB;
      extents.back().pages = PageCount{4};
      extents.back().mapped_at = home.first(0)->begin + 8_MiB * i;
      Block* block = home.cut(home.find(extents.back().mapped_at), extents.back().mapped_at, 8_MiB);
      block->range->set_extent(block->where(), &extents.back());
      home.make_live(block, 8_MiB, kSlot);
    }
  }
  /// Bytes [from, to) of an extent become idle.
  void idle(std::size_t extent, Bytes from, Bytes to, FencePoint freed = {}) {
    const DeviceAddress base = extents[extent].mapped_at;
    Block* block = home.find(base + from);
    home.make_moving(block);
    Block* cut = home.cut(block, base + from, to - from);
    for (Block* rest : {cut->prev, cut->next}) {
      if (rest != nullptr && rest->state == BlockState::moving) {
        home.make_live(rest, rest->size, kSlot);
      }
    }
    home.make_idle(cut, freed);
  }
  Stitch plan(Bytes size) const { return planner.plan(homes, kSlot, size, 8_MiB, false); }

 private:
  SimDriver driver_;
  BlockStore store_;

 public:
  Zones homes{store_, DomainId{}, DeviceId{}};
  BlockMap& home = homes.large;
  std::deque<Extent> extents;
  StitchPlanner planner{kPage};
};

}  // namespace

TEST_CASE("a free end and a free begin make a block without new memory",
          "[allocator][stitch_planner]") {
  StitchFixture f;
  f.idle(1, 5_MiB, 8_MiB);
  f.idle(4, 0_B, 3_MiB);
  const Stitch stitch = f.plan(6_MiB);
  CHECK(stitch.new_bytes == 0_B);
  REQUIRE(stitch.pieces.size() == 2);
  CHECK(stitch.pieces[0].extent == &f.extents[1]);
  CHECK(stitch.pieces[0].from == 5_MiB);
  CHECK(stitch.pieces[0].used == 3_MiB);
  CHECK(stitch.pieces[1].extent == &f.extents[4]);
  CHECK(stitch.pieces[1].from == 0_B);
  CHECK(stitch.pieces[1].used == 3_MiB);
}

TEST_CASE("whole idle extents lie between the ends", "[allocator][stitch_planner]") {
  StitchFixture f;
  f.idle(0, 6_MiB, 8_MiB);
  f.idle(2, 0_B, 8_MiB);
  f.idle(5, 0_B, 8_MiB);
  f.idle(7, 0_B, 1_MiB);
  const Stitch stitch = f.plan(19_MiB);
  CHECK(stitch.new_bytes == 0_B);
  REQUIRE(stitch.pieces.size() == 4);
  CHECK(stitch.pieces.front().extent == &f.extents[0]);
  CHECK(stitch.pieces.back().extent == &f.extents[7]);
}

TEST_CASE("only what lacks is new", "[allocator][stitch_planner]") {
  StitchFixture f;
  f.idle(2, 0_B, 8_MiB);
  const Stitch stitch = f.plan(11_MiB);
  CHECK(stitch.new_bytes == 4_MiB);
  Bytes used{};
  for (const StitchPiece& piece : stitch.pieces) used += piece.used;
  CHECK(used == 11_MiB);
}

TEST_CASE("a free begin saves a new page where it can", "[allocator][stitch_planner]") {
  StitchFixture f;
  f.idle(3, 0_B, 1_MiB);
  const Stitch stitch = f.plan(9_MiB);
  CHECK(stitch.new_bytes == 8_MiB);
  REQUIRE(stitch.pieces.size() == 2);
  CHECK(stitch.pieces[0].extent == nullptr);
  CHECK(stitch.pieces[1].extent == &f.extents[3]);
}

TEST_CASE("a free middle of an extent is of no use", "[allocator][stitch_planner]") {
  StitchFixture f;
  f.idle(3, 2_MiB, 6_MiB);
  CHECK(f.plan(4_MiB).new_bytes == 4_MiB);
}

TEST_CASE("the free end and the free begin of one extent are not put together",
          "[allocator][stitch_planner]") {
  StitchFixture f;
  f.idle(3, 0_B, 3_MiB);
  f.idle(3, 5_MiB, 8_MiB);
  const Stitch stitch = f.plan(6_MiB);
  CHECK(stitch.new_bytes > 0_B);
  for (std::size_t i = 1; i < stitch.pieces.size(); ++i) {
    CHECK(stitch.pieces[i].extent != stitch.pieces[0].extent);
  }
}

TEST_CASE("memory another stream freed is left alone until its fence has passed",
          "[allocator][stitch_planner]") {
  StitchFixture f;
  f.idle(2, 0_B, 8_MiB, {2, 5});
  CHECK(f.plan(8_MiB).new_bytes == 8_MiB);
  f.home.release_batch(2, 5);
  CHECK(f.plan(8_MiB).new_bytes == 0_B);
}

TEST_CASE("idle neighbors of both kinds are one run", "[allocator][stitch_planner]") {
  StitchFixture f;
  f.idle(2, 0_B, 4_MiB, {kSlot, 5});
  f.idle(2, 4_MiB, 8_MiB);
  const Stitch stitch = f.plan(8_MiB);
  CHECK(stitch.new_bytes == 0_B);
  CHECK(stitch.pieces.size() == 1);
}

}  // namespace bursar::test
