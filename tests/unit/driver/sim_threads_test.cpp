// SPDX-License-Identifier: Apache-2.0
// The simulated driver under several threads: sums that must come out, whatever the interleaving.
#include <algorithm>
#include <thread>

#include "sim_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 200;

/// Runs `body(thread)` on kThreads threads; true when none of them threw.
template <typename Body>
bool all_run(Body&& body) {
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (const std::exception&) {
        ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failed == 0;
}

TEST_CASE("threads that map and unmap leave nothing behind", "[driver][sim][threads]") {
  SimFixture f;
  REQUIRE(all_run([&](int) {
    for (int i = 0; i < kRounds; ++i) {
      const ExtentHandle extent = f.extent();
      const VaRange at = f.mapped(extent);
      f.must(f.driver.unmap(at));
      f.must(f.driver.unreserve(at));
      f.must(f.driver.release(extent));
    }
  }));
  CHECK(f.driver.extent_bytes() == 0_B);
  CHECK(f.driver.mapping_count() == 0);
  CHECK(f.driver.reserved_addresses() == 0_B);
  const MeterReading r = f.driver.meter().read();
  CHECK(r.count(DriverCall::map) == kThreads * kRounds);
  CHECK(r.total_time() == f.driver.now());
}

TEST_CASE("threads never get more than the capacity", "[driver][sim][threads]") {
  SimOptions options;
  options.capacity = 64_MiB;
  SimFixture f(options);
  std::atomic<int> got{0};
  REQUIRE(all_run([&](int) {
    ExtentHandle out;
    for (int i = 0; i < 20; ++i) got += f.driver.create({}, kPage, {}, out) == success ? 1 : 0;
  }));
  CHECK(got == 32);
}

TEST_CASE("threads with streams of their own come and go", "[driver][sim][threads]") {
  SimOptions options;
  options.detector = true;
  SimFixture f(options);
  std::array<std::vector<StreamId>, kThreads> ids;
  REQUIRE(all_run([&](int thread) {
    const VaRange at = f.mapped(f.extent());
    for (int i = 0; i < kRounds; ++i) {
      const StreamHandle stream = f.driver.create_stream();
      StreamId id{};
      f.must(f.driver.stream_id({}, stream, id));
      ids[static_cast<std::size_t>(thread)].push_back(id);
      f.use(stream, at, static_cast<std::uint64_t>(i) + 1);
      const EventHandle event = f.recorded(stream);
      f.driver.synchronize(stream);
      f.must(f.driver.event_query(event));
      f.must(f.driver.event_destroy(event));
      f.driver.destroy_stream(stream);
    }
  }));
  std::vector<StreamId> all;
  for (const auto& some : ids) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(f.driver.violations().empty());
  CHECK(f.driver.event_count() == 0);
}

TEST_CASE("a delayed call holds up no other call", "[driver][sim][threads]") {
  SimFixture f;
  f.driver.delay(DriverCall::create, milliseconds(50));
  std::atomic<bool> started{false};
  std::atomic<bool> ended{false};
  std::thread slow([&] {
    started = true;
    f.extent();
    ended = true;
  });
  while (!started) std::this_thread::yield();
  StreamId id{};
  int calls = 0;
  for (; !ended; ++calls) {
    f.must(f.driver.stream_id({}, {}, id));
    f.must(f.driver.event_query(f.recorded({})));
  }
  slow.join();
  CHECK(calls > 10);
}

}  // namespace
}  // namespace bursar::test
