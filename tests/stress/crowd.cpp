// SPDX-License-Identifier: Apache-2.0
// The Crowd as a whole: its device, its threads, and what must be left at the end.
#include "stress/crowd.hpp"

#include <cstring>
#include <thread>

#include "stress/crowd_worker.hpp"
#include "support/lies_in_view.hpp"

namespace bursar::test {

namespace {

constexpr std::uint64_t kLookEvery = 8;  // blocks: a snapshot is slow

std::uint64_t word_of(std::uint64_t generation) { return generation * 0x9E3779B97F4A7C15ull; }

}  // namespace

Crowd::Crowd(const CrowdOptions& options)
    : options_(options),
      page_(options.backed ? Bytes{64u << 10} : Bytes{2u << 20}),
      shared_(options.shared_streams),
      mailboxes_(options.threads) {
  SimOptions device;
  device.capacity = page_ * options.capacity_pages;
  device.granularity = page_;
  device.backed = options.backed;
  device.detector = true;
  driver_ = std::make_shared<SimDriver>(device);
  AllocatorOptions policy;
  policy.max_extent = page_ * 16;
  policy.small_limit = policy.borrow_limit = page_;
  policy.fence_bytes = page_;
  policy.stitch_limit = page_ * 2;  // smaller blocks are moved for, larger ones stitched
  policy.guard = policy.wide_guard = 0;
  policy.max_views = 16;
  policy.wait_limit = milliseconds(5);
  allocator_ = std::make_unique<CachingAllocator>(driver_, policy);
  shared_domain_ = *allocator_->create_domain({"shared", page_ * (options.capacity_pages / 2)});
  for (Stream& stream : shared_) stream.handle = driver_->create_stream();
  for (std::size_t i = 0; i < options.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(*this, i));
  }
}

Crowd::~Crowd() = default;

std::string Crowd::work() {
  const auto end = std::chrono::steady_clock::now() + options_.duration;
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    threads.emplace_back([&worker, end] { worker->run(end); });
  }
  for (std::thread& thread : threads) thread.join();
  return first_;
}

std::string Crowd::finish() {
  std::vector<StreamRef> named;
  for (const Stream& stream : shared_) named.emplace_back(stream.handle);
  for (const std::unique_ptr<Worker>& worker : workers_) worker->finish(named);
  driver_->synchronize_device();
  for (int pass = 0; pass < 2; ++pass) allocator_->trim(Bytes{0}, {}, named);
  const result<void> good = allocator_->validate();
  expect(good.ok(), good.ok() ? "" : good.failure().message);
  const AllocatorStats s = allocator_->stats();
  expect(s.live_blocks == 0, "blocks are live that nobody holds");
  expect(s.reserved == Bytes{}, "idle memory could not all be given back");
  allocator_.reset();
  expect(driver_->mapping_count() == 0 && driver_->extent_bytes() == Bytes{}, "memory was left");
  expect(driver_->reserved_addresses() == Bytes{}, "addresses were left");
  expect(driver_->event_count() == 0, "events were left");
  return first_;
}

void Crowd::object(const std::string& text) {
  const std::scoped_lock lock(first_mutex_);
  if (first_.empty()) first_ = text;
  failed_.store(true);
}

void Crowd::order(const Stream& later, const Stream& earlier) {
  if (&later == &earlier) return;
  EventHandle event{};
  const bool ordered = driver_->event_create({}, event) == DriverCode::success &&
                       driver_->event_record({}, event, earlier.handle) == DriverCode::success &&
                       driver_->stream_wait({}, later.handle, event) == DriverCode::success &&
                       driver_->event_destroy(event) == DriverCode::success;
  expect(ordered, "two streams could not be ordered");
}

void Crowd::launch(const Stream& stream, const Live& block, Duration duration) {
  const SimAccess access{bursar::to_address(block.pointer), block.size, block.generation};
  driver_->launch(stream.handle, duration, std::span(&access, 1));
}

void Crowd::fill(const Live& block) {
  bytes_ += block.size.count;
  if (block.size >= page_ * 2 && block.generation % kLookEvery == 0) {
    ++looked_at_;
    if (lies_in_view(*allocator_, block.pointer)) ++in_views_;
  }
  if (!options_.backed) return;
  const std::uint64_t word = word_of(block.generation);
  for (std::uint64_t at = 0; at < block.size.count; at += sizeof word) {
    std::memcpy(block.pointer + at, &word, sizeof word);
  }
}

void Crowd::verify(const Live& block) {
  if (!options_.backed) return;
  const std::uint64_t word = word_of(block.generation);
  bool intact = true;
  for (std::uint64_t at = 0; at < block.size.count; at += sizeof word) {
    intact &= std::memcmp(block.pointer + at, &word, sizeof word) == 0;
  }
  expect(intact, "a live block's bytes were changed");
}

}  // namespace bursar::test
