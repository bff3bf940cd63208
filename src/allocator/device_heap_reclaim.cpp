// SPDX-License-Identifier: Apache-2.0
// The reclaim ladder, and trim: how idle memory goes back to the driver.
#include <algorithm>

#include <bursar/allocator/device_heap.hpp>
#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

namespace {
constexpr Duration kPollInterval = microseconds(100);
constexpr PageCount kAnySize{~std::uint32_t{0}};
}  // namespace

/// One step of the ladder; true when it gave something, so that searching again may succeed. The
/// heap lock is dropped meanwhile.
bool DeviceHeap::take_step(HeapLock& lock, ReclaimStep step, const Climb& climb, Bytes& reclaimed) {
  Arena& mine = arena(climb.request.domain);
  Bytes got{};
  switch (step) {
    case ReclaimStep::passed_fences: return refresh(lock);
    case ReclaimStep::own_idle: {
      Arena* const own[] = {&mine};
      got = release_idle(lock, own, climb.shortage.bytes, climb.shortage.site);
      break;
    }
    case ReclaimStep::spare: got = release_spare(lock, climb.shortage.bytes); break;
    case ReclaimStep::driver_pools:
      if (!climb.budget_only) got = trim_driver_pools(lock);
      break;
    case ReclaimStep::other_domains:
      if (climb.budget_only) break;
      drain_caches(lock, std::nullopt);
      got = release_idle(lock, other_arenas(mine), climb.shortage.bytes);
      break;
    case ReclaimStep::wait: return wait_for_work(lock, climb);
  }
  reclaimed += got;
  return got > Bytes{};
}

Bytes DeviceHeap::release_idle(HeapLock& lock, std::span<Arena* const> arenas, Bytes bytes,
                               VaRange avoid) {
  return plain_ ? release_idle_ranges(lock, arenas, bytes)
                : release_idle_extents(lock, arenas, bytes, avoid);
}

/// Unmaps and releases idle extents whose work is done, none inside `avoid`, until `bytes` are
/// given back.
Bytes DeviceHeap::release_idle_extents(HeapLock& lock, std::span<Arena* const> arenas, Bytes bytes,
                                       VaRange avoid) {
  // An extent that is still mapped where it was before stays: its memory would not come back.
  ExtentSet held;
  for (const OldMapping& old : old_mappings_) held.insert(old.extent);
  std::vector<MoveSource> sources;
  Bytes found{};
  for (Arena* arena : arenas) {
    for (BlockMap* map : {&arena->large, &arena->small}) {
      if (found >= bytes) break;
      const std::size_t before = sources.size();
      planner_.collect(*map, kAnyStream, avoid, kAnySize, bytes - found, sources, &held);
      for (std::size_t i = before; i < sources.size(); ++i) found += sources[i].extent->size;
    }
  }
  if (sources.empty()) return {};
  std::vector<std::vector<std::pair<Block*, bool>>> views;
  views.reserve(sources.size());
  for (const MoveSource& source : sources) {
    views.push_back(leave_views(*source.block, *source.extent));
  }

  lock.unlock();
  VmmLock vmm(vmm_mutex_);
  Bytes released{};
  std::vector<bool> gone;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const MoveSource& source = sources[i];
    const Bytes size = source.extent->size;
    (void)runner_.leave_views(vmm, *source.extent, views[i]);
    gone.push_back(source.extent->old_mappings == 0 && mapper_.unmap(vmm, *source.extent));
    if (gone.back() && pool_.release(vmm, *source.extent)) released += size;
  }
  lock.lock();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Block* block = sources[i].block;
    settle_views(sources[i].extent, views[i], sources[i].freed);
    if (gone[i]) {
      block->range->set_extent(block->where(), nullptr);
      block->map->make_vacant(block);
    } else {
      block->map->make_idle(block, streams_.settled(sources[i].freed));
    }
  }
  return released;
}

/// Level no_vmm: gives back the driver's allocations that are idle as a whole.
Bytes DeviceHeap::release_idle_ranges(HeapLock& lock, std::span<Arena* const> arenas, Bytes bytes) {
  std::vector<Block*> due;
  Bytes found{};
  for (Arena* arena : arenas) {
    for (BlockMap* map : {&arena->large, &arena->small}) {
      for (std::size_t i = 0; i < map->ranges().size() && found < bytes; ++i) {
        Block* block = map->first(i);
        if (block->next != nullptr || block->state != BlockState::idle) continue;
        if (!streams_.passed(block->freed)) continue;
        due.push_back(map->cut(block, block->begin, block->size));
        found += block->size;
      }
    }
  }
  if (due.empty()) return {};
  std::vector<Extent*> extents;
  extents.reserve(due.size());
  for (const Block* block : due) extents.push_back(block->range->extent_at(block->begin));

  lock.unlock();
  VmmLock vmm(vmm_mutex_);
  Bytes released{};
  for (Extent* extent : extents) {
    const Bytes size = extent->size;
    if (pool_.release(vmm, *extent)) released += size;  // else quarantined: its range goes too
  }
  lock.lock();
  for (Block* block : due) block->map->remove_range(block);
  return released;
}

Bytes DeviceHeap::release_spare(HeapLock& lock, Bytes bytes) {
  if (pool_.spare() == Bytes{}) return {};
  lock.unlock();
  VmmLock vmm(vmm_mutex_);
  const Bytes released = pool_.release_spare(vmm, bytes);
  vmm.unlock();
  lock.lock();
  return released;
}

/// What the driver's own pools gave back, as far as its figure of free memory shows it.
Bytes DeviceHeap::trim_driver_pools(HeapLock& lock) {
  lock.unlock();
  MemoryInfo before{};
  MemoryInfo after{};
  const bool known = driver_.memory_info(device_, before) == DriverCode::success &&
                     driver_.trim_pools(device_) == DriverCode::success &&
                     driver_.memory_info(device_, after) == DriverCode::success;
  lock.lock();
  return known && after.free > before.free ? after.free - before.free : Bytes{};
}

/// Tries again to undo what could not be undone; true when some of it could.
bool DeviceHeap::retry_stuck(HeapLock& lock) {
  const Bytes before = pool_.quarantined();
  if (before == Bytes{}) return false;
  lock.unlock();
  VmmLock vmm(vmm_mutex_);
  const std::vector<VaRange> freed = pool_.retry_quarantine(vmm);
  const bool gained = pool_.quarantined() < before;
  lock.lock();
  for (const VaRange& range : freed) {
    const auto place = std::find_if(stuck_.begin(), stuck_.end(),
                                    [&](const Block* b) { return b->begin == range.begin; });
    BURSAR_CHECK(1, place != stuck_.end());
    Block* block = *place;
    stuck_.erase(place);
    block->map->make_vacant(block);
  }
  return gained;
}

/// True when GPU work is under way whose end frees memory that the request may take.
bool DeviceHeap::work_would_help(const Climb& climb) const {
  for (const Arena* arena : all_arenas()) {
    if (climb.budget_only && arena->domain != climb.request.domain) continue;
    for (const BlockMap* map : {&arena->small, &arena->large}) {
      if (map->bytes(BlockState::pending) > Bytes{}) return true;
      bool waiting = false;
      for (StreamSlot slot = 1; slot < streams_.end_slot() && !waiting; ++slot) {
        map->idle(slot).ascend(Bytes{}, [&](const Block* block) {
          waiting = !streams_.passed(block->freed);
          return !waiting;
        });
      }
      if (waiting) return true;
    }
  }
  return false;
}

/// Lets time pass until memory has become free, also by other threads; false when the deadline has
/// come or nothing that would help is awaited.
bool DeviceHeap::wait_for_work(HeapLock& lock, const Climb& climb) {
  if (retry_stuck(lock)) return true;
  refresh(lock, climb.stream, climb.request.slot);
  for (;;) {
    drain_caches(lock, climb.request.domain);
    if (gains_ != climb.seen) return true;
    if (!fences_.outstanding(lock) || !work_would_help(climb)) return false;
    lock.unlock();
    const bool late = driver_.now() >= climb.deadline;
    if (!late) driver_.sleep_for(kPollInterval);
    lock.lock();
    if (late) return gains_ != climb.seen;
    refresh(lock);
  }
}

Bytes DeviceHeap::trim(Bytes target, std::span<const StreamRef> streams) noexcept {
  std::vector<StreamRef> named;
  for (const StreamRef& stream : streams) {
    if (const result<StreamRef> resolved = resolve(stream)) named.push_back(*resolved);
  }
  HeapLock lock(mutex_);
  drain_caches(lock, std::nullopt);  // first, so that the fences cover it
  for (const StreamRef& stream : named) {
    (void)fences_.record(lock, stream, slot_of(lock, stream.id));
  }
  refresh(lock);
  retry_stuck(lock);
  const auto excess = [&] {
    return pool_.reserved() > target ? pool_.reserved() - target : Bytes{};
  };
  Bytes given{};
  if (excess() > Bytes{}) given += release_spare(lock, excess());
  if (excess() > Bytes{}) given += release_idle(lock, all_arenas(), excess());
  return given;
}

void DeviceHeap::close_domain(DomainId domain) noexcept {
  HeapLock lock(mutex_);
  if (domain.value >= arenas_.size() || !arenas_[domain.value]) return;
  closed_.push_back(domain);
  shut_caches(lock, domain);
  refresh(lock);
}

/// Gives up what closed domains still hold, as far as nothing of it is live or in use. The heap
/// lock is dropped meanwhile.
void DeviceHeap::reap_closed(HeapLock& lock) {
  std::vector<std::unique_ptr<AddressRange>> ranges;
  const std::vector<DomainId> closed = closed_;
  for (const DomainId domain : closed) {
    Arena* arena = arenas_[domain.value].get();
    if (arena == nullptr || arena->live_blocks != 0) continue;
    release_idle(lock, {&arena, 1}, Bytes::max());
    arena = arenas_[domain.value].get();  // another thread may have been quicker
    if (arena == nullptr || !arena->empty()) continue;
    for (BlockMap* map : {&arena->small, &arena->large, &arena->view_addresses}) {
      while (!map->ranges().empty()) ranges.push_back(map->remove_range(map->first(0)));
    }
    arenas_[domain.value].reset();
    std::erase(closed_, domain);
  }
  if (ranges.empty()) return;
  lock.unlock();
  ranges.clear();  // gives the addresses back
  lock.lock();
}

std::vector<Arena*> DeviceHeap::other_arenas(const Arena& mine) const {
  std::vector<Arena*> others = all_arenas();
  std::erase(others, &mine);
  return others;
}

std::vector<Arena*> DeviceHeap::all_arenas() const {
  std::vector<Arena*> all;
  for (const std::unique_ptr<Arena>& arena : arenas_) {
    if (arena) all.push_back(arena.get());
  }
  return all;
}

/// Completes what the ladder noted with who holds what. Takes the locks.
void DeviceHeap::fill_report(const OomReport& tried, DomainId domain, OomReport& report) const {
  report = tried;
  report.domain = domain;
  report.held = stats(std::nullopt);
  report.domain_held = stats(domain);
}

}  // namespace v0
}  // namespace bursar
