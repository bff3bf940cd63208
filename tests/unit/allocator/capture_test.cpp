// SPDX-License-Identifier: Apache-2.0
// Stream capture: cached memory serves a capturing stream, and no call spoils the capture.
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {

using enum ErrorKind;

TEST_CASE("cached memory serves a capturing stream", "[allocator][contract][capture]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(4_MiB);
  f.free(block);
  f.resolve_streams();
  f.driver->begin_capture(f.a, f.device);
  CHECK(f.get(4_MiB) == block);
  CHECK(f.driver->end_capture(f.a, f.device));
}

TEST_CASE("a stream that was not resolved before its capture is refused",
          "[allocator][contract][capture]") {
  AllocatorFixture f(any_shape());
  f.free(f.get(4_MiB));
  f.driver->begin_capture(f.a, f.device);
  CHECK(kind_of(f.ask(4_MiB, f.a)) == not_supported);
  CHECK(f.driver->end_capture(f.a, f.device));
  CHECK(f.ask(4_MiB, f.a).ok());
}

TEST_CASE("a miss on a capturing stream is not supported and changes nothing",
          "[allocator][contract][capture]") {
  AllocatorFixture f(any_shape());
  f.free(f.get(4_MiB));
  f.resolve_streams();
  f.driver->begin_capture(f.a, f.device);
  const std::uint64_t calls = f.memory_calls();
  CHECK(kind_of(f.ask(8_MiB, f.a)) == not_supported);
  CHECK_THROWS_AS(f.get(8_MiB), Error);
  CHECK(f.memory_calls() == calls);
  CHECK(f.stats().idle == 4_MiB);
  CHECK(f.driver->end_capture(f.a, f.device));
  CHECK(f.ask(8_MiB, f.a).ok());
}

TEST_CASE("frees, records and looks during a capture do not spoil it",
          "[allocator][contract][capture]") {
  AllocatorFixture f(any_shape());
  void* used = f.get(4_MiB);
  void* freed = f.get(4_MiB);
  void* other = f.get(4_MiB, f.b);
  f.free(f.get(512_B));
  f.resolve_streams();
  f.driver->begin_capture(f.a, f.device);
  CHECK(f.allocator.record_stream(other, f.ref(f.a)).ok());
  CHECK(f.allocator.record_stream(used, f.ref(f.b)).ok());
  f.free(used);
  f.allocator.deallocate(freed, f.ref(f.a));
  f.free(other);
  f.free(f.get(512_B));
  f.look();
  CHECK(kind_of(f.allocator.retire_stream(f.ref(f.a), f.device)) == not_supported);
  CHECK(f.driver->end_capture(f.a, f.device));
  CHECK(f.driver->violations().empty());
}

TEST_CASE("misses and trims of other streams do not spoil a capture", "[allocator][capture]") {
  AllocatorFixture f(any_vmm_shape());
  void* other = f.get(16_MiB, f.b);
  f.free(f.get(4_MiB));
  f.resolve_streams();
  f.driver->begin_capture(f.a, f.device);
  f.get(32_MiB, f.b);
  f.allocator.deallocate(other, f.ref(f.b));
  const StreamRef streams[] = {f.ref(f.a), f.ref(f.b)};
  CHECK(f.allocator.trim(0_B, f.device, streams) >= 16_MiB);
  CHECK(f.driver->end_capture(f.a, f.device));
  CHECK(f.driver->violations().empty());
}

TEST_CASE("memory freed during a capture is fenced after it", "[allocator][capture]") {
  AllocatorFixture f(any_vmm_shape());
  f.get(512_B, f.b);
  void* block = f.get(4_MiB);
  f.free(f.get(512_B));
  f.resolve_streams();
  f.driver->begin_capture(f.a, f.device);
  f.free(block);
  f.get(512_B);
  f.look();
  CHECK(f.get(4_MiB, f.b) != block);
  CHECK(f.driver->end_capture(f.a, f.device));
  f.free(f.get(512_B));
  f.look();
  CHECK(f.get(4_MiB, f.b) == block);
}

}  // namespace bursar::test
