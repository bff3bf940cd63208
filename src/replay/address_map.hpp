// SPDX-License-Identifier: Apache-2.0
// AddressMap: a snapshot made small enough to be drawn.
//
// A program may have a million live blocks, a page of a report has room for some thousands. So the
// smallest neighbors are merged until few enough pieces are left; the sums stay exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <bursar/allocator/snapshot.hpp>

namespace bursar {
inline namespace v0 {

/// One block, or several neighbors merged.
struct MapPiece {
  std::array<Bytes, kBlockStateCount> bytes{};  ///< by state
  Bytes requested{};
  std::uint32_t blocks = 1;
  std::int32_t stream = 0;  ///< index into AddressMap::streams

  Bytes size() const;
};

/// One extent, or several neighbors merged.
struct MapExtent {
  Bytes offset{};  ///< of the begin, in its range
  Bytes size{};
  std::uint64_t id = 0;  ///< of the first
  std::uint32_t extents = 1;
};

struct MapRange {
  VaRange range{};
  std::vector<MapPiece> pieces;    ///< by address, without a gap
  std::vector<MapExtent> extents;  ///< by address
};

struct AddressMap {
  std::vector<MapRange> ranges;      ///< by address
  std::vector<std::string> streams;  ///< names; the first two are "any" and "several"
  Bytes spare{};                     ///< of extents that no range uses
};

/// `name_stream` is asked once for each stream. At most `most` pieces and as many extents, but at
/// least one of each in each range.
AddressMap make_address_map(const Snapshot& snapshot,
                            const std::function<std::string(StreamId)>& name_stream,
                            std::size_t most = 6000);

}  // namespace v0
}  // namespace bursar
