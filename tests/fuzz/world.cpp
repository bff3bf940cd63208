// SPDX-License-Identifier: Apache-2.0
// The program's side of the World: streams, events, blocks and what is written into them.
#include "fuzz/world.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace bursar::test {

namespace {

AllocatorOptions options_for(const Setup& setup, Bytes page) {
  AllocatorOptions options;
  options.max_extent = page * setup.max_extent_pages;
  options.small_limit = setup.share_small ? page : page / 2;
  if (setup.share_small) options.borrow_limit = page;
  options.fence_bytes = page;
  options.fence_batch = setup.fence_batch;
  options.alias_moves = setup.alias_moves;
  options.stitch_limit = setup.stitch ? page * (setup.share_small ? 1 : 2) : Bytes::max();
  options.guard = options.wide_guard = 0;
  options.map_price = 0;
  options.max_views = setup.few_views ? 1 : 8;
  options.wait_limit = milliseconds(20);
  options.passthrough = setup.watch == Watch::passthrough;
  options.redzones = setup.watch == Watch::redzones;
  if (setup.watch == Watch::cross_domain) options.scrub = Scrub::cross_domain;
  if (setup.watch == Watch::always) options.scrub = Scrub::always;
  return options;
}

SimOptions device_for(const Setup& setup, Bytes page) {
  SimOptions options;
  options.capacity = page * setup.capacity_pages;
  options.granularity = page;
  options.capability = setup.capability;
  options.backed = setup.backed;
  options.detector = true;
  return options;
}

/// What each 8 bytes of a block read: no two blocks agree.
std::uint64_t word_of(std::uint64_t generation) { return generation * 0x9E3779B97F4A7C15ull; }

}  // namespace

const char* to_string(Finding::By by) {
  constexpr const char* names[] = {"detector", "validate", "harness"};
  return names[static_cast<std::size_t>(by)];
}

World::World(const Setup& setup)
    : setup_(setup),
      page_(setup.backed ? Bytes{64u << 10} : Bytes{2u << 20}),
      driver_(std::make_shared<HookedDriver>(device_for(setup, page_))),
      allocator_(std::make_unique<CachingAllocator>(driver_, options_for(setup, page_))) {
  for (Stream& stream : streams_) stream.handle = driver_->create_stream();
  for (std::size_t i = 1; i < kDomains; ++i) replace_domain(i, page_ * setup_.capacity_pages);
}

World::~World() { driver_->on_next_event_call(nullptr); }

// -- streams and events ----------------------------------------------------------------------

StreamRef World::name(std::size_t index, bool raw) {
  Stream& stream = streams_[index];
  if (raw && !stream.capturing) return StreamRef{stream.handle};
  if (!stream.resolved.resolved()) {
    const result<StreamRef> resolved = allocator_->stream(stream.handle);
    expect(resolved.ok(), "a stream that exists was not resolved");
    stream.resolved = *resolved;
  }
  return stream.resolved;
}

void World::launch(std::size_t stream, const Live& block, Duration duration) {
  if (stream == retiring_) return;
  const SimAccess access{bursar::to_address(block.pointer), block.asked, block.generation};
  driver_->launch(streams_[stream].handle, duration, std::span(&access, 1));
}

/// An event at the end of what the stream was given. A fault that strikes here is cleared: the
/// program has to go on by the rules.
EventHandle World::event_on(StreamHandle stream) {
  EventHandle event{};
  while (driver_->event_create({}, event) != DriverCode::success) driver_->clear_faults();
  events_.push_back(event);
  while (driver_->SimDriver::event_record({}, event, stream) != DriverCode::success) {
    driver_->clear_faults();
  }
  return event;
}

/// Makes `stream` wait for the block's home; false where a capture does not allow it.
bool World::order_after_home(std::size_t stream, const Live& block) {
  if (streams_[stream].capturing) return false;
  if (block.home == stream) return true;
  if (block.home != kGone && streams_[block.home].capturing) return false;
  const EventHandle done =
      block.home == kGone ? block.home_done : event_on(streams_[block.home].handle);
  return driver_->stream_wait({}, streams_[stream].handle, done) == DriverCode::success;
}

// -- blocks ----------------------------------------------------------------------------------

/// Takes a block out of the books for as long as a call about it is under way.
std::optional<World::Live> World::take(std::size_t index) {
  if (live_.empty()) return std::nullopt;
  const auto chosen = std::next(live_.begin(), static_cast<std::ptrdiff_t>(index % live_.size()));
  const Live block = chosen->second;
  live_.erase(chosen);
  return block;
}

void World::put_back(const Live& block) { live_.emplace(block.pointer, block); }

/// Gives back, on its home stream, a block that was taken out of the books.
void World::give_back(const Live& block) {
  verify(block);
  expect(allocator_->try_deallocate(block.pointer).ok(), "a live block was not taken back");
}

/// Books a block just handed out: it must be what was asked for, and nobody else's.
const World::Live& World::enter(void* pointer, Bytes asked, const AllocateOptions& options,
                                std::size_t home) {
  Live block;
  block.pointer = static_cast<std::byte*>(pointer);
  block.asked = asked;
  block.usable = Bytes{allocator_->usable_size(pointer)};
  block.generation = ++generation_;
  block.home = home;
  block.domain = options.domain;
  const Bytes least{setup_.watch == Watch::passthrough ? 16u : 512u};
  expect(is_aligned(Bytes{to_address(pointer).value}, std::max(options.alignment, least)),
         "a block is misaligned");
  expect(block.usable >= asked, "a block is smaller than was asked");
  expect(allocator_->owns(block.pointer) && allocator_->owns(block.pointer + asked.count - 1),
         "the allocator does not own a live block");
  const auto next = live_.lower_bound(block.pointer);
  const bool into_next =
      next != live_.end() && block.pointer + block.usable.count > next->second.pointer;
  const auto end_of = [](const Live& b) { return b.pointer + b.usable.count; };
  const bool into_prev = next != live_.begin() && end_of(std::prev(next)->second) > block.pointer;
  expect(!into_next && !into_prev, "two live blocks overlap");
  if (!streams_[home].capturing) expect_clean(block);
  if (setup_.watch == Watch::passthrough) expect_guarded(block, options);
  fill(block);
  return live_.emplace(block.pointer, block).first->second;
}

/// Calls visit(word, offset, bytes of the word) for each word of a block, the last maybe cut short.
template <class Visitor>
static void for_words(Bytes size, Visitor&& visit) {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  for (std::uint64_t at = 0; at < size.count; at += kWord) {
    visit(at, std::min(kWord, size.count - at));
  }
}

void World::fill(const Live& block) {
  if (!setup_.backed) return;
  const std::uint64_t word = word_of(block.generation);
  if (setup_.watch == Watch::cross_domain) writers_.emplace(word, block.domain);
  for_words(block.usable, [&](std::uint64_t at, std::uint64_t size) {
    std::memcpy(block.pointer + at, &word, size);
  });
}

void World::verify(const Live& block) const {
  if (!setup_.backed) return;
  const std::uint64_t word = word_of(block.generation);
  bool intact = true;
  for_words(block.usable, [&](std::uint64_t at, std::uint64_t size) {
    intact &= std::memcmp(block.pointer + at, &word, size) == 0;
  });
  expect(intact, "a live block's bytes were changed");
}

/// A block just handed out shows only what its domain may see.
void World::expect_clean(const Live& block) const {
  const bool scrubs = setup_.watch == Watch::cross_domain || setup_.watch == Watch::always;
  if (!setup_.backed || !scrubs) return;
  std::uint64_t last = 0;
  for_words(block.usable, [&](std::uint64_t at, std::uint64_t size) {
    std::uint64_t word = 0;
    std::memcpy(&word, block.pointer + at, size);
    if (word == last) return;
    last = word;
    expect(setup_.watch != Watch::always, "a block was not cleared");
    const auto writer = writers_.find(word);
    expect(writer == writers_.end() || writer->second == block.domain,
           "a block shows what another domain has written");
  });
}

/// Passthrough: behind the block, and before the first page of its mapping, there is no memory.
void World::expect_guarded(const Live& block, const AllocateOptions& options) const {
  const DeviceAddress begin = bursar::to_address(block.pointer);
  const Bytes alignment = std::max(options.alignment, Bytes{16});
  const bool at_end = !has(options.flags, BlockFlags::shareable) && alignment <= page_;
  const DeviceAddress end{round_up(Bytes{(begin + block.asked).value}, page_).count};
  expect(!at_end || end - (begin + block.asked) < alignment,
         "a block does not end with its mapping");
  const DeviceAddress first{round_down(Bytes{begin.value}, page_).count};
  for (const SnapshotExtent& extent : allocator_->snapshot().extents) {
    const VaRange mapped{extent.mapped_at, extent.size};
    expect(!mapped.contains(end) && !mapped.contains(DeviceAddress{first.value - 1}),
           "a block has memory of another beside it");
  }
}

}  // namespace bursar::test
