// SPDX-License-Identifier: Apache-2.0
// Merging doubles the size below which neighbors are merged until the rest is few.
#include "address_map.hpp"

#include <algorithm>
#include <unordered_map>

namespace bursar {
inline namespace v0 {
namespace {

constexpr std::int32_t kAnyStream = 0;
constexpr std::int32_t kSeveralStreams = 1;

void merge(MapPiece& into, const MapPiece& next) {
  for (std::size_t i = 0; i < kBlockStateCount; ++i) into.bytes[i] += next.bytes[i];
  into.requested += next.requested;
  into.blocks += next.blocks;
  if (into.stream != next.stream) into.stream = kSeveralStreams;
}
void merge(MapExtent& into, const MapExtent& next) {
  into.size += next.size;
  into.extents += next.extents;
}

bool touch(const MapPiece&, const MapPiece&) { return true; }
bool touch(const MapExtent& a, const MapExtent& b) { return a.offset + a.size == b.offset; }

Bytes size_of(const MapPiece& piece) { return piece.size(); }
Bytes size_of(const MapExtent& extent) { return extent.size; }

/// Merges neighbors as long as the sum is at most `limit`.
template <class Item>
void merge_small(std::vector<Item>& items, Bytes limit) {
  std::vector<Item> merged;
  for (const Item& item : items) {
    const bool joins = !merged.empty() && touch(merged.back(), item) &&
                       size_of(merged.back()) + size_of(item) <= limit;
    if (joins) {
      merge(merged.back(), item);
    } else {
      merged.push_back(item);
    }
  }
  items = std::move(merged);
}

template <class Item>
void bound(std::vector<MapRange>& ranges, std::vector<Item> MapRange::*items, std::size_t most) {
  const auto count = [&] {
    std::size_t sum = 0;
    for (const MapRange& range : ranges) sum += (range.*items).size();
    return sum;
  };
  for (Bytes limit{4096}; count() > most && limit.count < Bytes::max().count / 4; limit += limit) {
    for (MapRange& range : ranges) merge_small(range.*items, limit);
  }
}

MapRange* range_at(std::vector<MapRange>& ranges, DeviceAddress address) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), address,
      [](DeviceAddress a, const MapRange& range) { return a < range.range.begin; });
  if (after == ranges.begin() || !std::prev(after)->range.contains(address)) return nullptr;
  return &*std::prev(after);
}

void add_blocks(const Snapshot& snapshot, AddressMap& map,
                const std::function<std::string(StreamId)>& name_stream) {
  map.streams = {"any", "several"};
  std::unordered_map<std::uint64_t, std::int32_t> known{{kNoStream.value, kAnyStream}};
  for (const SnapshotBlock& block : snapshot.blocks) {
    MapRange* range = range_at(map.ranges, block.range.begin);
    if (range == nullptr) continue;
    const auto next = static_cast<std::int32_t>(map.streams.size());
    const auto [stream, is_new] = known.emplace(block.stream.value, next);
    if (is_new) map.streams.push_back(name_stream(block.stream));
    MapPiece piece;
    piece.bytes[static_cast<std::size_t>(block.state)] = block.range.size;
    piece.requested = block.requested;
    piece.stream = stream->second;
    range->pieces.push_back(piece);
  }
}

void add_extents(const Snapshot& snapshot, AddressMap& map) {
  for (const SnapshotExtent& extent : snapshot.extents) {
    MapRange* range = range_at(map.ranges, extent.mapped_at);
    if (range == nullptr) {
      map.spare += extent.size;
    } else {
      range->extents.push_back({extent.mapped_at - range->range.begin, extent.size, extent.id});
    }
  }
  for (MapRange& range : map.ranges) {
    std::sort(range.extents.begin(), range.extents.end(),
              [](const MapExtent& a, const MapExtent& b) { return a.offset < b.offset; });
  }
}

}  // namespace

Bytes MapPiece::size() const {
  Bytes sum;
  for (const Bytes b : bytes) sum += b;
  return sum;
}

AddressMap make_address_map(const Snapshot& snapshot,
                            const std::function<std::string(StreamId)>& name_stream,
                            std::size_t most) {
  AddressMap map;
  for (const VaRange& range : snapshot.ranges) map.ranges.push_back({range, {}, {}});
  add_blocks(snapshot, map, name_stream);
  add_extents(snapshot, map);
  bound(map.ranges, &MapRange::pieces, most);
  bound(map.ranges, &MapRange::extents, most);
  return map;
}

}  // namespace v0
}  // namespace bursar
