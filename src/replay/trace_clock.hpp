// SPDX-License-Identifier: Apache-2.0
// TraceClock: turns the times of one log into time since its start that never runs backwards.
#pragma once

#include <algorithm>
#include <optional>

#include <bursar/core/ids.hpp>

#include "log_line.hpp"

namespace bursar {
inline namespace v0 {

class TraceClock {
 public:
  /// Throws LogLineError when a log changes from one kind of time to another.
  Duration read(LogTime time) {
    constexpr std::int64_t kHalfDay = 12ll * 3600 * 1'000'000'000;
    if (!first_) {
      first_ = last_ = time;
      if (time.kind == LogTimeKind::since_start) first_->ns = 0;
    }
    if (time.kind != first_->kind) throw LogLineError("time of another kind than before");
    if (time.kind == LogTimeKind::time_of_day) {
      time.ns += days_ * 2 * kHalfDay;
      if (time.ns < last_.ns - kHalfDay) {
        ++days_;
        time.ns += 2 * kHalfDay;
      }
    }
    last_.ns = std::max(last_.ns, time.ns);
    return Duration{last_.ns - first_->ns};
  }

 private:
  std::optional<LogTime> first_;  ///< the start: of the log, or of its first event
  LogTime last_;
  std::int64_t days_ = 0;  ///< midnights passed
};

}  // namespace v0
}  // namespace bursar
