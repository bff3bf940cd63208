// SPDX-License-Identifier: Apache-2.0
// Finds work that touches the same bytes unordered, and memory taken away under it.
#include "sim_detector.hpp"

#include <fmt/format.h>

namespace bursar {
inline namespace v0 {

std::string sim_work_text(std::uint64_t generation) {
  // Anonymous generations count down from the largest number; no tester gets that far.
  return generation > ~std::uint64_t{0} / 2 ? "a memset or read"
                                            : fmt::format("block {}", generation);
}

std::string sim_range_text(std::uint64_t begin, std::uint64_t end) {
  return fmt::format("[{:#x}, {:#x})", begin, end);
}

SimAgent SimDetector::add_stream(DeviceId device, StreamId id) {
  for (auto it = retired_.begin(); it != retired_.end(); ++it) {
    Agent& agent = agents_[*it];
    if (agent.epoch != 0 && !host_.saw({*it, agent.epoch})) continue;
    const SimAgent again = *it;
    retired_.erase(it);
    // Epochs go on counting: all older ones are known to the host and so come before the new.
    agent = Agent{device, id, {}, agent.epoch};
    return again;
  }
  agents_.push_back(Agent{device, id, {}, 0});
  return static_cast<SimAgent>(agents_.size() - 1);
}

void SimDetector::retire_stream(SimAgent agent) { retired_.push_back(agent); }

void SimDetector::host_sees_device(DeviceId device) {
  for (const Agent& agent : agents_) {
    if (agent.device == device) host_.join(agent.clock);
  }
}

void SimDetector::begin_work(SimAgent index) {
  Agent& agent = agents_[index];
  // The work itself is not part of what it comes after: two accesses of one launch are unordered.
  before_ = agent.clock;
  work_ = SimEpoch{index, ++agent.epoch};
  agent.clock = before_;
  agent.clock.see(work_);
}

void SimDetector::access(SimAccessHistory& history, SimSpan bytes, std::uint64_t generation,
                         std::uint64_t extent) {
  for (const SimConflict& c : history.record(bytes, work_, generation, before_, host_)) {
    report(Violation::Kind::unordered_access,
           fmt::format("{} on stream {} and {} on stream {} touch bytes {} of extent {} unordered",
                       sim_work_text(generation), current_stream().value,
                       sim_work_text(c.generation), agents_[c.work.agent].id.value,
                       sim_range_text(c.bytes.begin, c.bytes.end), extent));
  }
}

void SimDetector::check_unmap(const SimLastUses& uses, VaRange range) {
  const SimEpoch* use = uses.first_unseen(host_);
  if (use == nullptr) return;
  report(Violation::Kind::unmapped_in_use,
         fmt::format("unmap of {} while work of stream {} that uses it may still run",
                     sim_range_text(range.begin.value, range.end().value),
                     agents_[use->agent].id.value));
}

void SimDetector::check_release(const SimLastUses& uses, std::uint64_t extent) {
  const SimEpoch* use = uses.first_unseen(host_);
  if (use == nullptr) return;
  report(Violation::Kind::released_in_use,
         fmt::format("release of extent {} while work of stream {} that uses it may still run",
                     extent, agents_[use->agent].id.value));
}

void SimDetector::report(Violation::Kind kind, std::string text) {
  if (violations_.size() < kMaxViolations) violations_.push_back({kind, std::move(text)});
}

}  // namespace v0
}  // namespace bursar
