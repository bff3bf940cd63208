// SPDX-License-Identifier: Apache-2.0
// ReplayWatch: sees a replay event by event, for what a row cannot tell.
//
// It is called outside of what is timed, and what it may ask the target (its meter, its snapshot)
// makes no driver call, so a replay that is watched comes to the same rows.
#pragma once

#include <cstdint>

#include "replay_streams.hpp"
#include "replay_target.hpp"

namespace bursar {
inline namespace v0 {

/// The moment after an event.
struct ReplayMoment {
  int pass = 1;
  std::uint64_t operations = 0;  ///< events done in this pass, over all traces
  Duration time{};               ///< of the event, in its trace
  ReplayTarget& target;
  const ReplayStreams& streams;
};

/// Called on the thread of the trace whose turn it is, one at a time.
class ReplayWatch {
 public:
  virtual ~ReplayWatch() = default;
  virtual void pass_begins(int pass, ReplayTarget& target) = 0;
  /// Not called for the event at which memory runs out.
  virtual void event_done(const ReplayMoment& moment) = 0;
};

}  // namespace v0
}  // namespace bursar
