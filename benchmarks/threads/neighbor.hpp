// SPDX-License-Identifier: Apache-2.0
// neighbor: what a thread that hits its cache notices while another is inside a slow driver call.
#pragma once

#include <chrono>
#include <cstddef>

#include "subjects/bench_machine.hpp"

namespace bursar {
inline namespace v0 {

struct NeighborResult {
  double median_ns = 0;
  double p99_ns = 0;
  double longest_ns = 0;
  std::size_t pairs = 0;  ///< that were made meanwhile
};

/// One thread grows the allocator by `calls` creations of which each takes `slow`
/// of real time; another makes 4 KiB pairs beside it. Precondition: a simulated machine.
NeighborResult measure_neighbor(BenchMachine& machine, std::chrono::milliseconds slow, int calls);

}  // namespace v0
}  // namespace bursar
