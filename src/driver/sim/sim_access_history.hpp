// SPDX-License-Identifier: Apache-2.0
// SimAccessHistory: which work touched which bytes of one extent, as far as it still matters.
//
// The bytes are cut into segments that all work so far touched alike. A segment remembers, for each
// stream, its newest work and its newest work of another generation: whatever is ordered after
// those is ordered after everything older, so nothing else is needed for an exact answer. What the
// host has seen complete precedes all work to come and is forgotten.
#pragma once

#include <map>
#include <vector>

#include "sim_clock.hpp"

namespace bursar {
inline namespace v0 {

/// Bytes of an extent, [begin, end).
struct SimSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Earlier work of another generation that the new work is not ordered after.
struct SimConflict {
  SimSpan bytes;
  SimEpoch work;
  std::uint64_t generation = 0;
};

class SimAccessHistory {
 public:
  /// Records that `work`, which runs after everything that `before` and `host` have seen, touches
  /// `bytes` for `generation`. Returns the conflicts. `host` is what the host has seen complete.
  std::vector<SimConflict> record(SimSpan bytes, SimEpoch work, std::uint64_t generation,
                                  const SimClock& before, const SimClock& host);
  std::size_t segment_count() const { return segments_.size(); }

 private:
  struct Uses {  ///< of one agent
    SimEpoch newest;
    std::uint64_t generation = 0;
    SimEpoch other;  ///< the newest of a generation other than `generation`; epoch 0: none
    std::uint64_t other_generation = 0;
  };
  struct Segment {
    std::uint64_t end = 0;
    std::vector<Uses> uses;
  };
  using Segments = std::map<std::uint64_t, Segment>;

  void split(std::uint64_t at);
  void forget(const SimClock& host);
  static void add(Segment& segment, SimEpoch work, std::uint64_t generation);

  Segments segments_;
  std::size_t forget_at_ = 64;  ///< the number of segments at which to look for ones to forget
};

}  // namespace v0
}  // namespace bursar
