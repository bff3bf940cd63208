// SPDX-License-Identifier: Apache-2.0
// Splitting, merging and moving blocks between states.
#include <bursar/block/block_map.hpp>

#include <algorithm>

#include <bursar/block/block_size.hpp>
#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

BlockMap::BlockMap(BlockStore& store, DomainId domain, DeviceId device)
    : store_(store), domain_(domain), device_(device), idle_(1) {}

void BlockMap::add_range(std::unique_ptr<AddressRange> range) {
  append(std::move(range), BlockState::vacant);
}

Block* BlockMap::add_backed_range(std::unique_ptr<AddressRange> range) {
  return append(std::move(range), BlockState::moving);
}

Block* BlockMap::append(std::unique_ptr<AddressRange> range, BlockState state) {
  Block* block = store_.make();
  block->begin = range->where().begin;
  block->size = range->where().size;
  block->range = range.get();
  block->map = this;
  ranges_.push_back(std::move(range));
  firsts_.push_back(block);
  note_start(block);
  enter(block, state);
  return block;
}

std::unique_ptr<AddressRange> BlockMap::remove_range(Block* only) {
  BURSAR_CHECK(1, only->prev == nullptr && only->next == nullptr);
  const auto at = std::find(firsts_.begin(), firsts_.end(), only) - firsts_.begin();
  std::unique_ptr<AddressRange> range = std::move(ranges_[static_cast<std::size_t>(at)]);
  ranges_.erase(ranges_.begin() + at);
  firsts_.erase(firsts_.begin() + at);
  leave(only);
  store_.drop(only);
  return range;
}

// -- searching ------------------------------------------------------------------------------

Block* BlockMap::find_idle(StreamSlot slot, Bytes size, Bytes alignment) const {
  // Any block of this size has an aligned place of `size` bytes in it.
  const Bytes enough = alignment > kBlockGranule ? size + alignment - kBlockGranule : size;
  Block* mine = slot < idle_.size() ? idle_[slot].lowest_fit(enough) : nullptr;
  Block* everybodys = slot == kAnyStream ? nullptr : idle_[kAnyStream].lowest_fit(enough);
  if (mine == nullptr) return everybodys;
  if (everybodys == nullptr) return mine;
  return mine->begin < everybodys->begin ? mine : everybodys;
}

Block* BlockMap::find(DeviceAddress address) const {
  for (const std::unique_ptr<AddressRange>& range : ranges_) {
    if (!range->where().contains(address)) continue;
    DeviceAddress page = range->page_begin(address);
    for (;;) {  // the first block of the range begins with it, so this ends
      const PageSlot* slot = range->find_slot(page);
      Block* block = slot == nullptr ? nullptr : slot->first_start;
      if (block != nullptr && block->begin <= address) {
        while (block->end() <= address) block = block->next;
        return block;
      }
      page = page - range->page();
    }
  }
  return nullptr;
}

const FreeIndex& BlockMap::idle(StreamSlot slot) const {
  static const FreeIndex none{};
  return slot < idle_.size() ? idle_[slot] : none;
}

// -- states ---------------------------------------------------------------------------------

FreeIndex& BlockMap::index_of(const Block& block) {
  if (block.state == BlockState::vacant) return vacant_;
  if (block.freed.slot >= idle_.size()) idle_.resize(block.freed.slot + 1);
  return idle_[block.freed.slot];
}

void BlockMap::enter(Block* block, BlockState state) {
  block->state = state;
  bytes_[static_cast<std::size_t>(state)] += block->size;
  if (state == BlockState::idle || state == BlockState::vacant) index_of(*block).insert(block);
}

void BlockMap::leave(Block* block) {
  if (block->state == BlockState::idle || block->state == BlockState::vacant) {
    index_of(*block).erase(block);
  }
  bytes_[static_cast<std::size_t>(block->state)] -= block->size;
}

void BlockMap::make_live(Block* block, Bytes requested, StreamSlot home) {
  BURSAR_CHECK(1, block->state == BlockState::moving && requested <= block->size);
  leave(block);
  block->requested = requested;
  block->freed = {home, 0};
  enter(block, BlockState::live);
}

void BlockMap::make_pending(Block* block) {
  BURSAR_CHECK(1, block->state == BlockState::live);
  leave(block);
  enter(block, BlockState::pending);
}

void BlockMap::make_moving(Block* block) {
  leave(block);
  enter(block, BlockState::moving);
}

Block* BlockMap::make_idle(Block* block, FencePoint freed) {
  BURSAR_CHECK(1, block->state != BlockState::idle && block->state != BlockState::vacant);
  leave(block);
  block->requested = {};
  block->recorded.reset();
  block->dedicated = false;
  block->owner = nullptr;
  block->freed = freed;
  block->state = BlockState::idle;
  return merge(block);
}

Block* BlockMap::make_vacant(Block* block) {
  BURSAR_CHECK(1, block->state == BlockState::moving);
  BURSAR_CHECK(3, block->range->backed_bytes(block->where()) == Bytes{});
  leave(block);
  block->freed = {};
  block->dedicated = false;
  block->state = BlockState::vacant;
  return merge(block);
}

void BlockMap::release_batch(StreamSlot slot, std::uint64_t batch) {
  if (slot >= idle_.size() || slot == kAnyStream) return;
  std::vector<Block*> done;
  idle_[slot].ascend(Bytes{0}, [&](Block* block) {
    if (block->freed.batch <= batch) done.push_back(block);
    return true;
  });
  for (Block* block : done) {  // neighbors in the list never merge with each other: they would have
    leave(block);
    block->freed = {};
    merge(block);
  }
}

// -- splitting and merging ------------------------------------------------------------------

/// `block` keeps the addresses below `at`; the rest is a new block of the same state, which has
/// entered nothing yet. Precondition: `block` has left its state.
Block* BlockMap::split(Block* block, DeviceAddress at) {
  Block* rest = store_.make();
  rest->begin = at;
  rest->size = block->end() - at;
  rest->range = block->range;
  rest->map = this;
  rest->freed = block->freed;
  rest->state = block->state;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->prev = rest;
  block->next = rest;
  block->size = at - block->begin;
  note_start(rest);
  return rest;
}

Block* BlockMap::cut(Block* block, DeviceAddress begin, Bytes size) {
  BURSAR_CHECK(1, block->state == BlockState::idle || block->state == BlockState::moving ||
                      block->state == BlockState::vacant);
  BURSAR_CHECK(1, begin >= block->begin && begin + size <= block->end());
  const BlockState before = block->state;
  leave(block);
  if (begin > block->begin) {
    Block* rest = split(block, begin);
    enter(block, before);
    block = rest;
  }
  if (block->size > size) enter(split(block, begin + size), before);
  enter(block, BlockState::moving);
  return block;
}

Block* BlockMap::gather(Block* start, VaRange where) {
  BURSAR_CHECK(1, start->begin <= where.begin && where.begin < start->end());
  Block* site = cut(start, where.begin, std::min(start->end(), where.end()) - where.begin);
  while (site->end() < where.end()) {
    Block* next = site->next;
    next = cut(next, next->begin, std::min(next->end(), where.end()) - next->begin);
    leave(site);
    leave(next);
    absorb_next(site);
    enter(site, BlockState::moving);
  }
  site->freed = {};
  return site;
}

/// `block` takes over its next neighbor's addresses. Both have left their states.
void BlockMap::absorb_next(Block* block) {
  Block* gone = block->next;
  note_gone(gone);
  block->size += gone->size;
  block->next = gone->next;
  if (block->next != nullptr) block->next->prev = block;
  store_.drop(gone);
}

/// Merges a block that has left its state with neighbors of the same kind, and enters the result.
Block* BlockMap::merge(Block* block) {
  const auto alike = [](const Block* a, const Block* b) {
    return a->state == b->state &&
           (a->state == BlockState::vacant || a->freed.slot == b->freed.slot);
  };
  if (Block* next = block->next; next != nullptr && alike(block, next)) {
    leave(next);
    block->freed.batch = std::max(block->freed.batch, next->freed.batch);
    absorb_next(block);
  }
  if (Block* prev = block->prev; prev != nullptr && alike(prev, block)) {
    leave(prev);
    prev->freed.batch = std::max(prev->freed.batch, block->freed.batch);
    absorb_next(prev);
    block = prev;
  }
  enter(block, block->state);
  return block;
}

// -- the word per page ----------------------------------------------------------------------

void BlockMap::note_start(Block* block) {
  PageSlot& slot = block->range->slot(block->begin);
  if (slot.first_start == nullptr || block->begin < slot.first_start->begin) {
    slot.first_start = block;
  }
}

void BlockMap::note_gone(Block* block) {
  PageSlot& slot = block->range->slot(block->begin);
  if (slot.first_start != block) return;
  const Bytes page = block->range->page();
  const DeviceAddress base = block->range->where().begin;
  const auto page_of = [&](const Block* b) { return (b->begin - base) / page; };
  Block* next = block->next;
  slot.first_start = (next != nullptr && page_of(next) == page_of(block)) ? next : nullptr;
}

// -- figures --------------------------------------------------------------------------------

Bytes BlockMap::moving_backed() const {
  Bytes backed{};
  if (bytes(BlockState::moving) == Bytes{}) return backed;
  for_each([&](const Block& block) {
    if (block.state == BlockState::moving) backed += block.range->backed_bytes(block.where());
  });
  return backed;
}

Bytes BlockMap::address_space() const {
  Bytes sum{};
  for (const auto& range : ranges_) sum += range->where().size;
  return sum;
}

Bytes BlockMap::largest_idle() const {
  Bytes largest{};
  for (const FreeIndex& index : idle_) largest = std::max(largest, index.largest());
  return largest;
}

Bytes BlockMap::metadata() const {
  Bytes sum{sizeof *this + idle_.capacity() * sizeof(FreeIndex)};
  for (const auto& range : ranges_) sum += range->metadata();
  return sum;
}

}  // namespace v0
}  // namespace bursar
