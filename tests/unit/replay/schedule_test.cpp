// SPDX-License-Identifier: Apache-2.0
// The one order of several traces, and the threads that keep it.
#include "support/catch.hpp"

#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "replay/schedule.hpp"
#include "replay/turn_threads.hpp"

using namespace bursar;

namespace {

/// A trace whose events happen at `times`, in ms.
Trace trace_at(const std::vector<int>& times) {
  Trace trace;
  for (int ms : times) {
    TraceEvent event;
    event.time = milliseconds(ms);
    trace.events.push_back(event);
  }
  return trace;
}

}  // namespace

TEST_CASE("a trace alone is one stretch", "[replay][schedule]") {
  const std::vector<Trace> traces{trace_at({0, 1, 2})};
  CHECK(merge_by_time(traces) == std::vector<Stretch>{{0, 0, 3}});
}

TEST_CASE("traces without events need no turn", "[replay][schedule]") {
  CHECK(merge_by_time(std::vector<Trace>{trace_at({}), trace_at({})}).empty());
  CHECK(merge_by_time(std::vector<Trace>{trace_at({}), trace_at({4})}) ==
        std::vector<Stretch>{{1, 0, 1}});
}

TEST_CASE("events are merged by time", "[replay][schedule]") {
  const std::vector<Trace> traces{trace_at({0, 1, 5}), trace_at({2, 3, 9}), trace_at({4})};
  CHECK(merge_by_time(traces) ==
        std::vector<Stretch>{{0, 0, 2}, {1, 0, 2}, {2, 0, 1}, {0, 2, 3}, {1, 2, 3}});
}

TEST_CASE("at one time the trace named first goes first", "[replay][schedule]") {
  const std::vector<Trace> traces{trace_at({1, 1, 2}), trace_at({0, 1, 1, 2})};
  CHECK(merge_by_time(traces) ==
        std::vector<Stretch>{{1, 0, 1}, {0, 0, 2}, {1, 1, 3}, {0, 2, 3}, {1, 3, 4}});
}

TEST_CASE("each stretch is worked on by its trace's thread, in order", "[replay][turns]") {
  std::vector<std::pair<Stretch, std::thread::id>> seen;
  TurnThreads threads(3, [&](const Stretch& s) {
    seen.emplace_back(s, std::this_thread::get_id());
    return true;
  });
  std::vector<Stretch> order;
  for (std::size_t i = 0; i < 300; ++i) order.push_back({i * i % 3, i, i + 1});
  threads.run(order);
  threads.run(order);
  REQUIRE(seen.size() == 600);
  std::set<std::pair<std::size_t, std::thread::id>> pairs;
  std::set<std::thread::id> ids{std::this_thread::get_id()};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CHECK(seen[i].first == order[i % 300]);
    pairs.emplace(seen[i].first.trace, seen[i].second);
    ids.insert(seen[i].second);
  }
  CHECK(pairs.size() == 2);  // squares are 0 or 1 modulo 3
  CHECK(ids.size() == 3);
}

TEST_CASE("work that says stop ends the run, and the next one starts anew", "[replay][turns]") {
  int done = 0;
  TurnThreads threads(2, [&](const Stretch& s) { return ++done, s.end != 3; });
  const std::vector<Stretch> order{{0, 0, 1}, {1, 0, 3}, {0, 1, 2}};
  threads.run(order);
  CHECK(done == 2);
  threads.run(std::span(order).first(1));
  CHECK(done == 3);
}

TEST_CASE("what the work throws comes out of the run", "[replay][turns]") {
  TurnThreads threads(1, [](const Stretch& s) -> bool {
    if (s.begin == 1) throw std::runtime_error("broken");
    return true;
  });
  CHECK_THROWS_WITH(threads.run(std::vector<Stretch>{{0, 1, 2}}), "broken");
  CHECK_NOTHROW(threads.run(std::vector<Stretch>{{0, 0, 1}}));
}
