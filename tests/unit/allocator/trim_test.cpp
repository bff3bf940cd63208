// SPDX-License-Identifier: Apache-2.0
// Trim: how much idle memory goes back, and what does not.
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {

TEST_CASE("trim gives back all that is idle", "[allocator][contract][trim]") {
  AllocatorFixture f(any_shape());
  f.get(4_MiB);
  f.free(f.get(32_MiB));
  f.free(f.get(10_MiB));
  const StreamRef streams[] = {f.a};
  const Bytes before = f.stats().reserved;
  const Bytes given = f.allocator.trim(0_B, f.device, streams);
  CHECK(given == before - f.stats().reserved);
  CHECK(f.stats().reserved == 4_MiB);
  CHECK(f.driver->extent_bytes() == 4_MiB);
}

TEST_CASE("trim stops at its target", "[allocator][contract][trim]") {
  AllocatorFixture f(any_shape());
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(f.get(2_MiB));
  for (void* block : blocks) f.free(block);
  const StreamRef streams[] = {f.a};
  CHECK(f.allocator.trim(20_MiB, f.device, streams) == 0_B);
  CHECK(f.allocator.trim(13_MiB, f.device, streams) == 8_MiB);
  CHECK(f.stats().reserved == 12_MiB);
  CHECK(f.allocator.trim(12_MiB, f.device, streams) == 0_B);
}

TEST_CASE("trim takes nothing whose work still runs and does not wait",
          "[allocator][contract][trim]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(8_MiB);
  f.use(f.a, block, 8_MiB, 1, 100);
  f.free(block);
  const StreamRef streams[] = {f.a};
  CHECK(f.allocator.trim(0_B, f.device, streams) == 0_B);
  CHECK(f.driver->now() < milliseconds(100));
  f.pass(101);
  CHECK(f.allocator.trim(0_B, f.device) == 8_MiB);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("what a stream freed last goes only when the stream is named",
          "[allocator][contract][trim]") {
  AllocatorFixture f(any_shape());
  f.free(f.get(8_MiB));
  CHECK(f.allocator.trim(0_B, f.device) == 0_B);
  const StreamRef streams[] = {f.a};
  CHECK(f.allocator.trim(0_B, f.device, streams) == 8_MiB);
}

TEST_CASE("trim passes over a stream that does not exist", "[allocator][trim]") {
  AllocatorFixture f(any_shape());
  f.free(f.get(8_MiB));
  const StreamHandle gone = f.driver->create_stream(f.device);
  f.driver->destroy_stream(gone);
  const StreamRef streams[] = {gone, f.a};
  CHECK(f.allocator.trim(0_B, f.device, streams) == 8_MiB);
}

TEST_CASE("trim reaches every domain and leaves live blocks alone", "[allocator][trim]") {
  AllocatorFixture f(any_shape());
  void* live = f.get(2_MiB);
  void* blocks[] = {f.get(8_MiB, f.a, f.domain()), f.get(6_MiB, f.a, f.domain())};
  for (void* block : blocks) f.free(block);
  const StreamRef streams[] = {f.a};
  CHECK(f.allocator.trim(0_B, f.device, streams) == 14_MiB);
  CHECK(f.driver->memset(f.device, to_address(live), 0, 2_MiB, f.a) == DriverCode::success);
}

TEST_CASE("an allocator works on after everything was trimmed", "[allocator][trim]") {
  AllocatorFixture f(any_shape());
  const StreamRef streams[] = {f.a};
  for (int i = 0; i < 5; ++i) {
    f.free(f.get(12_MiB));
    f.free(f.get(3_KiB));
    f.allocator.trim(0_B, f.device, streams);
    REQUIRE(f.stats().reserved == 0_B);
  }
  CHECK(f.stats().address_space <= 256_MiB * 5);
}

}  // namespace bursar::test
