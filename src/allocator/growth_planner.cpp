// SPDX-License-Identifier: Apache-2.0
// Places, sources and sizes of extents.
#include <bursar/allocator/growth_planner.hpp>

#include <algorithm>
#include <bit>

#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

GrowthPlanner::GrowthPlanner(const AllocatorOptions& options, Bytes page, bool aliases,
                             const StreamTable& streams)
    : options_(options), page_(page), aliases_(aliases && options.alias_moves), streams_(streams) {}

BlockMap& GrowthPlanner::zone_of(Arena& arena, const Request& request) const {
  const bool small = request.size < options_.small_limit && !request.dedicated();
  return small ? arena.small : arena.large;
}

bool GrowthPlanner::plan(Arena& arena, std::span<Arena* const> others, const Request& request,
                         Bytes spare, Bytes extent, GrowthPlan& plan) const {
  BlockMap& map = zone_of(arena, request);
  const Place place = request.guarded       ? guarded_place(map, request, arena.last_end)
                      : request.dedicated() ? dedicated_place(map, request)
                                            : best_place(map, request);
  if (place.start == nullptr) return false;
  if (request.guarded) arena.last_end = place.begin + request.size;
  plan.arena = &arena;
  plan.dedicated = request.dedicated();
  plan.properties.shareable = request.shareable;
  take_site(map, place, request, plan);
  if (plan.dedicated) {
    GrowthStep whole;
    whole.target = plan.site->where();
    plan.steps.push_back(whole);
    return true;
  }

  PageCount most{};
  for (const VaRange& hole : holes(plan)) most = std::max(most, pages_for(hole.size, page_));
  const auto missing = [&](const std::vector<MoveSource>& sources) {
    Bytes found{};
    for (const MoveSource& source : sources) found += source.extent->size;
    return place.new_bytes > found ? place.new_bytes - found : Bytes{};
  };
  std::vector<MoveSource> sources;
  const VaRange avoid = plan.site->where();
  if (!aliases_ || request.size < options_.stitch_limit) {  // else it is stitched where it lies
    collect(arena.large, request.slot, avoid, most, missing(sources), sources);
    collect(arena.small, request.slot, avoid, most, missing(sources), sources);
  }
  for (Arena* other : others) {
    if (missing(sources) <= spare) break;
    collect(other->large, kAnyStream, avoid, most, missing(sources), sources);
    collect(other->small, kAnyStream, avoid, most, missing(sources), sources);
  }
  fill(request, std::move(sources), extent, plan);
  return true;
}

std::optional<Bytes> GrowthPlanner::needed(Arena& arena, const Request& request) const {
  const Place place = best_place(zone_of(arena, request), request);
  if (place.start == nullptr) return std::nullopt;
  return place.new_bytes;
}

Bytes GrowthPlanner::room_for(const Request& request) const {
  return request.size + std::max(request.alignment, page_) +
         (request.guarded ? page_ * 2 : Bytes{});
}

// -- where -----------------------------------------------------------------------------------

VaRange GrowthPlanner::page_span(const AddressRange& range, DeviceAddress begin, Bytes size) const {
  const DeviceAddress base = range.where().begin;
  const Bytes low = round_down(begin - base, page_);
  const Bytes high = round_up(begin + size - base, page_);
  return {base + low, high - low};
}

GrowthPlanner::Place GrowthPlanner::best_place(const BlockMap& map, const Request& request) const {
  Place best;
  map.vacant().ascend(Bytes{0}, [&](Block* vacant) {
    Block* first = vacant;
    while (first->prev != nullptr && BlockMap::usable(*first->prev, request.slot)) {
      first = first->prev;
      if (first->state == BlockState::vacant) return true;  // this run was tried already
    }
    Block* last = vacant;
    while (last->next != nullptr && BlockMap::usable(*last->next, request.slot)) last = last->next;
    try_run(first, last, request, best);
    return best.new_bytes > page_;
  });
  return best;
}

/// The blocks of a run, and how many vacant bytes lie before each.
struct GrowthPlanner::Run {
  std::vector<Block*> blocks;
  std::vector<Bytes> vacant_before;

  /// The last block that begins at or before `at`, which lies in the run.
  std::size_t index_at(DeviceAddress at) const {
    const auto after =
        std::upper_bound(blocks.begin(), blocks.end(), at,
                         [](DeviceAddress a, const Block* b) { return a < b->begin; });
    return static_cast<std::size_t>(after - blocks.begin()) - 1;
  }
  Bytes vacant_until(DeviceAddress at) const {
    const std::size_t i = index_at(at);
    const bool vacant = blocks[i]->state == BlockState::vacant;
    return vacant_before[i] +
           (vacant ? std::min(at, blocks[i]->end()) - blocks[i]->begin : Bytes{});
  }
};

/// Tries the places at which a block could begin in the run of usable blocks first..last.
void GrowthPlanner::try_run(Block* first, Block* last, const Request& request, Place& best) const {
  const VaRange whole{first->begin, last->end() - first->begin};
  if (whole.size < request.size) return;
  Run run;
  Bytes vacant{};
  for (Block* block = first; block != last->next; block = block->next) {
    run.blocks.push_back(block);
    run.vacant_before.push_back(vacant);
    if (block->state == BlockState::vacant) vacant += block->size;
  }
  const std::uint64_t mask = request.alignment.count - 1;
  const auto attempt = [&](DeviceAddress begin) {
    if (begin < whole.begin || begin + request.size > whole.end()) return;
    const VaRange span = page_span(*first->range, begin, request.size);
    const Bytes fresh = run.vacant_until(std::min(span.end(), whole.end())) -
                        run.vacant_until(std::max(span.begin, whole.begin));
    if (fresh < best.new_bytes) best = {run.blocks[run.index_at(begin)], begin, fresh};
  };
  for (const Block* block : run.blocks) {
    if (best.new_bytes <= page_) return;  // there is no cheaper place: none is free
    attempt({(block->begin.value + mask) & ~mask});
    if (block->state != BlockState::vacant && block->end().value >= request.size.count) {
      attempt({(block->end().value - request.size.count) & ~mask});
    }
  }
}

GrowthPlanner::Place GrowthPlanner::dedicated_place(const BlockMap& map,
                                                    const Request& request) const {
  const Bytes size = round_up(request.size, page_);
  const Bytes slack = request.alignment > page_ ? request.alignment : Bytes{};
  Block* vacant = map.vacant().lowest_fit(size + slack);
  if (vacant == nullptr) return {};
  const std::uint64_t mask = std::max(request.alignment, page_).count - 1;
  // Vacant blocks begin at pages; an alignment above that moves the begin upward.
  const DeviceAddress begin =
      slack == Bytes{} ? vacant->begin : DeviceAddress{(vacant->begin.value + mask) & ~mask};
  return {vacant, begin, size};
}

/// Passthrough: between unmapped pages, and behind `from` where there is room. So addresses go
/// round, and those of a freed block stay unmapped for as long as there are others.
GrowthPlanner::Place GrowthPlanner::guarded_place(const BlockMap& map, const Request& request,
                                                  DeviceAddress from) const {
  const std::uint64_t mask = std::max(request.alignment, page_).count - 1;
  Place lowest;
  Place next;
  const auto begin_after = [&](DeviceAddress at) {
    return DeviceAddress{((at + page_).value + mask) & ~mask};
  };
  map.vacant().ascend(request.size + page_ * 2, [&](Block* vacant) {
    const auto fits = [&](DeviceAddress begin) {
      return begin + request.size + page_ <= vacant->end();
    };
    const DeviceAddress low = begin_after(vacant->begin);
    if (lowest.start == nullptr && fits(low)) lowest = {vacant, low, request.size};
    const DeviceAddress behind = begin_after(std::max(vacant->begin, from));
    if (fits(behind)) next = {vacant, behind, request.size};
    return next.start == nullptr;
  });
  return next.start != nullptr ? next : lowest;
}

/// Sets the site aside: the place itself, rounded out to those of its end pages that are vacant.
void GrowthPlanner::take_site(BlockMap& map, const Place& place, const Request& request,
                              GrowthPlan& plan) const {
  const AddressRange& range = *place.start->range;
  const Bytes size = plan.dedicated ? round_up(request.size, page_) : request.size;
  plan.place = {place.begin, size};
  const VaRange span = page_span(range, place.begin, size);
  VaRange site = plan.place;
  Block* start = place.start;
  if (range.extent_at(place.begin) == nullptr) {
    site = {span.begin, site.end() - span.begin};
  }
  if (range.extent_at(DeviceAddress{site.end().value - 1}) == nullptr) {
    site.size = span.end() - site.begin;
  }
  for (Block* block = start; block != nullptr && block->begin < site.end(); block = block->next) {
    if (block->state != BlockState::idle || block->freed.slot == kAnyStream) continue;
    plan.site_freed.slot = block->freed.slot;
    plan.site_freed.batch = std::max(plan.site_freed.batch, block->freed.batch);
  }
  plan.site = map.gather(start, site);
}

// -- from what -------------------------------------------------------------------------------

void GrowthPlanner::collect(BlockMap& map, StreamSlot alias_for, VaRange avoid, PageCount most,
                            Bytes bytes, std::vector<MoveSource>& out,
                            const ExtentSet* held) const {
  Bytes found{};
  std::vector<MoveSource> picked;
  const auto pick_from = [&](Block* block) {
    const bool passed = streams_.passed(block->freed);
    const bool alias = aliases_ && alias_for != kAnyStream && block->freed.slot == alias_for;
    if (!passed && !alias) return true;
    const AddressRange& range = *block->range;
    const DeviceAddress base = range.where().begin;
    DeviceAddress at = base + round_down(block->end() - base, page_);
    while (found < bytes && at - base >= page_ && at - page_ >= block->begin) {
      Extent* extent = range.extent_at(at - page_);
      if (extent->mapped_at < block->begin) break;
      const VaRange where{extent->mapped_at, extent->size};
      at = where.begin;
      if (where.end() > block->end() || extent->pages > most) continue;
      if (where.begin < avoid.end() && avoid.begin < where.end()) continue;
      if (held != nullptr && held->count(extent) != 0) continue;
      picked.push_back({extent, block, block->freed, passed});
      found += extent->size;
    }
    return found < bytes;
  };
  for (const StreamSlot slot : {alias_for, kAnyStream}) {
    if (found < bytes) map.idle(slot).descend(page_, pick_from);
    if (alias_for == kAnyStream) break;
  }
  if (alias_for == kAnyStream) {  // whatever stream freed it, if its work is done
    for (StreamSlot slot = 1; slot < streams_.end_slot() && found < bytes; ++slot) {
      map.idle(slot).descend(page_, pick_from);
    }
  }
  // Picked from high to low, so cutting one leaves the lower ones inside the block they are in.
  for (MoveSource& source : picked) {
    source.block = map.cut(source.block, source.extent->mapped_at, source.extent->size);
    out.push_back(source);
  }
}

std::vector<VaRange> GrowthPlanner::holes(const GrowthPlan& plan) const {
  std::vector<VaRange> holes;
  const AddressRange& range = *plan.site->range;
  const VaRange span = page_span(range, plan.site->begin, plan.site->size);
  for (DeviceAddress at = span.begin; at < span.end(); at = at + page_) {
    if (range.extent_at(at) != nullptr) continue;
    if (!holes.empty() && holes.back().end() == at) {
      holes.back().size += page_;
    } else {
      holes.push_back({at, page_});
    }
  }
  return holes;
}

void GrowthPlanner::fill(const Request& request, std::vector<MoveSource> sources, Bytes extent,
                         GrowthPlan& plan) const {
  std::stable_sort(sources.begin(), sources.end(), [](const MoveSource& a, const MoveSource& b) {
    return a.extent->pages > b.extent->pages;
  });
  for (VaRange hole : holes(plan)) {
    while (hole.size > Bytes{}) {
      const auto fits = [&](const MoveSource& s) { return s.extent->size <= hole.size; };
      const auto source = std::find_if(sources.begin(), sources.end(), fits);
      GrowthStep step;
      if (source != sources.end()) {
        step.target = {hole.begin, source->extent->size};
        step.extent = source->extent;
        step.source = source->block;
        step.freed = source->freed;
        step.alias = !source->passed;
        sources.erase(source);
        if (step.freed.slot == request.slot) {
          plan.site_freed.slot = request.slot;
          plan.site_freed.batch = std::max(plan.site_freed.batch, step.freed.batch);
        }
      } else {
        step.target = {hole.begin, to_bytes(fresh_pages(request, plan, extent, hole), page_)};
      }
      plan.steps.push_back(step);
      hole = {step.target.end(), hole.size - step.target.size};
    }
  }
  for (const MoveSource& unused : sources) {
    unused.block->map->make_idle(unused.block, streams_.settled(unused.freed));
  }
}

/// How many pages the next new extent of the hole takes.
PageCount GrowthPlanner::fresh_pages(const Request& request, const GrowthPlan& plan, Bytes extent,
                                     VaRange hole) const {
  if (request.size < options_.small_limit) return PageCount{1};
  if (aliases_ && request.size >= options_.stitch_limit) {
    return pages_for(std::min(extent, hole.size), page_);
  }
  // The pages that the block shares with others: its own ends.
  if (hole.begin < plan.place.begin) return PageCount{1};
  Bytes middle = hole.size;
  if (hole.end() > plan.place.end()) middle -= page_;
  const Bytes most = std::min(extent, middle);
  if (most < page_) return PageCount{1};
  return PageCount{static_cast<std::uint32_t>(std::bit_floor(most / page_))};
}

}  // namespace v0
}  // namespace bursar
