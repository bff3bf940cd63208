// SPDX-License-Identifier: Apache-2.0
// `bursar replay` end to end, on the simulated device.
#include "support/catch.hpp"
#include "support/scratch_file.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli_run.hpp"

using bursar::test::CliRun;
using bursar::test::gzipped;
using bursar::test::log_of;
using bursar::test::run_cli;
using bursar::test::run_cli_on_terminal;
using bursar::test::ScratchFile;

namespace {

const std::string kSim = "replay --device sim --allocator segment_cache ";

std::string growing_log() {
  return log_of(
      "0,0,allocate,1,3145728,0\n"
      "0,1,free,1,3145728,0\n"
      "0,2,allocate,2,31457280,0\n"
      "0,4,allocate,3,1024,0\n");
}

/// Runs with --json and gives the rows.
nlohmann::json rows_of(const std::string& arguments) {
  const ScratchFile json("", ".json");
  const CliRun run = run_cli(arguments + " --json " + json.path());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return nlohmann::json::parse(std::ifstream(json.path()));
}

void check_refused(const std::string& arguments, const std::string& message) {
  const CliRun run = run_cli(arguments);
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(run.err == message + "\n");
}

}  // namespace

TEST_CASE("a table comes out, and nothing on stderr that is no terminal", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  const CliRun run = run_cli(kSim + trace.path());
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Catch::Matchers::StartsWith("trace"));
  CHECK(run.out.find("segment_cache (stand-in)") != std::string::npos);
  CHECK(run.err.empty());
}

TEST_CASE("a terminal sees progress, and the line is taken away again", "[cli][replay]") {
  std::string lines;
  for (int i = 0; i < 10'000; ++i) lines += "0,0,allocate," + std::to_string(i) + ",512,0\n";
  const ScratchFile trace(log_of(lines));
  const std::string seen = run_cli_on_terminal(kSim + trace.path());
  const std::size_t bar = seen.find(" %  " + trace.name() + ": segment_cache");
  REQUIRE(bar != std::string::npos);
  CHECK(seen.find("\r\033[K", bar) < seen.find("utilization"));
}

TEST_CASE("rows come by trace, allocator and pass", "[cli][replay]") {
  const ScratchFile a(growing_log());
  const ScratchFile b(gzipped(growing_log()), ".csv.gz");
  const auto rows = rows_of("replay --device sim --allocator segment_cache,bursar --passes 2 " +
                            a.path() + " " + b.path());
  REQUIRE(rows.size() == 8);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(i);
    CHECK(rows[i]["trace"] == (i < 4 ? a.name() : b.name()));
    CHECK(rows[i]["allocator"] == (i % 4 < 2 ? "segment_cache" : "bursar"));
    CHECK(rows[i]["pass"] == i % 2 + 1);
    CHECK(rows[i]["device"] == "sim");
    CHECK(rows[i]["requested_peak_bytes"] == 31457280 + 1024);
    CHECK(rows[i]["operations"] == 4);
    CHECK(rows[i]["trace_duration_us"] == 4000.0);
    CHECK(rows[i]["completed"] == true);
  }
}

TEST_CASE("all asks for every allocator of the device", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  const auto rows = rows_of("replay --device sim --allocator all " + trace.path());
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["allocator"] == "bursar");
  CHECK(rows[1]["allocator"] == "segment_cache");
}

TEST_CASE("traces replayed at once make one row", "[cli][replay]") {
  const ScratchFile a(growing_log());
  const ScratchFile b(growing_log());
  const auto rows = rows_of(kSim + "--concurrent " + a.path() + " " + b.path());
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["trace"] == a.name() + "+" + b.name());
  CHECK(rows[0]["operations"] == 8);
  CHECK(rows[0]["requested_peak_bytes"] == 2 * (31457280 + 1024));
}

TEST_CASE("running out of memory is a result", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  const ScratchFile json("", ".json");
  const CliRun run = run_cli(kSim + "--capacity 24MiB --json " + json.path() + " " + trace.path());
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("no, out of memory at event 3 (" + trace.name() + ":4)") != std::string::npos);
  const auto rows = nlohmann::json::parse(std::ifstream(json.path()));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["completed"] == false);
  CHECK(rows[0]["operations"] == 2);
}

TEST_CASE("gpu lag holds nothing up that one stream reuses", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  const auto rows = rows_of(kSim + "--gpu-lag 2.5 " + trace.path());
  CHECK(rows[0]["completed"] == true);
}

TEST_CASE("with gpu lag the least that can be held stands under the table", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  const std::string said =
      trace.name() + ": with a GPU 2.5 ms behind no allocator that never waits can hold less than ";
  const CliRun run = run_cli(kSim + "--gpu-lag 2.5 " + trace.path());
  CHECK(run.out.find(said + "30.0 MiB (utilization 1.000)\n") != std::string::npos);
  CHECK(run_cli(kSim + trace.path()).out.find("never waits") == std::string::npos);
}

TEST_CASE("failed allocations in a log are mentioned", "[cli][replay]") {
  const ScratchFile trace(growing_log() + "0,5,allocate failure,(nil),4096,0\n");
  const CliRun run = run_cli(kSim + trace.path());
  CHECK(run.exit_code == 0);
  CHECK(run.err == trace.path() + ": 1 failed allocations recorded, not replayed\n");
}

TEST_CASE("a log that cannot be replayed is refused with file, line and reason", "[cli][replay]") {
  const ScratchFile good(growing_log());
  const ScratchFile malformed(log_of("0,0,allocate,1,8\n"));
  check_refused(kSim + good.path() + " " + malformed.path(),
                malformed.path() + ":2: expected 6 fields, found 5");
  const ScratchFile unknown(log_of("0,0,free,1,8,0\n"));
  check_refused(kSim + unknown.path(), unknown.path() + ":2: free of unknown pointer 1");
  const ScratchFile twice(log_of("0,0,allocate,1,8,0\n0,0,allocate,1,8,0\n"));
  check_refused(kSim + twice.path(), twice.path() + ":3: pointer 1 is allocated already");
  check_refused(kSim + "/no/such/trace.csv",
                "/no/such/trace.csv:0: cannot open: No such file or directory");
  const std::string whole = gzipped(growing_log());
  const ScratchFile cut(whole.substr(0, whole.size() - 4), ".csv.gz");
  check_refused(kSim + cut.path(), cut.path() +
                                       ":6: truncated gzip: the file ends before its compressed "
                                       "data does");
}

TEST_CASE("an allocator that the device does not have is refused", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  check_refused("replay --device sim --allocator bursar,cuda_malloc " + trace.path(),
                "bursar: no allocator 'cuda_malloc' on sim; there are: bursar, segment_cache");
}

TEST_CASE("a JSON file that cannot be written is refused before the replay", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  check_refused(kSim + "--json /no/such/folder/rows.json " + trace.path(),
                "bursar: cannot write /no/such/folder/rows.json");
}

TEST_CASE("a page is written beside the table", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  const ScratchFile html("", ".html");
  const CliRun run =
      run_cli("replay --device sim --allocator all --html " + html.path() + " " + trace.path());
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Catch::Matchers::StartsWith("trace"));
  std::ifstream file(html.path());
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  CHECK_THAT(page, Catch::Matchers::StartsWith("<!DOCTYPE html>"));
  CHECK(page.find(trace.name()) != std::string::npos);
  CHECK_THAT(page, Catch::Matchers::EndsWith("</html>\n"));
}

TEST_CASE("a page that cannot be written is refused before the replay", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  check_refused(kSim + "--html /no/such/folder/page.html " + trace.path(),
                "bursar: cannot write /no/such/folder/page.html");
}

TEST_CASE("a page that does not fit on its disk is a failure", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  const CliRun run = run_cli(kSim + "--html /dev/full " + trace.path());
  CHECK(run.exit_code == 1);
  CHECK(run.err == "bursar: cannot write /dev/full\n");
}

TEST_CASE("bad options in BURSAR_CONF are a bad request", "[cli][replay]") {
  const ScratchFile trace(growing_log());
  const CliRun run = run_cli("replay --device sim " + trace.path(), "BURSAR_CONF=nonsense:1");
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK_FALSE(run.err.empty());
}
