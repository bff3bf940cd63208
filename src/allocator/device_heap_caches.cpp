// SPDX-License-Identifier: Apache-2.0
// The thread caches' side of a heap: what they may keep, and how it comes back.
#include <utility>

#include <bursar/allocator/device_heap.hpp>
#include <bursar/block/block_size.hpp>
#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

CacheKey DeviceHeap::key_of(const Block& block) const {
  return {block.requested, streams_.at(block.freed.slot).id, block.map->domain()};
}

/// True while a thread has the block cached: it is live here, and free to the program.
bool DeviceHeap::cached(const Block& block) const {
  return block.keeper != nullptr && block.keeper->holds(block.begin, key_of(block));
}

/// Lets the calling thread keep the block, just handed out to it, when it frees it.
void DeviceHeap::offer_to_keep(Block* block, const Request& request) {
  if (block->size > ThreadCache::kMostBlock || request.dedicated() || block->lease) return;
  if (lost_ || !domains_.open(request.domain)) return;
  ThreadCache* cache = caches_.mine();
  if (cache == nullptr) return;
  block->keeper = cache;
  streams_.at(request.slot).kept = true;
  const CacheKey key{request.requested, request.stream.id, request.domain};
  ThreadCache::Bin& bin = cache->bin_of(key);
  if (bin.key == key && bin.size == block->size) cache->remember(block->begin, bin);
}

/// A live block goes back into the calling thread's cache, in the place of what was there. False:
/// it has to be freed.
bool DeviceHeap::keep(const HeapLock& lock, Block* block, StreamSlot freed_on) {
  BURSAR_CHECK(1, lock.held());
  ThreadCache* cache = caches_.mine();
  if (cache == nullptr || block->keeper != cache || block->recorded) return false;
  const StreamState& state = streams_.at(freed_on);
  if (freed_on != block->freed.slot || state.retired || state.fence_wanted) return false;
  if (lost_ || !domains_.open(block->map->domain())) return false;
  const CacheKey key = key_of(*block);
  ThreadCache::Bin& bin = cache->bin_of(key);
  if (bin.address.load(std::memory_order_relaxed) != 0) {
    if (bin.key == key) return false;
    free_cached(lock, bin);
  }
  if (bin.key != key || bin.size != block->size) {
    count_hits(bin);
    if (!cache->rekey(bin, key, block->size)) {  // full: it begins anew
      cache->for_each_bin([&](ThreadCache::Bin& any) { give_up(lock, *cache, any); });
      cache->rekey(bin, key, block->size);
    }
    return false;  // only what comes again is kept: the heap places blocks better
  }
  cache->remember(block->begin, bin);
  return cache->put(to_pointer(block->begin), kNoStream);
}

/// What the cache did with the bin's blocks becomes visible in the domain's figures.
void DeviceHeap::count_hits(ThreadCache::Bin& bin) {
  if (bin.hits == 0) return;
  Arena& arena = *arenas_[bin.key.domain.value];
  arena.allocations += bin.hits;
  arena.deallocations += bin.hits;
  arena.cache_hits += bin.hits;
  arena.thread_hits += bin.hits;
  bin.hits = 0;
}

/// Frees what a bin holds, on its home stream. The cache is the caller's or seized. Returns the
/// bytes.
Bytes DeviceHeap::free_cached(const HeapLock& lock, ThreadCache::Bin& bin) {
  count_hits(bin);
  const DeviceAddress address{bin.address.exchange(0, std::memory_order_relaxed)};
  if (address == DeviceAddress{}) return {};
  Block* block = live_.find(address);
  const FencePoint freed = streams_.note_free(block->freed.slot, block->size);
  free_block(lock, block, freed);
  return bin.size;
}

/// The bin keeps nothing until a block is put there with the lock.
void DeviceHeap::give_up(const HeapLock& lock, ThreadCache& cache, ThreadCache::Bin& bin) {
  free_cached(lock, bin);
  cache.rekey(bin, {}, {});
}

/// Takes from all threads what they have cached of the domain (of all, where none is given).
/// Returns the bytes.
Bytes DeviceHeap::drain_caches(const HeapLock& lock, std::optional<DomainId> domain) {
  if (!caches_.any_held(lock)) return {};
  const ThreadCaches::Seized seized(lock, caches_);
  Bytes drained{};
  seized.for_each([&](ThreadCache& cache) {
    cache.for_each_bin([&](ThreadCache::Bin& bin) {
      if (!domain || bin.key.domain == *domain) drained += free_cached(lock, bin);
    });
  });
  return drained;
}

void DeviceHeap::drain_own(const HeapLock& lock) {
  ThreadCache* cache = caches_.mine();
  if (cache == nullptr) return;
  cache->empty_bins([&](ThreadCache::Bin& bin) { free_cached(lock, bin); });
}

void* DeviceHeap::try_hit_or_drain(const HeapLock& lock, Arena& arena, const Request& request) {
  void* block = try_hit(lock, arena, request);
  if (block != nullptr || request.dedicated()) return block;
  return drain_caches(lock, request.domain) > Bytes{} ? try_hit(lock, arena, request) : nullptr;
}

/// From now on requests and frees of these keys take the lock, until a block is handed out anew.
template <class Predicate>
void DeviceHeap::shut_caches_if(const HeapLock& lock, Predicate&& which) {
  if (!caches_.on()) return;
  const ThreadCaches::Seized seized(lock, caches_);
  seized.for_each([&](ThreadCache& cache) {
    cache.for_each_bin([&](ThreadCache::Bin& bin) {
      if (which(bin.key)) give_up(lock, cache, bin);
    });
  });
}

void DeviceHeap::shut_caches(const HeapLock& lock, DomainId domain) {
  shut_caches_if(lock, [&](const CacheKey& key) { return key.domain == domain; });
}

void DeviceHeap::shut_caches(const HeapLock& lock) {
  shut_caches_if(lock, [](const CacheKey&) { return true; });
}

void DeviceHeap::shut_caches(const HeapLock& lock, StreamSlot slot) {
  StreamState& state = streams_.at(slot);
  if (!state.kept) return;
  state.kept = false;
  const StreamId id = state.id;
  shut_caches_if(lock, [&](const CacheKey& key) { return key.stream == id; });
}

/// A fence is to be taken at the stream's next call.
void DeviceHeap::want_fence(StreamSlot slot) {
  StreamState& state = streams_.at(slot);
  if (state.retired || state.fence_wanted) return;
  state.fence_wanted = true;
  expected_.push_back(slot);
}

/// True when the stream's next call is to record a fence.
bool DeviceHeap::due(const StreamState& state) const {
  return state.fence_wanted || state.unfenced >= options_.fence_batch ||
         (streams_.count() > 1 && state.unfenced_bytes >= options_.fence_bytes);
}

/// Calls that have work to do here must not be served without the lock: those of streams that a
/// fence is due on, and all once the device is lost.
void DeviceHeap::let_expected_in(const HeapLock& lock) {
  if (lost_ && !std::exchange(shut_for_good_, true)) shut_caches(lock);
  if (expected_.empty()) return;
  std::vector<StreamSlot> expected;
  expected.swap(expected_);
  for (const StreamSlot slot : expected) {
    if (streams_.in_use(slot) && due(streams_.at(slot))) shut_caches(lock, slot);
  }
}

void DeviceHeap::thread_ends(ThreadCache& cache) noexcept {
  const HeapLock lock(mutex_);
  cache.for_each_bin([&](ThreadCache::Bin& bin) { give_up(lock, cache, bin); });
  cache.forget_all();
  caches_.release(lock, cache);
}

/// Adds what the caches know and the heap does not: their hits, and that what they hold is idle.
void DeviceHeap::add_cached(const HeapLock& lock, std::optional<DomainId> domain,
                            AllocatorStats& stats) const {
  const ThreadCaches::Seized seized(lock, caches_);
  seized.for_each([&](ThreadCache& cache) {
    cache.for_each_bin([&](const ThreadCache::Bin& bin) {
      if (domain && bin.key.domain != *domain) return;
      stats.allocations += bin.hits;
      stats.deallocations += bin.hits;
      stats.cache_hits += bin.hits;
      stats.thread_hits += bin.hits;
      if (bin.address.load(std::memory_order_relaxed) == 0) return;
      ++stats.deallocations;
      --stats.live_blocks;
      stats.requested -= bin.key.requested;
      stats.live -= bin.size;
      stats.idle += bin.size;
      stats.thread_cached += bin.size;
    });
  });
  stats.metadata += caches_.metadata(lock);
}

/// Every cached and every remembered block is live here, and what its key says.
result<void> DeviceHeap::validate_caches(const HeapLock& lock) const {
  const ThreadCaches::Seized seized(lock, caches_);
  const char* fault = nullptr;
  seized.for_each([&](ThreadCache& cache) {
    Bytes keyed{};
    cache.for_each_bin([&](const ThreadCache::Bin& bin) {
      keyed += bin.size;
      if (bin.address.load(std::memory_order_relaxed) == 0) return;
      const Block* block = live_.find(DeviceAddress{bin.address.load(std::memory_order_relaxed)});
      const bool right = block != nullptr && block->keeper == &cache && block->size == bin.size &&
                         key_of(*block) == bin.key;
      if (!right) fault = "heap: a thread has cached a block that is not what it says";
    });
    if (keyed != cache.keyed()) fault = "heap: a thread cache's bytes differ from its bins'";
    if (keyed > ThreadCache::kMostHeld) fault = "heap: a thread cache holds too much";
    cache.for_each_remembered([&](DeviceAddress address) {
      const Block* block = live_.find(address);
      if (block == nullptr || block->keeper != &cache || cached(*block)) {
        fault = "heap: a thread remembers a block that is not live";
      }
    });
  });
  if (fault == nullptr) return {};
  return error{.kind = ErrorKind::driver_fault, .message = fault, .device = device_};
}

}  // namespace v0
}  // namespace bursar
