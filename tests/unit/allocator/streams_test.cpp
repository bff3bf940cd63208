// SPDX-License-Identifier: Apache-2.0
// Stream order: what one stream freed is its own at once and another's only after a fence. The
// detector of the simulated device is the witness.
#include <vector>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {

using enum ErrorKind;

TEST_CASE("behind a long kernel memory serves its own stream again and no other",
          "[allocator][contract][stream]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(4_MiB);
  void* keep = f.get(512_B, f.b);
  f.use(f.a, block, 4_MiB, 1, 100);
  f.free(block);
  void* other = f.get(4_MiB, f.b);
  f.use(f.b, other, 4_MiB, 2, 1);
  CHECK(other != block);
  void* same = f.get(4_MiB);
  f.use(f.a, same, 4_MiB, 3, 1);
  CHECK(same == block);
  CHECK(f.driver->now() < milliseconds(100));
  CHECK(f.driver->violations().empty());
  f.free(keep);
}

TEST_CASE("memory becomes everybody's once a fence has passed", "[allocator][contract][stream]") {
  AllocatorFixture f(any_shape());
  f.get(512_B, f.b);
  void* block = f.get(4_MiB);
  f.use(f.a, block, 4_MiB, 1, 10);
  f.free(block);
  f.get(512_B);  // names the stream: the fence
  CHECK(f.get(4_MiB, f.b) != block);
  f.pass(11);
  const std::uint64_t created = f.calls(DriverCall::create);
  void* mine = f.get(4_MiB, f.b);
  CHECK(mine == block);
  f.use(f.b, mine, 4_MiB, 2, 1);
  CHECK(f.calls(DriverCall::create) == created);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a free named on another stream hands the memory over to it",
          "[allocator][contract][stream]") {
  AllocatorFixture f(any_shape());
  f.get(512_B, f.b);
  void* block = f.get(4_MiB);
  f.work(f.a, 1);
  f.driver->synchronize(f.a, f.device);
  f.work(f.b, 100);
  f.allocator.deallocate(block, f.b);
  CHECK(f.get(4_MiB) != block);
  CHECK(f.get(4_MiB, f.b) == block);
}

TEST_CASE("a recorded stream keeps a freed block pending until its own fence has passed",
          "[allocator][contract][stream]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(4_MiB);
  REQUIRE(f.allocator.record_stream(block, f.b).ok());
  f.use(f.b, block, 4_MiB, 1, 50);
  f.free(block);
  CHECK(f.stats().pending == 4_MiB);
  CHECK(f.get(4_MiB) != block);

  f.pass(100);
  f.look();
  CHECK(f.stats().pending == 4_MiB);  // its work is done, but nobody may ask the stream
  f.work(f.b, 50);
  f.get(512_B, f.b);
  CHECK(f.stats().pending == 4_MiB);
  f.pass(51);
  f.look();
  CHECK(f.stats().pending == 0_B);
  void* again = f.get(4_MiB);
  f.use(f.a, again, 4_MiB, 2, 1);
  CHECK(again == block);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a block used by several streams waits for every one of them", "[allocator][stream]") {
  AllocatorFixture f(any_shape());
  const StreamHandle c = f.driver->create_stream(f.device);
  void* block = f.get(4_MiB);
  for (const StreamHandle stream : {f.b, c, f.b}) {
    REQUIRE(f.allocator.record_stream(block, stream).ok());
  }
  f.free(block);
  f.work(c, 20);
  f.get(512_B, f.b);
  f.get(512_B, c);
  f.look();
  CHECK(f.stats().pending == 4_MiB);
  f.pass(21);
  f.look();
  CHECK(f.stats().pending == 0_B);
}

TEST_CASE("recording a block's own stream changes nothing", "[allocator][stream]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(4_MiB);
  REQUIRE(f.allocator.record_stream(block, f.a).ok());
  f.free(block);
  CHECK(f.stats().pending == 0_B);
  CHECK(f.get(4_MiB) == block);
}

TEST_CASE("freeing a block on the stream it was recorded on needs no other fence",
          "[allocator][stream]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(4_MiB);
  REQUIRE(f.allocator.record_stream(block, f.b).ok());
  f.allocator.deallocate(block, f.b);
  CHECK(f.stats().pending == 0_B);
}

TEST_CASE("what a retired stream freed serves others without naming it again",
          "[allocator][contract][stream]") {
  AllocatorFixture f(any_shape());
  f.get(512_B, f.b);
  void* block = f.get(1_MiB);
  f.use(f.a, block, 1_MiB, 1, 10);
  f.free(block);
  REQUIRE(f.allocator.retire_stream(f.a, f.device).ok());
  f.driver->destroy_stream(f.a);
  CHECK(f.get(1_MiB, f.b) != block);
  f.pass(11);
  f.look();
  void* mine = f.get(1_MiB, f.b);
  f.use(f.b, mine, 1_MiB, 2, 1);
  CHECK(mine == block);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a block freed after its stream was retired serves others too", "[allocator][stream]") {
  AllocatorFixture f(any_shape());
  f.get(512_B, f.b);
  void* block = f.get(1_MiB);
  REQUIRE(f.allocator.retire_stream(f.a, f.device).ok());
  f.driver->destroy_stream(f.a);
  f.look();
  f.free(block);
  CHECK(f.get(1_MiB, f.b) == block);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a recorded stream that was retired is not waited for", "[allocator][stream]") {
  AllocatorFixture f(any_shape());
  void* block = f.get(1_MiB);
  REQUIRE(f.allocator.record_stream(block, f.b).ok());
  f.work(f.b, 10);
  REQUIRE(f.allocator.retire_stream(f.b, f.device).ok());
  f.driver->destroy_stream(f.b);
  f.free(block);
  CHECK(f.stats().pending == 1_MiB);
  f.pass(11);
  f.look();
  CHECK(f.stats().pending == 0_B);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a stream may be retired twice, or without having been used", "[allocator][stream]") {
  AllocatorFixture f(any_shape());
  CHECK(f.allocator.retire_stream(f.b, f.device).ok());
  f.free(f.get(512_B));
  CHECK(f.allocator.retire_stream(f.a, f.device).ok());
  CHECK(f.allocator.retire_stream(f.a, f.device).ok());
}

TEST_CASE("a stream that is named after it was retired is in use again", "[allocator][stream]") {
  AllocatorFixture f(any_shape());
  f.get(512_B, f.b);
  void* block = f.get(1_MiB);
  REQUIRE(f.allocator.retire_stream(f.a, f.device).ok());
  f.get(512_B);
  f.use(f.a, block, 1_MiB, 1, 10);
  f.free(block);
  f.look();
  CHECK(f.get(1_MiB, f.b) != block);
}

TEST_CASE("a stream with the handle of one destroyed before is another stream",
          "[allocator][contract][stream]") {
  AllocatorFixture f(any_shape());
  f.get(512_B, f.b);
  void* block = f.get(1_MiB);
  f.use(f.a, block, 1_MiB, 1, 100);
  f.free(block);
  REQUIRE(f.allocator.retire_stream(f.a, f.device).ok());
  f.driver->destroy_stream(f.a);
  const StreamHandle again = f.driver->create_stream(f.device);
  REQUIRE(again == f.a);
  void* other = f.get(1_MiB, again);
  f.use(again, other, 1_MiB, 2, 1);
  CHECK(other != block);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("a stream resolved once is not looked up again", "[allocator][stream]") {
  AllocatorFixture f(any_shape());
  const result<StreamRef> stream = f.allocator.stream(f.a, f.device);
  REQUIRE(stream.ok());
  const std::uint64_t looked_up = f.calls(DriverCall::stream_id);
  AllocateOptions options = f.on({});
  options.stream = *stream;
  f.allocator.deallocate(f.allocator.allocate(512, options), *stream);
  CHECK(f.calls(DriverCall::stream_id) == looked_up);
}

TEST_CASE("streams made and retired for ever do not grow the records", "[allocator][stream]") {
  AllocatorFixture f(Shape{GENERATE(CapabilityLevel::full, CapabilityLevel::no_vmm), 1});
  const auto one_stream = [&] {
    const StreamHandle stream = f.driver->create_stream(f.device);
    f.free(f.get(1_MiB, stream));
    REQUIRE(f.allocator.retire_stream(stream, f.device).ok());
    f.driver->destroy_stream(stream);
  };
  for (int i = 0; i < 200; ++i) one_stream();
  const Bytes metadata = f.stats().metadata;
  for (int i = 0; i < 1000; ++i) one_stream();
  CHECK(f.stats().metadata <= metadata);
  CHECK(f.stats().reserved <= 4_MiB);
}

TEST_CASE("many small frees are fenced in batches", "[allocator][stream]") {
  AllocatorOptions options = moving();
  options.fence_batch = 16;
  options.thread_caches = false;  // else they would never reach the heap
  AllocatorFixture f(Shape{}, options);
  for (int i = 0; i < 160; ++i) f.free(f.get(512_B));
  CHECK(f.calls(DriverCall::event_record) >= 9);
  CHECK(f.calls(DriverCall::event_record) <= 11);
}

}  // namespace bursar::test
