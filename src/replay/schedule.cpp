// SPDX-License-Identifier: Apache-2.0
// The merge: a heap of each trace's next event, and for each the stretch until another is due.
#include "schedule.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace bursar {
inline namespace v0 {
namespace {

/// A trace's next event. Ordered by time, then by place among the traces.
struct Head {
  Duration time{};
  std::size_t trace = 0;
  std::size_t event = 0;
  friend bool operator>(const Head& a, const Head& b) {
    return std::tie(a.time, a.trace) > std::tie(b.time, b.trace);
  }
};

/// The first event of `trace` from `from` on that must wait for `other`.
std::size_t end_of_stretch(const Trace& trace, const Head& from, const Head& other) {
  const auto waits = [&](const TraceEvent& e) { return Head{e.time, from.trace, 0} > other; };
  const auto first = trace.events.begin() + static_cast<std::ptrdiff_t>(from.event);
  const auto end = std::find_if(first, trace.events.end(), waits);
  return static_cast<std::size_t>(end - trace.events.begin());
}

}  // namespace

std::vector<Stretch> merge_by_time(std::span<const Trace> traces) {
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (!traces[i].events.empty()) heads.push({traces[i].events.front().time, i, 0});
  }
  std::vector<Stretch> order;
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    const Trace& trace = traces[head.trace];
    const std::size_t end =
        heads.empty() ? trace.events.size() : end_of_stretch(trace, head, heads.top());
    order.push_back({head.trace, head.event, end});
    if (end < trace.events.size()) heads.push({trace.events[end].time, head.trace, end});
  }
  return order;
}

}  // namespace v0
}  // namespace bursar
