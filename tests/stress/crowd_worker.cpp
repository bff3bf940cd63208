// SPDX-License-Identifier: Apache-2.0
// What one thread of the Crowd does.
#include "stress/crowd_worker.hpp"

#include <utility>

namespace bursar::test {

namespace {
constexpr std::size_t kMostBlocks = 40;  // of one thread
}  // namespace

Crowd::Worker::Worker(Crowd& crowd, std::size_t index)
    : crowd_(crowd),
      index_(index),
      random_(crowd.options_.seed * 1000 + static_cast<std::uint32_t>(index)),
      own_(crowd.options_.own_streams) {
  for (Stream& stream : own_) stream.handle = crowd_.driver_->create_stream();
  replace_domain();
}

void Crowd::Worker::run(std::chrono::steady_clock::time_point end) {
  std::uint64_t steps = 0;
  while (!crowd_.failed_.load() && std::chrono::steady_clock::now() < end) {
    step();
    ++steps;
  }
  crowd_.steps_ += steps;
}

void Crowd::Worker::finish(std::vector<StreamRef>& named) {
  take_over();
  free_some(live_.size());
  for (const Stream& stream : own_) named.emplace_back(stream.handle);
}

void Crowd::Worker::step() {
  const std::uint32_t choice = below(1000);
  if (choice < 480) return allocate();
  if (choice < 820) return free_some(1);
  if (choice < 870) return record();
  if (choice < 920) return hand_over();
  if (choice < 950) return take_over();
  if (choice < 957) return trim();
  // Growth up to the peak is preferred to stitching, so that there would be little of it.
  if (choice < 960) return crowd_.allocator_->reset_peaks();
  if (choice < 970) return crowd_.driver_->synchronize(any_stream().handle);
  if (choice < 980) return crowd_.driver_->sleep_for(some_time());
  if (choice < 990) return retire();
  if (choice < 992) return replace_domain();
  if (choice < 996) {
    const result<void> good = crowd_.allocator_->validate();
    return crowd_.expect(good.ok(), good.ok() ? "" : good.failure().message);
  }
  crowd_.expect(crowd_.driver_->violations().empty(), "the detector objects");
}

// -- blocks ----------------------------------------------------------------------------------

void Crowd::Worker::allocate() {
  if (live_.size() >= kMostBlocks) return free_some(kMostBlocks / 2);
  // From 4 pages down, mostly small.
  const Bytes least = crowd_.page_ * 4 / (std::uint64_t{1} << below(14));
  const Bytes asked = least + Bytes{below(least.count)};
  Stream& stream = any_stream();
  const DomainId domains[] = {kDefaultDomain, crowd_.shared_domain_, domain_};
  AllocateOptions options;
  options.stream = stream.handle;
  options.domain = domains[below(3)];
  if (below(20) == 0) options.alignment = crowd_.page_ / (std::uint64_t{1} << below(8));
  if (below(40) == 0) options.flags = BlockFlags::pinned;
  ++stream.blocks;
  const result<void*> pointer = crowd_.allocator_->try_allocate(asked.count, options);
  if (!pointer) {
    --stream.blocks;
    crowd_.expect(pointer.failure().retryable(),
                  "an allocation failed, and not for lack of memory");
    return free_some(live_.size() / 2);
  }
  const Live block{static_cast<std::byte*>(*pointer), asked, ++crowd_.generation_, &stream};
  crowd_.fill(block);
  crowd_.launch(stream, block, some_time());
  live_.push_back(block);
}

void Crowd::Worker::free_some(std::size_t count) {
  for (; count > 0 && !live_.empty(); --count) free_block(take());
}

void Crowd::Worker::free_block(const Live& block) {
  crowd_.verify(block);
  if (below(4) == 0) {
    free_elsewhere(block);
  } else {
    crowd_.launch(*block.home, block, some_time());
    const bool freed =
        below(2) == 0 ? crowd_.allocator_->try_deallocate(block.pointer).ok()
                      : crowd_.allocator_->try_deallocate(block.pointer, block.home->handle).ok();
    crowd_.expect(freed, "a live block was not taken back");
  }
  --block.home->blocks;
}

void Crowd::Worker::free_elsewhere(const Live& block) {
  const Stream& target = any_stream();
  crowd_.order(target, *block.home);
  crowd_.launch(target, block, some_time());
  crowd_.expect(crowd_.allocator_->try_deallocate(block.pointer, target.handle).ok(),
                "a live block was not taken back on another stream");
}

void Crowd::Worker::record() {
  if (live_.empty()) return;
  const Live& block = live_[below(live_.size())];
  const Stream& other = any_stream();
  crowd_.order(other, *block.home);
  crowd_.expect(crowd_.allocator_->record_stream(block.pointer, other.handle).ok(),
                "a use of a live block was not recorded");
  crowd_.launch(other, block, some_time());
}

void Crowd::Worker::hand_over() {
  if (live_.empty()) return;
  Mailbox& mailbox = crowd_.mailboxes_[below(crowd_.mailboxes_.size())];
  const Live block = take();
  const std::scoped_lock lock(mailbox.mutex);
  mailbox.blocks.push_back(block);
}

void Crowd::Worker::take_over() {
  Mailbox& mailbox = crowd_.mailboxes_[index_];
  const std::scoped_lock lock(mailbox.mutex);
  live_.insert(live_.end(), mailbox.blocks.begin(), mailbox.blocks.end());
  mailbox.blocks.clear();
}

Crowd::Live Crowd::Worker::take() {
  std::swap(live_[below(live_.size())], live_.back());
  const Live block = live_.back();
  live_.pop_back();
  return block;
}

// -- streams and domains ---------------------------------------------------------------------

Crowd::Stream& Crowd::Worker::any_stream() {
  const std::size_t i = below(own_.size() + crowd_.shared_.size());
  return i < own_.size() ? own_[i] : crowd_.shared_[i - own_.size()];
}

void Crowd::Worker::trim() {
  const StreamRef named[] = {StreamRef{any_stream().handle}};
  crowd_.allocator_->trim(crowd_.page_ * below(crowd_.options_.capacity_pages), {}, named);
}

/// A stream of its own on which no block will be used any more ends, and another takes its place.
void Crowd::Worker::retire() {
  Stream& stream = own_[below(own_.size())];
  if (stream.blocks.load() != 0) return;
  crowd_.expect(crowd_.allocator_->retire_stream(stream.handle).ok(),
                "a stream could not be retired");
  crowd_.driver_->destroy_stream(stream.handle);
  stream.handle = crowd_.driver_->create_stream();
}

void Crowd::Worker::replace_domain() {
  CachingAllocator& allocator = *crowd_.allocator_;
  if (domain_ != kDefaultDomain) {
    crowd_.expect(allocator.close_domain(domain_).ok(), "a domain could not be closed");
  }
  const Bytes limit = crowd_.page_ * (4 + below(crowd_.options_.capacity_pages));
  const result<DomainId> made = allocator.create_domain({"own", limit});
  crowd_.expect(made.ok(), "a domain could not be made");
  if (made) domain_ = *made;
}

}  // namespace bursar::test
