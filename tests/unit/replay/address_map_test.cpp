// SPDX-License-Identifier: Apache-2.0
// Snapshots made small enough to be drawn.
#include "support/catch.hpp"

#include <string>

#include "replay/address_map.hpp"

using namespace bursar;
using namespace bursar::literals;

namespace {

std::string name_of(StreamId stream) { return std::to_string(stream.value) + "s"; }

SnapshotBlock block(std::uint64_t begin, Bytes size, BlockState state, StreamId stream = kNoStream,
                    Bytes requested = {}) {
  return {.range = {DeviceAddress{begin}, size},
          .requested = requested,
          .state = state,
          .stream = stream};
}

Bytes of(const MapPiece& piece, BlockState state) {
  return piece.bytes[static_cast<std::size_t>(state)];
}

/// Two ranges: blocks of two streams and a hole; an extent of two pages, one of one, one spare.
Snapshot sample() {
  Snapshot snapshot;
  snapshot.ranges = {{DeviceAddress{1000}, 1000_B}, {DeviceAddress{5000}, 100_B}};
  snapshot.blocks = {block(1000, 300_B, BlockState::live, StreamId{4}, 290_B),
                     block(1300, 100_B, BlockState::pending, StreamId{9}),
                     block(1400, 600_B, BlockState::vacant),
                     block(5000, 100_B, BlockState::idle, StreamId{4})};
  snapshot.extents = {{1, 100_B, DeviceAddress{5000}, {}},
                      {2, 200_B, DeviceAddress{1200}, {}},
                      {3, 64_B, DeviceAddress{}, {}},
                      {7, 200_B, DeviceAddress{1000}, {}}};
  return snapshot;
}

/// `count` neighbors of 512 bytes, live and idle in turn, of streams 0 to 2.
Snapshot many(std::uint64_t count) {
  Snapshot snapshot;
  snapshot.ranges = {{DeviceAddress{4096}, Bytes{count * 512}}};
  for (std::uint64_t i = 0; i < count; ++i) {
    const BlockState state = i % 2 == 0 ? BlockState::live : BlockState::idle;
    snapshot.blocks.push_back(block(4096 + i * 512, 512_B, state, StreamId{i % 3}, 100_B));
    snapshot.extents.push_back({i, 512_B, DeviceAddress{4096 + i * 512}, {}});
  }
  return snapshot;
}

}  // namespace

TEST_CASE("a map has each block and extent in its range", "[replay][map]") {
  const AddressMap map = make_address_map(sample(), name_of);
  REQUIRE(map.ranges.size() == 2);
  REQUIRE(map.ranges[0].pieces.size() == 3);
  const MapPiece& live = map.ranges[0].pieces[0];
  CHECK(of(live, BlockState::live) == 300_B);
  CHECK(live.size() == 300_B);
  CHECK(live.requested == 290_B);
  CHECK(of(map.ranges[0].pieces[1], BlockState::pending) == 100_B);
  CHECK(of(map.ranges[0].pieces[2], BlockState::vacant) == 600_B);
  REQUIRE(map.ranges[1].pieces.size() == 1);
  CHECK(of(map.ranges[1].pieces[0], BlockState::idle) == 100_B);

  REQUIRE(map.ranges[0].extents.size() == 2);
  CHECK(map.ranges[0].extents[0].id == 7);
  CHECK(map.ranges[0].extents[0].offset == 0_B);
  CHECK(map.ranges[0].extents[1].id == 2);
  CHECK(map.ranges[0].extents[1].offset == 200_B);
  CHECK(map.ranges[1].extents.size() == 1);
}

TEST_CASE("an extent that is mapped nowhere is spare", "[replay][map]") {
  CHECK(make_address_map(sample(), name_of).spare == 64_B);
}

TEST_CASE("streams of a map have names, and none is any", "[replay][map]") {
  const AddressMap map = make_address_map(sample(), name_of);
  const auto name = [&](const MapPiece& piece) {
    return map.streams[static_cast<std::size_t>(piece.stream)];
  };
  CHECK(name(map.ranges[0].pieces[0]) == "4s");
  CHECK(name(map.ranges[0].pieces[1]) == "9s");
  CHECK(name(map.ranges[0].pieces[2]) == "any");
  CHECK(name(map.ranges[1].pieces[0]) == "4s");
}

TEST_CASE("too many blocks are merged with their neighbors, and the sums stay", "[replay][map]") {
  constexpr std::uint64_t kBlocks = 100'000;
  const AddressMap map = make_address_map(many(kBlocks), name_of, 500);
  REQUIRE(map.ranges.size() == 1);
  const MapRange& range = map.ranges[0];
  CHECK(range.pieces.size() <= 500);
  CHECK(range.pieces.size() >= 100);
  CHECK(range.extents.size() <= 500);
  std::uint64_t blocks = 0;
  Bytes live;
  Bytes size;
  Bytes requested;
  for (const MapPiece& piece : range.pieces) {
    blocks += piece.blocks;
    live += of(piece, BlockState::live);
    size += piece.size();
    requested += piece.requested;
    CHECK(map.streams[static_cast<std::size_t>(piece.stream)] == "several");
  }
  CHECK(blocks == kBlocks);
  CHECK(live == Bytes{kBlocks / 2 * 512});
  CHECK(size == Bytes{kBlocks * 512});
  CHECK(requested == Bytes{kBlocks * 100});
  std::uint64_t extents = 0;
  for (const MapExtent& extent : range.extents) extents += extent.extents;
  CHECK(extents == kBlocks);
}

TEST_CASE("extents with a gap between them are not merged", "[replay][map]") {
  Snapshot snapshot = sample();
  snapshot.extents = {{1, 10_B, DeviceAddress{1000}, {}}, {2, 10_B, DeviceAddress{1020}, {}}};
  CHECK(make_address_map(snapshot, name_of, 1).ranges[0].extents.size() == 2);
}
