// SPDX-License-Identifier: Apache-2.0
// Requests that cached memory serves, and frees: no driver call for memory in this file.
#include <bursar/allocator/device_heap.hpp>

#include <algorithm>

#include <bursar/block/block_size.hpp>
#include <bursar/core/check.hpp>
#include <bursar/core/log.hpp>
#include <bursar/physical/driver_error.hpp>

namespace bursar {
inline namespace v0 {

namespace {
constexpr Bytes kMostAlignment{1ull << 30};

std::vector<DeviceId> access_list(DeviceId own, const AllocatorOptions& options) {
  std::vector<DeviceId> devices{own};
  for (const DeviceId peer : options.peers) {
    if (peer != own) devices.push_back(peer);
  }
  return devices;
}

}  // namespace

DeviceHeap::DeviceHeap(Driver& driver, DeviceId device, const AllocatorOptions& options,
                       DomainTable& domains)
    : driver_(driver),
      device_(device),
      options_(options),
      domains_(domains),
      info_(driver.device_info(device)),
      page_(info_.granularity),
      plain_(info_.capability == CapabilityLevel::no_vmm),
      writes_(options.redzones || options.scrub == Scrub::always),
      pool_(driver, device, domains),
      mapper_(driver, pool_, access_list(device, options)),
      runner_(pool_, mapper_),
      fences_(driver, device, streams_),
      policy_(options),
      planner_(options, page_, info_.capability == CapabilityLevel::full, streams_),
      stitcher_(page_),
      caches_(*this, options.thread_caches && !options.passthrough && !writes_) {}

DeviceHeap::~DeviceHeap() {
  caches_.close();
  check_last_redzones();
  VmmLock vmm(vmm_mutex_);
  std::size_t failed = 0;
  for (const OldMapping& old : old_mappings_) {
    failed += mapper_.unmap_old(vmm, *old.extent, old.block->begin) ? 0u : 1u;
  }
  for (Arena* arena : all_arenas()) {
    arena->views.for_each([&](const ViewPiece& piece) {
      failed += mapper_.unmap_old(vmm, *piece.extent, piece.address->begin) ? 0u : 1u;
    });
  }
  for (const std::unique_ptr<Extent>& extent : pool_.extents(vmm)) {
    if (plain_ || extent->mapped_at == DeviceAddress{}) continue;
    failed += driver_.unmap({extent->mapped_at, extent->size}) == DriverCode::success ? 0u : 1u;
  }
  vmm.unlock();
  arenas_.clear();  // gives the addresses back
  if (failed != 0) log(LogLevel::error, "mappings could not be taken away when a heap ended");
}

result<Request> DeviceHeap::check(Bytes bytes, const AllocateOptions& options) const {
  const auto invalid = [&](const char* message) {
    return error{
        .kind = ErrorKind::invalid_argument, .message = message, .device = device_, .asked = bytes};
  };
  if (!is_power_of_two(options.alignment) || options.alignment > kMostAlignment) {
    return invalid("the alignment must be a power of two of at most 1 GiB");
  }
  if (!domains_.open(options.domain)) return invalid("the domain is not known or was closed");
  if (bytes.count > (std::uint64_t{1} << 62)) return invalid("the size cannot be represented");
  Request request;
  request.requested = bytes;
  request.alignment = options.alignment;
  request.domain = options.domain;
  // At level no_vmm every block lies in one allocation of the driver, which never moves.
  request.pinned = has(options.flags, BlockFlags::pinned) && !plain_;
  request.shareable = has(options.flags, BlockFlags::shareable);
  if (request.shareable && !info_.shareable_fd) {
    return error{.kind = ErrorKind::not_supported,
                 .message = "this device cannot export memory: allocate without `shareable`",
                 .device = device_};
  }
  if (!lay_out(request)) {
    return error{.kind = ErrorKind::not_supported,
                 .message = "this device has no virtual memory management: do without passthrough",
                 .device = device_};
  }
  return request;
}

result<void*> DeviceHeap::allocate(Bytes bytes, const AllocateOptions& options,
                                   OomReport* report) noexcept {
  result<Request> checked = check(bytes, options);
  if (!checked) return checked.failure();
  Request& request = *checked;
  if (request.size > info_.total) {
    OomReport refused;
    refused.cause = {.kind = ErrorKind::device_oom,
                     .message = "more was asked than the device has",
                     .device = device_,
                     .asked = bytes,
                     .limit = info_.total};
    {
      const HeapLock lock(mutex_);
      ++arena(request.domain).out_of_memory;
    }
    if (report != nullptr) fill_report(refused, request.domain, *report);
    return refused.cause;
  }
  const result<StreamRef> stream = resolve(options.stream);
  if (!stream) return stream.failure();
  if (caches_.on() && !options.stream.resolved()) {
    AllocateOptions resolved = options;
    resolved.stream = *stream;
    if (void* block = try_thread_cache(bytes, resolved)) return block;
  }
  if (caches_.on() && caches_.mine() == nullptr) caches_.attach(mutex_);

  HeapLock lock(mutex_);
  if (lost_) {
    return error{.kind = ErrorKind::device_lost,
                 .message = "the device met a fatal error earlier: restart the process",
                 .device = device_};
  }
  request.stream = *stream;
  request.slot = slot_of(lock, stream->id);
  Arena& mine = arena(request.domain);
  drain_own(lock);
  if (void* block = try_hit(lock, mine, request)) {
    ++mine.cache_hits;
    fence_if_due(lock, *stream, request.slot);
    return writes_ ? prepare(lock, block, request) : block;
  }
  result<void*> block = allocate_slow(lock, request, report);
  let_expected_in(lock);
  return block;
}

Arena& DeviceHeap::arena(DomainId domain) {
  if (domain.value >= arenas_.size()) arenas_.resize(domain.value + 1);
  std::unique_ptr<Arena>& arena = arenas_[domain.value];
  if (!arena) arena = std::make_unique<Arena>(store_, domain, device_);
  return *arena;
}

void* DeviceHeap::try_hit(const HeapLock& lock, Arena& arena, const Request& request) {
  BURSAR_CHECK(1, lock.held());
  if (request.dedicated()) return nullptr;
  BlockMap& map = planner_.zone_of(arena, request);
  Block* idle = map.find_idle(request.slot, request.size, request.alignment);
  return idle == nullptr ? try_views(lock, arena, request) : place(arena, map, idle, request);
}

/// Makes `request` live at the first aligned address of an idle block.
void* DeviceHeap::place(Arena& arena, BlockMap& map, Block* block, const Request& request) {
  const std::uint64_t mask = request.alignment.count - 1;
  const DeviceAddress begin{(block->begin.value + mask) & ~mask};
  return enter_live(arena, map.cut(block, begin, request.size), request);
}

/// Hands a block out that was set aside for the request.
void* DeviceHeap::enter_live(Arena& arena, Block* block, const Request& request) {
  block->dedicated = request.dedicated();
  block->front = static_cast<std::uint32_t>(request.front.count);
  block->map->make_live(block, request.requested, request.slot);
  note_live(arena, block, request);
  if (caches_.on()) offer_to_keep(block, request);
  return to_pointer(block->data());
}

void DeviceHeap::note_live(Arena& arena, Block* block, const Request& request) {
  live_.insert(block);
  arena.note_allocated(request.requested);
  requested_ += request.requested;
  requested_peak_ = std::max(requested_peak_, requested_);
  live_bytes_ += block->size;
  streams_.at(request.slot).live += block->size;
  live_peak_ = std::max(live_peak_, live_bytes_);
}

result<StreamRef> DeviceHeap::resolve(StreamRef stream) const {
  if (stream.resolved()) return stream;
  const DriverCode code = driver_.stream_id(device_, stream.handle, stream.id);
  if (code != DriverCode::success) return driver_error(code, DriverCall::stream_id, device_);
  return stream;
}

StreamSlot DeviceHeap::slot_of(const HeapLock& lock, StreamId id) {
  const std::size_t before = streams_.count();
  if (before >= sweep_at_ && streams_.find(id) == kAnyStream) sweep_streams(lock);
  const StreamSlot slot = streams_.slot_of(id);
  streams_.at(slot).retired = false;  // it was named again, so it is still there
  if (before == 1 && streams_.count() == 2) {
    // Up to now one stream had it all and batches were only counted; from now on what has passed
    // is everybody's.
    for (StreamSlot known = 1; known < streams_.end_slot(); ++known) {
      if (streams_.in_use(known)) batch_passed(lock, known);
    }
  }
  return slot;
}

/// Forgets streams that no block, fence or waiter refers to, so that a program that makes streams
/// for ever does not grow.
void DeviceHeap::sweep_streams(const HeapLock& lock) {
  BURSAR_CHECK(1, lock.held());
  std::vector<bool> used(streams_.end_slot(), false);
  const auto mark = [&](const Block& block) {
    used[block.freed.slot] = true;
    if (!block.recorded) return;
    for (const FencePoint& use : *block.recorded) used[use.slot] = true;
  };
  for (Arena* arena : all_arenas()) {
    arena->small.for_each(mark);
    arena->large.for_each(mark);
    arena->views.keep_notes([&](const FencePoint& point) {
      if (streams_.passed(point)) return false;
      used[point.slot] = true;
      return true;
    });
  }
  // Blocks in views are in no map: they are live, or wait for a stream that may still use them.
  live_.for_each(mark);
  for (StreamSlot slot = 1; slot < streams_.end_slot(); ++slot) {
    if (!streams_.in_use(slot)) continue;
    for (const Block* waiting : streams_.at(slot).waiting) mark(*waiting);
  }
  for (const OldMapping& old : old_mappings_) used[old.freed.slot] = true;
  for (const Doomed& doomed : doomed_) used[doomed.freed.slot] = true;
  for (const Doomed& unchecked : unchecked_) used[unchecked.freed.slot] = true;
  streams_.sweep(used);
  sweep_at_ = std::max<std::size_t>(64, streams_.count() * 2);
}

// -- freeing ---------------------------------------------------------------------------------

static error unknown_pointer(DeviceId device) {
  return {.kind = ErrorKind::invalid_argument,
          .message = "not the begin of a live block: never allocated here, or freed twice",
          .device = device};
}

std::optional<result<void>> DeviceHeap::deallocate(const void* pointer,
                                                   const StreamRef* stream) noexcept {
  if (stream != nullptr && !stream->resolved()) {  // once it is, this thread may keep the block
    ThreadCache* cache = caches_.mine();
    if (cache != nullptr && cache->remembers(pointer)) {
      const result<StreamRef> resolved = resolve(*stream);
      if (resolved && try_keep(pointer, &*resolved)) return result<void>();
    }
  }
  HeapLock lock(mutex_);
  if (live_.find(to_address(pointer)) == nullptr) return std::nullopt;
  StreamRef named;
  if (stream != nullptr) {
    lock.unlock();
    const result<StreamRef> resolved = resolve(*stream);
    // A lost device orders nothing any more: frees are accepted as if no stream had been named.
    const bool lost = !resolved && resolved.failure().kind == ErrorKind::device_lost;
    if (!resolved && !lost) return result<void>(resolved.failure());
    if (lost) stream = nullptr;
    if (resolved) named = *resolved;
    lock.lock();
  }
  Block* block = live_.find(to_address(pointer));
  if (block == nullptr) return result<void>(unknown_pointer(device_));  // freed meanwhile: twice
  if (cached(*block)) return result<void>(unknown_pointer(device_));
  const StreamSlot slot = stream == nullptr ? block->freed.slot : slot_of(lock, named.id);
  if (!keep(lock, block, slot)) free_block(lock, block, streams_.note_free(slot, block->size));
  if (stream != nullptr) {
    fence_if_due(lock, named, slot);
  } else if (due(streams_.at(slot))) {
    expected_.push_back(slot);
  }
  let_expected_in(lock);
  return result<void>();
}

void DeviceHeap::free_block(const HeapLock& lock, Block* block, FencePoint freed) {
  BURSAR_CHECK(1, lock.held());
  live_.erase(block->data());
  if (block->keeper != nullptr) block->keeper->forget(block->data());
  block->keeper = nullptr;
  arenas_[block->map->domain().value]->note_freed(block->requested);
  requested_ -= block->requested;
  live_bytes_ -= block->size;
  streams_.at(block->freed.slot).live -= block->size;
  if (block->recorded) {
    // The uses end at a fence that each recorded stream takes at its next call.
    auto& uses = *block->recorded;
    std::erase_if(uses, [&](const FencePoint& use) { return use.slot == freed.slot; });
    for (FencePoint& use : uses) {
      StreamState& state = streams_.at(use.slot);
      use = state.retired ? FencePoint{use.slot, state.open_batch - 1}
                          : FencePoint{use.slot, state.open_batch};
      if (!state.retired) want_fence(use.slot);
    }
    std::erase_if(uses, [&](const FencePoint& use) { return streams_.passed(use); });
    if (!uses.empty()) {
      make_pending(block);
      block->freed = freed;
      streams_.at(uses.back().slot).waiting.push_back(block);
      return;
    }
  }
  finish_free(block, freed);
}

/// No recorded stream uses it any more: idle, or (an extent of its own) to be released, or (with
/// redzones) to be compared first.
void DeviceHeap::finish_free(Block* block, FencePoint freed) {
  if (block->zoned) return keep_unchecked(block, freed);
  if (!block->dedicated) {
    make_idle(block, streams_.settled(freed));
    ++gains_;
    return;
  }
  if (block->state == BlockState::live) block->map->make_pending(block);
  block->recorded.reset();
  block->freed = freed;
  want_fence(freed.slot);
  doomed_.push_back({block, freed});
}

std::optional<result<void>> DeviceHeap::record_stream(const void* pointer,
                                                      StreamRef stream) noexcept {
  const result<StreamRef> named = resolve(stream);
  HeapLock lock(mutex_);
  Block* block = live_.find(to_address(pointer));
  if (block == nullptr) return std::nullopt;
  if (cached(*block)) return result<void>(unknown_pointer(device_));
  if (!named) return result<void>(named.failure());
  fence_if_due(lock, *named, slot_of(lock, named->id));
  block = live_.find(to_address(pointer));
  if (block == nullptr) return result<void>(unknown_pointer(device_));
  const StreamSlot slot = slot_of(lock, named->id);  // again: it may have been swept meanwhile
  if (block->keeper != nullptr) block->keeper->forget(block->data());
  if (!block->recorded) block->recorded = std::make_unique<std::vector<FencePoint>>();
  const bool known = std::any_of(block->recorded->begin(), block->recorded->end(),
                                 [&](const FencePoint& use) { return use.slot == slot; });
  if (!known) block->recorded->push_back({slot, 0});
  return result<void>();
}

void DeviceHeap::fence_if_due(HeapLock& lock, StreamRef stream, StreamSlot slot) {
  const StreamState& state = streams_.at(slot);
  if (!due(state)) return;
  // A fence that cannot be recorded now is due again at the stream's next call.
  (void)fences_.record(lock, stream, slot);
  // Other streams are asked at the next miss.
  for (const StreamSlot advanced : fences_.poll(lock, slot)) batch_passed(lock, advanced);
}

result<void> DeviceHeap::retire_stream(StreamRef stream) noexcept {
  const result<StreamRef> named = resolve(stream);
  if (!named) return named.failure();
  HeapLock lock(mutex_);
  const StreamSlot slot = streams_.find(named->id);
  if (slot == kAnyStream || streams_.at(slot).retired) return {};
  shut_caches(lock, slot);
  streams_.at(slot).fence_wanted = true;  // covers uses that are recorded but not freed yet
  if (result<void> fenced = fences_.record(lock, *named, slot, true); !fenced) return fenced;
  if (streams_.at(slot).fence_wanted) {
    return error{.kind = ErrorKind::not_supported,
                 .message = "a stream cannot be retired while it is being captured",
                 .device = device_};
  }
  refresh(lock);
  return {};
}

std::optional<Bytes> DeviceHeap::usable_size(const void* pointer) const {
  HeapLock lock(mutex_);
  const Block* block = live_.find(to_address(pointer));
  if (block == nullptr || cached(*block)) return std::nullopt;
  return usable(*block).size;
}

}  // namespace v0
}  // namespace bursar
