// SPDX-License-Identifier: Apache-2.0
// Figures, snapshots and proofs: a view of one instant, in which no driver operation is under way.
#include <algorithm>
#include <unordered_map>

#include <bursar/allocator/device_heap.hpp>
#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

AllocatorStats DeviceHeap::stats(std::optional<DomainId> domain) const {
  const VmmLock vmm(vmm_mutex_);
  const HeapLock lock(mutex_);
  AllocatorStats stats = stats_locked(vmm, lock, domain);
  add_cached(lock, domain, stats);
  return stats;
}

AllocatorStats DeviceHeap::stats_locked(const VmmLock& vmm, const HeapLock& lock,
                                        std::optional<DomainId> domain) const {
  BURSAR_CHECK(1, lock.held());
  AllocatorStats s;
  for (const Arena* arena : all_arenas()) {
    if (domain && arena->domain != *domain) continue;
    for (const BlockMap* map : {&arena->small, &arena->large}) {
      s.live += map->bytes(BlockState::live);
      s.idle += map->bytes(BlockState::idle);
      s.pending += map->bytes(BlockState::pending) + map->moving_backed();
      s.largest_idle = std::max(s.largest_idle, map->largest_idle());
      s.address_space += map->address_space();
      s.metadata += map->metadata();
    }
    s.address_space += arena->view_addresses.address_space();
    s.metadata += arena->view_addresses.metadata() + arena->views.metadata();
    s.requested += arena->requested;
    s.requested_peak += arena->requested_peak;
    s.live_peak += arena->live_peak;
    s.live_blocks += arena->live_blocks;
    s.allocations += arena->allocations;
    s.deallocations += arena->deallocations;
    s.cache_hits += arena->cache_hits;
    s.thread_hits += arena->thread_hits;
    s.extents_moved += arena->extents_moved;
    s.out_of_memory += arena->out_of_memory;
    s.damaged_blocks += arena->damaged_blocks;
  }
  for (const std::unique_ptr<Extent>& extent : pool_.extents(vmm)) {
    if (domain && extent->domain != *domain) continue;
    s.reserved += extent->size;
    if (extent->state == ExtentState::spare) s.spare += extent->size;
    if (extent->state == ExtentState::quarantined) s.quarantine += extent->size;
    s.metadata += Bytes{sizeof(Extent) + 2 * sizeof(void*)};
  }
  s.slack = s.reserved - s.live - s.idle - s.pending - s.spare - s.quarantine;
  if (!domain) {
    s.requested_peak = requested_peak_;
    s.live_peak = live_peak_;
    s.reserved_peak = pool_.reserved_peak();
    s.metadata += store_.metadata() + live_.metadata() + streams_.metadata();
  }
  return s;
}

void DeviceHeap::reset_peaks() {
  const VmmLock vmm(vmm_mutex_);
  const HeapLock lock(mutex_);
  pool_.reset_peak();
  requested_peak_ = requested_;
  live_peak_ = live_bytes_;
  for (Arena* arena : all_arenas()) {
    arena->requested_peak = arena->requested;
    arena->live_peak = arena->live();
  }
}

bool DeviceHeap::owns(const void* pointer) const {
  const DeviceAddress address = to_address(pointer);
  const HeapLock lock(mutex_);
  for (const Arena* arena : all_arenas()) {
    for (const BlockMap* map : {&arena->small, &arena->large}) {
      const Block* block = map->find(address);
      if (block == nullptr) continue;
      return block->state == BlockState::live && block->owner == nullptr && !cached(*block) &&
             usable(*block).contains(address);
    }
    if (const Block* there = arena->view_addresses.find(address)) {
      const ViewPiece* piece = arena->views.piece_at(there);
      if (piece == nullptr) return false;
      const Block* home = arena->find(piece->extent->mapped_at + (address - piece->where.begin));
      return home->owner != nullptr && home->state == BlockState::live &&
             usable(*home->owner).contains(address);
    }
  }
  return false;
}

namespace {

/// Bytes asked for that lie in a block: of a leased home interval, its share of its owner's.
Bytes requested_in(const Block& block) {
  if (block.state != BlockState::live) return {};
  if (block.owner == nullptr) return block.requested;
  Bytes left = block.owner->requested;
  for (const Block* part : block.owner->lease->parts) {
    const Bytes share = std::min(left, part->size);
    if (part == &block) return share;
    left -= share;
  }
  return {};
}

}  // namespace

Snapshot DeviceHeap::snapshot() const {
  const VmmLock vmm(vmm_mutex_);
  const HeapLock lock(mutex_);
  Snapshot snapshot;
  for (const Arena* arena : all_arenas()) {
    for (const BlockMap* map : {&arena->small, &arena->large}) {
      for (const auto& range : map->ranges()) snapshot.ranges.push_back(range->where());
      map->for_each([&](const Block& block) {
        const bool used = block.freed.slot != kAnyStream;
        const bool idle = cached(block);
        snapshot.blocks.push_back({.range = block.where(),
                                   .requested = idle ? Bytes{} : requested_in(block),
                                   .state = idle ? BlockState::idle : block.state,
                                   .stream = used ? streams_.at(block.freed.slot).id : kNoStream,
                                   .domain = arena->domain});
      });
    }
  }
  for (const std::unique_ptr<Extent>& extent : pool_.extents(vmm)) {
    snapshot.extents.push_back({extent->id, extent->size, extent->mapped_at, extent->domain});
  }
  const auto by_address = [](const auto& a, const auto& b) { return a.begin < b.begin; };
  std::sort(snapshot.ranges.begin(), snapshot.ranges.end(), by_address);
  std::sort(snapshot.blocks.begin(), snapshot.blocks.end(),
            [](const auto& a, const auto& b) { return a.range.begin < b.range.begin; });
  std::sort(snapshot.extents.begin(), snapshot.extents.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return snapshot;
}

// -- proofs ----------------------------------------------------------------------------------

result<void> DeviceHeap::validate() const {
  const VmmLock vmm(vmm_mutex_);
  const HeapLock lock(mutex_);
  if (result<void> good = pool_.validate(vmm); !good) return good;
  for (const Arena* arena : all_arenas()) {
    if (result<void> good = arena->small.validate(); !good) return good;
    if (result<void> good = arena->large.validate(); !good) return good;
  }
  for (const Arena* arena : all_arenas()) {
    if (result<void> good = arena->view_addresses.validate(); !good) return good;
  }
  if (result<void> good = validate_backing(vmm, lock); !good) return good;
  if (result<void> good = validate_views(vmm, lock); !good) return good;
  if (result<void> good = validate_caches(lock); !good) return good;
  return validate_sums(vmm, lock);
}

/// Views and leases agree with homes: each mapping beyond the home is known, each lease is whole.
result<void> DeviceHeap::validate_views(const VmmLock& vmm, const HeapLock& lock) const {
  BURSAR_CHECK(1, lock.held());
  const char* fault = nullptr;
  std::unordered_map<const Extent*, std::uint32_t> mappings = leaving_;
  for (const OldMapping& old : old_mappings_) ++mappings[old.extent];
  for (const Arena* arena : all_arenas()) {
    arena->views.for_each([&](const ViewPiece& piece) {
      ++mappings[piece.extent];
      if (arena->find(piece.extent->mapped_at) == nullptr) {
        fault = "heap: an extent in a view has no home in its zone";
      }
      if (piece.address->where() != piece.where) fault = "heap: a view's addresses differ";
    });
  }
  for (const std::unique_ptr<Extent>& extent : pool_.extents(vmm)) {
    const auto known = mappings.find(extent.get());
    if (extent->old_mappings != (known == mappings.end() ? 0 : known->second)) {
      fault = "heap: an extent has mappings that nobody knows";
    }
  }
  live_.for_each([&](const Block& block) {
    if (!block.lease) return;
    Bytes sum{};
    for (const Block* part : block.lease->parts) {
      sum += part->size;
      if (part->owner != &block || part->state != BlockState::live) {
        fault = "heap: a lease has lost a part";
      }
    }
    if (sum != block.size) fault = "heap: a lease is not as large as its block";
  });
  if (fault == nullptr) return {};
  return error{.kind = ErrorKind::driver_fault, .message = fault, .device = device_};
}

/// Pages and extents agree: each mapped extent backs exactly its own pages, once, in its domain.
result<void> DeviceHeap::validate_backing(const VmmLock& vmm, const HeapLock& lock) const {
  BURSAR_CHECK(1, lock.held());
  const auto broken = [this](const char* message) {
    return error{.kind = ErrorKind::driver_fault, .message = message, .device = device_};
  };
  std::unordered_map<const Extent*, Bytes> seen;
  const char* fault = nullptr;
  for (const Arena* arena : all_arenas()) {
    for (const BlockMap* map : {&arena->small, &arena->large}) {
      DeviceAddress counted{};  // the page counted last: neighbors may share it
      map->for_each([&](const Block& block) {
        if (block.state == BlockState::vacant) return;
        for (DeviceAddress page = block.range->page_begin(block.begin); page < block.end();
             page = page + page_) {
          Extent* extent = block.range->extent_at(page);
          if (extent == nullptr || page == counted) continue;
          counted = page;
          seen[extent] += page_;
          if (extent->domain != map->domain()) fault = "heap: an extent backs another's blocks";
          if (!VaRange{extent->mapped_at, extent->size}.contains(page)) {
            fault = "heap: a page's extent is mapped elsewhere";
          }
        }
      });
    }
  }
  if (fault != nullptr) return broken(fault);
  for (const std::unique_ptr<Extent>& extent : pool_.extents(vmm)) {
    const auto found = seen.find(extent.get());
    const Bytes backed = found == seen.end() ? Bytes{} : found->second;
    const Bytes due = extent->state == ExtentState::mapped ? extent->size : Bytes{};
    if (backed != due) return broken("heap: an extent does not back exactly its own pages");
  }
  return {};
}

/// The parts add up, and charges are the extents held.
result<void> DeviceHeap::validate_sums(const VmmLock& vmm, const HeapLock& lock) const {
  const auto broken = [this](const char* message) {
    return error{.kind = ErrorKind::driver_fault, .message = message, .device = device_};
  };
  const AllocatorStats s = stats_locked(vmm, lock, std::nullopt);
  if (s.requested > s.live) return broken("heap: requested > live");
  if (s.live + s.idle + s.pending + s.spare + s.quarantine > s.reserved) {
    return broken("heap: the parts are more than reserved");
  }
  if (s.slack != Bytes{}) return broken("heap: bytes are held that no part accounts for");
  if (s.requested != requested_ || s.live != live_bytes_) return broken("heap: totals differ");
  if (s.live_blocks != live_.size()) return broken("heap: the table of live blocks differs");
  for (std::uint32_t d = 0; d < domains_.count(); ++d) {
    if (stats_locked(vmm, lock, DomainId{d}).reserved != domains_.charged(DomainId{d}, device_)) {
      return broken("heap: a domain's charge is not what it holds");
    }
  }
  return {};
}

}  // namespace v0
}  // namespace bursar
