// SPDX-License-Identifier: Apache-2.0
// Through a shell for files and pipes, on a pseudo-terminal for what only people see.
#include "cli_run.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/scratch_file.hpp"

namespace bursar::test {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

CliRun run_cli(const std::string& arguments, const std::string& environment) {
  const ScratchFile out("", ".out");
  const ScratchFile err("", ".err");
  const std::string command = environment + " '" BURSAR_COMMAND "' " + arguments + " </dev/null >" +
                              out.path() + " 2>" + err.path();
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(out.path()), content(err.path())};
}

std::string run_cli_on_terminal(const std::string& arguments) {
  const std::string command = "'" BURSAR_COMMAND "' " + arguments;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) throw std::runtime_error("forkpty");
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  std::string seen;
  char chunk[4096];
  for (ssize_t got; (got = read(terminal, chunk, sizeof chunk)) > 0;) {
    seen.append(chunk, static_cast<std::size_t>(got));
  }
  close(terminal);
  waitpid(child, nullptr, 0);
  return seen;
}

}  // namespace bursar::test
