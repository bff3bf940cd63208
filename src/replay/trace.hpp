// SPDX-License-Identifier: Apache-2.0
// Trace: what a program asked of its allocator, as RMM's CSV log records it.
//
// A log is lines of `Thread,Time,Action,Pointer,Size,Stream` after a header of just those words.
// Pointers are names that come back after a free, so reading turns them into block numbers that do
// not, and everything that a replay would trip over (a free of nothing, a block allocated twice) is
// found here, with its line. The Thread column is checked and dropped: a log is one order of events
// and is replayed in that order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>

namespace bursar {
inline namespace v0 {

enum class TraceAction : std::uint8_t { allocate, free };

struct TraceEvent {
  Duration time{};           ///< since the trace's start, never less than the event before
  std::uint32_t block = 0;   ///< index into Trace::block_sizes
  std::uint32_t stream = 0;  ///< index of the stream, in order of appearance
  std::uint32_t line = 0;    ///< in the file, from 1
  TraceAction action{};
};

struct Trace {
  std::string name;                ///< the file's name without its folder
  std::vector<TraceEvent> events;  ///< in file order
  std::vector<Bytes> block_sizes;  ///< as requested, by block
  std::size_t stream_count = 0;
  std::uint64_t failures = 0;  ///< "allocate failure" lines: counted, not replayed

  Duration duration() const { return events.empty() ? Duration{} : events.back().time; }
};

/// A log that cannot be replayed. what() is "file:line: reason"; line 0 is the file as a whole.
class TraceError : public std::runtime_error {
 public:
  TraceError(const std::string& file, std::uint64_t line, const std::string& reason);
};

/// Reads a log, plain or compressed by gzip. Throws TraceError.
///
/// Time is a number below 1e9, fractions allowed: ms since the start; a larger one: seconds since
/// the epoch; or HH:MM:SS.ffffff, passing midnight when it falls by more than 12 hours. One trace
/// keeps to one of the three. A time of the last two kinds counts from the first event. A small
/// step back, as threads that log at once produce, counts as no step. Pointer and stream are
/// decimal or hexadecimal (0x...); `(nil)` and 0x0 are null, where an allocation of zero bytes and
/// a free are no events. The size of a free is not used.
Trace read_trace(const std::string& path);

/// The names of traces that are replayed together, joined with `+`.
std::string joined_names(std::span<const Trace> traces);

}  // namespace v0
}  // namespace bursar
