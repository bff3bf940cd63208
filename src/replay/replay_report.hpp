// SPDX-License-Identifier: Apache-2.0
// The rows of a replay for people and for programs.
#pragma once

#include <span>
#include <string>

#include "replay_row.hpp"

namespace bursar {
inline namespace v0 {

/// A table with a header, one line a row, without trailing spaces. Where the GPU is behind, a line
/// for each set of traces follows: how little any allocator could hold that never waits.
std::string to_table(std::span<const ReplayRow> rows);

/// An array with an object a row; sizes in bytes, times in microseconds, ended by a line end. Keys:
/// trace, allocator, device, pass, requested_peak_bytes, reserved_peak_bytes,
/// least_reserved_bytes (LowerBound), utilization, operations, ns_per_operation,
/// driver_calls {create, map, set_access, unmap, release}, driver_time_us (null where nobody knows
/// it), trace_duration_us, completed.
std::string to_json(std::span<const ReplayRow> rows);

}  // namespace v0
}  // namespace bursar
