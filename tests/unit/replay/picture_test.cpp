// SPDX-License-Identifier: Apache-2.0
// What a page shows of a replay: that it is true, and that looking changes nothing.
#include "support/catch.hpp"

#include <algorithm>

#include "made_trace.hpp"
#include "replay/picture.hpp"
#include "replay/replay.hpp"
#include "replay/sim_device.hpp"

using namespace bursar;
using namespace bursar::literals;
using bursar::test::kAllocate;
using bursar::test::kFree;
using bursar::test::small_trace;
using bursar::test::trace_of;

namespace {

std::vector<ReplayRow> watched(const std::vector<Trace>& traces, PictureWatch* watch,
                               const char* allocator, int passes = 1, Bytes capacity = 4_GiB) {
  SimDeviceOptions sim;
  sim.capacity = capacity;
  SimDevice device(sim);
  ReplayOptions options;
  options.passes = passes;
  options.watch = watch;
  const auto target = device.make_target(allocator);
  return replay(traces, device, *target, options);
}

Bytes highest(const Timeline& timeline) {
  return *std::max_element(timeline.highest().begin(), timeline.highest().end());
}

/// Takes 8 bytes and gives 6 of them back within each allocation; counts its snapshots.
class BreathingTarget final : public ReplayTarget {
 public:
  const char* name() const noexcept override { return "breathing"; }
  result<StreamRef> resolve(StreamHandle stream) noexcept override {
    return StreamRef(stream, StreamId{1});
  }
  result<void> retire(StreamRef) noexcept override { return {}; }
  result<void*> allocate(Bytes, StreamRef) noexcept override {
    meter_.created(8_B);
    meter_.released(6_B);
    return to_pointer(DeviceAddress{64});
  }
  result<void> deallocate(void*, StreamRef) noexcept override {
    meter_.released(2_B);
    return {};
  }
  std::optional<Snapshot> snapshot() const override {
    ++snapshots;
    return Snapshot{};
  }
  CallMeter& meter() noexcept override { return meter_; }

  mutable int snapshots = 0;

 private:
  CallMeter meter_;
};

}  // namespace

TEST_CASE("the requested peak is found before any replay", "[replay][picture]") {
  const std::vector<Trace> traces{small_trace()};
  const RequestedCurve curve = requested_curve(traces);
  CHECK(curve.peak == 30_MiB + 600_KiB);
  CHECK(curve.peak_operation == 4);
  CHECK(curve.peak_time == milliseconds(3));
  CHECK(highest(curve.timeline) == curve.peak);
}

TEST_CASE("of several events at the requested peak the first counts", "[replay][picture]") {
  const std::vector<Trace> traces{
      trace_of("twice.csv", {{0, kAllocate, 0, 8_MiB}, {1, kFree, 0}, {2, kAllocate, 1, 8_MiB}})};
  CHECK(requested_curve(traces).peak_operation == 1);
}

TEST_CASE("traces together have one curve in the order of the replay", "[replay][picture]") {
  const std::vector<Trace> traces{
      trace_of("a.csv", {{0, kAllocate, 0, 2_MiB}, {4, kFree, 0}}),
      trace_of("b.csv", {{1, kAllocate, 0, 3_MiB}, {2, kFree, 0}, {9, kAllocate, 1, 1_MiB}})};
  const RequestedCurve curve = requested_curve(traces);
  CHECK(curve.peak == 5_MiB);
  CHECK(curve.peak_operation == 2);
  PictureWatch watch(traces, 1);
  watched(traces, &watch, "bursar");
  CHECK(watch.picture().trace == "a.csv+b.csv");
  CHECK(watch.picture().events == 5);
  CHECK(watch.picture().duration == milliseconds(9));
}

TEST_CASE("a reserved curve reaches the row's peak and no higher", "[replay][picture]") {
  const std::vector<Trace> traces{small_trace()};
  PictureWatch watch(traces, 1);
  for (const char* allocator : {"bursar", "segment_cache"}) {
    const std::vector<ReplayRow> rows = watched(traces, &watch, allocator);
    const ReservedCurve& curve = watch.picture().reserved.back();
    CHECK(curve.allocator == allocator);
    CHECK(highest(curve.timeline) == rows[0].reserved_peak());
  }
  CHECK(watch.picture().reserved.size() == 2);
}

TEST_CASE("what is taken and given back within one event is seen", "[replay][picture]") {
  const std::vector<Trace> traces{small_trace()};
  PictureWatch watch(traces, 1);
  SimDevice device;
  BreathingTarget target;
  ReplayOptions options;
  options.watch = &watch;
  const std::vector<ReplayRow> rows = replay(traces, device, target, options);
  CHECK(rows[0].reserved_peak() == 10_B);
  CHECK(highest(watch.picture().reserved[0].timeline) == 10_B);
  // 2 bytes in the end, but 4 until the free in that slice.
  CHECK(watch.picture().reserved[0].timeline.highest().back() == 4_B);
}

TEST_CASE("the first pass and the last have curves, and the first one the map",
          "[replay][picture]") {
  const std::vector<Trace> traces{small_trace()};
  PictureWatch watch(traces, 4);
  SimDevice device;
  BreathingTarget target;
  ReplayOptions options;
  options.passes = 4;
  options.watch = &watch;
  replay(traces, device, target, options);
  REQUIRE(watch.picture().reserved.size() == 2);
  CHECK(watch.picture().reserved[0].pass == 1);
  CHECK(watch.picture().reserved[1].pass == 4);
  CHECK(target.snapshots == 1);
}

TEST_CASE("the map shows just the blocks that are live at the requested peak",
          "[replay][picture]") {
  const std::vector<Trace> traces{trace_of("two.csv", {{0, kAllocate, 0, 5_MiB},
                                                       {1, kAllocate, 1, 3_MiB, 1},
                                                       {2, kAllocate, 2, 1_MiB, 1},
                                                       {3, kFree, 0},
                                                       {4, kAllocate, 3, 4_MiB}})};
  PictureWatch watch(traces, 1);
  watched(traces, &watch, "bursar");
  REQUIRE(watch.picture().map);
  const AddressMap& map = *watch.picture().map;
  Bytes requested;
  std::vector<std::string> live_streams;
  for (const MapRange& range : map.ranges) {
    for (const MapPiece& piece : range.pieces) {
      requested += piece.requested;
      if (piece.requested == 0_B) continue;
      live_streams.push_back(map.streams[static_cast<std::size_t>(piece.stream)]);
    }
  }
  CHECK(requested == 9_MiB);
  std::sort(live_streams.begin(), live_streams.end());
  CHECK(live_streams == std::vector<std::string>{"0", "1", "1"});
}

TEST_CASE("a segment cache has no map", "[replay][picture]") {
  const std::vector<Trace> traces{small_trace()};
  PictureWatch watch(traces, 1);
  watched(traces, &watch, "segment_cache");
  CHECK_FALSE(watch.picture().map);
}

TEST_CASE("where memory runs out the curve ends, and there is no map of a peak not reached",
          "[replay][picture]") {
  const std::vector<Trace> traces{small_trace()};
  PictureWatch watch(traces, 1);
  const std::vector<ReplayRow> rows = watched(traces, &watch, "bursar", 1, 24_MiB);
  REQUIRE(rows[0].ran_out);
  const Timeline& timeline = watch.picture().reserved[0].timeline;
  CHECK(timeline.highest().size() ==
        static_cast<std::size_t>(milliseconds(2).ns / timeline.slice_length().ns) + 1);
  CHECK_FALSE(watch.picture().map);
}

TEST_CASE("a watched replay comes to the same rows", "[replay][picture]") {
  const std::vector<Trace> traces{small_trace()};
  PictureWatch watch(traces, 2);
  const std::vector<ReplayRow> with = watched(traces, &watch, "bursar", 2);
  const std::vector<ReplayRow> without = watched(traces, nullptr, "bursar", 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(with[i].driver.calls == without[i].driver.calls);
    CHECK(with[i].driver.nanoseconds == without[i].driver.nanoseconds);
    CHECK(with[i].reserved_peak() == without[i].reserved_peak());
    CHECK(with[i].requested_peak == without[i].requested_peak);
    CHECK(with[i].operations == without[i].operations);
  }
}
