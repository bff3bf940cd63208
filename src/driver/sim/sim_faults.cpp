// SPDX-License-Identifier: Apache-2.0
// Driver calls that fail or take long on demand.
#include "sim_faults.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace bursar {
inline namespace v0 {

void SimFaults::add(DriverCall call, std::uint64_t nth, bool forever, DriverCode code) {
  rules_.push_back({call, std::max<std::uint64_t>(nth, 1), forever, code});
  armed_[index(call)].store(true, std::memory_order_release);
}

void SimFaults::clear() {
  rules_.clear();
  for (auto& armed : armed_) armed.store(false, std::memory_order_release);
}

std::optional<DriverCode> SimFaults::take(DriverCall call) {
  if (!armed(call)) return std::nullopt;
  std::optional<DriverCode> code;
  for (Rule& rule : rules_) {
    if (rule.call != call) continue;
    if (rule.remaining > 0) --rule.remaining;
    if (rule.remaining == 0 && !code) code = rule.code;
  }
  std::erase_if(rules_, [](const Rule& rule) { return rule.remaining == 0 && !rule.forever; });
  const bool more = std::any_of(rules_.begin(), rules_.end(),
                                [&](const Rule& rule) { return rule.call == call; });
  armed_[index(call)].store(more, std::memory_order_release);
  if (code) ++hits_;
  return code;
}

void SimFaults::dawdle(DriverCall call) const {
  const std::int64_t ns = delays_[index(call)].load(std::memory_order_relaxed);
  if (ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

}  // namespace v0
}  // namespace bursar
