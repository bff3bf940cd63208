// SPDX-License-Identifier: Apache-2.0
// BlockMap: cutting, gathering and merging, and which idle memory is kept apart from which.
#include <bursar/block/block_map.hpp>

#include "block_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {

using enum BlockState;
using Pieces = std::vector<BlockFixture::Piece>;

namespace {
constexpr FencePoint kFreedOn1{1, 5};
constexpr FencePoint kFreedOn2{2, 5};
}  // namespace

TEST_CASE("a cut leaves what is around it in the state it had", "[block][block_map]") {
  BlockFixture f;
  Block* free = f.idle(0_MiB, 8_MiB, kFreedOn1);
  Block* cut = f.map.cut(free, f.at(2_MiB), 3_MiB);
  CHECK(cut->state == moving);
  CHECK(f.pieces() == Pieces{{{0, 2}, idle}, {{2, 3}, moving}, {{5, 3}, idle}, {{8, 24}, vacant}});
  CHECK(cut->next->freed.slot == 1);
  CHECK(cut->next->freed.batch == 5);
  f.map.make_idle(cut, kFreedOn1);
  CHECK(f.map.validate().ok());
}

TEST_CASE("a cut of a whole block makes no new one", "[block][block_map]") {
  BlockFixture f;
  Block* free = f.idle(0_MiB, 4_MiB);
  CHECK(f.map.cut(free, free->begin, free->size) == free);
  CHECK(f.pieces() == Pieces{{{0, 4}, moving}, {{4, 28}, vacant}});
}

TEST_CASE("gather joins idle and vacant blocks and cuts at both ends", "[block][block_map]") {
  BlockFixture f;
  f.idle(0_MiB, 4_MiB, kFreedOn1);
  f.idle(4_MiB, 2_MiB);
  Block* site = f.map.gather(f.map.find(f.at(3_MiB)), f.span(3_MiB, 5_MiB));
  CHECK(site->where() == f.span(3_MiB, 5_MiB));
  CHECK(f.pieces() == Pieces{{{0, 3}, idle}, {{3, 5}, moving}, {{8, 24}, vacant}});
  CHECK(f.map.moving_backed() == 3_MiB);
  CHECK(f.map.validate().ok());
}

TEST_CASE("idle neighbors of one stream merge and keep the later batch", "[block][block_map]") {
  BlockFixture f;
  Block* low = f.live(0_MiB, 2_MiB);
  Block* mid = f.live(2_MiB, 2_MiB);
  Block* high = f.live(4_MiB, 2_MiB);
  f.map.make_idle(low, {1, 3});
  f.map.make_idle(high, {1, 7});
  Block* merged = f.map.make_idle(mid, {1, 5});
  CHECK(merged->where() == f.span(0_MiB, 6_MiB));
  CHECK(merged->freed.batch == 7);
  CHECK(f.map.find_idle(1, 6_MiB, 512_B) == merged);
  CHECK(f.map.validate().ok());
}

TEST_CASE("idle memory of one stream, of another and of all stay apart", "[block][block_map]") {
  BlockFixture f;
  f.idle(0_MiB, 2_MiB, kFreedOn1);
  f.idle(2_MiB, 2_MiB);
  f.idle(4_MiB, 2_MiB, kFreedOn2);
  CHECK(f.pieces() == Pieces{{{0, 2}, idle}, {{2, 2}, idle}, {{4, 2}, idle}, {{6, 26}, vacant}});
  CHECK(f.map.find_idle(1, 2_MiB, 512_B)->begin == f.at(0_MiB));
  CHECK(f.map.find_idle(2, 2_MiB, 512_B)->begin == f.at(2_MiB));
  CHECK(f.map.find_idle(kAnyStream, 2_MiB, 512_B)->begin == f.at(2_MiB));
  CHECK(f.map.find_idle(9, 4_MiB, 512_B) == nullptr);
}

TEST_CASE("find_idle leaves room for an alignment above 512 B", "[block][block_map]") {
  BlockFixture f;
  f.idle(0_MiB, 2_MiB);
  CHECK(f.map.find_idle(1, 1_MiB, 1_MiB) != nullptr);
  CHECK(f.map.find_idle(1, 1_MiB + 512_B, 1_MiB) != nullptr);
  CHECK(f.map.find_idle(1, 1_MiB + 1024_B, 1_MiB) == nullptr);
}

TEST_CASE("a passed batch makes its blocks and no others everybody's", "[block][block_map]") {
  BlockFixture f;
  f.idle(0_MiB, 2_MiB, {1, 4});
  f.live(2_MiB, 2_MiB);
  f.idle(4_MiB, 2_MiB, {1, 6});
  f.live(6_MiB, 2_MiB);
  f.idle(8_MiB, 2_MiB, {2, 1});
  f.map.release_batch(1, 5);
  CHECK(f.map.find(f.at(0_MiB))->freed.slot == kAnyStream);
  CHECK(f.map.find(f.at(4_MiB))->freed.slot == 1);
  CHECK(f.map.find(f.at(8_MiB))->freed.slot == 2);
  CHECK(f.map.validate().ok());
}

TEST_CASE("what a batch makes everybody's merges with what was already", "[block][block_map]") {
  BlockFixture f;
  f.idle(0_MiB, 2_MiB);
  f.idle(2_MiB, 2_MiB, {1, 4});
  f.idle(4_MiB, 2_MiB);
  f.map.release_batch(1, 4);
  CHECK(f.pieces() == Pieces{{{0, 6}, idle}, {{6, 26}, vacant}});
  CHECK(f.map.largest_idle() == 6_MiB);
}

TEST_CASE("find knows the block of every address and no other", "[block][block_map]") {
  BlockFixture f;
  Block* free = f.idle(2_MiB, 6_MiB);
  Block* cut = f.map.cut(free, f.at(3_MiB), 4_MiB);
  f.map.make_live(cut, 4_MiB, 1);
  CHECK(f.map.find(f.at(3_MiB)) == cut);
  CHECK(f.map.find(DeviceAddress{f.at(7_MiB).value - 1}) == cut);
  CHECK(f.map.find(f.at(2_MiB))->state == idle);
  CHECK(f.map.find(f.at(30_MiB))->state == vacant);
  CHECK(f.map.find(f.at(32_MiB)) == nullptr);
}

TEST_CASE("a page forgets the block that merged away from its begin", "[block][block_map]") {
  BlockFixture f;
  Block* free = f.idle(0_MiB, 4_MiB);
  Block* cut = f.map.cut(free, f.at(1_MiB), 2_MiB);
  f.map.make_idle(cut, {});
  CHECK(f.map.find(f.at(2_MiB) + 512_B)->begin == f.at(0_MiB));
  CHECK(f.range().find_slot(f.at(2_MiB))->first_start == nullptr);
}

TEST_CASE("bytes by state follow a block through its life", "[block][block_map]") {
  BlockFixture f;
  Block* block = f.live(0_MiB, 4_MiB);
  CHECK(f.map.bytes(live) == 4_MiB);
  f.map.make_pending(block);
  CHECK(f.map.bytes(pending) == 4_MiB);
  f.map.make_moving(block);
  CHECK(f.map.bytes(moving) == 4_MiB);
  f.range().set_extent(block->where(), nullptr);
  f.map.make_vacant(block);
  CHECK(f.map.bytes(vacant) == f.map.address_space());
  CHECK(f.pieces() == Pieces{{{0, 32}, vacant}});
}

TEST_CASE("a range whose only block is vacant can be taken out", "[block][block_map]") {
  BlockFixture f;
  const auto range = f.map.remove_range(f.map.first(0));
  CHECK(range.get() == &f.range());
  CHECK(f.map.address_space() == 0_B);
  CHECK(f.map.validate().ok());
}

TEST_CASE("validate names what is broken in a block map", "[block][block_map]") {
  BlockFixture f;
  Block* free = f.idle(0_MiB, 4_MiB, kFreedOn1);
  Block* high = f.live(4_MiB, 2_MiB);
  Extent extent;
  REQUIRE(f.map.validate().ok());
  const auto fault = [&] { return std::string(f.map.validate().failure().message); };
  SECTION("a gap") {
    high->begin = high->begin + 512_B;
    CHECK(fault() == "block_map: a gap between neighbors");
  }
  SECTION("a missing link") {
    high->prev = nullptr;
    CHECK(fault() == "block_map: neighbors disagree");
  }
  SECTION("memory that is not there") {
    f.range().set_extent(f.span(2_MiB, 2_MiB), nullptr);
    CHECK(fault() == "block_map: a block lacks memory");
  }
  SECTION("memory where none should be") {
    f.range().set_extent(f.span(8_MiB, 2_MiB), &extent);
    CHECK(fault() == "block_map: a vacant block has memory");
  }
  SECTION("a live block larger than it is") {
    high->requested = 3_MiB;
    CHECK(fault() == "block_map: requested > size");
  }
  SECTION("an idle block in another stream's index") {
    free->freed.slot = 2;
    CHECK(fault() == "block_map: an idle block is not indexed");
  }
  SECTION("a page that does not know its block") {
    f.range().slot(high->begin).first_start = nullptr;
    CHECK(fault() == "block_map: the page does not know the block");
  }
  SECTION("a state that nobody counted") {
    high->state = pending;
    CHECK(fault() == "block_map: bytes by state differ");
  }
}

}  // namespace bursar::test
