// SPDX-License-Identifier: Apache-2.0
// StitchPlanner: puts a block together from idle pieces that lie apart.
//
// A block needs one run of addresses, not one run of memory: [free end of an extent] [whole idle
// extents ...] [new extents] [free begin of an extent], mapped side by side. The pages at both ends
// are shared with the blocks that use the rest of those extents, so rounding waste becomes packing.
// Pages of the zone of small blocks are taken only where asked: each costs a mapping and may be
// wanted back soon.
#pragma once

#include <vector>

#include <bursar/allocator/growth_planner.hpp>
#include <bursar/block/zones.hpp>

namespace bursar {
inline namespace v0 {

/// One extent of a stitched block, in order of address.
struct StitchPiece {
  Extent* extent = nullptr;  ///< null: to be created
  Bytes size{};              ///< of the extent
  Bytes from{};              ///< the block's bytes within it
  Bytes used{};
};

struct Stitch {
  std::vector<StitchPiece> pieces;
  Bytes new_bytes{};
  std::size_t maps() const { return pieces.size(); }
};

/// Guarded by the device's heap lock. Changes nothing and never calls the driver.
class BURSAR_EXPORT StitchPlanner {
 public:
  explicit StitchPlanner(Bytes page) : page_(page) {}

  /// The stitch of `size` bytes that needs the fewest new bytes, then the fewest maps, then leaves
  /// the least unusable. `extent`: size of extents to be created.
  Stitch plan(const Zones& homes, StreamSlot slot, Bytes size, Bytes extent, bool use_small) const;

 private:
  /// The idle part of an extent.
  struct Part {
    Extent* extent = nullptr;
    Bytes size{};
  };
  struct Parts {
    std::vector<Part> wholes;    ///< largest first
    std::vector<Part> suffixes;  ///< idle up to the extent's end, largest first
    std::vector<Part> prefixes;  ///< idle from the extent's begin, smallest first
  };
  static void add_parts(const BlockMap& home, StreamSlot slot, Parts& parts);
  static Parts find_parts(const Zones& homes, StreamSlot slot, bool use_small);
  Stitch build(const Parts& parts, const Part* head, Bytes size, Bytes extent) const;
  void add_new(Stitch& stitch, Bytes bytes, Bytes used, Bytes extent) const;

  Bytes page_;
};

}  // namespace v0
}  // namespace bursar
