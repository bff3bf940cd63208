// SPDX-License-Identifier: Apache-2.0
// Threads that find cached memory go on while another is inside the driver, whatever the call.
#include <chrono>
#include <future>
#include <thread>

#include <bursar/allocator/caching_allocator.hpp>
#include <bursar/core/check.hpp>

#include "stress/gated_driver.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::literals;
using namespace bursar::test;

namespace {

constexpr int kNeighbors = 4;
constexpr int kPairs = 5000;
constexpr std::chrono::seconds kPatience{20};  // only a failing test waits that long

/// A block that stays and one that was freed, on a stream of its own: cached memory in a page that
/// no trim takes.
StreamHandle make_cached(GatedDriver& driver, CachingAllocator& allocator) {
  AllocateOptions options;
  options.stream = driver.create_stream();
  [[maybe_unused]] void* stays = allocator.allocate(4096, options);
  allocator.deallocate(allocator.allocate(4096, options));
  return options.stream.handle;
}

int churn(CachingAllocator& allocator, StreamHandle stream) {
  AllocateOptions options;
  options.stream = stream;
  for (int i = 0; i < kPairs; ++i) allocator.deallocate(allocator.allocate(4096, options), stream);
  return kPairs;
}

/// Gets a thread inside `call`: growth creates and maps, a trim asks events, unmaps and releases.
void meet(DriverCall call, CachingAllocator& allocator, StreamHandle stream) {
  AllocateOptions options;
  options.stream = stream;
  const bool grows =
      call == DriverCall::create || call == DriverCall::map || call == DriverCall::set_access;
  if (grows) {
    allocator.deallocate(allocator.allocate(64u << 20, options));
  } else {
    const StreamRef named[] = {StreamRef{stream}};
    allocator.trim(0_B, {}, named);
  }
}

}  // namespace

TEST_CASE("cached memory is had while another thread is inside the driver", "[stress]") {
  if (kCheckLevel >= 2) SKIP_TEST("each call proves the whole heap, and so waits for the driver");
  const DriverCall call =
      GENERATE(DriverCall::create, DriverCall::map, DriverCall::set_access, DriverCall::unmap,
               DriverCall::release, DriverCall::event_record, DriverCall::event_query);
  INFO(to_string(call));
  const auto driver = std::make_shared<GatedDriver>();
  CachingAllocator allocator(driver);
  std::vector<StreamHandle> streams;
  for (int i = 0; i < kNeighbors; ++i) streams.push_back(make_cached(*driver, allocator));
  const StreamHandle slow_stream = driver->create_stream();
  AllocateOptions options;
  options.stream = slow_stream;
  allocator.deallocate(allocator.allocate(16u << 20, options));  // for the trims

  driver->close(call);
  std::thread slow([&] { meet(call, allocator, slow_stream); });
  driver->wait_inside();
  std::vector<std::future<int>> neighbors;
  for (const StreamHandle stream : streams) {
    neighbors.push_back(
        std::async(std::launch::async, [&, stream] { return churn(allocator, stream); }));
  }
  int got_on = 0;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (const std::future<int>& neighbor : neighbors) {
    got_on += neighbor.wait_until(deadline) == std::future_status::ready ? 1 : 0;
  }
  driver->open();
  slow.join();
  CHECK(got_on == kNeighbors);
  for (std::future<int>& neighbor : neighbors) CHECK(neighbor.get() == kPairs);
  CHECK(allocator.validate().ok());
}
