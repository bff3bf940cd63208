// SPDX-License-Identifier: Apache-2.0
// GrowthPlanner: chooses where a request that missed will live and which extents back it.
//
// The policy, in the order it decides (blocks that can be stitched skip 2, and large extents may
// lie under their ends too):
//   1. the place that needs the fewest new pages, lowest address first: a block may begin in the
//      idle end of one page and end in the idle begin of another;
//   2. idle extents from elsewhere fill the missing pages, largest that fit first, from the highest
//      addresses down; the own domain's, then (where their work is done) other domains';
//   3. the rest is new: large extents under the middle of large blocks, one-page extents under
//   their
//      ends and under everything small, since an extent is idle only as a whole.
#pragma once

#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include <bursar/allocator/allocator_options.hpp>
#include <bursar/allocator/arena.hpp>
#include <bursar/allocator/growth_plan.hpp>
#include <bursar/block/stream_table.hpp>
#include <bursar/driver/stream_ref.hpp>

namespace bursar {
inline namespace v0 {

using ExtentSet = std::unordered_set<const Extent*>;

/// What is asked of the heap, checked and rounded.
struct Request {
  Bytes requested{};
  Bytes size{};       ///< of the block: block_size(), with what surrounds the data
  Bytes front{};      ///< of those, before the data
  Bytes alignment{};  ///< a power of two, at least 512 (passthrough: 16)
  DomainId domain{};
  StreamRef stream{};  ///< whom the caller named: used inside this call only
  StreamSlot slot = kAnyStream;
  bool pinned = false;
  bool shareable = false;
  bool guarded = false;  ///< passthrough
  bool dedicated() const { return pinned || shareable || guarded; }
};

/// Guarded by the device's heap lock. Never calls the driver.
class BURSAR_EXPORT GrowthPlanner {
 public:
  GrowthPlanner(const AllocatorOptions& options, Bytes page, bool aliases,
                const StreamTable& streams);

  /// Sets aside place and sources in `plan`; false when no range of the zone has room for the
  /// request (the caller adds one and asks again). `spare`: bytes that fresh steps will find spare;
  /// `extent`: size of extents to be created.
  bool plan(Arena& arena, std::span<Arena* const> others, const Request& request, Bytes spare,
            Bytes extent, GrowthPlan& plan) const;
  /// New bytes that the request would need at its best place; nothing when no range has room.
  std::optional<Bytes> needed(Arena& arena, const Request& request) const;
  bool stitches() const { return aliases_; }
  /// Addresses that are sure to have room for the request.
  Bytes room_for(const Request& request) const;
  /// Which zone the request belongs to.
  BlockMap& zone_of(Arena& arena, const Request& request) const;

  /// Idle extents that may leave their place now or, where `alias_for` names a stream, while that
  /// stream's own work still runs; none inside `avoid`, none of more than `most` pages, until
  /// `bytes` are found, and none of `held`. They are set aside.
  void collect(BlockMap& map, StreamSlot alias_for, VaRange avoid, PageCount most, Bytes bytes,
               std::vector<MoveSource>& out, const ExtentSet* held = nullptr) const;

 private:
  struct Place {
    Block* start = nullptr;  ///< the block that holds the first byte of the site
    DeviceAddress begin{};
    Bytes new_bytes = Bytes::max();
  };
  struct Run;
  Place best_place(const BlockMap& map, const Request& request) const;
  void try_run(Block* first, Block* last, const Request& request, Place& best) const;
  Place dedicated_place(const BlockMap& map, const Request& request) const;
  Place guarded_place(const BlockMap& map, const Request& request, DeviceAddress from) const;
  void take_site(BlockMap& map, const Place& place, const Request& request, GrowthPlan& plan) const;
  std::vector<VaRange> holes(const GrowthPlan& plan) const;
  void fill(const Request& request, std::vector<MoveSource> sources, Bytes extent,
            GrowthPlan& plan) const;
  PageCount fresh_pages(const Request& request, const GrowthPlan& plan, Bytes extent,
                        VaRange hole) const;
  VaRange page_span(const AddressRange& range, DeviceAddress begin, Bytes size) const;

  const AllocatorOptions& options_;
  Bytes page_;
  bool aliases_;
  const StreamTable& streams_;
};

}  // namespace v0
}  // namespace bursar
