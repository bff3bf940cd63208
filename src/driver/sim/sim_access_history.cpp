// SPDX-License-Identifier: Apache-2.0
// What the simulated GPU's work did to each byte, and in which order it may be.
#include "sim_access_history.hpp"

namespace bursar {
inline namespace v0 {

std::vector<SimConflict> SimAccessHistory::record(SimSpan bytes, SimEpoch work,
                                                  std::uint64_t generation, const SimClock& before,
                                                  const SimClock& host) {
  std::vector<SimConflict> conflicts;
  if (segments_.size() >= forget_at_) forget(host);
  split(bytes.begin);
  split(bytes.end);
  auto it = segments_.lower_bound(bytes.begin);
  for (std::uint64_t at = bytes.begin; at < bytes.end; ++it) {
    if (it == segments_.end() || it->first > at) {
      const std::uint64_t gap_end =
          it == segments_.end() ? bytes.end : std::min(bytes.end, it->first);
      it = segments_.emplace_hint(it, at, Segment{gap_end, {}});
    }
    Segment& segment = it->second;
    std::erase_if(segment.uses, [&](const Uses& uses) { return host.saw(uses.newest); });
    for (const Uses& uses : segment.uses) {
      const bool same = uses.generation == generation;
      const SimEpoch earlier = same ? uses.other : uses.newest;
      if (earlier.epoch == 0 || before.saw(earlier)) continue;
      conflicts.push_back(
          {{it->first, segment.end}, earlier, same ? uses.other_generation : uses.generation});
    }
    add(segment, work, generation);
    at = segment.end;
  }
  return conflicts;
}

/// Makes `at` a border between segments where it lies inside one.
void SimAccessHistory::split(std::uint64_t at) {
  auto it = segments_.upper_bound(at);
  if (it == segments_.begin()) return;
  --it;
  if (it->first == at || it->second.end <= at) return;
  segments_.emplace(at, it->second);
  it->second.end = at;
}

void SimAccessHistory::forget(const SimClock& host) {
  std::erase_if(segments_, [&](const auto& entry) {
    const std::vector<Uses>& uses = entry.second.uses;
    return std::all_of(uses.begin(), uses.end(), [&](const Uses& u) { return host.saw(u.newest); });
  });
  forget_at_ = 2 * segments_.size() + 64;
}

void SimAccessHistory::add(Segment& segment, SimEpoch work, std::uint64_t generation) {
  for (Uses& uses : segment.uses) {
    if (uses.newest.agent != work.agent) continue;
    if (uses.generation != generation) {
      uses.other = uses.newest;
      uses.other_generation = uses.generation;
      uses.generation = generation;
    }
    uses.newest = work;
    return;
  }
  segment.uses.push_back({work, generation, {}, 0});
}

}  // namespace v0
}  // namespace bursar
