// SPDX-License-Identifier: Apache-2.0
// SimClock: which work an observer has seen, as a vector clock over streams.
//
// Every stream is an agent and numbers its work: epochs, from 1. A clock holds, for each agent, the
// newest epoch whose completion precedes the clock's owner. Since a stream runs its work in order,
// having seen an epoch means having seen all older ones of that agent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace bursar {
inline namespace v0 {

using SimAgent = std::uint32_t;

/// One piece of work.
struct SimEpoch {
  SimAgent agent = 0;
  std::uint64_t epoch = 0;
};

class SimClock {
 public:
  bool saw(SimEpoch work) const {
    return work.agent < seen_.size() && seen_[work.agent] >= work.epoch;
  }
  void see(SimEpoch work) {
    if (work.agent >= seen_.size()) seen_.resize(work.agent + 1, 0);
    seen_[work.agent] = std::max(seen_[work.agent], work.epoch);
  }
  void join(const SimClock& other) {
    if (other.seen_.size() > seen_.size()) seen_.resize(other.seen_.size(), 0);
    for (std::size_t i = 0; i < other.seen_.size(); ++i)
      seen_[i] = std::max(seen_[i], other.seen_[i]);
  }

 private:
  std::vector<std::uint64_t> seen_;
};

/// The newest work of each agent that used something.
class SimLastUses {
 public:
  void add(SimEpoch work) {
    for (SimEpoch& last : last_) {
      if (last.agent == work.agent) return void(last.epoch = std::max(last.epoch, work.epoch));
    }
    last_.push_back(work);
  }
  /// Some use that `clock` has not seen; null when it has seen all.
  const SimEpoch* first_unseen(const SimClock& clock) const {
    for (const SimEpoch& last : last_) {
      if (!clock.saw(last)) return &last;
    }
    return nullptr;
  }

 private:
  std::vector<SimEpoch> last_;
};

}  // namespace v0
}  // namespace bursar
