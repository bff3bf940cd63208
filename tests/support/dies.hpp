// SPDX-License-Identifier: Apache-2.0
// dies: whether code ends its program with abort, found out in a forked child.
#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>

namespace bursar::test {

/// True when `code` aborts. The child prints nothing and leaves without destructors of its own.
template <class Code>
bool dies(Code&& code) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // Catch2 and the sanitizers would report it
    if (!std::freopen("/dev/null", "w", stderr)) _exit(2);
    code();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace bursar::test
