// SPDX-License-Identifier: Apache-2.0
// BlockMap: the blocks of one zone: which addresses are live, idle, pending, moving or vacant.
//
// A domain has two zones on each device, one for small blocks and one for the rest, so that a small
// block that lives long does not pin a large extent. The blocks of a range cover it without a gap;
// idle neighbors freed on the same stream are merged at once, vacant ones too.
//
// Idle blocks are indexed by the stream that may use them: the index of slot s holds what was freed
// on s and is not yet known to be done; that of kAnyStream what everybody may have. The two are
// kept apart on purpose: merging what everybody may have into what was freed this instant would
// take it away from everybody until the next fence.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include <bursar/address/address_range.hpp>
#include <bursar/block/block.hpp>
#include <bursar/block/block_store.hpp>
#include <bursar/block/free_index.hpp>
#include <bursar/core/result.hpp>

namespace bursar {
inline namespace v0 {

/// Not thread-safe: guarded by the device's heap lock. Never calls the driver.
class BURSAR_EXPORT BlockMap {
 public:
  BlockMap(BlockStore& store, DomainId domain, DeviceId device);
  BlockMap(const BlockMap&) = delete;
  BlockMap& operator=(const BlockMap&) = delete;

  /// Adds addresses: one vacant block that covers the range.
  void add_range(std::unique_ptr<AddressRange> range);
  /// Adds addresses that are backed already (level no_vmm): one moving block that covers them.
  Block* add_backed_range(std::unique_ptr<AddressRange> range);
  /// Takes a range whose only block is vacant (or moving, at level no_vmm) out of the map.
  std::unique_ptr<AddressRange> remove_range(Block* only);

  /// An idle block of lowest address, usable on `slot`, that can hold `size` bytes at `alignment`.
  Block* find_idle(StreamSlot slot, Bytes size, Bytes alignment) const;
  /// Cuts [begin, begin + size) out of an idle or moving block. The cut is `moving`; what remains
  /// keeps the state it had.
  Block* cut(Block* block, DeviceAddress begin, Bytes size);
  /// Joins all idle and vacant blocks inside `where` into one `moving` block, cutting at its ends.
  /// `start` is the one that holds where.begin. Precondition: no block inside is live, pending or
  /// moving.
  Block* gather(Block* start, VaRange where);

  /// A moving block becomes live. `home` is the stream it belongs to.
  void make_live(Block* block, Bytes requested, StreamSlot home);
  /// A live block was freed but may still be used.
  void make_pending(Block* block);
  /// A block set aside again, e.g. a pending one whose extent is about to be released.
  void make_moving(Block* block);
  /// A live, pending or moving block becomes idle once `freed` has passed; merged with its
  /// neighbors. Returns the merged block.
  Block* make_idle(Block* block, FencePoint freed);
  /// A moving block's memory is gone; merged with its neighbors.
  Block* make_vacant(Block* block);
  /// What was freed on `slot` up to `batch` is everybody's from now on.
  void release_batch(StreamSlot slot, std::uint64_t batch);

  /// The block that holds `address`, or null when the map has no such address. May walk over a
  /// page's blocks and back over pages: for questions, not for the fast path.
  Block* find(DeviceAddress address) const;

  const FreeIndex& idle(StreamSlot slot) const;
  const FreeIndex& vacant() const { return vacant_; }
  /// True for blocks a request of `slot` may be placed on: vacant, or idle and its own or all's.
  static bool usable(const Block& block, StreamSlot slot) {
    return block.state == BlockState::vacant ||
           (block.state == BlockState::idle &&
            (block.freed.slot == slot || block.freed.slot == kAnyStream));
  }

  Bytes bytes(BlockState state) const { return bytes_[static_cast<std::size_t>(state)]; }
  /// Bytes of moving blocks that are backed by memory.
  Bytes moving_backed() const;
  Bytes address_space() const;
  Bytes largest_idle() const;
  Bytes metadata() const;
  const std::vector<std::unique_ptr<AddressRange>>& ranges() const { return ranges_; }
  /// The first block of the i-th range.
  Block* first(std::size_t i) const { return firsts_[i]; }
  DomainId domain() const { return domain_; }

  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (Block* first : firsts_) {
      for (Block* block = first; block != nullptr; block = block->next) visit(*block);
    }
  }

  /// Cover, states, indexes, sums and backing agree.
  result<void> validate() const;

 private:
  Block* append(std::unique_ptr<AddressRange> range, BlockState state);
  FreeIndex& index_of(const Block& block);
  void enter(Block* block, BlockState state);
  void leave(Block* block);
  Block* split(Block* block, DeviceAddress at);
  void absorb_next(Block* block);
  Block* merge(Block* block);
  void note_start(Block* block);
  void note_gone(Block* block);

  BlockStore& store_;
  DomainId domain_;
  DeviceId device_;
  std::vector<std::unique_ptr<AddressRange>> ranges_;
  std::vector<Block*> firsts_;
  std::vector<FreeIndex> idle_;  // by stream slot
  FreeIndex vacant_;
  std::array<Bytes, kBlockStateCount> bytes_{};
};

}  // namespace v0
}  // namespace bursar
