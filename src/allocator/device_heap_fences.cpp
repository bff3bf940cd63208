// SPDX-License-Identifier: Apache-2.0
// What becomes free when the GPU's work is done: blocks of other streams, old mappings, extents of
// pinned and shareable blocks.
#include <algorithm>

#include <bursar/allocator/device_heap.hpp>
#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

/// Fences what was freed on the stream, which the caller of this call named, and looks around.
void DeviceHeap::refresh(HeapLock& lock, StreamRef stream, StreamSlot slot) {
  // A fence that cannot be recorded now is due again at the stream's next call.
  (void)fences_.record(lock, stream, slot);
  refresh(lock);
}

/// Asks the fences; true when anything has become free. The heap lock is dropped meanwhile.
bool DeviceHeap::refresh(HeapLock& lock) {
  const std::vector<StreamSlot> advanced = fences_.poll(lock);
  for (const StreamSlot slot : advanced) {
    if (streams_.in_use(slot)) batch_passed(lock, slot);
  }
  const bool checked = check_redzones(lock);
  const bool taken = take_away_old(lock);
  const bool released = release_doomed(lock);
  if (!closed_.empty()) reap_closed(lock);
  return !advanced.empty() || checked || taken || released;
}

void DeviceHeap::batch_passed(const HeapLock& lock, StreamSlot slot) {
  BURSAR_CHECK(1, lock.held());
  ++gains_;
  advance_waiting(slot);
  if (streams_.count() == 1) return;  // nobody else could use it
  for (Arena* arena : all_arenas()) {
    arena->small.release_batch(slot, streams_.at(slot).passed_batch);
    arena->large.release_batch(slot, streams_.at(slot).passed_batch);
  }
}

/// Pending blocks whose use by the stream is over wait for their next recorded stream, or are free.
void DeviceHeap::advance_waiting(StreamSlot slot) {
  std::vector<Block*> waiting;
  waiting.swap(streams_.at(slot).waiting);
  for (Block* block : waiting) {
    auto& uses = *block->recorded;
    std::erase_if(uses, [&](const FencePoint& use) { return streams_.passed(use); });
    if (uses.empty()) {
      finish_free(block, block->freed);
    } else {
      streams_.at(uses.back().slot).waiting.push_back(block);
    }
  }
}

/// Unmaps the addresses that moved extents have left behind and whose work is done.
bool DeviceHeap::take_away_old(HeapLock& lock) {
  std::vector<OldMapping> due;
  std::erase_if(old_mappings_, [&](const OldMapping& old) {
    if (!streams_.passed(old.freed)) return false;
    due.push_back(old);
    ++leaving_[old.extent];
    return true;
  });
  if (due.empty()) return false;
  lock.unlock();
  VmmLock vmm(vmm_mutex_);
  std::vector<bool> gone;
  gone.reserve(due.size());
  for (const OldMapping& old : due) {
    gone.push_back(mapper_.unmap_old(vmm, *old.extent, old.block->begin).ok());
  }
  lock.lock();
  for (std::size_t i = 0; i < due.size(); ++i) {
    no_longer_leaving(due[i].extent, 1);
    if (gone[i]) {
      due[i].block->map->make_vacant(due[i].block);
    } else {
      old_mappings_.push_back({due[i].extent, due[i].block, FencePoint{}});
    }
  }
  const bool any = std::find(gone.begin(), gone.end(), true) != gone.end();
  if (any) ++gains_;
  return any;
}

/// Releases the extents of freed dedicated blocks whose work is done.
bool DeviceHeap::release_doomed(HeapLock& lock) {
  std::vector<Block*> due;
  std::erase_if(doomed_, [&](const Doomed& doomed) {
    if (!streams_.passed(doomed.freed)) return false;
    due.push_back(doomed.block);
    return true;
  });
  if (due.empty()) return false;
  std::vector<Extent*> extents;
  for (Block* block : due) {
    block->map->make_moving(block);
    extents.push_back(block->range->extent_at(block->begin));
  }
  lock.unlock();
  VmmLock vmm(vmm_mutex_);
  std::vector<bool> gone;
  for (Extent* extent : extents) {
    gone.push_back(mapper_.unmap(vmm, *extent).ok());
    // Where the release fails the extent is quarantined and counted.
    if (gone.back()) (void)pool_.release(vmm, *extent);
  }
  lock.lock();
  for (std::size_t i = 0; i < due.size(); ++i) {
    Block* block = due[i];
    if (!gone[i]) {
      doomed_.push_back({block, FencePoint{}});
    } else {
      block->range->set_extent(block->where(), nullptr);
      block->map->make_vacant(block);
    }
  }
  const bool any = std::find(gone.begin(), gone.end(), true) != gone.end();
  if (any) ++gains_;
  return any;
}

}  // namespace v0
}  // namespace bursar
