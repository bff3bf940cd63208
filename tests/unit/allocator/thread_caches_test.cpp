// SPDX-License-Identifier: Apache-2.0
// What threads keep for themselves: who it serves, what it counts as, and how others get it back.
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {

using enum ErrorKind;

namespace {

/// Runs `work` in a thread of its own, to its end.
template <class Work>
void in_thread(Work&& work) {
  std::thread(std::forward<Work>(work)).join();
}

/// A block of a key that the thread has freed before, as a thread keeps only what comes again.
template <class... Where>
void* get_again(AllocatorFixture& f, Bytes size, Where... where) {
  f.free(f.get(size, where...));
  return f.get(size, where...);
}

/// Threads that do `work`, and then sleep until this object ends.
class Sleepers {
 public:
  template <class Work>
  Sleepers(std::size_t count, Work work) : done_(static_cast<std::ptrdiff_t>(count)) {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.emplace_back([this, work, i] {
        work(i);
        done_.count_down();
        wake_.wait();
      });
    }
    done_.wait();
  }
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;
  ~Sleepers() {
    wake_.count_down();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::latch done_;
  std::latch wake_{1};
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("a thread's next request of a size it has freed takes no lock and no call", "[caches]") {
  AllocatorFixture f(any_shape());
  f.resolve_streams();
  void* first = get_again(f, 100_KiB);
  f.free(first);
  const std::uint64_t calls = f.all_calls();
  void* second = f.get(100_KiB);
  CHECK(second == first);
  CHECK(f.all_calls() == calls);
  CHECK(f.stats().thread_hits == 1);
  f.free(second);
  CHECK(f.get(100_KiB) == first);
  CHECK(f.stats().allocations == 4);
  CHECK(f.stats().deallocations == 3);
}

TEST_CASE("what a thread has cached serves that size, stream and domain only", "[caches]") {
  AllocatorFixture f(any_shape());
  const DomainId other = f.domain();
  f.free(get_again(f, 100_KiB));
  f.free(f.get(100_KiB, f.a));
  AllocateOptions aligned = f.on(f.a);
  aligned.alignment = 4_KiB;
  f.get(99_KiB);
  f.get(100_KiB, f.b);
  f.get(100_KiB, f.a, other);
  CHECK(f.allocator.allocate((100_KiB).count, aligned) != nullptr);
  CHECK(f.allocator.allocate((100_KiB).count, f.with(BlockFlags::pinned)) != nullptr);
  CHECK(f.stats().thread_hits == 1);
}

TEST_CASE("what a thread has cached is idle", "[caches]") {
  AllocatorFixture f(any_shape());
  void* block = get_again(f, 100_KiB);
  f.free(block);
  const AllocatorStats s = f.stats();
  CHECK(adds_up(s));
  CHECK(s.thread_cached == 100_KiB);
  CHECK(s.live == 0_B);
  CHECK(s.requested == 0_B);
  CHECK(s.live_blocks == 0);
  CHECK(s.deallocations == 2);
  CHECK(f.stats(kDefaultDomain).thread_cached == 100_KiB);
  CHECK_FALSE(f.allocator.owns(block));
  CHECK(f.allocator.usable_size(block) == 0);
  for (const auto& shown : f.allocator.snapshot(f.device).blocks) {
    CHECK(shown.state != BlockState::live);
  }
}

TEST_CASE("a cached block cannot be freed again, by any thread", "[caches]") {
  AllocatorFixture f(any_shape());
  void* block = get_again(f, 100_KiB);
  f.free(block);
  CHECK(kind_of(f.allocator.try_deallocate(block)) == invalid_argument);
  CHECK(kind_of(f.allocator.record_stream(block, f.b)) == invalid_argument);
  in_thread([&] {
    CHECK(kind_of(f.allocator.try_deallocate(block)) == invalid_argument);
    CHECK(kind_of(f.allocator.try_deallocate(block, f.a)) == invalid_argument);
  });
  CHECK(f.get(100_KiB) == block);
}

TEST_CASE("a block that another thread has freed cannot be freed by its first owner", "[caches]") {
  AllocatorFixture f(any_shape());
  f.free(get_again(f, 100_KiB));
  void* block = f.get(100_KiB);  // from the cache: this thread could keep it again
  in_thread([&] { f.free(block); });
  CHECK(kind_of(f.allocator.try_deallocate(block)) == invalid_argument);
  CHECK(f.stats().live == 0_B);
}

TEST_CASE("a block that a recorded stream still uses is not kept", "[caches]") {
  AllocatorFixture f(any_shape());
  f.free(get_again(f, 100_KiB));
  void* block = f.get(100_KiB);
  REQUIRE(f.allocator.record_stream(block, f.b).ok());
  f.use(f.b, block, 100_KiB, 1, 10);
  f.free(block);
  CHECK(f.stats().pending == 100_KiB);
  void* next = f.get(100_KiB);
  CHECK(next != block);
  f.use(f.a, next, 100_KiB, 2, 1);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a block freed on another stream is that stream's", "[caches]") {
  AllocatorFixture f(any_shape());
  f.free(get_again(f, 100_KiB));
  void* block = f.get(100_KiB);
  f.allocator.deallocate(block, f.b);  // which is ordered: nothing has used the block
  f.use(f.b, f.get(100_KiB, f.b), 100_KiB, 1, 10);
  f.use(f.a, f.get(100_KiB, f.a), 100_KiB, 2, 10);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a stream whose fence is wanted is not served from a cache", "[caches]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(100_KiB, f.a);
  f.free(get_again(f, 4_KiB, f.b));
  f.free(f.get(4_KiB, f.b));
  REQUIRE(f.allocator.record_stream(block, f.b).ok());
  f.free(block);
  CHECK(f.stats().pending == 100_KiB);
  f.free(f.get(4_KiB, f.b));  // takes the fence
  f.look();
  CHECK(f.stats().pending == 0_B);
}

TEST_CASE("what a thread has cached is given back when it ends", "[caches]") {
  AllocatorFixture f(any_shape());
  in_thread([&] {
    void* blocks[] = {get_again(f, 4_KiB), get_again(f, 100_KiB), get_again(f, 1_MiB)};
    for (void* block : blocks) f.free(block);
    CHECK(f.stats().thread_cached == 1_MiB + 104_KiB);
  });
  CHECK(f.stats().thread_cached == 0_B);
  CHECK(f.stats().live == 0_B);
  f.allocator.trim(0_B, f.device);
  f.fence();
  f.allocator.trim(0_B, f.device);
  CHECK(f.stats().reserved == 0_B);
}

TEST_CASE("a block taken by one thread and freed by another is not lost", "[caches]") {
  AllocatorFixture f(any_shape());
  std::vector<void*> blocks;
  in_thread([&] {
    for (int i = 0; i < 100; ++i) blocks.push_back(f.get(64_KiB));
  });
  for (void* block : blocks) f.free(block);
  CHECK(f.stats().live == 0_B);
  CHECK(f.allocator.validate().ok());
}

TEST_CASE("sleeping threads keep little, and all of it can be taken from them", "[caches]") {
  AllocatorOptions options = moving();
  AllocatorFixture f(Shape{}, options, 1_GiB);
  constexpr std::size_t kThreads = 64;
  std::latch all_have_theirs{kThreads};
  const Sleepers sleepers(kThreads, [&](std::size_t i) {
    std::vector<void*> blocks;
    for (std::size_t size = 1; size <= 15; ++size) {
      blocks.push_back(get_again(f, Bytes{size * 10'000 + i}));
    }
    all_have_theirs.arrive_and_wait();  // a miss would empty the caches of those before
    for (void* block : blocks) f.allocator.deallocate(block, f.a);
  });
  const AllocatorStats s = f.stats();
  CHECK(s.live == 0_B);
  CHECK(s.thread_cached > 64_KiB * kThreads);
  CHECK(s.thread_cached <= 2_MiB * kThreads);
  const StreamRef streams[] = {f.a, f.b};
  f.allocator.trim(0_B, f.device, streams);
  CHECK(f.stats().thread_cached == 0_B);
  CHECK(f.stats().reserved == 0_B);
}

TEST_CASE("nothing is created while another thread has cached what would serve", "[caches]") {
  AllocatorFixture f(any_shape());
  const Sleepers sleepers(1, [&](std::size_t) {
    void* blocks[] = {get_again(f, 512_KiB), get_again(f, 511_KiB), get_again(f, 510_KiB)};
    for (void* block : blocks) f.free(block);
  });
  const Bytes reserved = f.stats().reserved;
  REQUIRE(f.stats().thread_cached > 1_MiB);
  for (const Bytes size : {512_KiB, 511_KiB, 510_KiB}) f.get(size);
  CHECK(f.stats().reserved == reserved);
}

TEST_CASE("retiring a stream and closing a domain empty the caches of all threads", "[caches]") {
  AllocatorFixture f(any_shape());
  const DomainId closing = f.domain();
  const Sleepers sleepers(3, [&](std::size_t) {
    void* blocks[] = {get_again(f, 4_KiB, f.a), get_again(f, 4_KiB, f.b),
                      get_again(f, 4_KiB, f.a, closing)};
    for (void* block : blocks) f.free(block);
  });
  CHECK(f.stats().thread_cached == 36_KiB);
  REQUIRE(f.allocator.close_domain(closing).ok());
  CHECK(f.stats().thread_cached == 24_KiB);
  REQUIRE(f.allocator.retire_stream(f.b, f.device).ok());
  CHECK(f.stats().thread_cached == 12_KiB);
}

TEST_CASE("a closed domain's cached blocks serve nobody", "[caches]") {
  AllocatorFixture f(any_shape());
  const DomainId closing = f.domain();
  f.free(get_again(f, 4_KiB, f.a, closing));
  void* live = f.get(4_KiB, f.a, closing);
  REQUIRE(f.allocator.close_domain(closing).ok());
  f.free(live);
  CHECK(kind_of(f.ask(4_KiB, f.a, closing)) == invalid_argument);
  CHECK(f.stats(closing).thread_cached == 0_B);
}

TEST_CASE("threads outlive the allocators they have used", "[caches]") {
  std::optional<AllocatorFixture> first(std::in_place);
  std::latch used{1};
  std::latch ended{1};
  std::thread thread([&] {
    first->free(get_again(*first, 4_KiB));
    used.count_down();
    ended.wait();
    AllocatorFixture second;  // may stand where the first stood
    second.free(get_again(second, 4_KiB));
    CHECK(second.stats().thread_cached == 4_KiB);
  });
  used.wait();
  first.reset();
  ended.count_down();
  thread.join();
}

TEST_CASE("threads that come and go for ever do not grow the records", "[caches]") {
  AllocatorFixture f;
  const auto come_and_go = [&] { in_thread([&] { f.free(get_again(f, 4_KiB)); }); };
  come_and_go();
  const Bytes metadata = f.stats().metadata;
  for (int i = 0; i < 50; ++i) come_and_go();
  CHECK(f.stats().metadata <= metadata);
}

TEST_CASE("a lost device serves nobody from a cache", "[caches]") {
  AllocatorFixture f(any_shape());
  f.free(get_again(f, 4_KiB));
  f.driver->fail(DriverCall::stream_capturing, 1, true, DriverCode::illegal_address);
  CHECK(kind_of(f.ask(64_MiB, f.a)) == device_lost);
  CHECK(kind_of(f.ask(4_KiB, f.a)) == device_lost);
}

TEST_CASE("without thread caches every free is the heap's", "[caches]") {
  AllocatorOptions options = moving();
  options.thread_caches = false;
  AllocatorFixture f(any_shape(), options);
  f.free(get_again(f, 4_KiB));
  f.free(f.get(4_KiB));
  CHECK(f.stats().thread_hits == 0);
  CHECK(f.stats().thread_cached == 0_B);
}

}  // namespace bursar::test
