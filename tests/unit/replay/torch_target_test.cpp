// SPDX-License-Identifier: Apache-2.0
// How PyTorch's statistics become a meter, with a made allocator behind the table of functions.
#include "support/catch.hpp"

#include <bursar/core/log.hpp>

#include "made_trace.hpp"
#include "replay/replay.hpp"
#include "replay/sim_device.hpp"
#include "replay/torch_target.hpp"

using namespace bursar;
using namespace bursar::literals;

namespace {

/// Holds 20 MiB segments, one an allocation; the first allocation takes two and gives one back.
struct MadeTorch {
  bool expandable = false;
  int stops = 0;
  int frees = 0;
  void* stream = nullptr;
  TorchOutcome next = TorchOutcome::done;
  TorchMemory memory{};
};
MadeTorch made;

constexpr std::uint64_t kSegment = 20ull << 20;

const TorchPeer kMadePeer{[](bool expandable) {
                            made.expandable = expandable;
                            return made.next;
                          },
                          [](void** out, std::size_t, void* stream) {
                            if (made.next != TorchOutcome::done) return made.next;
                            made.stream = stream;
                            *out = &made;
                            const bool first = made.memory.device_allocs == 0;
                            made.memory.device_allocs += first ? 2 : 1;
                            made.memory.device_frees += first ? 1 : 0;
                            made.memory.reserved += kSegment;
                            made.memory.reserved_highest =
                                made.memory.reserved + (first ? kSegment : 0);
                            return TorchOutcome::done;
                          },
                          [](void*) {
                            ++made.frees;
                            return made.next;
                          },
                          [](TorchMemory* out) {
                            *out = made.memory;
                            made.memory.reserved_highest = made.memory.reserved;
                            return TorchOutcome::done;
                          },
                          [] {
                            ++made.stops;
                            return TorchOutcome::done;
                          },
                          [] { return "made to fail"; }};

std::unique_ptr<ReplayTarget> fresh(bool expandable = false) {
  made = {};
  return make_torch_target(kMadePeer, expandable);
}

/// What is logged while it lives.
class LogKeeper {
 public:
  LogKeeper() {
    set_log_sink([this](LogLevel, std::string_view line) { text += line; });
  }
  ~LogKeeper() { set_log_sink({}); }
  std::string text;
};

}  // namespace

TEST_CASE("each kind of segments has a name and is asked for", "[replay][torch]") {
  CHECK(fresh(false)->name() == std::string("torch"));
  CHECK_FALSE(made.expandable);
  CHECK(fresh(true)->name() == std::string("torch_expandable"));
  CHECK(made.expandable);
}

TEST_CASE("the meter holds what the statistics say, peaks within a call included",
          "[replay][torch]") {
  const auto target = fresh();
  const StreamRef stream{StreamHandle{&made}};
  CHECK(target->allocate(1_MiB, stream).ok());
  CHECK(made.stream == &made);
  target->observe();
  MeterReading reading = target->meter().read();
  CHECK(reading.reserved == 20_MiB);
  CHECK(reading.reserved_peak == 40_MiB);
  CHECK(reading.count(DriverCall::create) == 2);
  CHECK(reading.count(DriverCall::release) == 1);

  target->meter().reset_peak();
  CHECK(target->allocate(1_MiB, stream).ok());
  CHECK(target->allocate(1_MiB, stream).ok());
  target->observe();
  made.memory.reserved = made.memory.reserved_highest = kSegment;
  target->observe();
  reading = target->meter().read();
  CHECK(reading.reserved == 20_MiB);
  CHECK(reading.reserved_peak == 60_MiB);
  CHECK(reading.count(DriverCall::create) == 4);
}

TEST_CASE("what the cache held before counts from the start", "[replay][torch]") {
  made = {};
  made.memory.reserved = made.memory.reserved_highest = kSegment;
  const auto target = make_torch_target(kMadePeer, false);
  CHECK(target->meter().read().reserved == 20_MiB);
}

TEST_CASE("the cache is emptied at the end", "[replay][torch]") {
  fresh().reset();
  CHECK(made.stops == 1);
}

TEST_CASE("want of memory is no fault, every other failure is", "[replay][torch]") {
  const auto target = fresh();
  made.next = TorchOutcome::out_of_memory;
  const auto none = target->allocate(5_MiB, {});
  REQUIRE_FALSE(none);
  CHECK(none.failure().kind == ErrorKind::device_oom);
  CHECK(none.failure().asked == 5_MiB);
  CHECK(none.failure().retryable());

  const LogKeeper kept;
  made.next = TorchOutcome::failed;
  const auto broken = target->allocate(5_MiB, {});
  REQUIRE_FALSE(broken);
  CHECK(broken.failure().kind == ErrorKind::driver_fault);
  CHECK(kept.text == "torch: made to fail");
  CHECK(target->deallocate(&made, {}).failure().kind == ErrorKind::driver_fault);
}

TEST_CASE("an allocator that does not start is an error", "[replay][torch]") {
  made = {};
  made.next = TorchOutcome::failed;
  const LogKeeper kept;
  CHECK_THROWS_AS(make_torch_target(kMadePeer, false), Error);
  CHECK(made.stops == 0);
}

TEST_CASE("null is freed without a call", "[replay][torch]") {
  const auto target = fresh();
  CHECK(target->deallocate(nullptr, {}).ok());
  CHECK(made.frees == 0);
}

TEST_CASE("a row of an allocator whose driver time nobody knows says so", "[replay][torch]") {
  SimDevice device;
  const auto target = fresh();
  const std::vector<Trace> traces{bursar::test::small_trace()};
  const std::vector<ReplayRow> rows = replay(traces, device, *target);
  CHECK_FALSE(rows.at(0).driver_timed);
  CHECK(rows[0].reserved_peak() == 60_MiB);
  CHECK(rows[0].allocator == "torch");
}

TEST_CASE("the module is not there or is whole", "[replay][torch]") {
  const TorchPeer* peer = find_torch_peer();
  CHECK((peer == nullptr || peer->message() != nullptr));
  CHECK(peer == find_torch_peer());
}
