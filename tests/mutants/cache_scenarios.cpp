// SPDX-License-Identifier: Apache-2.0
// Two streams, two domains and three sizes, so that most requests find what their thread has kept.
#include "mutants/cache_scenarios.hpp"

#include <array>
#include <memory>
#include <random>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/driver/sim_driver.hpp>

namespace bursar::test {

namespace {

constexpr std::array kSizes{Bytes{4096}, Bytes{65'000}, Bytes{1u << 20}};

class Walk {
 public:
  explicit Walk(std::uint32_t seed) : random_(seed) {
    for (StreamHandle& stream : streams_) stream = driver_->create_stream();
    domains_[1] = *allocator_.create_domain({.name = "d"});
  }

  std::string run() {
    for (int step = 0; step < 3000 && objection_.empty(); ++step) {
      if (live_.size() < 6 && pick(3) != 0) {
        get();
      } else if (!live_.empty()) {
        free();
      }
      if (!driver_->violations().empty()) {
        objection_ = "detector: " + driver_->violations().front().text;
      }
      if (step % 16 == 0) compare();
    }
    return objection_;
  }

 private:
  struct Live {
    void* block;
    Bytes size;
    std::size_t stream;
    std::size_t domain;
    std::uint64_t generation;
  };

  std::size_t pick(std::size_t below) { return random_() % below; }
  void use(const Live& live, std::size_t stream) {
    const SimAccess access{to_address(live.block), live.size, live.generation};
    driver_->launch(streams_[stream], microseconds(300), {&access, 1});
  }
  /// What comes on `to` is ordered after what has come on `from`.
  void order(std::size_t from, std::size_t to) {
    (void)driver_->event_record({}, event_, streams_[from]);
    (void)driver_->stream_wait({}, streams_[to], event_);
  }
  void get() {
    Live live{nullptr, kSizes[pick(kSizes.size())], pick(2), pick(2), ++generation_};
    AllocateOptions options;
    options.stream = streams_[live.stream];
    options.domain = domains_[live.domain];
    const result<void*> block = allocator_.try_allocate(live.size.count, options);
    if (!block) return;
    live.block = *block;
    use(live, live.stream);
    live_.push_back(live);
  }
  void free() {
    const std::size_t index = pick(live_.size());
    const Live live = live_[index];
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
    const std::size_t other = 1 - live.stream;
    result<void> done;
    switch (pick(4)) {
      case 0:
        order(live.stream, other);
        use(live, other);
        done = allocator_.try_deallocate(live.block, streams_[other]);
        break;
      case 1:
        order(live.stream, other);
        (void)allocator_.record_stream(live.block, streams_[other]);
        use(live, other);
        done = allocator_.try_deallocate(live.block);
        break;
      case 2: done = allocator_.try_deallocate(live.block, streams_[live.stream]); break;
      default: done = allocator_.try_deallocate(live.block);
    }
    if (!done) objection_ = "harness: a live block was not taken back";
    if (allocator_.try_deallocate(live.block)) objection_ = "harness: a block was freed twice";
  }
  void compare() {
    for (std::size_t d = 0; d < domains_.size(); ++d) {
      Bytes sum{};
      for (const Live& live : live_) sum += live.domain == d ? live.size : Bytes{};
      if (allocator_.domain_stats(domains_[d]).requested == sum) continue;
      objection_ = "harness: a domain's requested bytes are not those of its blocks";
    }
    if (const result<void> good = allocator_.validate(); !good) {
      objection_ = std::string("validate: ") + good.failure().message;
    }
  }
  static SimOptions device() {
    SimOptions options;
    options.capacity = Bytes{16u << 20};
    options.detector = true;
    return options;
  }
  EventHandle make_event() {
    EventHandle event{};
    (void)driver_->event_create({}, event);
    return event;
  }

  std::mt19937 random_;
  std::shared_ptr<SimDriver> driver_ = std::make_shared<SimDriver>(device());
  CachingAllocator allocator_{driver_};
  std::array<StreamHandle, 2> streams_;
  std::array<DomainId, 2> domains_{};
  EventHandle event_ = make_event();
  std::vector<Live> live_;
  std::uint64_t generation_ = 0;
  std::string objection_;
};

/// A domain is closed while a thread keeps some of it.
std::string close_a_domain() {
  const auto driver = std::make_shared<SimDriver>(SimOptions{});
  CachingAllocator allocator(driver);
  AllocateOptions options;
  options.stream = *allocator.stream(driver->create_stream());
  options.domain = *allocator.create_domain({.name = "closing"});
  for (int i = 0; i < 2; ++i) allocator.deallocate(allocator.allocate(4096, options));
  if (!allocator.close_domain(options.domain)) return "harness: a domain was not closed";
  if (allocator.try_allocate(4096, options)) return "harness: a closed domain was served";
  return {};
}

/// A stream is retired while a thread keeps some of its memory, and then used once more.
std::string retire_a_stream() {
  SimOptions device;
  device.capacity = Bytes{2u << 20};
  device.detector = true;
  const auto driver = std::make_shared<SimDriver>(device);
  CachingAllocator allocator(driver);
  const StreamHandle retired = driver->create_stream();
  const StreamHandle other = driver->create_stream();
  std::uint64_t generation = 0;
  const auto get = [&](StreamHandle stream, std::int64_t ms) {
    AllocateOptions options;
    options.stream = stream;
    const result<void*> block = allocator.try_allocate(1u << 20, options);
    if (!block) return static_cast<void*>(nullptr);
    const SimAccess access{to_address(*block), Bytes{1u << 20}, ++generation};
    driver->launch(stream, milliseconds(ms), {&access, 1});
    return *block;
  };
  get(other, 0);
  for (int i = 0; i < 2; ++i) allocator.deallocate(get(retired, 0));
  (void)allocator.retire_stream(retired);
  driver->synchronize_device();
  allocator.deallocate(get(retired, 100));
  get(other, 0);
  if (driver->violations().empty()) return {};
  return "detector: " + driver->violations().front().text;
}

}  // namespace

std::string examine_thread_caches() {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    if (std::string objection = Walk(seed).run(); !objection.empty()) return objection;
  }
  if (std::string objection = close_a_domain(); !objection.empty()) return objection;
  return retire_a_stream();
}

}  // namespace bursar::test
