// SPDX-License-Identifier: Apache-2.0
// What is promised about the bundled traces. It holds on every machine, since the simulated device
// knows no other time than its own; not built where each call is followed by a check of everything.
#include <filesystem>
#include <set>

#include "recorded_traces.hpp"
#include "support/catch.hpp"

using namespace bursar;
using bursar::test::bundled;
using bursar::test::kMade;
using bursar::test::kRecorded;
using bursar::test::kUnseen;
using bursar::test::replay_once;

TEST_CASE("bursar holds recorded traces within 1.5 % of what they ask", "[replay][recorded]") {
  for (const std::string& name : kRecorded) {
    INFO(name);
    const ReplayRow row = replay_once({bundled(name)}, "bursar");
    CHECK_FALSE(row.ran_out);
    CHECK(row.utilization() >= 0.985);
  }
}

TEST_CASE("recorded traces complete on a device 1.25 % larger than they ask",
          "[replay][recorded]") {
  for (const std::string& name : kRecorded) {
    INFO(name);
    const std::vector<Trace> traces{bundled(name)};
    const Bytes asked = replay_once(traces, "segment_cache").requested_peak;
    const ReplayRow row =
        replay_once(traces, "bursar",
                    {.capacity = round_up(Bytes{asked.count / 10'000 * 10'125}, Bytes{2u << 20})});
    CHECK_FALSE(row.ran_out);
  }
}

TEST_CASE("bursar holds the made trace within 4.5 %", "[replay][recorded]") {
  const ReplayRow row = replay_once({bundled(kMade)}, "bursar");
  CHECK_FALSE(row.ran_out);
  CHECK(row.utilization() >= 0.955);
}

TEST_CASE("bursar holds unseen traces to the same goals", "[replay][recorded][unseen]") {
  for (const auto& [name, least_utilization] : kUnseen) {
    INFO(name);
    const std::vector<Trace> traces{bundled(name)};
    const ReplayRow row = replay_once(traces, "bursar");
    CHECK_FALSE(row.ran_out);
    CHECK(row.utilization() >= least_utilization);
  }
}

TEST_CASE("every unseen trace has a goal", "[replay][recorded][unseen]") {
  std::set<std::string> held;
  for (const auto& [name, least_utilization] : kUnseen) held.insert(name + ".csv.gz");
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(TRACE_FOLDER "/unseen")) {
    found.insert("unseen/" + entry.path().filename().string());
  }
  CHECK(held == found);
}

TEST_CASE("bursar holds all traces at once within 7 %", "[replay][recorded]") {
  std::vector<Trace> traces;
  for (const std::string& name : kRecorded) traces.push_back(bundled(name));
  traces.push_back(bundled(kMade));
  const ReplayRow row = replay_once(traces, "bursar");
  CHECK_FALSE(row.ran_out);
  CHECK(row.operations == 2'162'902);
  CHECK(row.utilization() >= 0.93);
}
