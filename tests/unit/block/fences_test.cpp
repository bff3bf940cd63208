// SPDX-License-Identifier: Apache-2.0
// StreamTable and Fences: batches of frees, the events that cover them, and what passes when.
#include <bursar/block/fences.hpp>

#include <bursar/driver/sim_driver.hpp>

#include "support/catch.hpp"

namespace bursar::test {
namespace {

using Mutex = RankedMutex<LockRank::heap>;

class FenceFixture {
 public:
  FenceFixture() { slot = streams.slot_of(id_of(stream)); }

  StreamId id_of(StreamHandle handle) {
    StreamId id;
    (void)driver.stream_id({}, handle, id);
    return id;
  }
  StreamRef named() { return StreamRef{stream, id_of(stream)}; }
  FencePoint free(Bytes size = Bytes{512}) { return streams.note_free(slot, size); }
  StreamState& state() { return streams.at(slot); }
  void work(std::int64_t ms) { driver.launch(stream, milliseconds(ms)); }
  void pass(std::int64_t ms) { driver.sleep_for(milliseconds(ms)); }

  SimDriver driver;
  StreamHandle stream = driver.create_stream();
  StreamTable streams;
  StreamSlot slot = kAnyStream;
  Fences fences{driver, {}, streams};
  Mutex mutex;
  HeapLock lock{mutex};
};

}  // namespace

TEST_CASE("a stream keeps its slot and a swept one is forgotten", "[block][stream_table]") {
  StreamTable streams;
  const StreamSlot one = streams.slot_of(StreamId{7});
  const StreamSlot two = streams.slot_of(StreamId{8});
  CHECK(one != kAnyStream);
  CHECK(streams.slot_of(StreamId{7}) == one);
  CHECK(streams.find(StreamId{9}) == kAnyStream);
  std::vector<bool> used(streams.end_slot(), false);
  used[two] = true;
  streams.sweep(used);
  CHECK(streams.find(StreamId{7}) == kAnyStream);
  CHECK(streams.find(StreamId{8}) == two);
  CHECK(streams.slot_of(StreamId{9}) == one);
}

TEST_CASE("a stream with a pin, a fence or a waiter is not swept", "[block][stream_table]") {
  StreamTable streams;
  const StreamSlot slot = streams.slot_of(StreamId{7});
  Block block;
  const int hold = GENERATE(0, 1, 2);
  if (hold == 0) streams.at(slot).pins = 1;
  if (hold == 1) streams.at(slot).fences.push_back({});
  if (hold == 2) streams.at(slot).waiting.push_back(&block);
  streams.sweep(std::vector<bool>(streams.end_slot(), false));
  CHECK(streams.find(StreamId{7}) == slot);
}

TEST_CASE("frees join the open batch until a fence closes it", "[block][fences]") {
  FenceFixture f;
  const FencePoint first = f.free();
  const FencePoint second = f.free();
  CHECK(first.batch == second.batch);
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  CHECK(f.state().unfenced == 0);
  CHECK(f.state().unfenced_bytes == Bytes{});
  CHECK(f.free().batch == first.batch + 1);
}

TEST_CASE("a batch passes when its work is done and not before", "[block][fences]") {
  FenceFixture f;
  f.work(10);
  const FencePoint freed = f.free();
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  f.work(10);
  const FencePoint later = f.free();
  CHECK(f.fences.poll(f.lock).empty());
  CHECK(f.fences.outstanding(f.lock));
  f.pass(11);
  CHECK(f.fences.poll(f.lock) == std::vector<StreamSlot>{f.slot});
  CHECK(f.streams.passed(freed));
  CHECK_FALSE(f.streams.passed(later));
  CHECK_FALSE(f.fences.outstanding(f.lock));
}

TEST_CASE("no event is recorded where nothing needs one", "[block][fences]") {
  FenceFixture f;
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  CHECK(f.driver.event_count() == 0);
  f.state().fence_wanted = true;
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  CHECK(f.driver.event_count() == 1);
  CHECK_FALSE(f.state().fence_wanted);
}

TEST_CASE("an event serves the next fence once it has passed", "[block][fences]") {
  FenceFixture f;
  for (int i = 0; i < 5; ++i) {
    f.free();
    REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
    CHECK(f.fences.poll(f.lock).size() == 1);
  }
  CHECK(f.driver.event_count() == 1);
}

TEST_CASE("while a stream is captured its frees wait for a later fence", "[block][fences]") {
  FenceFixture f;
  const FencePoint freed = f.free(Bytes{4096});
  f.driver.begin_capture(f.stream);
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  CHECK(f.state().unfenced == 1);
  CHECK(f.state().unfenced_bytes == Bytes{4096});
  CHECK_FALSE(f.fences.outstanding(f.lock));
  CHECK(f.driver.end_capture(f.stream));
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  f.fences.poll(f.lock);
  CHECK(f.streams.passed(freed));
}

TEST_CASE("a fence that fails is due again and covers the batch", "[block][fences]") {
  FenceFixture f;
  const FencePoint freed = f.free();
  f.driver.fail(
      GENERATE(DriverCall::event_create, DriverCall::event_record, DriverCall::stream_capturing), 1,
      false, DriverCode::unknown);
  const result<void> failed = f.fences.record(f.lock, f.named(), f.slot);
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.failure().kind == ErrorKind::driver_fault);
  CHECK(f.state().unfenced == 1);
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  f.fences.poll(f.lock);
  CHECK(f.streams.passed(freed));
}

TEST_CASE("many fences on one stream share their last event", "[block][fences]") {
  FenceFixture f;
  f.work(10);
  FencePoint last;
  for (int i = 0; i < 200; ++i) {
    last = f.free();
    REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  }
  CHECK(f.driver.event_count() <= 65);
  f.pass(11);
  f.fences.poll(f.lock);
  CHECK(f.streams.passed(last));
}

TEST_CASE("a capped fence that fails leaves its batch to the next one", "[block][fences]") {
  FenceFixture f;
  f.work(10);
  FencePoint last;
  for (int i = 0; i < 64; ++i) {
    last = f.free();
    REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  }
  f.free();
  f.driver.fail(DriverCall::event_record, 1, false, DriverCode::unknown);
  REQUIRE_FALSE(f.fences.record(f.lock, f.named(), f.slot).ok());
  f.pass(11);
  f.fences.poll(f.lock);
  CHECK_FALSE(f.streams.passed(last));
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  f.fences.poll(f.lock);
  CHECK(f.streams.passed(last));
}

TEST_CASE("fences recorded out of order are kept in order of their batch", "[block][fences]") {
  FenceFixture f;
  // What a thread that was slow to record leaves: a later batch's fence is there already.
  EventHandle later{};
  REQUIRE(f.driver.event_create({}, later) == DriverCode::success);
  REQUIRE(f.driver.event_record({}, later, f.stream) == DriverCode::success);
  f.state().fences.push_back({later, f.state().open_batch + 1});
  f.free();
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  REQUIRE(f.state().fences.size() == 2);
  CHECK(f.state().fences.front().batch < f.state().fences.back().batch);
  CHECK(f.state().fences.back().event == later);
}

TEST_CASE("a retired stream takes no fence and its frees join the last", "[block][fences]") {
  FenceFixture f;
  const FencePoint before = f.free();
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  f.state().retired = true;
  CHECK(f.free().batch == before.batch);
  CHECK(f.state().unfenced == 0);
  REQUIRE(f.fences.record(f.lock, f.named(), f.slot).ok());
  CHECK(f.state().fences.size() == 1);
}

TEST_CASE("streams count by the weight of their live memory", "[block][streams]") {
  StreamTable streams;
  CHECK(streams.effective_streams() == 1);
  streams.at(streams.slot_of(StreamId{1})).live = Bytes{100};
  CHECK(streams.effective_streams() == 1);
  streams.at(streams.slot_of(StreamId{2})).live = Bytes{100};
  CHECK(streams.effective_streams() == 2);
  streams.at(streams.slot_of(StreamId{3})).live = Bytes{1};
  CHECK(streams.effective_streams() > 2);
  CHECK(streams.effective_streams() < 2.1);
}

}  // namespace bursar::test
