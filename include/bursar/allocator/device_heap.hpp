// SPDX-License-Identifier: Apache-2.0
// DeviceHeap: all memory that one allocator holds on one device.
//
// Two locks. The heap lock guards blocks, streams and counters and is never held across a driver
// call; the VMM lock, taken first where both are needed, serializes the calls that change what is
// mapped (the driver does that anyway). So a thread that finds cached memory never waits for one
// that is inside the driver.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <bursar/address/mapper.hpp>
#include <bursar/allocator/allocate_options.hpp>
#include <bursar/allocator/allocator_options.hpp>
#include <bursar/allocator/allocator_stats.hpp>
#include <bursar/allocator/arena.hpp>
#include <bursar/allocator/domain_table.hpp>
#include <bursar/allocator/growth_planner.hpp>
#include <bursar/allocator/growth_policy.hpp>
#include <bursar/allocator/growth_runner.hpp>
#include <bursar/allocator/out_of_memory.hpp>
#include <bursar/allocator/snapshot.hpp>
#include <bursar/allocator/stitch_planner.hpp>
#include <bursar/block/block_size.hpp>
#include <bursar/block/block_store.hpp>
#include <bursar/block/fences.hpp>
#include <bursar/block/live_table.hpp>
#include <bursar/block/redzones.hpp>
#include <bursar/block/stream_table.hpp>
#include <bursar/block/thread_caches.hpp>
#include <bursar/physical/extent_pool.hpp>

namespace bursar {
inline namespace v0 {

/// Thread-safe. The functions are those of CachingAllocator, for one device. Host memory running
/// out inside one that is noexcept ends the program: half a plan cannot be taken back without
/// memory.
class BURSAR_EXPORT DeviceHeap : private ThreadCacheHome {
 public:
  DeviceHeap(Driver& driver, DeviceId device, const AllocatorOptions& options,
             DomainTable& domains);
  ~DeviceHeap();
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  /// What the calling thread's cache has for the request, or null. Takes no lock.
  void* try_thread_cache(Bytes bytes, const AllocateOptions& options) noexcept;
  /// Frees the block into the calling thread's cache; false: deallocate() has to. Takes no lock.
  bool try_keep(const void* pointer, const StreamRef* stream) noexcept;
  /// `report` (may be null) is filled in when memory or budget has run out.
  result<void*> allocate(Bytes bytes, const AllocateOptions& options, OomReport* report) noexcept;
  /// Nothing where the pointer is no live block of this heap; `stream`: ordered on it, not home.
  std::optional<result<void>> deallocate(const void* pointer, const StreamRef* stream) noexcept;
  std::optional<result<void>> record_stream(const void* pointer, StreamRef stream) noexcept;
  result<StreamRef> resolve(StreamRef stream) const;
  result<void> retire_stream(StreamRef stream) noexcept;
  /// What the domain holds idle goes back, its addresses too, once nothing of it is live.
  void close_domain(DomainId domain) noexcept;
  Bytes trim(Bytes target, std::span<const StreamRef> streams) noexcept;

  /// Size of the live block that begins at `pointer`.
  std::optional<Bytes> usable_size(const void* pointer) const;
  bool owns(const void* pointer) const;

  AllocatorStats stats(std::optional<DomainId> domain) const;
  Snapshot snapshot() const;
  void reset_peaks();
  result<void> validate() const;

 private:
  /// A mapping that an extent has left behind, to be taken away once its work is done.
  struct OldMapping {
    Extent* extent = nullptr;
    Block* block = nullptr;
    FencePoint freed;
  };
  /// A freed block that must be seen to once its work is done: its extent of its own is to be
  /// released, or its redzones are to be compared.
  struct Doomed {
    Block* block = nullptr;
    FencePoint freed;
  };
  struct ZoneReport;
  /// How far up it has come.
  struct Ladder {
    std::size_t step = 0;    ///< of the reclaim steps
    bool exhausted = false;  ///< all before waiting were of no use
    bool overtime = false;   ///< the deadline has passed: no waiting after this round
    int attempts = 0;
  };
  using Mutex = RankedMutex<LockRank::heap>;
  using VmmMutex = RankedMutex<LockRank::vmm>;

  /// What a plan that failed still lacks.
  struct Shortage {
    Bytes bytes{};   ///< of extents that could not be created
    VaRange site{};  ///< where they are missing: idle memory there is needed there
  };
  /// What a request that has run out of memory may do.
  struct Climb {
    const Request& request;
    StreamRef stream;
    bool budget_only;  ///< a limit refused, not the device: only own memory helps
    Shortage shortage;
    std::uint64_t seen;  ///< `gains_` when it last searched
    Duration deadline;   ///< on the driver's clock
  };

  // device_heap.cpp: hits and frees
  result<Request> check(Bytes bytes, const AllocateOptions& options) const;
  Arena& arena(DomainId domain);
  void* place(Arena& arena, BlockMap& map, Block* block, const Request& request);
  void note_live(Arena& arena, Block* block, const Request& request);
  void* enter_live(Arena& arena, Block* block, const Request& request);
  void* try_hit(const HeapLock& lock, Arena& arena, const Request& request);
  StreamSlot slot_of(const HeapLock& lock, StreamId id);
  void free_block(const HeapLock& lock, Block* block, FencePoint freed);
  void finish_free(Block* block, FencePoint freed);
  void fence_if_due(HeapLock& lock, StreamRef stream, StreamSlot slot);
  void sweep_streams(const HeapLock& lock);

  // device_heap_caches.cpp: what threads keep
  CacheKey key_of(const Block& block) const;
  bool cached(const Block& block) const;
  void offer_to_keep(Block* block, const Request& request);
  bool keep(const HeapLock& lock, Block* block, StreamSlot freed_on);
  void count_hits(ThreadCache::Bin& bin);
  Bytes free_cached(const HeapLock& lock, ThreadCache::Bin& bin);
  void give_up(const HeapLock& lock, ThreadCache& cache, ThreadCache::Bin& bin);
  Bytes drain_caches(const HeapLock& lock, std::optional<DomainId> domain);
  void drain_own(const HeapLock& lock);
  void* try_hit_or_drain(const HeapLock& lock, Arena& arena, const Request& request);
  template <class Predicate>
  void shut_caches_if(const HeapLock& lock, Predicate&& which);
  void shut_caches(const HeapLock& lock);
  void shut_caches(const HeapLock& lock, DomainId domain);
  void shut_caches(const HeapLock& lock, StreamSlot slot);
  void want_fence(StreamSlot slot);
  bool due(const StreamState& state) const;
  void let_expected_in(const HeapLock& lock);
  void thread_ends(ThreadCache& cache) noexcept override;
  void add_cached(const HeapLock& lock, std::optional<DomainId> domain,
                  AllocatorStats& stats) const;
  result<void> validate_caches(const HeapLock& lock) const;

  // device_heap_debug.cpp: what helps to find errors, and clearing
  bool lay_out(Request& request) const;
  VaRange usable(const Block& block) const;
  result<void*> prepare(HeapLock& lock, void* block, const Request& request);
  DriverCode write_before_use(const Redzones& zones, VaRange clear, StreamRef stream, bool& zoned);
  FencePoint fresh_point(const Request& request, Bytes cleared);
  void keep_unchecked(Block* block, FencePoint freed);
  bool check_redzones(HeapLock& lock);
  bool inspect(const ZoneReport& report) const noexcept;
  void check_last_redzones();

  // device_heap_growth.cpp: misses
  result<void*> allocate_slow(HeapLock& lock, const Request& request, OomReport* report);
  void ask_device(HeapLock& lock);
  result<void> refuse_while_capturing(StreamRef stream) const;
  const error& note_lost(const error& cause);
  error refuse(OomReport& tried, DomainId domain, OomReport* report);
  result<void*> grow(HeapLock& lock, Arena& arena, const Request& request, Bytes extent,
                     Shortage& shortage);
  result<void*> grow_plain(HeapLock& lock, Arena& arena, const Request& request, bool exhausted);
  Bytes range_size(const BlockMap& map);
  result<void> add_range(HeapLock& lock, BlockMap& map, Bytes least);
  void commit_step(const GrowthPlan& plan, const GrowthStep& step);
  void settle_site(const GrowthPlan& plan, FencePoint freed);

  // device_heap_views.cpp: blocks in views
  struct StitchStep;
  bool stitchable(Arena& arena, const Request& request) const;
  void* try_views(const HeapLock& lock, Arena& arena, const Request& request);
  void* enter_view(Arena& arena, DeviceAddress begin, const Request& request, ViewLease lease);
  void make_pending(Block* block);
  void make_idle(Block* block, FencePoint freed);
  void drop_old_views(Arena& arena);
  GrowthState growth_state(const Arena& arena, const Request& request, bool exhausted) const;
  result<void*> grow_or_reuse(HeapLock& lock, Arena& arena, const Request& request, bool exhausted,
                              Shortage& shortage);
  void* try_borrow(const HeapLock& lock, Arena& arena, const Request& request,
                   const GrowthState& state);
  bool set_stitch_aside(Arena& arena, const Stitch& stitch, std::vector<StitchStep>& steps,
                        BlockMap*& lacking, Bytes& least);
  result<void> map_stitch(const VmmLock& vmm, const Arena& arena, const StreamHandle* clear_on,
                          std::vector<StitchStep>& steps);
  result<void*> run_stitch(HeapLock& lock, Arena& arena, const Request& request,
                           const Stitch& stitch, bool exhausted, Shortage& shortage);
  Bytes cleared_bytes(const std::vector<StitchStep>& steps) const;
  static Shortage shortage_of(const std::vector<StitchStep>& steps);
  void* commit_stitch(Arena& arena, const Request& request, std::vector<StitchStep>& steps);
  void settle_stitch(Arena& arena, const Request& request, std::vector<StitchStep>& steps);

  std::vector<std::pair<Block*, bool>> leave_views(const Block& home, const Extent& extent);
  void no_longer_leaving(const Extent* extent, std::size_t mappings);
  void settle_views(Extent* extent, const std::vector<std::pair<Block*, bool>>& views,
                    FencePoint freed);

  // device_heap_fences.cpp: what becomes free when work is done
  bool refresh(HeapLock& lock);
  void refresh(HeapLock& lock, StreamRef stream, StreamSlot slot);
  void batch_passed(const HeapLock& lock, StreamSlot slot);
  void advance_waiting(StreamSlot slot);
  bool take_away_old(HeapLock& lock);
  bool release_doomed(HeapLock& lock);

  // device_heap_reclaim.cpp: the ladder
  bool go_on(HeapLock& lock, const Climb& climb, Ladder& ladder, OomReport& tried);
  bool take_step(HeapLock& lock, ReclaimStep step, const Climb& climb, Bytes& reclaimed);
  Bytes release_idle(HeapLock& lock, std::span<Arena* const> arenas, Bytes bytes,
                     VaRange avoid = {});
  Bytes release_idle_extents(HeapLock& lock, std::span<Arena* const> arenas, Bytes bytes,
                             VaRange avoid);
  Bytes release_idle_ranges(HeapLock& lock, std::span<Arena* const> arenas, Bytes bytes);
  Bytes release_spare(HeapLock& lock, Bytes bytes);
  Bytes trim_driver_pools(HeapLock& lock);
  bool retry_stuck(HeapLock& lock);
  bool work_would_help(const Climb& climb) const;
  bool wait_for_work(HeapLock& lock, const Climb& climb);
  void reap_closed(HeapLock& lock);
  std::vector<Arena*> other_arenas(const Arena& mine) const;
  std::vector<Arena*> all_arenas() const;
  void fill_report(const OomReport& tried, DomainId domain, OomReport& report) const;

  // device_heap_stats.cpp
  result<void> validate_backing(const VmmLock& vmm, const HeapLock& lock) const;
  result<void> validate_views(const VmmLock& vmm, const HeapLock& lock) const;
  result<void> validate_sums(const VmmLock& vmm, const HeapLock& lock) const;
  AllocatorStats stats_locked(const VmmLock& vmm, const HeapLock& lock,
                              std::optional<DomainId> domain) const;

  Driver& driver_;
  DeviceId device_;
  const AllocatorOptions& options_;
  DomainTable& domains_;
  const DeviceInfo& info_;
  Bytes page_;
  bool plain_;   ///< level no_vmm
  bool writes_;  ///< every block is written to before it is handed out

  mutable VmmMutex vmm_mutex_;
  mutable Mutex mutex_;

  // Under the VMM lock. `ranges_` of the maps below must go before the pool, so it comes first.
  ExtentPool pool_;
  Mapper mapper_;
  GrowthRunner runner_;

  // Under the heap lock.
  BlockStore store_;
  StreamTable streams_;
  std::vector<std::unique_ptr<Arena>> arenas_;  // by domain id; null where never used
  LiveTable live_;
  std::vector<OldMapping> old_mappings_;
  /// Mappings beyond their homes that extents are leaving at this moment.
  std::unordered_map<const Extent*, std::uint32_t> leaving_;
  std::vector<Doomed> doomed_;
  std::vector<Doomed> unchecked_;  ///< with redzones
  std::vector<DomainId> closed_;   ///< domains that still hold something
  std::vector<Block*> stuck_;      ///< places of quarantined extents that are still mapped
  std::size_t sweep_at_ = 64;
  std::uint64_t gains_ = 0;  ///< how often memory has become free for others
  bool lost_ = false;
  bool shut_for_good_ = false;        ///< and the thread caches know
  std::vector<StreamSlot> expected_;  ///< whose next call must come here
  Bytes known_end_ = Bytes::max();    ///< reserved + free of the device, when last asked
  Bytes asked_at_{};                  ///< reserved then
  std::uint32_t unasked_misses_ = 0;
  Bytes requested_{};  ///< of all domains, for the common peak
  Bytes requested_peak_{};
  Bytes live_bytes_{};
  Bytes live_peak_{};
  Fences fences_;
  GrowthPolicy policy_;
  GrowthPlanner planner_;
  StitchPlanner stitcher_;
  mutable ThreadCaches caches_;
};

inline void* DeviceHeap::try_thread_cache(Bytes bytes, const AllocateOptions& options) noexcept {
  // A key names its stream and is not large: that need not be asked.
  if (options.alignment > kBlockGranule || options.flags != BlockFlags::none) return nullptr;
  ThreadCache* cache = caches_.mine();
  if (cache == nullptr || !cache->enter()) return nullptr;
  void* block = cache->take({bytes, options.stream.id, options.domain});
  cache->leave();
  return block;
}

inline bool DeviceHeap::try_keep(const void* pointer, const StreamRef* stream) noexcept {
  if (pointer == nullptr || (stream != nullptr && !stream->resolved())) return false;
  ThreadCache* cache = caches_.mine();
  if (cache == nullptr || !cache->enter()) return false;
  const bool kept = cache->put(pointer, stream == nullptr ? kNoStream : stream->id);
  cache->leave();
  return kept;
}

}  // namespace v0
}  // namespace bursar
