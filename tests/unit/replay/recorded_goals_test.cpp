// SPDX-License-Identifier: Apache-2.0
// What is promised about the bundled traces. It holds on every machine, since the simulated device
// knows no other time than its own; not built where each call is followed by a check of everything.
#include <algorithm>
#include <filesystem>
#include <set>

#include "recorded_traces.hpp"
#include "support/catch.hpp"

using namespace bursar;
using bursar::test::bundled;
using bursar::test::Conf;
using bursar::test::kMade;
using bursar::test::kRecorded;
using bursar::test::kUnseen;
using bursar::test::replay_once;
using bursar::test::replay_passes;

namespace {

/// What three passes over each recorded trace came to.
struct Figures {
  std::vector<double> utilization;  ///< in the worst pass
  std::vector<double> time;         ///< driver time of the first pass, as a share of the trace
  std::vector<double> repeated;     ///< of the third pass
};

double share_of_time(const ReplayRow& row) {
  return static_cast<double>(row.driver.total_time().ns) /
         static_cast<double>(row.trace_duration.ns);
}

Figures three_passes() {
  Figures figures;
  for (const std::string& name : kRecorded) {
    const std::vector<ReplayRow> rows = replay_passes({bundled(name)}, "bursar", 3);
    double worst = 1;
    for (const ReplayRow& row : rows) worst = std::min(worst, row.utilization());
    figures.utilization.push_back(worst);
    figures.time.push_back(share_of_time(rows.at(0)));
    figures.repeated.push_back(share_of_time(rows.at(2)));
  }
  return figures;
}

double least(const std::vector<double>& of) { return *std::min_element(of.begin(), of.end()); }
double most(const std::vector<double>& of) { return *std::max_element(of.begin(), of.end()); }
double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return (of[(of.size() - 1) / 2] + of[of.size() / 2]) / 2;
}

/// True when the trace completes on a device of `factor` times what it asks, up to a page.
bool completes(const std::string& name, double factor) {
  const std::vector<Trace> traces{bundled(name)};
  const auto asked = replay_once(traces, "segment_cache").requested_peak.count;
  const Bytes capacity{static_cast<std::uint64_t>(static_cast<double>(asked) * factor)};
  return !replay_once(traces, "bursar", {.capacity = round_up(capacity, Bytes{2u << 20})}).ran_out;
}

}  // namespace

TEST_CASE("bursar holds recorded traces within 1.5 %, and 1 % in the median",
          "[replay][recorded]") {
  const Figures figures = three_passes();
  CHECK(least(figures.utilization) >= 0.985);
  CHECK(median(figures.utilization) >= 0.99);
  CHECK(most(figures.time) <= 0.0075);
  CHECK(median(figures.time) <= 0.005);
  CHECK(most(figures.repeated) <= 0.0001);
}

TEST_CASE("the preset utilization holds each recorded trace within 1 %", "[replay][recorded]") {
  const Conf conf("preset:utilization");
  const Figures figures = three_passes();
  CHECK(least(figures.utilization) >= 0.99);
  CHECK(most(figures.time) <= 0.013);
}

TEST_CASE("traces complete on a device a little larger than they ask", "[replay][recorded]") {
  for (const std::string& name : kRecorded) {
    INFO(name);
    CHECK(completes(name, 1.0125));
  }
  CHECK(completes(kMade, 1.06));
}

TEST_CASE("under the preset utilization traces complete on a device 1 % larger than they ask",
          "[replay][recorded]") {
  const Conf conf("preset:utilization");
  for (const std::string& name : kRecorded) {
    INFO(name);
    CHECK(completes(name, 1.01));
  }
  CHECK(completes(kMade, 1.05));
}

TEST_CASE("bursar holds the made trace within 4.5 %", "[replay][recorded]") {
  for (const ReplayRow& row : replay_passes({bundled(kMade)}, "bursar", 3)) {
    CHECK_FALSE(row.ran_out);
    CHECK(row.utilization() >= 0.955);
  }
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

TEST_CASE("bursar holds all traces at once within 3 %", "[replay][recorded]") {
  std::vector<Trace> traces;
  for (const std::string& name : kRecorded) traces.push_back(bundled(name));
  traces.push_back(bundled(kMade));
  const ReplayRow row = replay_once(traces, "bursar");
  CHECK_FALSE(row.ran_out);
  CHECK(row.operations == 2'162'902);
  CHECK(row.utilization() >= 0.97);
}
