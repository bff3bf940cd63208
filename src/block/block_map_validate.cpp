// SPDX-License-Identifier: Apache-2.0
// The full walk that proves a BlockMap.
#include <bursar/block/block_map.hpp>

namespace bursar {
inline namespace v0 {

namespace {

/// What is wrong with one block, or null.
const char* fault_of(const BlockMap& map, const Block& block) {
  const AddressRange& range = *block.range;
  if (block.size == Bytes{}) return "block_map: an empty block";
  if (block.next != nullptr) {
    if (block.next->prev != &block) return "block_map: neighbors disagree";
    if (block.end() != block.next->begin) return "block_map: a gap between neighbors";
    const bool same_stream = block.freed.slot == block.next->freed.slot;
    if (block.state == block.next->state &&
        (block.state == BlockState::vacant || (block.state == BlockState::idle && same_stream))) {
      return "block_map: two free neighbors that should be one";
    }
  } else if (block.end() != range.where().end()) {
    return "block_map: the last block does not end with its range";
  }
  const Bytes backed = range.backed_bytes(block.where());
  switch (block.state) {
    case BlockState::vacant:
      if (backed != Bytes{}) return "block_map: a vacant block has memory";
      if (!map.vacant().contains(&block)) return "block_map: a vacant block is not indexed";
      break;
    case BlockState::idle:
      if (!map.idle(block.freed.slot).contains(&block)) {
        return "block_map: an idle block is not indexed";
      }
      [[fallthrough]];
    case BlockState::live:
    case BlockState::pending:
      if (backed != block.size) return "block_map: a block lacks memory";
      if (block.requested > block.size) return "block_map: requested > size";
      break;
    case BlockState::moving: break;
  }
  const PageSlot* slot = range.find_slot(block.begin);
  if (slot == nullptr || slot->first_start == nullptr || slot->first_start->begin > block.begin) {
    return "block_map: the page does not know the block";
  }
  return nullptr;
}

}  // namespace

result<void> BlockMap::validate() const {
  const char* fault = nullptr;
  std::array<Bytes, kBlockStateCount> sums{};
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (firsts_[i]->begin != ranges_[i]->where().begin) {
      fault = "block_map: the first block does not begin with its range";
    }
    for (const Block* block = firsts_[i]; block != nullptr && fault == nullptr;
         block = block->next) {
      fault = fault_of(*this, *block);
      sums[static_cast<std::size_t>(block->state)] += block->size;
    }
  }
  if (fault == nullptr && sums != bytes_) fault = "block_map: bytes by state differ";
  if (fault == nullptr && !vacant_.validate()) fault = "block_map: the vacant index is broken";
  for (const FreeIndex& index : idle_) {
    if (fault == nullptr && !index.validate()) fault = "block_map: a free index is broken";
  }
  if (fault == nullptr) return {};
  return error{.kind = ErrorKind::driver_fault, .message = fault, .device = device_};
}

}  // namespace v0
}  // namespace bursar
