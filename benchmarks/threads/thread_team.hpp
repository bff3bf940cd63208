// SPDX-License-Identifier: Apache-2.0
// run_team: threads that start together and work for the same while.
//
// Each is pinned to a core of its own where this process may use enough of them. The clock starts
// when all have warmed up, so starting threads is not timed, and stops when the last is done.
#pragma once

#include <barrier>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

namespace bursar {
inline namespace v0 {

struct TeamResult {
  std::uint64_t pairs = 0;
  double seconds = 0;
  bool pinned = false;
};

/// Pins the calling thread to core number `index` of those that `cores` lists.
void pin_this_thread(const std::vector<int>& cores, int index);
/// The cores that this process may use.
std::vector<int> usable_cores();

/// `make(i)` is called on thread i and returns what that thread then calls again and again; it
/// makes a batch of pairs and returns how many. The first batches are not counted.
template <class Make>
TeamResult run_team(int threads, std::chrono::duration<double> at_least, Make&& make) {
  using Clock = std::chrono::steady_clock;
  constexpr int kWarmUpBatches = 4;
  const std::vector<int> cores = usable_cores();
  TeamResult result;
  result.pinned = cores.size() >= static_cast<std::size_t>(threads);
  Clock::time_point start;
  std::barrier line(threads, [&]() noexcept { start = Clock::now(); });
  std::vector<std::uint64_t> pairs(static_cast<std::size_t>(threads));
  std::vector<std::thread> team;
  for (int i = 0; i < threads; ++i) {
    team.emplace_back([&, i] {
      if (result.pinned) pin_this_thread(cores, i);
      auto batch = make(i);
      for (int warm = 0; warm < kWarmUpBatches; ++warm) batch();
      line.arrive_and_wait();
      std::uint64_t mine = 0;
      do {
        mine += batch();
      } while (Clock::now() - start < at_least);
      pairs[static_cast<std::size_t>(i)] = mine;
    });
  }
  for (std::thread& thread : team) thread.join();
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.pairs = std::accumulate(pairs.begin(), pairs.end(), std::uint64_t{0});
  return result;
}

}  // namespace v0
}  // namespace bursar
