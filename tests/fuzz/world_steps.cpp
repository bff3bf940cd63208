// SPDX-License-Identifier: Apache-2.0
// What each operation does.
#include <algorithm>
#include <array>
#include <utility>

#include "fuzz/world.hpp"

namespace bursar::test {

namespace {

constexpr std::size_t kMostDomains = 12;  // made in one run: each is looked at after each step
constexpr int kManyStreams = 16;

}  // namespace

void World::step(const Operation& operation) {
  switch (operation.step) {
    case Step::allocate: return allocate(operation);
    case Step::deallocate: return deallocate(operation);
    case Step::deallocate_elsewhere: return deallocate_elsewhere(operation);
    case Step::record: return record(operation);
    case Step::launch:
      if (const std::optional<Live> block = take(operation.a)) {
        if (block->home != kGone) launch(block->home, *block, microseconds(operation.b * 2));
        put_back(*block);
      }
      return;
    case Step::advance: return driver_->sleep_for(microseconds(operation.a * 10));
    case Step::synchronize:
      if (const Stream& stream = streams_[operation.a % kStreams]; !stream.capturing) {
        driver_->synchronize(stream.handle);
      }
      return;
    case Step::trim: return trim(operation);
    case Step::replace_stream: return replace_stream(operation.a % kStreams);
    case Step::many_streams: return many_streams();
    case Step::inject_fault: return inject_fault(operation);
    case Step::clear_faults:
      driver_->clear_faults();
      faulty_ = false;
      return;
    case Step::set_limit:
      return set_limit(operation.a % kDomains, page_ * (operation.b % (setup_.capacity_pages + 1)));
    case Step::replace_domain:
      return replace_domain(1 + operation.a % (kDomains - 1),
                            page_ * (operation.b % (setup_.capacity_pages + 1)));
    case Step::toggle_capture: return toggle_capture(operation.a % kStreams);
    case Step::bad_pointer: return bad_pointer(operation);
    case Step::interleave: interleave_ = true; return;
  }
}

/// A step while another is inside the driver: one that another thread might do there. What ends a
/// stream is left out, since no program destroys a stream that a call of its own still names.
void World::step_inside(const Operation& operation) {
  const Step s = operation.step;
  if (s == Step::replace_stream || s == Step::many_streams || s == Step::toggle_capture) return;
  if (retiring_ != kGone && s != Step::deallocate) return;  // a retired stream is not named again
  inside_ = true;
  try {
    step(operation);
  } catch (const Finding& finding) {  // the driver's functions throw nothing
    found_inside_ = finding;
  }
  inside_ = false;
}

// -- blocks ----------------------------------------------------------------------------------

void World::allocate(const Operation& operation) {
  // From 8 pages down, by powers of two and up to twice that.
  const Bytes least = page_ * 8 / (std::uint64_t{1} << (operation.a & 15u));
  const Bytes asked = least + least * operation.b / 256;
  const std::size_t stream = operation.c & 3u;
  const std::size_t domain = (operation.c >> 2) & 3u;
  AllocateOptions options;
  options.stream = name(stream, (operation.c & 16u) != 0);
  options.domain = domains_[domain].id;
  const unsigned kind = operation.a >> 4;
  if (kind == 1) options.alignment = page_ * 2 / (std::uint64_t{1} << (operation.b & 7u));
  if (kind == 2) options.flags = BlockFlags::pinned;
  if (kind == 3 && setup_.capability != CapabilityLevel::no_vmm) {
    options.flags = BlockFlags::pinned | BlockFlags::shareable;
  }
  const Bytes limit = domains_[domain].limit;
  const Bytes before = allocator_->domain_stats(options.domain).reserved;
  const result<void*> block = allocator_->try_allocate(asked.count, options);
  if (!block) return expect_reason(block.failure(), domains_[domain], streams_[stream].capturing);
  const Bytes allowed = std::max({limit, domains_[domain].limit, before});
  expect(allocator_->domain_stats(options.domain).reserved <= allowed,
         "a domain grew beyond its limit");
  const Live& live = enter(*block, asked, options, stream);
  if ((operation.c & 32u) != 0) launch(stream, live, microseconds((operation.c >> 6) * 100));
}

void World::deallocate(const Operation& operation) {
  const std::optional<Live> block = take(operation.a);
  if (!block) return;
  const bool gone = block->home == kGone;
  if (!gone && (operation.b & 1u) != 0) {
    launch(block->home, *block, microseconds(operation.b * 2));
  }
  if (gone || block->home == retiring_ || (operation.c & 1u) == 0) return give_back(*block);
  verify(*block);
  const StreamRef home = name(block->home, (operation.c & 2u) != 0);
  expect(allocator_->try_deallocate(block->pointer, home).ok(), "a live block was not taken back");
}

void World::deallocate_elsewhere(const Operation& operation) {
  const std::optional<Live> block = take(operation.a);
  if (!block) return;
  const std::size_t target = operation.b & 3u;
  if (!order_after_home(target, *block)) return put_back(*block);
  if ((operation.c & 1u) != 0) launch(target, *block, microseconds(operation.c * 2));
  verify(*block);
  const StreamRef stream = name(target, (operation.c & 2u) != 0);
  expect(allocator_->try_deallocate(block->pointer, stream).ok(),
         "a live block was not taken back on another stream");
}

void World::record(const Operation& operation) {
  const std::optional<Live> block = take(operation.a);
  if (!block) return;
  const std::size_t other = operation.b & 3u;
  if (order_after_home(other, *block)) {
    expect(allocator_->record_stream(block->pointer, name(other, (operation.c & 1u) != 0)).ok(),
           "a use of a live block was not recorded");
    launch(other, *block, microseconds(operation.c * 2));
  }
  put_back(*block);
}

void World::trim(const Operation& operation) {
  std::vector<StreamRef> named;
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (((operation.b >> i) & 1u) != 0) named.push_back(name(i, (operation.c & 1u) != 0));
  }
  allocator_->trim(page_ * (operation.a % (setup_.capacity_pages + 1)), {}, named);
}

void World::bad_pointer(const Operation& operation) {
  if (operation.a % 3 == 0) {
    expect(allocator_->try_deallocate(nullptr).ok(), "null was not ignored");
    expect(!allocator_->try_deallocate(&faulty_).ok(), "memory of the host was taken back");
    return;
  }
  const std::optional<Live> block = take(operation.b);
  if (!block) return;
  if (operation.a % 3 == 1) {
    put_back(*block);
    if (block->usable <= Bytes{512}) return;
    expect(!allocator_->try_deallocate(block->pointer + 512).ok(), "half a block was taken back");
    return;
  }
  give_back(*block);
  expect(!allocator_->try_deallocate(block->pointer).ok(), "a block was taken back twice");
}

// -- streams, domains, faults ----------------------------------------------------------------

void World::replace_stream(std::size_t index) {
  Stream& stream = streams_[index];
  if (stream.capturing) return;
  retiring_ = index;
  const result<void> retired = allocator_->retire_stream(name(index, false));
  retiring_ = kGone;
  expect(retired.ok() || faulty_, "a stream could not be retired");
  if (!retired) return;
  expect(allocator_->retire_stream(name(index, false)).ok(),
         "a retired stream is not known as one");
  const EventHandle done = event_on(stream.handle);
  for (auto& [address, block] : live_) {
    if (block.home != index) continue;
    block.home = kGone;
    block.home_done = done;
  }
  driver_->destroy_stream(stream.handle);
  stream = Stream{driver_->create_stream(), {}, false};
}

/// Streams that come and go, each with a block: the allocator has to forget some.
void World::many_streams() {
  for (int i = 0; i < kManyStreams; ++i) {
    const StreamHandle stream = driver_->create_stream();
    AllocateOptions options;
    options.stream = stream;
    const result<void*> block = allocator_->try_allocate(page_.count / 16, options);
    if (block) {
      const SimAccess access{to_address(*block), page_ / 16, ++generation_};
      driver_->launch(stream, microseconds(50), std::span(&access, 1));
      expect(allocator_->try_deallocate(*block).ok(), "a live block was not taken back");
    }
    while (!allocator_->retire_stream(stream)) driver_->clear_faults();
    driver_->destroy_stream(stream);
  }
}

void World::inject_fault(const Operation& operation) {
  constexpr std::array kCalls{DriverCall::create,       DriverCall::map,
                              DriverCall::set_access,   DriverCall::unmap,
                              DriverCall::release,      DriverCall::reserve,
                              DriverCall::event_create, DriverCall::event_record,
                              DriverCall::event_query,  DriverCall::memory_info};
  const DriverCode code = (operation.c & 2u) != 0 ? DriverCode::unknown : DriverCode::out_of_memory;
  driver_->fail(kCalls[operation.a % kCalls.size()], 1 + operation.b % 4, (operation.c & 1u) != 0,
                code);
  faulty_ = true;
}

void World::set_limit(std::size_t index, Bytes limit) {
  expect(allocator_->set_limit(domains_[index].id, limit).ok(), "a limit was not taken");
  domains_[index].limit = limit;
}

void World::replace_domain(std::size_t index, Bytes limit) {
  if (domains_made_ >= kMostDomains) return set_limit(index, limit);
  const result<DomainId> made = allocator_->create_domain({"fuzz", limit});
  expect(made.ok(), "a domain could not be made");
  const DomainId old = std::exchange(domains_[index], Domain{*made, limit}).id;
  ++domains_made_;
  if (old == kDefaultDomain) return;
  expect(allocator_->close_domain(old).ok(), "a domain could not be closed");
}

void World::toggle_capture(std::size_t index) {
  if (setup_.capability == CapabilityLevel::no_vmm) return;  // growth there spoils captures
  Stream& stream = streams_[index];
  if (stream.capturing) {
    expect(driver_->end_capture(stream.handle), "a capture was spoiled");
  } else {
    (void)name(index, false);  // a stream under capture cannot be resolved
    driver_->begin_capture(stream.handle);
  }
  stream.capturing = !stream.capturing;
}

}  // namespace bursar::test
