// SPDX-License-Identifier: Apache-2.0
// The two forms of the report.
#include "support/catch.hpp"

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "replay/replay_report.hpp"

using namespace bursar;
using namespace bursar::literals;

namespace {

ReplayRow sample_row() {
  ReplayRow row;
  row.trace = "a.csv";
  row.allocator = "segment_cache";
  row.device = "sim";
  row.pass = 2;
  row.requested_peak = 3_MiB;
  row.driver.reserved_peak = 4_MiB;
  row.operations = 8;
  row.allocator_time = Duration{100};
  row.driver.calls[static_cast<std::size_t>(DriverCall::create)] = 5;
  row.driver.calls[static_cast<std::size_t>(DriverCall::unmap)] = 6;
  row.driver.calls[static_cast<std::size_t>(DriverCall::event_query)] = 7;
  row.driver.nanoseconds[static_cast<std::size_t>(DriverCall::create)] = 1500;
  row.driver.nanoseconds[static_cast<std::size_t>(DriverCall::event_query)] = 1000;
  row.trace_duration = milliseconds(3);
  row.bound.least_reserved = Bytes{3u << 20};
  return row;
}

std::set<std::string> keys(const nlohmann::json& object) {
  std::set<std::string> all;
  for (const auto& [key, value] : object.items()) all.insert(key);
  return all;
}

}  // namespace

TEST_CASE("JSON rows have exactly the documented keys", "[replay][report]") {
  const auto json = nlohmann::json::parse(to_json(std::vector<ReplayRow>{sample_row()}));
  REQUIRE(json.is_array());
  REQUIRE(json.size() == 1);
  CHECK(keys(json[0]) == std::set<std::string>{"trace", "allocator", "device", "pass",
                                               "requested_peak_bytes", "reserved_peak_bytes",
                                               "least_reserved_bytes", "utilization", "operations",
                                               "ns_per_operation", "driver_calls", "driver_time_us",
                                               "trace_duration_us", "completed"});
  CHECK(keys(json[0]["driver_calls"]) ==
        std::set<std::string>{"create", "map", "set_access", "unmap", "release"});
}

TEST_CASE("JSON rows carry the figures in the units of their names", "[replay][report]") {
  const auto json = nlohmann::json::parse(to_json(std::vector<ReplayRow>{sample_row()}))[0];
  CHECK(json["trace"] == "a.csv");
  CHECK(json["allocator"] == "segment_cache");
  CHECK(json["device"] == "sim");
  CHECK(json["pass"] == 2);
  CHECK(json["requested_peak_bytes"] == 3145728);
  CHECK(json["reserved_peak_bytes"] == 4194304);
  CHECK(json["least_reserved_bytes"] == 3145728);
  CHECK(json["utilization"] == 0.75);
  CHECK(json["operations"] == 8);
  CHECK(json["ns_per_operation"] == 12.5);
  CHECK(json["driver_calls"]["create"] == 5);
  CHECK(json["driver_calls"]["map"] == 0);
  CHECK(json["driver_calls"]["unmap"] == 6);
  CHECK(json["driver_time_us"] == 2.5);
  CHECK(json["trace_duration_us"] == 3000.0);
  CHECK(json["completed"] == true);
}

TEST_CASE("a driver time that nobody knows is null and a dash", "[replay][report]") {
  ReplayRow row = sample_row();
  row.driver_timed = false;
  const auto json = nlohmann::json::parse(to_json(std::vector<ReplayRow>{row}))[0];
  CHECK(json["driver_time_us"].is_null());
  CHECK(json["driver_calls"]["create"] == 5);
  CHECK(to_table(std::vector<ReplayRow>{row}).find("     11            -     12  yes") !=
        std::string::npos);
}

TEST_CASE("no rows are an empty array", "[replay][report]") {
  CHECK(nlohmann::json::parse(to_json({})) == nlohmann::json::array());
}

TEST_CASE("the table says the same for people", "[replay][report]") {
  ReplayRow out = sample_row();
  out.trace = "a.csv+b.csv+c.csv";
  out.allocator = "bursar";
  out.ran_out = RanOut{"b.csv", 9, 12};
  const std::string table = to_table(std::vector<ReplayRow>{sample_row(), out});
  CHECK(table ==
        "trace           allocator                 pass  requested peak  reserved peak  "
        "utilization  driver calls  driver time  ns/op  completed\n"
        "a.csv           segment_cache (stand-in)     2         3.0 MiB        4.0 MiB       "
        "0.7500            11      0.00 ms     12  yes\n"
        "a.csv + 2 more  bursar                       2         3.0 MiB        4.0 MiB       "
        "0.7500            11      0.00 ms     12  no, out of memory at event 9 (b.csv:12)\n");
}

TEST_CASE("behind a GPU that lags the table says the bound once for each set of traces",
          "[replay][report]") {
  ReplayRow row = sample_row();
  row.bound = {milliseconds(50), 3_MiB, 4_MiB};
  ReplayRow other = row;
  other.trace = "a.csv+b.csv";
  other.bound = {Duration{2'500'000}, 3_MiB, 3_MiB};
  const std::string table = to_table(std::vector<ReplayRow>{row, row, other, other});
  CHECK_THAT(table,
             Catch::Matchers::EndsWith(
                 "  yes\n"
                 "a.csv: with a GPU 50 ms behind no allocator that never waits can hold less "
                 "than 4.0 MiB (utilization 0.750)\n"
                 "a.csv + 1 more: with a GPU 2.5 ms behind no allocator that never waits can "
                 "hold less than 3.0 MiB (utilization 1.000)\n"));
}
