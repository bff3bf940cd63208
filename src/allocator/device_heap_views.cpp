// SPDX-License-Identifier: Apache-2.0
// Blocks in views: leased from views that stand, or stitched anew.
#include <algorithm>

#include <bursar/allocator/device_heap.hpp>
#include <bursar/block/block_size.hpp>
#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

/// One extent of a stitch under way.
struct DeviceHeap::StitchStep {
  StitchPiece piece;
  Block* home = nullptr;     ///< moving: the interval used, or all of an extent to be created
  Block* address = nullptr;  ///< moving: where it will be in the view
  FencePoint freed;          ///< of the home interval
  bool at_home = false;      ///< a new extent has arrived at its home
  enum class View { none, mapped, stuck } view = View::none;
};

bool DeviceHeap::stitchable(Arena& arena, const Request& request) const {
  return planner_.stitches() && !request.dedicated() && request.alignment == kBlockGranule &&
         request.size >= options_.stitch_limit && &planner_.zone_of(arena, request) == &arena.large;
}

/// A block of the request's size in a view whose memory is idle; null when there is none.
void* DeviceHeap::try_views(const HeapLock& lock, Arena& arena, const Request& request) {
  BURSAR_CHECK(1, lock.held());
  if (!stitchable(arena, request)) return nullptr;
  const auto place = arena.views.find(arena, request.slot, request.size);
  if (!place) return nullptr;
  ViewLease lease{place->view, ViewSet::take(arena, *place, request.size)};
  return enter_view(arena, place->begin, request, std::move(lease));
}

/// Hands out a block at `begin` of a view; its parts were set aside.
void* DeviceHeap::enter_view(Arena& arena, DeviceAddress begin, const Request& request,
                             ViewLease lease) {
  Block* block = store_.make();
  for (Block* part : lease.parts) {
    part->map->make_live(part, Bytes{}, request.slot);
    part->owner = block;
  }
  ++lease.view->leases;
  block->begin = begin;
  block->size = request.size;
  block->front = static_cast<std::uint32_t>(request.front.count);
  block->map = &arena.large;
  block->requested = request.requested;
  block->freed = {request.slot, 0};
  block->state = BlockState::live;
  block->lease = std::make_unique<ViewLease>(std::move(lease));
  note_live(arena, block, request);
  return to_pointer(block->data());
}

/// A freed block may still be used by a recorded stream.
void DeviceHeap::make_pending(Block* block) {
  if (!block->lease) {
    block->map->make_pending(block);
    return;
  }
  for (Block* part : block->lease->parts) part->map->make_pending(part);
  block->state = BlockState::pending;
}

/// A freed block's memory is idle once `freed` has passed.
void DeviceHeap::make_idle(Block* block, FencePoint freed) {
  if (!block->lease) {
    block->map->make_idle(block, freed);
    return;
  }
  const std::unique_ptr<ViewLease> lease = std::move(block->lease);
  ViewSet::give_back(*lease->view, freed);
  for (Block* part : lease->parts) part->map->make_idle(part, freed);
  store_.drop(block);
}

/// An extent that is to leave its home leaves all views first: where they still map it.
std::vector<std::pair<Block*, bool>> DeviceHeap::leave_views(const Block& home,
                                                             const Extent& extent) {
  std::vector<std::pair<Block*, bool>> views;
  ViewSet& set = arenas_[home.map->domain().value]->views;
  for (Block* address : set.detach(extent)) views.emplace_back(address, false);
  if (!views.empty()) leaving_[&extent] += static_cast<std::uint32_t>(views.size());
  return views;
}

void DeviceHeap::no_longer_leaving(const Extent* extent, std::size_t mappings) {
  const auto known = leaving_.find(extent);
  if (known == leaving_.end()) return;
  known->second -= static_cast<std::uint32_t>(mappings);
  if (known->second == 0) leaving_.erase(known);
}

/// Addresses of mappings that are gone are free; the others are tried again later.
void DeviceHeap::settle_views(Extent* extent, const std::vector<std::pair<Block*, bool>>& views,
                              FencePoint freed) {
  no_longer_leaving(extent, views.size());
  for (const auto& [address, gone] : views) {
    if (gone) {
      address->map->make_vacant(address);
    } else {
      old_mappings_.push_back({extent, address, freed});
      if (!streams_.passed(freed)) want_fence(freed.slot);
    }
  }
}

/// What the policy looks at.
GrowthState DeviceHeap::growth_state(const Arena& arena, const Request& request,
                                     bool exhausted) const {
  GrowthState state;
  state.peak = std::max(arena.live_peak, arena.live() + request.size);
  state.held = domains_.charged(arena.domain, device_);
  state.streams = streams_.effective_streams();
  const Bytes now = pool_.reserved();
  const Bytes left = known_end_ > now ? known_end_ - now : Bytes{};
  state.attainable = std::min(domains_.limit(arena.domain), state.held + left);
  state.exhausted = exhausted;
  return state;
}

/// Chooses between growing and reusing, and does it.
result<void*> DeviceHeap::grow_or_reuse(HeapLock& lock, Arena& arena, const Request& request,
                                        bool exhausted, Shortage& shortage) {
  const GrowthState state = growth_state(arena, request, exhausted);
  if (void* borrowed = try_borrow(lock, arena, request, state)) return borrowed;
  const Bytes extent = policy_.extent_size(state, request.size, page_);
  if (!stitchable(arena, request)) return grow(lock, arena, request, extent, shortage);
  // Where no range has room for it, all of the block would be new.
  const Bytes needed = planner_.needed(arena, request).value_or(round_up(request.size, page_));
  if (policy_.within_guard(state, needed)) return grow(lock, arena, request, extent, shortage);
  Stitch stitch = stitcher_.plan(arena, request.slot, request.size, extent, false);
  if (!policy_.within_guard(state, stitch.new_bytes)) {
    stitch = stitcher_.plan(arena, request.slot, request.size, extent, true);
  }
  const std::size_t growth_maps = (needed.count + extent.count - 1) / extent.count;
  const std::size_t more = stitch.maps() > growth_maps ? stitch.maps() - growth_maps : 0;
  if (stitch.new_bytes >= needed ||
      policy_.not_worth_it(state, needed, needed - stitch.new_bytes, more)) {
    return grow(lock, arena, request, extent, shortage);
  }
  return run_stitch(lock, arena, request, stitch, exhausted, shortage);
}

/// A small block on the smallest idle run of the other zone, where the policy prefers that to a new
/// page; null where there is none.
void* DeviceHeap::try_borrow(const HeapLock& lock, Arena& arena, const Request& request,
                             const GrowthState& state) {
  BURSAR_CHECK(1, lock.held());
  if (&planner_.zone_of(arena, request) != &arena.small) return nullptr;
  if (state.exhausted) {
    Block* any = arena.large.find_idle(request.slot, request.size, request.alignment);
    return any == nullptr ? nullptr : place(arena, arena.large, any, request);
  }
  if (request.alignment != kBlockGranule) return nullptr;
  const Bytes idle = arena.large.bytes(BlockState::idle);
  if (!policy_.borrows(state, request.size, idle, page_)) return nullptr;
  Block* best = nullptr;
  for (const StreamSlot slot : {request.slot, kAnyStream}) {
    arena.large.idle(slot).ascend(request.size, [&](Block* block) {
      if (best == nullptr || block->size < best->size) best = block;
      return true;
    });
  }
  return best == nullptr ? nullptr : place(arena, arena.large, best, request);
}

/// Keeps the number of views in bounds: the oldest that nothing uses are taken away.
void DeviceHeap::drop_old_views(Arena& arena) {
  const auto done = [this](const FencePoint& point) { return streams_.passed(point); };
  while (arena.views.count() >= options_.max_views) {
    const std::vector<ViewPiece> pieces = arena.views.drop_oldest(done);
    if (pieces.empty()) return;
    for (const ViewPiece& piece : pieces) {
      old_mappings_.push_back({piece.extent, piece.address, FencePoint{}});
    }
  }
}

/// Sets aside the home intervals and the addresses of a stitch. Where addresses are missing nothing
/// is changed, and `lacking` and `least` say which zone needs how many.
bool DeviceHeap::set_stitch_aside(Arena& arena, const Stitch& stitch,
                                  std::vector<StitchStep>& steps, BlockMap*& lacking,
                                  Bytes& least) {
  Bytes total{};
  for (const StitchPiece& piece : stitch.pieces) total += piece.size;
  Block* room = arena.view_addresses.vacant().lowest_fit(total);
  Block* home_room = arena.large.vacant().lowest_fit(stitch.new_bytes);
  if (room == nullptr || (stitch.new_bytes > Bytes{} && home_room == nullptr)) {
    lacking = room == nullptr ? &arena.view_addresses : &arena.large;
    least = room == nullptr ? total : stitch.new_bytes;
    return false;
  }
  DeviceAddress at = room->begin;
  DeviceAddress home_at = home_room == nullptr ? DeviceAddress{} : home_room->begin;
  const auto vacant_at = [](BlockMap& map, DeviceAddress a) { return map.find(a); };
  for (const StitchPiece& piece : stitch.pieces) {
    StitchStep step;
    step.piece = piece;
    step.address = arena.view_addresses.cut(vacant_at(arena.view_addresses, at), at, piece.size);
    at = at + piece.size;
    if (piece.extent == nullptr) {
      step.home = arena.large.cut(vacant_at(arena.large, home_at), home_at, piece.size);
      home_at = home_at + piece.size;
    } else {
      const DeviceAddress begin = piece.extent->mapped_at + piece.from;
      Block* start = arena.find(begin);
      for (Block* b = start; b != nullptr && b->begin < begin + piece.used; b = b->next) {
        if (b->freed.slot == kAnyStream) continue;
        step.freed = {b->freed.slot, std::max(step.freed.batch, b->freed.batch)};
      }
      step.home = start->map->gather(start, {begin, piece.used});
    }
    steps.push_back(step);
  }
  return true;
}

/// The driver's part: new extents to their homes, then all of them side by side.
result<void> DeviceHeap::map_stitch(const VmmLock& vmm, const Arena& arena,
                                    const StreamHandle* clear_on, std::vector<StitchStep>& steps) {
  for (StitchStep& step : steps) {
    if (step.piece.extent == nullptr) {
      const PageCount pages = pages_for(step.piece.size, page_);
      result<Extent*> made = pool_.create(vmm, pages, arena.domain);
      if (!made) return made.failure();
      step.piece.extent = *made;
      result<void> mapped = mapper_.map(vmm, **made, step.home->begin, clear_on);
      if (!mapped) {
        if ((*made)->state != ExtentState::quarantined) pool_.keep_spare(vmm, **made);
        return mapped;
      }
      step.at_home = true;
    }
    bool stuck = false;
    result<void> mapped = mapper_.map_view(vmm, *step.piece.extent, step.address->begin, stuck);
    if (mapped || stuck) step.view = mapped ? StitchStep::View::mapped : StitchStep::View::stuck;
    if (!mapped) return mapped;
  }
  return {};
}

result<void*> DeviceHeap::run_stitch(HeapLock& lock, Arena& arena, const Request& request,
                                     const Stitch& stitch, bool exhausted, Shortage& shortage) {
  drop_old_views(arena);
  std::vector<StitchStep> steps;
  BlockMap* lacking = nullptr;
  Bytes least{};
  if (!set_stitch_aside(arena, stitch, steps, lacking, least)) {
    if (result<void> added = add_range(lock, *lacking, least); !added) return added.failure();
    return grow_or_reuse(lock, arena, request, exhausted,
                         shortage);  // what was idle may not be any more
  }
  lock.unlock();
  VmmLock vmm(vmm_mutex_);
  const bool clears = options_.scrub == Scrub::cross_domain;
  const result<void> ran = map_stitch(vmm, arena, clears ? &request.stream.handle : nullptr, steps);
  if (!ran) {
    for (StitchStep& step : steps) {
      if (step.view != StitchStep::View::mapped) continue;
      const bool gone = mapper_.unmap_old(vmm, *step.piece.extent, step.address->begin).ok();
      step.view = gone ? StitchStep::View::none : StitchStep::View::stuck;
    }
  }
  lock.lock();
  for (StitchStep& step : steps) {
    if (step.at_home) step.home->range->set_extent(step.home->where(), step.piece.extent);
  }
  if (!ran) {
    shortage = shortage_of(steps);
    settle_stitch(arena, request, steps);
    return ran.failure();
  }
  return commit_stitch(arena, request, steps);
}

/// Bytes of new extents that were cleared on their way in.
Bytes DeviceHeap::cleared_bytes(const std::vector<StitchStep>& steps) const {
  Bytes sum{};
  if (options_.scrub != Scrub::cross_domain) return sum;
  for (const StitchStep& step : steps) {
    if (step.at_home) sum += step.piece.size;
  }
  return sum;
}

/// What a stitch that failed still lacks; its new extents, which have homes side by side, are kept
/// for the next attempt.
DeviceHeap::Shortage DeviceHeap::shortage_of(const std::vector<StitchStep>& steps) {
  Shortage shortage;
  for (const StitchStep& step : steps) {
    const bool fresh = step.at_home || step.home->range->extent_at(step.home->begin) == nullptr;
    if (!fresh) continue;
    if (shortage.site.size == Bytes{}) shortage.site.begin = step.home->begin;
    shortage.site.size += step.home->size;
    if (!step.at_home) shortage.bytes += step.home->size;
  }
  return shortage;
}

void* DeviceHeap::commit_stitch(Arena& arena, const Request& request,
                                std::vector<StitchStep>& steps) {
  const FencePoint fresh = fresh_point(request, cleared_bytes(steps));
  std::vector<ViewPiece> pieces;
  std::vector<Block*> parts;
  VaRange where{steps.front().address->begin, {}};
  for (StitchStep& step : steps) {
    where.size += step.piece.size;
    pieces.push_back({step.piece.extent, step.address->where(), step.address});
    Block* part = step.home;
    if (step.at_home && part->size > step.piece.used) {
      part = arena.large.cut(part, part->begin, step.piece.used);
      arena.large.make_idle(part->next, fresh);
    }
    parts.push_back(part);
  }
  const DeviceAddress begin = where.begin + steps.front().piece.from;
  View& view = arena.views.add(where, request.size, std::move(pieces));
  return enter_view(arena, begin, request, {&view, std::move(parts)});
}

/// A stitch that failed: what was idle is idle again, what was created is idle at home.
void DeviceHeap::settle_stitch(Arena& arena, const Request& request,
                               std::vector<StitchStep>& steps) {
  const FencePoint fresh = fresh_point(request, cleared_bytes(steps));
  for (StitchStep& step : steps) {
    const bool created = step.at_home;
    const bool existed = !created && step.home->range->extent_at(step.home->begin) != nullptr;
    if (created) {
      arena.large.make_idle(step.home, fresh);
    } else if (existed) {
      const bool one_stream = step.freed.slot == kAnyStream && streams_.count() == 1;
      step.home->map->make_idle(step.home, one_stream ? fresh : streams_.settled(step.freed));
    } else if (step.piece.extent != nullptr &&
               step.piece.extent->state == ExtentState::quarantined) {
      stuck_.push_back(step.home);
    } else {
      arena.large.make_vacant(step.home);
    }
    if (step.view == StitchStep::View::stuck) {
      old_mappings_.push_back({step.piece.extent, step.address, FencePoint{}});
    } else {
      arena.view_addresses.make_vacant(step.address);
    }
  }
}

}  // namespace v0
}  // namespace bursar
