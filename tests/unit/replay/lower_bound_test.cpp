// SPDX-License-Identifier: Apache-2.0
// How little memory could be held: cases worked out by hand, and many against the definition.
#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "made_trace.hpp"
#include "replay/lower_bound.hpp"
#include "replay/schedule.hpp"

using namespace bursar;
using namespace bursar::literals;
using bursar::test::kAllocate;
using bursar::test::kFree;
using bursar::test::Step;
using bursar::test::trace_of;

namespace {

Bytes least(const std::vector<Trace>& traces, int lag_ms) {
  return lower_bound_of(traces, milliseconds(lag_ms)).least_reserved;
}
Bytes least(const std::vector<Step>& steps, int lag_ms) {
  return least({trace_of("a.csv", steps)}, lag_ms);
}

/// A block lives on stream 0 until 1 ms, another on stream 1 from 4 ms on.
const std::vector<Step> kOneAfterAnother{
    {0, kAllocate, 0, 10_MiB, 0}, {1, kFree, 0, {}, 0}, {4, kAllocate, 1, 4_MiB, 1}};

/// Some blocks of some streams, each freed where it was allocated, many at one time.
Trace random_trace(std::mt19937& random, std::uint32_t streams) {
  std::vector<Step> steps;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> live;  // block and stream
  std::uint32_t blocks = 0;
  int ms = 0;
  for (int i = 0; i < 60; ++i) {
    ms += static_cast<int>(random() % 3);
    if (!live.empty() && random() % 2 == 0) {
      std::swap(live[random() % live.size()], live.back());
      steps.push_back({ms, kFree, live.back().first, {}, live.back().second});
      live.pop_back();
    } else {
      const auto stream = static_cast<std::uint32_t>(random() % streams);
      steps.push_back({ms, kAllocate, blocks, Bytes{random() % 100}, stream});
      live.emplace_back(blocks++, stream);
    }
  }
  return trace_of("random.csv", steps);
}

/// As the definition says it, at each event and for each stream: the most bytes that lived after
/// one of the events so far, those left out after which a free became old before this event.
Bytes by_definition(const std::vector<Trace>& traces, Duration lag) {
  struct Level {
    Bytes bytes;
    std::vector<std::pair<Bytes, Duration>> past;  ///< and when it was left by a free
  };
  std::map<std::pair<std::size_t, std::uint32_t>, Level> levels;
  Bytes most;
  for (const Stretch& stretch : merge_by_time(traces)) {
    for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
      const TraceEvent& event = traces[stretch.trace].events[i];
      const Bytes size = traces[stretch.trace].block_sizes[event.block];
      Level& level = levels[{stretch.trace, event.stream}];
      if (event.action == kFree) level.past.emplace_back(level.bytes, event.time);
      level.bytes = event.action == kFree ? level.bytes - size : level.bytes + size;
      Bytes sum;
      for (const auto& [where, one] : levels) {
        Bytes highest = one.bytes;
        for (const auto& [bytes, left] : one.past) {
          if (left + lag > event.time) highest = std::max(highest, bytes);
        }
        sum += highest;
      }
      most = std::max(most, sum);
    }
  }
  return most;
}

}  // namespace

TEST_CASE("without lag the least that can be held is the requested peak", "[replay][bound]") {
  const LowerBound bound = lower_bound_of(std::vector{trace_of("a.csv", kOneAfterAnother)}, {});
  CHECK(bound.requested_peak == 10_MiB);
  CHECK(bound.least_reserved == 10_MiB);
  CHECK(bound.utilization() == 1.0);
}

TEST_CASE("what a stream freed within the lag adds to what another asks for", "[replay][bound]") {
  const LowerBound bound =
      lower_bound_of(std::vector{trace_of("a.csv", kOneAfterAnother)}, milliseconds(50));
  CHECK(bound.gpu_lag == milliseconds(50));
  CHECK(bound.requested_peak == 10_MiB);
  CHECK(bound.least_reserved == 14_MiB);
  CHECK(bound.utilization() == 10.0 / 14.0);
}

TEST_CASE("freed bytes serve other streams exactly when the lag is over", "[replay][bound]") {
  CHECK(least(kOneAfterAnother, 4) == 14_MiB);
  CHECK(least(kOneAfterAnother, 3) == 10_MiB);
}

TEST_CASE("a stream takes its own bytes again at once", "[replay][bound]") {
  const std::vector<Step> steps{
      {0, kAllocate, 0, 10_MiB}, {0, kFree, 0}, {0, kAllocate, 1, 10_MiB}, {1, kFree, 1}};
  CHECK(least(steps, 1000) == 10_MiB);
}

TEST_CASE("streams of several traces are streams apart", "[replay][bound]") {
  const Trace one =
      trace_of("a.csv", {{0, kAllocate, 0, 10_MiB}, {1, kFree, 0}, {4, kAllocate, 1, 1_MiB}});
  const Trace other = trace_of("b.csv", {{3, kAllocate, 0, 7_MiB}, {9, kFree, 0}});
  CHECK(least({one, other}, 3) == 17_MiB);
  CHECK(least({one, other}, 2) == 10_MiB);
}

TEST_CASE("only peaks within one lag of each other add up", "[replay][bound]") {
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const int ms = static_cast<int>(i) * 10;
    steps.push_back({ms, kAllocate, i, 30_MiB, i});
    steps.push_back({ms + 1, kFree, i, {}, i});
  }
  CHECK(least(steps, 9) == 30_MiB);
  CHECK(least(steps, 10) == 60_MiB);
  CHECK(least(steps, 40) == 150_MiB);
}

TEST_CASE("after a stream's highest level the next highest counts", "[replay][bound]") {
  const std::vector<Step> steps{{0, kAllocate, 0, 8_MiB, 0}, {0, kAllocate, 1, 4_MiB, 0},
                                {0, kAllocate, 2, 2_MiB, 0}, {1, kFree, 0, {}, 0},
                                {3, kFree, 1, {}, 0},        {12, kAllocate, 3, 16_MiB, 1}};
  CHECK(least(steps, 12) == 30_MiB);
  CHECK(least(steps, 10) == 22_MiB);
  CHECK(least(steps, 9) == 18_MiB);
}

TEST_CASE("streams that free each other's blocks count as one", "[replay][bound]") {
  const auto then_on = [](std::uint32_t stream) {
    return std::vector<Step>{
        {0, kAllocate, 0, 10_MiB, 0}, {1, kFree, 0, {}, 1}, {2, kAllocate, 1, 10_MiB, stream}};
  };
  CHECK(least(then_on(1), 50) == 10_MiB);
  CHECK(least(then_on(0), 50) == 10_MiB);
  CHECK(least(then_on(2), 50) == 20_MiB);
}

TEST_CASE("nothing asked for, nothing to hold", "[replay][bound]") {
  const LowerBound bound = lower_bound_of(std::vector<Trace>(2), milliseconds(5));
  CHECK(bound.least_reserved == 0_B);
  CHECK(bound.utilization() == 1.0);
}

TEST_CASE("the bound is what its definition says", "[replay][bound]") {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Trace> traces{random_trace(random, 3), random_trace(random, 1)};
    for (const int lag : {0, 1, 2, 7, 30, 1000}) {
      INFO(round << ", lag " << lag << " ms");
      CHECK(least(traces, lag) == by_definition(traces, milliseconds(lag)));
    }
  }
}
