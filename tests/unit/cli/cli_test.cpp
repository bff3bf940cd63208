// SPDX-License-Identifier: Apache-2.0
// The command as a whole: what it answers before any of its parts does something.
#include "support/catch.hpp"

#include <string>

#include <bursar/core/config.hpp>

#include "cli_run.hpp"

using namespace bursar;
using bursar::test::CliRun;
using bursar::test::run_cli;

TEST_CASE("--version names the program and its version", "[cli]") {
  const CliRun run = run_cli("--version");
  CHECK(run.exit_code == 0);
  CHECK(run.out == "bursar " + std::to_string(kVersionMajor) + "." + std::to_string(kVersionMinor) +
                       "." + std::to_string(kVersionPatch) + "\n");
}

TEST_CASE("--help is an answer, not an error", "[cli]") {
  for (const char* arguments : {"--help", "replay --help"}) {
    const CliRun run = run_cli(arguments);
    CHECK(run.exit_code == 0);
    CHECK(run.out.find("replay") != std::string::npos);
    CHECK(run.err.empty());
  }
}

TEST_CASE("a command line that says nothing sensible is a bad request", "[cli]") {
  const std::string arguments = GENERATE(
      "", "unknown", "--unknown", "replay", "replay --unknown x.csv", "replay --device tpu x.csv",
      "replay --passes 0 x.csv", "replay --passes many x.csv", "replay --capacity 24gb x.csv",
      "replay --capacity 0 x.csv", "replay --capacity -1 x.csv", "replay --gpu-lag -1 x.csv");
  INFO(arguments);
  const CliRun run = run_cli(arguments);
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK_FALSE(run.err.empty());
}
