// SPDX-License-Identifier: Apache-2.0
// LogLine: one line of a log, taken apart but not yet understood as part of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>

#include <bursar/core/bytes.hpp>

namespace bursar {
inline namespace v0 {

inline constexpr std::string_view kLogHeader = "Thread,Time,Action,Pointer,Size,Stream";

enum class LogTimeKind : std::uint8_t { since_start, since_epoch, time_of_day };

struct LogTime {
  LogTimeKind kind{};
  std::int64_t ns = 0;
};

enum class LogAction : std::uint8_t { allocate, free, allocate_failure };

struct LogLine {
  LogTime time{};
  LogAction action{};
  std::optional<std::uint64_t> pointer;  ///< nothing for null
  std::string_view pointer_text;         ///< as written; part of the line that was parsed
  Bytes size{};
  std::uint64_t stream = 0;
};

/// What is wrong with a line, in words.
class LogLineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Takes `line` (without its end) apart. Throws LogLineError.
LogLine parse_log_line(std::string_view line);

}  // namespace v0
}  // namespace bursar
