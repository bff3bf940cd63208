// SPDX-License-Identifier: Apache-2.0
// ReplayRow: what one pass of one replay came to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <bursar/driver/call_meter.hpp>

#include "lower_bound.hpp"

namespace bursar {
inline namespace v0 {

/// Where a pass ended for want of memory.
struct RanOut {
  std::string trace;        ///< file name
  std::uint64_t event = 0;  ///< from 1, counted over all traces of the replay
  std::uint32_t line = 0;   ///< in that file
};

struct ReplayRow {
  std::string trace;  ///< file name; of a concurrent replay all of them, joined with `+`
  std::string allocator;
  std::string device;
  int pass = 1;                  ///< from 1
  Bytes requested_peak{};        ///< most bytes asked for and not freed, counted by the replayer
  std::uint64_t operations = 0;  ///< events replayed
  Duration allocator_time{};     ///< real time inside the allocator, all threads
  MeterReading driver{};         ///< of this pass: calls and their time; reserved bytes at its end
  bool driver_timed = true;      ///< false: nobody knows the time of those calls
  Duration trace_duration{};
  LowerBound bound{};             ///< of all events, whether or not the pass was completed
  std::optional<RanOut> ran_out;  ///< nothing: the pass was completed

  Bytes reserved_peak() const { return driver.reserved_peak; }
  /// Requested peak / reserved peak; 1 where nothing was reserved.
  double utilization() const {
    if (reserved_peak() == Bytes{0}) return 1.0;
    return static_cast<double>(requested_peak.count) / static_cast<double>(reserved_peak().count);
  }
  double ns_per_operation() const {
    if (operations == 0) return 0.0;
    return static_cast<double>(allocator_time.ns) / static_cast<double>(operations);
  }
};

}  // namespace v0
}  // namespace bursar
