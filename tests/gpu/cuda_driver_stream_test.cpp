// SPDX-License-Identifier: Apache-2.0
// Streams, events and captures on a real device.
#include <cstdint>
#include <cstdio>
#include <set>
#include <thread>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;

namespace {

/// An event of the seam, destroyed at the end of the test.
class Event {
 public:
  Event() { check(gpu_driver()->event_create({}, event_)); }
  ~Event() { gpu_driver()->event_destroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream) {
    check(gpu_driver()->event_record({}, event_, stream.handle()));
  }
  DriverCode query() const { return gpu_driver()->event_query(event_); }
  EventHandle handle() const { return event_; }

 private:
  EventHandle event_{};
};

StreamId id_of(StreamHandle stream) {
  StreamId id{};
  check(gpu_driver()->stream_id({}, stream, id));
  return id;
}

bool capturing(StreamHandle stream) {
  bool out = false;
  check(gpu_driver()->stream_capturing({}, stream, out));
  return out;
}

/// Captures whatever `during` does on `stream`; true when the capture came out whole.
template <class Work>
bool capture_survives(const Stream& stream, Work&& during) {
  check(cudaStreamBeginCapture(stream.raw(), cudaStreamCaptureModeGlobal));
  during();
  cudaGraph_t graph = nullptr;
  const bool whole = cudaStreamEndCapture(stream.raw(), &graph) == cudaSuccess && graph != nullptr;
  if (whole) check(cudaGraphDestroy(graph));
  if (!whole) cudaGetLastError();
  return whole;
}

}  // namespace

TEST_CASE("a fence passes when the work before it has ended, not earlier", "[driver][cuda][gpu]") {
  const Stream stream;
  Gate gate;
  Event fence;
  CHECK(fence.query() == DriverCode::success);  // never recorded: nothing to wait for
  gate.hold(stream);
  fence.record(stream);
  CHECK(fence.query() == DriverCode::not_ready);
  gate.open();
  stream.synchronize();
  CHECK(fence.query() == DriverCode::success);
}

TEST_CASE("a stream waits for another's fence", "[driver][cuda][gpu]") {
  const Stream first;
  const Stream second;
  Gate gate;
  Event before;
  Event after;
  gate.hold(first);
  before.record(first);
  REQUIRE(gpu_driver()->stream_wait({}, second.handle(), before.handle()) == DriverCode::success);
  after.record(second);
  CHECK(after.query() == DriverCode::not_ready);
  gate.open();
  second.synchronize();
  CHECK(before.query() == DriverCode::success);
  CHECK(after.query() == DriverCode::success);
}

TEST_CASE("an event may be destroyed before its work has ended", "[driver][cuda][gpu]") {
  const Stream stream;
  Gate gate;
  gate.hold(stream);
  EventHandle event{};
  check(gpu_driver()->event_create({}, event));
  check(gpu_driver()->event_record({}, event, stream.handle()));
  CHECK(gpu_driver()->event_destroy(event) == DriverCode::success);
  CHECK(stream.busy());
}

TEST_CASE("nothing the library calls spoils a capture in global mode", "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  const Bytes page = driver->device_info({}).granularity;
  const Stream stream;
  Event fence;
  fence.record(stream);
  const auto calls = [&] {
    MemoryInfo info{};
    CHECK(fence.query() == DriverCode::success);
    CHECK(driver->memory_info({}, info) == DriverCode::success);
    CHECK(driver->trim_pools({}) == DriverCode::success);
    Event other;
    CHECK(capturing(stream.handle()));
    const DeviceId device{};
    ExtentHandle extent{};
    VaRange range{};
    CHECK(driver->create({}, page, {}, extent) == DriverCode::success);
    CHECK(driver->reserve(page, {}, range) == DriverCode::success);
    CHECK(driver->map(range, extent) == DriverCode::success);
    CHECK(driver->set_access(range, {&device, 1}) == DriverCode::success);
    CHECK(driver->unmap(range) == DriverCode::success);
    CHECK(driver->unreserve(range) == DriverCode::success);
    CHECK(driver->release(extent) == DriverCode::success);
  };
  SECTION("from the capturing thread") { CHECK(capture_survives(stream, calls)); }
  SECTION("from another thread") {
    CHECK(capture_survives(stream, [&] { std::thread(calls).join(); }));
  }
  CHECK_FALSE(capturing(stream.handle()));
}

TEST_CASE("asking the id of a stream spoils no capture", "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  const Stream captured;
  const Stream other;
  const auto ask = [&](const Stream& stream) {
    StreamId id{};
    return driver->stream_id({}, stream.handle(), id);
  };
  DriverCode own{};
  DriverCode others{};
  const auto ask_both = [&] {
    own = ask(captured);
    others = ask(other);
  };
  SECTION("from the capturing thread") { CHECK(capture_survives(captured, ask_both)); }
  SECTION("from another thread") {
    CHECK(capture_survives(captured, [&] { std::thread(ask_both).join(); }));
  }
  CHECK(own == DriverCode::capture_unsupported);
  CHECK(others == DriverCode::success);
  CHECK(ask(captured) == DriverCode::success);
}

TEST_CASE("plain memory does not spoil a capture in global mode", "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  const Stream stream;
  DeviceAddress address{};
  CHECK(capture_survives(stream, [&] {
    CHECK(driver->malloc_plain({}, Bytes{1 << 20}, address) == DriverCode::success);
  }));
  CHECK(driver->free_plain(address) == DriverCode::success);
}

TEST_CASE("the test's own measure: a plain event query does spoil a capture",
          "[driver][cuda][gpu]") {
  const Stream stream;
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event));
  check(cudaEventRecord(event, stream.raw()));
  stream.synchronize();
  CHECK_FALSE(capture_survives(stream, [&] {
    CHECK(cudaEventQuery(event) != cudaSuccess);
    cudaGetLastError();
  }));
  check(cudaEventDestroy(event));
}

TEST_CASE("the legacy default stream counts as capturing while another's capture binds it",
          "[driver][cuda][gpu]") {
  const Stream blocking(true);
  CHECK_FALSE(capturing({}));
  CHECK(capture_survives(blocking, [&] { CHECK(capturing({})); }));
  CHECK_FALSE(capturing({}));
}

TEST_CASE("stream ids are never used twice, unlike handles", "[driver][cuda][gpu]") {
  constexpr std::size_t kStreams = 100;
  std::set<void*> handles;
  std::set<StreamId> ids;
  for (std::size_t i = 0; i < kStreams; ++i) {
    const Stream stream;
    handles.insert(stream.raw());
    ids.insert(id_of(stream.handle()));
  }
  std::printf("%zu streams in turn: %zu handles, %zu ids\n", kStreams, handles.size(), ids.size());
  CHECK(ids.size() == kStreams);
  CHECK(ids.count(kNoStream) == 0);
}

TEST_CASE("the default streams have the ids of what they are", "[driver][cuda][gpu]") {
  const StreamHandle legacy{cudaStreamLegacy};
  const StreamHandle per_thread{cudaStreamPerThread};
  CHECK(id_of({}) == id_of(legacy));
  const StreamId mine = id_of(per_thread);
  StreamId theirs{};
  std::thread([&] { theirs = id_of(per_thread); }).join();
  CHECK(mine != id_of(legacy));
  CHECK(mine != theirs);
  CHECK(mine == id_of(per_thread));
}

TEST_CASE("memset keeps the order of the legacy default stream", "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  const Bytes page = driver->device_info({}).granularity;
  const Stream blocking(true);
  Gate gate;
  MismatchCounter mismatches;
  MappedExtent extent(page);
  const VaRange range = extent.map();
  gate.hold(blocking);
  fill(to_pointer(range.begin), page, 1, blocking);
  CHECK(driver->memset({}, range.begin, 0, page, {}) == DriverCode::success);
  gate.open();
  mismatches.expect(to_pointer(range.begin), page, 0, blocking);
  CHECK(mismatches.total() == 0);
}
