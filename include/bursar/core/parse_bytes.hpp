// SPDX-License-Identifier: Apache-2.0
// parse_bytes: the one reading of a size that a person wrote, for BURSAR_CONF and the command line.
//
// A size that is read wrongly limits the wrong amount, so there is no guessing: digits, then at
// most one of the binary units, nothing else. `1.5GiB`, `2gb`, ` 7` and `-1` are refused.
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <bursar/core/bytes.hpp>

namespace bursar {
inline namespace v0 {

/// `24GiB`, `512MiB`, `64KiB`, `1000B`, `1000`: the amount; nothing for any other text and for
/// amounts above 2^64 - 1. Thread-safe.
inline std::optional<Bytes> parse_bytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 6> kUnits{
      {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  for (const auto& [unit, shift] : kUnits) {
    if (text != unit) continue;
    if (number > Bytes::max().count >> shift) return std::nullopt;
    return Bytes{number << shift};
  }
  return std::nullopt;
}

}  // namespace v0
}  // namespace bursar
