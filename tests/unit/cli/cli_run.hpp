// SPDX-License-Identifier: Apache-2.0
// Runs the built `bursar` command as a shell or a person at a terminal would.
#pragma once

#include <string>

namespace bursar::test {

struct CliRun {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// `bursar ARGUMENTS`, split by the shell, after variable settings in `environment`.
CliRun run_cli(const std::string& arguments, const std::string& environment = "");

/// What `bursar ARGUMENTS` writes to a terminal.
std::string run_cli_on_terminal(const std::string& arguments);

}  // namespace bursar::test
