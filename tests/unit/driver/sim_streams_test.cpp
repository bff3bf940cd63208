// SPDX-License-Identifier: Apache-2.0
// Streams, events and the virtual clock of the simulated driver.
#include <algorithm>
#include <thread>

#include "sim_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {
namespace {

/// Calls cost nothing here: the clock shows the work alone.
SimOptions timeless() {
  SimOptions options;
  options.free_of_charge = true;
  options.detector = true;
  return options;
}

StreamId id_of(SimDriver& driver, StreamHandle stream, DeviceId device = {}) {
  StreamId id = kNoStream;
  SimFixture::must(driver.stream_id(device, stream, id));
  return id;
}

const StreamHandle kLegacy{reinterpret_cast<void*>(1)};
const StreamHandle kPerThread{reinterpret_cast<void*>(2)};

TEST_CASE("a destroyed stream's handle comes back, its id never does", "[driver][sim]") {
  SimFixture f(timeless());
  const StreamHandle first = f.driver.create_stream();
  const StreamId first_id = id_of(f.driver, first);
  f.driver.destroy_stream(first);
  const StreamHandle second = f.driver.create_stream();
  CHECK(second == first);
  CHECK(id_of(f.driver, second) != first_id);
}

TEST_CASE("live streams have handles and ids of their own", "[driver][sim]") {
  SimFixture f(timeless());
  std::vector<StreamHandle> streams;
  for (int i = 0; i < 1000; ++i) streams.push_back(f.driver.create_stream());
  std::vector<StreamId> ids;
  for (StreamHandle stream : streams) ids.push_back(id_of(f.driver, stream));
  std::sort(streams.begin(), streams.end());
  std::sort(ids.begin(), ids.end());
  CHECK(std::adjacent_find(streams.begin(), streams.end()) == streams.end());
  CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
}

TEST_CASE("null and 1 name the legacy default stream of each device", "[driver][sim]") {
  SimOptions options;
  options.devices = 2;
  SimFixture f(options);
  CHECK(id_of(f.driver, {}) == id_of(f.driver, kLegacy));
  CHECK(id_of(f.driver, {}, {0}) != id_of(f.driver, {}, {1}));
}

TEST_CASE("2 names a default stream for each thread and device", "[driver][sim]") {
  SimOptions options;
  options.devices = 2;
  SimFixture f(options);
  const StreamId here = id_of(f.driver, kPerThread);
  StreamId there{};
  std::thread([&] { there = id_of(f.driver, kPerThread); }).join();
  StreamId later{};
  std::thread([&] { later = id_of(f.driver, kPerThread); }).join();
  CHECK(id_of(f.driver, kPerThread) == here);
  CHECK(there != here);
  CHECK(later != there);
  CHECK(id_of(f.driver, kPerThread, {1}) != here);
  CHECK(here != id_of(f.driver, {}));
}

TEST_CASE("a stream runs its work one after another", "[driver][sim]") {
  SimFixture f(timeless());
  const StreamHandle s = f.driver.create_stream();
  f.driver.launch(s, milliseconds(3));
  f.driver.launch(s, milliseconds(4));
  CHECK(f.driver.now() == Duration{});
  f.driver.synchronize(s);
  CHECK(f.driver.now() == milliseconds(7));
  f.driver.advance_to(milliseconds(20));
  f.driver.launch(s, milliseconds(1));
  f.driver.synchronize(s);
  CHECK(f.driver.now() == milliseconds(21));
}

TEST_CASE("streams run beside each other", "[driver][sim]") {
  SimFixture f(timeless());
  f.driver.launch(f.driver.create_stream(), milliseconds(3));
  f.driver.launch(f.driver.create_stream(), milliseconds(5));
  f.driver.synchronize_device();
  CHECK(f.driver.now() == milliseconds(5));
}

TEST_CASE("synchronize_device waits for destroyed streams and for no other device",
          "[driver][sim]") {
  SimOptions options = timeless();
  options.devices = 2;
  SimFixture f(options);
  const StreamHandle s = f.driver.create_stream({1});
  f.driver.launch(s, milliseconds(8));
  f.driver.destroy_stream(s);
  f.driver.synchronize_device({0});
  CHECK(f.driver.now() == Duration{});
  f.driver.synchronize_device({1});
  CHECK(f.driver.now() == milliseconds(8));
}

TEST_CASE("an event is ready when the work before its record is over", "[driver][sim]") {
  SimFixture f(timeless());
  const StreamHandle s = f.driver.create_stream();
  f.driver.launch(s, milliseconds(2));
  const EventHandle event = f.recorded(s);
  f.driver.launch(s, milliseconds(100));
  CHECK(f.driver.event_query(event) == not_ready);
  f.driver.advance_to(milliseconds(2) - Duration{1});
  CHECK(f.driver.event_query(event) == not_ready);
  f.driver.sleep_for(Duration{1});
  CHECK(f.driver.event_query(event) == success);
}

TEST_CASE("an event recorded again stands for the later record", "[driver][sim]") {
  SimFixture f(timeless());
  const EventHandle event = f.recorded({});
  CHECK(f.driver.event_query(event) == success);
  f.driver.launch({}, milliseconds(1));
  f.must(f.driver.event_record({}, event, {}));
  CHECK(f.driver.event_query(event) == not_ready);
}

TEST_CASE("an event never recorded is ready", "[driver][sim]") {
  SimFixture f(timeless());
  CHECK(f.driver.event_query(f.event()) == success);
}

TEST_CASE("a stream that waits for an event starts its work after it", "[driver][sim]") {
  SimFixture f(timeless());
  const StreamHandle a = f.driver.create_stream();
  const StreamHandle b = f.driver.create_stream();
  f.driver.launch(a, milliseconds(10));
  f.must(f.driver.stream_wait({}, b, f.recorded(a)));
  f.driver.launch(b, milliseconds(1));
  f.driver.synchronize(b);
  CHECK(f.driver.now() == milliseconds(11));
}

TEST_CASE("events are counted, reused and refused after their end", "[driver][sim]") {
  SimFixture f(timeless());
  const EventHandle event = f.event();
  CHECK(f.driver.event_count() == 1);
  CHECK(f.driver.event_destroy(event) == success);
  CHECK(f.driver.event_count() == 0);
  CHECK(f.driver.event_destroy(event) == invalid_handle);
  CHECK(f.driver.event_query(event) == invalid_handle);
  CHECK(f.driver.event_record({}, event, {}) == invalid_handle);
  CHECK(f.driver.stream_wait({}, {}, {}) == invalid_handle);
  CHECK(f.event() == event);
}

TEST_CASE("an event is recorded on its own device only", "[driver][sim]") {
  SimOptions options;
  options.devices = 2;
  SimFixture f(options);
  CHECK(f.driver.event_record({1}, f.event({0}), {}) == invalid_handle);
  CHECK(f.driver.event_record({1}, f.event({1}), {}) == success);
}

TEST_CASE("a destroyed stream's handle is refused and reported", "[driver][sim]") {
  SimFixture f(timeless());
  const StreamHandle s = f.driver.create_stream();
  const EventHandle event = f.event();
  const VaRange at = f.mapped(f.extent());
  f.driver.destroy_stream(s);
  StreamId id{};
  bool capturing = false;
  CHECK(f.driver.stream_id({}, s, id) == invalid_handle);
  CHECK(f.driver.stream_capturing({}, s, capturing) == invalid_handle);
  CHECK(f.driver.event_record({}, event, s) == invalid_handle);
  CHECK(f.driver.stream_wait({}, s, event) == invalid_handle);
  CHECK(f.driver.memset({}, at.begin, 0, kPage, s) == invalid_handle);
  f.driver.launch(s, milliseconds(1));
  CHECK(count(f.driver, Violation::Kind::dangling_stream) == 6);
}

TEST_CASE("a handle that never was a stream is refused", "[driver][sim]") {
  SimFixture f(timeless());
  StreamId id{};
  int local = 0;
  CHECK(f.driver.stream_id({}, {&local}, id) == invalid_handle);
  CHECK(f.driver.stream_id({7}, {}, id) == invalid_device);
  CHECK(count(f.driver, Violation::Kind::dangling_stream) == 1);
}

TEST_CASE("the clock never goes back", "[driver][sim]") {
  SimFixture f(timeless());
  f.driver.advance_to(milliseconds(5));
  f.driver.advance_to(milliseconds(3));
  f.driver.sleep_for(milliseconds(-1));
  CHECK(f.driver.now() == milliseconds(5));
}

TEST_CASE("a capture ends well when nothing spoiled it", "[driver][sim]") {
  SimFixture f(timeless());
  const StreamHandle s = f.driver.create_stream();
  const EventHandle idle = f.recorded({});
  bool capturing = false;
  f.driver.begin_capture(s);
  f.must(f.driver.stream_capturing({}, s, capturing));
  CHECK(capturing);
  f.driver.launch(s, milliseconds(1));
  f.mapped(f.extent());
  CHECK(f.driver.event_query(idle) == success);
  CHECK(f.driver.end_capture(s));
  f.must(f.driver.stream_capturing({}, s, capturing));
  CHECK_FALSE(capturing);
  DeviceAddress address;
  CHECK(f.driver.malloc_plain({}, kPage, address) == success);
  CHECK(f.driver.violations().empty());
}

TEST_CASE("captured work does not run", "[driver][sim]") {
  SimFixture f(timeless());
  const StreamHandle s = f.driver.create_stream();
  f.driver.begin_capture(s);
  f.driver.launch(s, milliseconds(9));
  f.driver.end_capture(s);
  f.driver.synchronize(s);
  CHECK(f.driver.now() == Duration{});
}

TEST_CASE("calls that spoil a capture are refused and reported", "[driver][sim]") {
  SimFixture f(timeless());
  const StreamHandle s = f.driver.create_stream();
  const EventHandle event = f.recorded({});
  DeviceAddress address;
  f.must(f.driver.malloc_plain({}, kPage, address));
  f.driver.begin_capture(s);
  SECTION("event_record") { CHECK(f.driver.event_record({}, event, s) == capture_unsupported); }
  SECTION("stream_wait") { CHECK(f.driver.stream_wait({}, s, event) == capture_unsupported); }
  SECTION("malloc_plain") {
    CHECK(f.driver.malloc_plain({}, kPage, address) == capture_unsupported);
  }
  SECTION("free_plain") { CHECK(f.driver.free_plain(address) == capture_unsupported); }
  SECTION("synchronize") { CHECK_NOTHROW(f.driver.synchronize(s)); }
  SECTION("synchronize_device") { CHECK_NOTHROW(f.driver.synchronize_device()); }
  CHECK(count(f.driver, Violation::Kind::capture_spoiled) == 1);
  CHECK_FALSE(f.driver.end_capture(s));
  f.driver.begin_capture(s);
  CHECK(f.driver.end_capture(s));
}

}  // namespace
}  // namespace bursar::test
