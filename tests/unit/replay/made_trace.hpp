// SPDX-License-Identifier: Apache-2.0
// Small traces made in a test, and one whose figures several tests know.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "replay/trace.hpp"

namespace bursar::test {

struct Step {
  int ms;
  TraceAction action;
  std::uint32_t block;
  Bytes size{};
  std::uint32_t stream = 0;
};
inline constexpr TraceAction kAllocate = TraceAction::allocate;
inline constexpr TraceAction kFree = TraceAction::free;

/// Blocks must be numbered in the order of their allocation.
inline Trace trace_of(std::string name, const std::vector<Step>& steps) {
  Trace trace;
  trace.name = std::move(name);
  for (const Step& step : steps) {
    const auto line = static_cast<std::uint32_t>(trace.events.size() + 2);
    trace.events.push_back({milliseconds(step.ms), step.block, step.stream, line, step.action});
    trace.stream_count = std::max<std::size_t>(trace.stream_count, step.stream + 1);
    if (step.action == kAllocate) trace.block_sizes.push_back(step.size);
  }
  return trace;
}

/// Asks for 30 MiB + 600 KiB at most, by its fourth event.
inline Trace small_trace() {
  return trace_of("small.csv", {{0, kAllocate, 0, Bytes{3ull << 20}},
                                {1, kAllocate, 1, Bytes{600ull << 10}},
                                {2, kFree, 0},
                                {3, kAllocate, 2, Bytes{30ull << 20}},
                                {9, kFree, 1}});
}

}  // namespace bursar::test
