// SPDX-License-Identifier: Apache-2.0
// Misses: plan under the heap lock, run under the VMM lock, commit under both.
#include <algorithm>
#include <utility>

#include <bursar/allocator/device_heap.hpp>
#include <bursar/block/block_size.hpp>
#include <bursar/core/check.hpp>
#include <bursar/physical/driver_error.hpp>

namespace bursar {
inline namespace v0 {

namespace {
/// So often a request may climb the ladder: each time something was reclaimed, but others may have
/// been quicker to take it.
constexpr int kMostAttempts = 64;
constexpr auto kWait = static_cast<std::size_t>(ReclaimStep::wait);
/// After so many misses the device is asked again how much is left: others use it too.
constexpr std::uint32_t kMissesToAsk = 256;

/// Keeps a stream's slot or a domain's arena from being swept while a request that uses it goes on
/// without the lock.
template <class Pinned>
class Pin {
 public:
  Pin(HeapLock& lock, Pinned& pinned) : lock_(lock), pinned_(pinned) { ++pinned_.pins; }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() {
    if (!lock_.held()) lock_.lock();
    --pinned_.pins;
  }

 private:
  HeapLock& lock_;
  Pinned& pinned_;
};
}  // namespace

result<void> DeviceHeap::refuse_while_capturing(StreamRef stream) const {
  bool capturing = false;
  const DriverCode code = driver_.stream_capturing(device_, stream.handle, capturing);
  if (code != DriverCode::success) return driver_error(code, DriverCall::stream_capturing, device_);
  if (!capturing) return {};
  return error{.kind = ErrorKind::not_supported,
               .message =
                   "the stream is being captured and no cached memory fits: allocate what "
                   "the graph needs once before the capture",
               .device = device_};
}

result<void*> DeviceHeap::allocate_slow(HeapLock& lock, const Request& request, OomReport* report) {
  const StreamRef stream = request.stream;
  Arena& mine = arena(request.domain);
  const Pin stream_pin(lock, streams_.at(request.slot));
  const Pin arena_pin(lock, mine);
  lock.unlock();
  const result<void> allowed = refuse_while_capturing(stream);
  OomReport tried;
  const Duration start = driver_.now();
  lock.lock();
  if (!allowed) return note_lost(allowed.failure());

  ask_device(lock);
  Ladder ladder;
  bool missed = false;
  while (ladder.attempts++ < kMostAttempts) {
    refresh(lock, stream, request.slot);
    if (void* block = try_hit_or_drain(lock, mine, request)) {
      if (!missed) ++mine.cache_hits;
      return prepare(lock, block, request);
    }
    missed = true;
    const std::uint64_t seen = gains_;
    Shortage shortage{request.size, {}};
    result<void*> grown = plain_ ? grow_plain(lock, mine, request, ladder.exhausted)
                                 : grow_or_reuse(lock, mine, request, ladder.exhausted, shortage);
    if (grown) return prepare(lock, *grown, request);
    tried.cause = note_lost(grown.failure());
    if (!tried.cause.retryable()) return tried.cause;
    const bool budget_only = tried.cause.kind == ErrorKind::over_budget;
    if (!budget_only) known_end_ = Bytes::max();  // the device is to be asked again
    const Climb climb{request, stream, budget_only, shortage, seen, start + options_.wait_limit};
    if (!go_on(lock, climb, ladder, tried)) break;
  }
  ++mine.out_of_memory;
  lock.unlock();
  tried.cause.asked = request.requested;
  tried.elapsed = driver_.now() - start;
  return refuse(tried, request.domain, report);
}

/// Climbs the ladder until something was gained, so that the search starts again after every step;
/// false when nothing more can be done.
bool DeviceHeap::go_on(HeapLock& lock, const Climb& climb, Ladder& ladder, OomReport& tried) {
  while (ladder.step < kWait && !take_step(lock, static_cast<ReclaimStep>(ladder.step), climb,
                                           tried.reclaimed[ladder.step])) {
    ++ladder.step;
  }
  if (ladder.step < kWait) return true;
  // Nothing is left to reclaim: whatever pieces there are will do, and only then waiting.
  if (!std::exchange(ladder.exhausted, true)) return true;
  if (!take_step(lock, ReclaimStep::wait, climb, tried.reclaimed[kWait])) return false;
  if (ladder.overtime) return false;
  ladder = {};  // the world has changed: all again
  ladder.overtime = driver_.now() >= climb.deadline;
  return true;
}

/// How much the device has left, asked again when a good part of it has come or gone: near its end
/// the policy is another. The heap lock is dropped meanwhile.
void DeviceHeap::ask_device(HeapLock& lock) {
  const Bytes held = pool_.reserved();
  const Bytes change = held > asked_at_ ? held - asked_at_ : asked_at_ - held;
  const bool known = known_end_ != Bytes::max() && change < info_.total / 64;
  if (known && ++unasked_misses_ < kMissesToAsk) return;
  unasked_misses_ = 0;
  asked_at_ = held;
  lock.unlock();
  MemoryInfo memory{};
  const DriverCode code = driver_.memory_info(device_, memory);
  lock.lock();
  if (code == DriverCode::success) known_end_ = memory.free + pool_.reserved();
}

/// After a fatal error of the device nothing more is tried.
const error& DeviceHeap::note_lost(const error& cause) {
  lost_ = lost_ || cause.kind == ErrorKind::device_lost;
  return cause;
}

/// The error of a request that found nothing, and its report where one is wanted. Takes the locks.
error DeviceHeap::refuse(OomReport& tried, DomainId domain, OomReport* report) {
  MemoryInfo memory{};
  if (tried.cause.kind == ErrorKind::device_oom &&
      driver_.memory_info(device_, memory) == DriverCode::success) {
    tried.cause.free = memory.free;
  }
  if (report != nullptr) fill_report(tried, domain, *report);
  return tried.cause;
}

/// One attempt to place the request with driver calls. What was done for a plan that failed is kept
/// as idle memory at its site, so the next attempt needs only the `shortage`. The heap lock is
/// dropped meanwhile.
result<void*> DeviceHeap::grow(HeapLock& lock, Arena& arena, const Request& request, Bytes extent,
                               Shortage& shortage) {
  GrowthPlan plan;
  while (!planner_.plan(arena, other_arenas(arena), request, pool_.spare(), extent, plan)) {
    const Bytes least = planner_.room_for(request);
    if (result<void> added = add_range(lock, planner_.zone_of(arena, request), least); !added) {
      return added.failure();
    }
  }
  if (options_.scrub == Scrub::cross_domain) plan.clear_on = request.stream.handle;
  for (GrowthStep& step : plan.steps) {
    if (step.source != nullptr) step.views = leave_views(*step.source, *step.extent);
  }
  lock.unlock();
  VmmLock vmm(vmm_mutex_);
  const result<void> ran = runner_.run(vmm, plan);
  lock.lock();

  for (const GrowthStep& step : plan.steps) commit_step(plan, step);
  const Bytes cleared = plan.cleared_bytes();
  const FencePoint freed = plan.site_freed.slot == kAnyStream || cleared > Bytes{}
                               ? fresh_point(request, cleared)
                               : streams_.settled(plan.site_freed);
  if (!ran) {
    shortage = {Bytes{}, plan.site->where()};
    for (const GrowthStep& step : plan.steps) {
      if (step.outcome != GrowthStep::Outcome::done) shortage.bytes += step.target.size;
    }
    settle_site(plan, freed);
    return ran.failure();
  }
  const DeviceAddress site_end = plan.site->end();
  const bool gap_before = plan.site->begin < plan.place.begin;
  Block* block = plan.site->map->cut(plan.site, plan.place.begin, plan.place.size);
  void* pointer = enter_live(arena, block, request);
  if (gap_before) block->map->make_idle(block->prev, freed);
  if (block->end() < site_end) block->map->make_idle(block->next, freed);
  return pointer;
}

/// Tells the blocks what became of one step.
void DeviceHeap::commit_step(const GrowthPlan& plan, const GrowthStep& step) {
  using Outcome = GrowthStep::Outcome;
  settle_views(step.extent, step.views, step.freed);
  Block* source = step.source;
  if (step.outcome == Outcome::done) {
    if (source != nullptr) source->range->set_extent(source->where(), nullptr);
    plan.site->range->set_extent(step.target, step.extent);
  }
  if (source == nullptr) return;
  const bool still_there =
      step.outcome == Outcome::untouched || (step.outcome == Outcome::stuck && step.alias);
  if (still_there) {
    source->map->make_idle(source, streams_.settled(step.freed));
    return;
  }
  if (step.outcome == Outcome::done) ++plan.arena->extents_moved;
  if (step.alias) {
    old_mappings_.push_back({step.extent, source, step.freed});
    if (!streams_.passed(step.freed)) want_fence(step.freed.slot);
    return;
  }
  source->range->set_extent(source->where(), nullptr);
  source->map->make_vacant(source);
}

/// A plan that failed leaves its site in pieces: idle where memory is, vacant where none is, and
/// set aside where an undo failed.
void DeviceHeap::settle_site(const GrowthPlan& plan, FencePoint freed) {
  enum class Kind { idle, vacant, stuck };
  std::vector<const GrowthStep*> stuck_steps;
  for (const GrowthStep& step : plan.steps) {
    if (step.outcome == GrowthStep::Outcome::stuck) stuck_steps.push_back(&step);
  }
  const auto stuck_step = [&](DeviceAddress at) -> const GrowthStep* {
    for (const GrowthStep* step : stuck_steps) {
      if (step->target.contains(at)) return step;
    }
    return nullptr;
  };
  const AddressRange& range = *plan.site->range;
  const auto kind_at = [&](DeviceAddress at) {
    if (stuck_step(at) != nullptr) return Kind::stuck;
    return range.extent_at(at) != nullptr ? Kind::idle : Kind::vacant;
  };
  BlockMap& map = *plan.site->map;
  Block* site = plan.site;
  // From high to low, so that `site` stays the block that is left.
  for (DeviceAddress end = site->end(); end > site->begin;) {
    const DeviceAddress last{end.value - 1};
    const Kind kind = kind_at(last);
    const GrowthStep* stuck = stuck_step(last);
    const auto same = [&](DeviceAddress at) {
      return kind_at(at) == kind && stuck_step(at) == stuck;
    };
    DeviceAddress begin = std::max(site->begin, range.page_begin(last));
    while (begin > site->begin && same(DeviceAddress{begin.value - 1})) {
      begin = std::max(site->begin, range.page_begin(DeviceAddress{begin.value - 1}));
    }
    const bool whole = begin == site->begin;
    Block* piece = map.cut(site, begin, end - begin);
    end = begin;
    if (kind == Kind::idle) {
      map.make_idle(piece, freed);
    } else if (kind == Kind::vacant) {
      map.make_vacant(piece);
    } else if (stuck->alias) {
      old_mappings_.push_back({stuck->extent, piece, FencePoint{}});
    } else {
      stuck_.push_back(piece);
    }
    if (whole) break;
  }
}

/// Reserves more addresses for a zone, unless another thread just did. The heap lock is dropped
/// meanwhile.
result<void> DeviceHeap::add_range(HeapLock& lock, BlockMap& map, Bytes least) {
  const Bytes wanted = round_up(range_size(map), page_);
  const std::size_t known = map.ranges().size();
  lock.unlock();
  const VmmLock vmm(vmm_mutex_);  // so that threads that start together reserve one after the other
  lock.lock();
  if (map.ranges().size() > known) return {};
  lock.unlock();
  result<std::unique_ptr<AddressRange>> range =
      AddressRange::reserve(driver_, device_, page_, wanted, round_up(least, page_));
  lock.lock();
  if (!range) return range.failure();
  map.add_range(std::move(*range));
  return {};
}

/// Addresses to ask for at a time: plenty for the default domain, which serves most programs alone;
/// less for others, of which there may be many.
Bytes DeviceHeap::range_size(const BlockMap& map) {
  const Bytes total = std::min(info_.total, Bytes{std::uint64_t{1} << 50});  // times 64 still fits
  Arena& owner = arena(map.domain());
  const bool small = &map == &owner.small;
  if (map.domain() == kDefaultDomain) return small ? total : total * options_.address_factor;
  return small ? total / 32 : total / 4;
}

/// Level no_vmm: a new allocation of the driver is a range of its own. The heap lock is dropped
/// meanwhile.
result<void*> DeviceHeap::grow_plain(HeapLock& lock, Arena& arena, const Request& request,
                                     bool exhausted) {
  if (exhausted) {
    const GrowthState state = growth_state(arena, request, true);
    if (void* borrowed = try_borrow(lock, arena, request, state)) return borrowed;
  }
  const Bytes slack = request.alignment > kBlockGranule ? request.alignment : Bytes{};
  const Bytes least = round_up(request.size + slack, page_);
  const bool small = &planner_.zone_of(arena, request) == &arena.small;
  const Bytes wanted = small ? page_ * 8 : options_.max_extent;
  const Bytes generous = std::max(least, std::min(wanted, round_up(arena.live_peak / 16, page_)));
  lock.unlock();
  VmmLock vmm(vmm_mutex_);
  result<Extent*> made = pool_.create(vmm, pages_for(generous, page_), arena.domain);
  if (!made && made.failure().retryable() && least < generous) {
    made = pool_.create(vmm, pages_for(least, page_), arena.domain);
  }
  // It may hold what the driver got back from another domain.
  const bool clears = made && options_.scrub == Scrub::cross_domain;
  if (clears) {
    const DriverCode code =
        driver_.memset(device_, (*made)->mapped_at, 0, (*made)->size, request.stream.handle);
    if (code != DriverCode::success) {
      const error why = driver_error(code, DriverCall::memset, device_, (*made)->size);
      (void)pool_.release(vmm, **made);  // else it is quarantined
      made = why;
    }
  }
  lock.lock();
  if (!made) return made.failure();
  Extent* extent = *made;
  BlockMap& map = planner_.zone_of(arena, request);
  const VaRange where{extent->mapped_at, extent->size};
  std::unique_ptr<AddressRange> range = AddressRange::over(driver_, where, page_);
  range->set_extent(where, extent);
  Block* whole = map.add_backed_range(std::move(range));
  const FencePoint fresh = fresh_point(request, clears ? extent->size : Bytes{});
  return place(arena, map, map.make_idle(whole, fresh), request);
}

}  // namespace v0
}  // namespace bursar
