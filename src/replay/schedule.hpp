// SPDX-License-Identifier: Apache-2.0
// Schedule: one order for the events of several traces, and so the turns of their threads.
//
// Handing the turn to another thread costs microseconds, an event a fraction of one. So the order
// is kept as stretches of one trace's consecutive events, as long as the order allows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trace.hpp"

namespace bursar {
inline namespace v0 {

/// The events [begin, end) of one trace.
struct Stretch {
  std::size_t trace = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

/// All events of `traces` by time; at one time the earlier trace's come first. Neighbors in the
/// result belong to different traces.
std::vector<Stretch> merge_by_time(std::span<const Trace> traces);

}  // namespace v0
}  // namespace bursar
