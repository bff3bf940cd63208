// SPDX-License-Identifier: Apache-2.0
// The grammar of a log line. Every field must be wholly what it claims to be: a replay of half-read
// numbers would be a replay of another program.
#include "log_line.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace bursar {
inline namespace v0 {
namespace {

constexpr std::size_t kFieldCount = 6;
using Fields = std::array<std::string_view, kFieldCount>;

[[noreturn]] void refuse(std::string_view what, std::string_view text) {
  throw LogLineError(std::string(what) + " '" + std::string(text) + "'");
}

Fields split(std::string_view line) {
  Fields fields;
  std::size_t count = 0;
  for (;; ++count) {
    const std::size_t comma = line.find(',');
    if (count < kFieldCount) fields[count] = line.substr(0, comma);
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
  if (++count != kFieldCount) {
    throw LogLineError("expected 6 fields, found " + std::to_string(count));
  }
  return fields;
}

template <class T>
bool parse_whole(std::string_view text, T& out, int base) {
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, out, base);
  return failed == std::errc{} && stop == end;
}

/// Decimal, or hexadecimal after 0x.
std::uint64_t parse_number(std::string_view text, std::string_view what) {
  const bool hex = text.starts_with("0x");
  std::uint64_t value = 0;
  if (!parse_whole(hex ? text.substr(2) : text, value, hex ? 16 : 10)) refuse(what, text);
  return value;
}

std::optional<std::uint64_t> parse_pointer(std::string_view text) {
  if (text == "(nil)") return std::nullopt;
  const std::uint64_t value = parse_number(text, "bad pointer");
  // A decimal 0 is a serial number; an address of 0 is null.
  if (value == 0 && text.starts_with("0x")) return std::nullopt;
  return value;
}

/// HH:MM:SS with an optional fraction of up to nine digits.
LogTime parse_time_of_day(std::string_view text) {
  const auto two_digits = [&](std::size_t at, unsigned below) -> std::int64_t {
    unsigned value = 0;
    if (!parse_whole(text.substr(at, 2), value, 10) || value >= below) refuse("bad time", text);
    return value;
  };
  if (text.size() < 8 || text[2] != ':' || text[5] != ':') refuse("bad time", text);
  std::int64_t ns =
      ((two_digits(0, 24) * 60 + two_digits(3, 60)) * 60 + two_digits(6, 61)) * 1'000'000'000;
  if (text.size() > 8) {
    const std::string_view digits = text.substr(9);
    std::uint32_t fraction = 0;
    if (text[8] != '.' || digits.size() > 9 || !parse_whole(digits, fraction, 10)) {
      refuse("bad time", text);
    }
    std::int64_t scaled = fraction;
    for (std::size_t i = digits.size(); i < 9; ++i) scaled *= 10;
    ns += scaled;
  }
  return {LogTimeKind::time_of_day, ns};
}

LogTime parse_time(std::string_view text) {
  constexpr double kFirstEpoch = 1e9;
  constexpr double kLastEpoch = 9e9;
  if (text.find(':') != std::string_view::npos) return parse_time_of_day(text);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (failed != std::errc{} || stop != end) refuse("bad time", text);
  if (!(value >= 0 && value < kLastEpoch)) refuse("time out of range", text);
  if (value < kFirstEpoch) return {LogTimeKind::since_start, std::llround(value * 1e6)};
  return {LogTimeKind::since_epoch, std::llround(value * 1e9)};
}

LogAction parse_action(std::string_view text) {
  if (text == "allocate") return LogAction::allocate;
  if (text == "free") return LogAction::free;
  if (text == "allocate failure") return LogAction::allocate_failure;
  refuse("unknown action", text);
}

}  // namespace

LogLine parse_log_line(std::string_view line) {
  const Fields fields = split(line);
  parse_number(fields[0], "bad thread");
  LogLine parsed;
  parsed.time = parse_time(fields[1]);
  parsed.action = parse_action(fields[2]);
  parsed.pointer = parse_pointer(fields[3]);
  parsed.pointer_text = fields[3];
  parsed.size = Bytes{parse_number(fields[4], "bad size")};
  parsed.stream = fields[5] == "(nil)" ? 0 : parse_number(fields[5], "bad stream");
  return parsed;
}

}  // namespace v0
}  // namespace bursar
