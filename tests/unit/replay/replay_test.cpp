// SPDX-License-Identifier: Apache-2.0
// Replays of small made traces, with figures that can be worked out by hand.
#include "support/catch.hpp"

#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "made_trace.hpp"
#include "replay/driver_target.hpp"
#include "replay/replay.hpp"
#include "replay/sim_device.hpp"

using namespace bursar;
using namespace bursar::literals;
using bursar::test::kAllocate;
using bursar::test::kFree;
using bursar::test::Step;
using bursar::test::trace_of;

namespace {

std::vector<ReplayRow> replay_on(SimDevice& device, const std::vector<Trace>& traces,
                                 int passes = 1, const char* allocator = "segment_cache") {
  ReplayOptions options;
  options.passes = passes;
  const auto target = device.make_target(allocator);
  return replay(traces, device, *target, options);
}

/// A target that serves nothing real and writes down what it was asked, by which thread.
class RecordingTarget : public ReplayTarget {
 public:
  struct Call {
    Bytes allocated{};  ///< 0 for a free
    StreamId stream{};
    std::thread::id thread;
  };

  const char* name() const noexcept override { return "recording"; }
  result<StreamRef> resolve(StreamHandle stream) noexcept override {
    return StreamRef(stream, StreamId{++streams});
  }
  result<void> retire(StreamRef) noexcept override {
    ++retired;
    return {};
  }
  result<void*> allocate(Bytes size, StreamRef stream) noexcept override {
    calls.push_back({size, stream.id, std::this_thread::get_id()});
    if (fault) return *fault;
    return to_pointer(DeviceAddress{++blocks});
  }
  result<void> deallocate(void*, StreamRef stream) noexcept override {
    calls.push_back({Bytes{}, stream.id, std::this_thread::get_id()});
    return {};
  }
  CallMeter& meter() noexcept override { return meter_; }

  std::vector<Call> calls;
  std::optional<error> fault;
  std::uint64_t streams = 0;
  std::uint64_t retired = 0;
  std::uint64_t blocks = 0;

 private:
  CallMeter meter_;
};

/// Holds 100 bytes for its first block, 50 for the second, and so on.
class ShrinkingTarget final : public RecordingTarget {
 public:
  result<void*> allocate(Bytes size, StreamRef stream) noexcept override {
    const result<void*> block = RecordingTarget::allocate(size, stream);
    held_ = Bytes{100 / blocks};
    meter().created(held_);
    return block;
  }
  result<void> deallocate(void* block, StreamRef stream) noexcept override {
    meter().released(held_);
    return RecordingTarget::deallocate(block, stream);
  }

 private:
  Bytes held_{};
};

const Trace kSmall = bursar::test::small_trace();

}  // namespace

TEST_CASE("a row says what the trace asked and what the device held", "[replay]") {
  SimDevice device;
  const std::vector<ReplayRow> rows = replay_on(device, {kSmall});
  REQUIRE(rows.size() == 1);
  const ReplayRow& row = rows[0];
  CHECK(row.trace == "small.csv");
  CHECK(row.allocator == "segment_cache");
  CHECK(row.device == "sim");
  CHECK(row.pass == 1);
  CHECK(row.operations == 5);
  CHECK(row.requested_peak == 30_MiB + 600_KiB);
  CHECK(row.reserved_peak() == 52_MiB);
  CHECK(row.utilization() == Approx(30.5859375 / 52));
  CHECK(row.driver.count(DriverCall::create) == 3);
  CHECK(row.driver.count(DriverCall::release) == 0);
  CHECK(row.driver.total_time() > Duration{});
  CHECK(row.trace_duration == milliseconds(9));
  CHECK_FALSE(row.ran_out);
}

TEST_CASE("the cache is kept between passes and live blocks are freed", "[replay]") {
  SimDevice device;
  const std::vector<ReplayRow> rows = replay_on(device, {kSmall}, 3);
  REQUIRE(rows.size() == 3);
  for (int i : {1, 2}) {
    const ReplayRow& row = rows[static_cast<std::size_t>(i)];
    CHECK(row.pass == i + 1);
    CHECK(row.operations == 5);
    CHECK(row.requested_peak == rows[0].requested_peak);
    CHECK(row.reserved_peak() == 52_MiB);
    CHECK(row.driver.count(DriverCall::create) == 0);
    CHECK(row.driver.total_time() == Duration{});
  }
}

TEST_CASE("each pass has a reserved peak of its own", "[replay]") {
  SimDevice device;
  ShrinkingTarget target;
  const std::vector<Trace> traces{trace_of("one.csv", {{0, kAllocate, 0, 1_B}})};
  ReplayOptions options;
  options.passes = 2;
  const std::vector<ReplayRow> rows = replay(traces, device, target, options);
  CHECK(rows.at(0).reserved_peak() == 100_B);
  CHECK(rows.at(1).reserved_peak() == 50_B);
}

TEST_CASE("a pass that runs out of memory says at which event and ends there", "[replay]") {
  SimDevice device({.capacity = 31_MiB});
  const std::vector<ReplayRow> rows = replay_on(device, {kSmall}, 2);
  REQUIRE(rows.size() == 2);
  for (const ReplayRow& row : rows) {
    REQUIRE(row.ran_out);
    CHECK(row.ran_out->trace == "small.csv");
    CHECK(row.ran_out->event == 4);
    CHECK(row.ran_out->line == 5);
    CHECK(row.operations == 3);
    CHECK(row.requested_peak == 3_MiB + 600_KiB);
  }
}

TEST_CASE("a device smaller than a page serves nothing", "[replay][sim]") {
  const char* allocator = GENERATE("bursar", "segment_cache");
  SimDevice device({.capacity = 1000_B});
  const std::vector<ReplayRow> rows = replay_on(device, {kSmall}, 1, allocator);
  REQUIRE(rows.at(0).ran_out);
  CHECK(rows[0].ran_out->event == 1);
  CHECK(rows[0].reserved_peak() == 0_B);
}

TEST_CASE("a failure that is not want of memory is not reported as one", "[replay]") {
  SimDevice device;
  RecordingTarget target;
  target.fault = error{.kind = ErrorKind::driver_fault, .message = "broken"};
  CHECK_THROWS_WITH(
      replay(std::vector<Trace>{kSmall}, device, target),
      Catch::Matchers::StartsWith("recording failed at line 2 of small.csv: driver_fault: broken"));
}

TEST_CASE("traces replayed at once keep one order of events", "[replay][concurrent]") {
  SimDevice device;
  RecordingTarget target;
  const std::vector<Trace> traces{
      trace_of("a.csv", {{0, kAllocate, 0, 1_B}, {4, kAllocate, 1, 4_B}, {4, kFree, 0}}),
      trace_of("b.csv", {{0, kAllocate, 0, 2_B}, {3, kAllocate, 1, 3_B, 1}, {4, kFree, 0}})};
  const std::vector<ReplayRow> rows = replay(traces, device, target);
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < 6; ++i) sizes.push_back(target.calls[i].allocated.count);
  CHECK(sizes == std::vector<std::uint64_t>{1, 2, 3, 4, 0, 0});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].trace == "a.csv+b.csv");
  CHECK(rows[0].operations == 6);
  CHECK(rows[0].requested_peak == 10_B);
  CHECK(rows[0].trace_duration == milliseconds(4));
}

TEST_CASE("traces replayed at once have threads and streams of their own", "[replay][concurrent]") {
  SimDevice device;
  RecordingTarget target;
  const std::vector<Trace> traces{
      trace_of("a.csv", {{0, kAllocate, 0, 1_B}, {2, kAllocate, 1, 1_B}}),
      trace_of("b.csv", {{1, kAllocate, 0, 1_B, 0}, {3, kAllocate, 1, 1_B, 1}})};
  replay(traces, device, target);
  const auto& calls = target.calls;
  REQUIRE(calls.size() == 8);  // four frees of what was left
  CHECK(calls[0].thread == calls[2].thread);
  CHECK(calls[1].thread == calls[3].thread);
  CHECK(calls[0].thread != calls[1].thread);
  CHECK(calls[0].stream == calls[2].stream);
  std::set<StreamId> streams{calls[0].stream, calls[1].stream, calls[3].stream};
  CHECK(streams.size() == 3);
  CHECK(target.retired == 3);
}

TEST_CASE("on sim, time is trace time plus driver time", "[replay][sim]") {
  SimDevice device;
  const Duration start = device.driver().now();
  const std::vector<ReplayRow> rows = replay_on(device, {kSmall}, 2);
  const Duration first = milliseconds(9) + rows[0].driver.total_time();
  const Duration both = first + milliseconds(9) + rows[1].driver.total_time();
  const Duration passed = device.driver().now() - start;
  CHECK(passed >= both);
  CHECK(passed < both + milliseconds(5));  // streams made and destroyed, segments given back
}

TEST_CASE("a replay with gpu lag ends with the last block's work", "[replay][sim]") {
  SimDevice device({.gpu_lag = milliseconds(50)});
  const Duration start = device.driver().now();
  replay_on(device, {kSmall});
  CHECK(device.driver().now() - start >= milliseconds(9 + 50));
}

TEST_CASE("gpu lag gives every freed block work that ends that much later", "[replay][sim]") {
  SimDevice device({.gpu_lag = milliseconds(50), .detector = true});
  const StreamHandle stream = device.create_stream();
  const auto target = device.make_target("segment_cache");
  const result<StreamRef> ref = target->resolve(stream);
  REQUIRE(ref);
  const result<void*> block = target->allocate(1_MiB, *ref);
  REQUIRE(block);
  device.start_pass();
  device.reach(milliseconds(10));
  device.use(*block, 1_MiB, stream);
  device.reach(milliseconds(30));
  device.use(*block, 1_MiB, stream);
  const Duration now = device.driver().now();
  device.driver().synchronize(stream);
  CHECK(device.driver().now() - now == milliseconds(50));
  CHECK(device.driver().violations().empty());
  device.destroy_stream(stream);
}

TEST_CASE("rows know how little could be held with the device's lag", "[replay][sim]") {
  const std::vector<Trace> traces{trace_of("a.csv", {{0, kAllocate, 0, 8_MiB}, {1, kFree, 0}}),
                                  trace_of("b.csv", {{3, kAllocate, 0, 6_MiB}, {4, kFree, 0}})};
  const auto held = [&traces](const SimDeviceOptions& options) {
    SimDevice device(options);
    const std::vector<ReplayRow> rows = replay_on(device, traces, 2);
    CHECK(rows.at(1).bound.least_reserved == rows[0].bound.least_reserved);
    return rows[0].bound.least_reserved;
  };
  CHECK(held({}) == 8_MiB);
  CHECK(held({.gpu_lag = milliseconds(50)}) == 14_MiB);
  CHECK(held({.capacity = 2_MiB, .gpu_lag = milliseconds(50)}) == 14_MiB);
}

TEST_CASE("the progress told reaches no further than the whole", "[replay]") {
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    steps.push_back({0, kAllocate, i, 512_B});
    steps.push_back({0, kFree, i});
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
  ReplayOptions options;
  options.passes = 2;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    told.emplace_back(done, total);
  };
  SimDevice device;
  const auto target = device.make_target("segment_cache");
  replay(std::vector<Trace>{trace_of("long.csv", steps)}, device, *target, options);
  REQUIRE(told.size() >= 2);
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(told.back().first > 10'000);
  CHECK(told.back().first <= 20'000);
  CHECK(told.back().second == 20'000);
}

TEST_CASE("a trace without events makes a row of nothing", "[replay]") {
  SimDevice device;
  Trace empty;
  empty.name = "empty.csv";
  const std::vector<ReplayRow> rows = replay_on(device, {empty});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].operations == 0);
  CHECK(rows[0].utilization() == 1.0);
  CHECK(rows[0].ns_per_operation() == 0.0);
}

TEST_CASE("bursar serves a trace with gpu lag and no unordered use", "[replay][sim]") {
  SimDevice device({.gpu_lag = milliseconds(20), .detector = true});
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const Bytes size = 1_KiB * (1 + i * i % 9000);
    steps.push_back({static_cast<int>(i), kAllocate, i, size, i % 3});
    if (i >= 8) steps.push_back({static_cast<int>(i), kFree, i - 8, {}, (i - 8) % 3});
  }
  const std::vector<Trace> traces{trace_of("a.csv", steps), trace_of("b.csv", steps)};
  const std::vector<ReplayRow> rows = replay_on(device, traces, 2, "bursar");
  for (const ReplayRow& row : rows) {
    CHECK_FALSE(row.ran_out);
    CHECK(row.operations == 2 * 792);
    CHECK(row.reserved_peak() >= row.requested_peak);
  }
  CHECK(device.driver().violations().empty());
}
