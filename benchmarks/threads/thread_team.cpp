// SPDX-License-Identifier: Apache-2.0
// Pinning by Linux's own calls. Failing to pin costs precision only, so it is not an error.
#include "thread_team.hpp"

#include <pthread.h>
#include <sched.h>

namespace bursar {
inline namespace v0 {

void pin_this_thread(const std::vector<int>& cores, int index) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cores[static_cast<std::size_t>(index)]), &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace v0
}  // namespace bursar
