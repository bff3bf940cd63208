// SPDX-License-Identifier: Apache-2.0
// Both forms of the report say the same; only the table says where a pass ran out of memory.
#include "replay_report.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bursar {
inline namespace v0 {
namespace {

constexpr std::array kReportedCalls{DriverCall::create, DriverCall::map, DriverCall::set_access,
                                    DriverCall::unmap, DriverCall::release};
constexpr std::size_t kColumns = 10;
using Cells = std::array<std::string, kColumns>;

const Cells kTitles{"trace",       "allocator",    "pass",        "requested peak", "reserved peak",
                    "utilization", "driver calls", "driver time", "ns/op",          "completed"};

std::string mebibytes(Bytes bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes.count) / (1 << 20));
}

double as_us(Duration duration) { return static_cast<double>(duration.ns) / 1e3; }

/// The first of several names, and how many there are besides: a table has only so much room.
std::string short_name(const std::string& names) {
  const auto others = std::count(names.begin(), names.end(), '+');
  if (others == 0) return names;
  return fmt::format("{} + {} more", names.substr(0, names.find('+')), others);
}

Cells cells_of(const ReplayRow& row) {
  std::uint64_t calls = 0;
  for (const DriverCall call : kReportedCalls) calls += row.driver.count(call);
  const std::string completed =
      !row.ran_out ? "yes"
                   : fmt::format("no, out of memory at event {} ({}:{})", row.ran_out->event,
                                 row.ran_out->trace, row.ran_out->line);
  const bool stand_in = row.allocator == "segment_cache";
  return {short_name(row.trace),
          row.allocator + (stand_in ? " (stand-in)" : ""),
          std::to_string(row.pass),
          mebibytes(row.requested_peak),
          mebibytes(row.reserved_peak()),
          fmt::format("{:.4f}", row.utilization()),
          std::to_string(calls),
          row.driver_timed ? fmt::format("{:.2f} ms", as_us(row.driver.total_time()) / 1e3) : "-",
          fmt::format("{:.0f}", row.ns_per_operation()),
          completed};
}

std::string bound_line(const ReplayRow& row) {
  return fmt::format(
      "{}: with a GPU {:g} ms behind no allocator that never waits can hold less than {} "
      "(utilization {:.3f})\n",
      short_name(row.trace), as_us(row.bound.gpu_lag) / 1e3, mebibytes(row.bound.least_reserved),
      row.bound.utilization());
}

}  // namespace

std::string to_table(std::span<const ReplayRow> rows) {
  std::vector<Cells> lines{kTitles};
  for (const ReplayRow& row : rows) lines.push_back(cells_of(row));
  std::array<std::size_t, kColumns> widths{};
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string table;
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i + 1 < kColumns; ++i) {
      const bool words = i < 2;
      table += words ? fmt::format("{:<{}}  ", line[i], widths[i])
                     : fmt::format("{:>{}}  ", line[i], widths[i]);
    }
    table += line.back() + "\n";
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].bound.gpu_lag == Duration{}) continue;
    if (i == 0 || rows[i].trace != rows[i - 1].trace) table += bound_line(rows[i]);
  }
  return table;
}

std::string to_json(std::span<const ReplayRow> rows) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const ReplayRow& row : rows) {
    nlohmann::ordered_json calls;
    for (const DriverCall call : kReportedCalls) calls[to_string(call)] = row.driver.count(call);
    const nlohmann::ordered_json driver_time =
        row.driver_timed ? nlohmann::ordered_json(as_us(row.driver.total_time())) : nullptr;
    array.push_back({{"trace", row.trace},
                     {"allocator", row.allocator},
                     {"device", row.device},
                     {"pass", row.pass},
                     {"requested_peak_bytes", row.requested_peak.count},
                     {"reserved_peak_bytes", row.reserved_peak().count},
                     {"least_reserved_bytes", row.bound.least_reserved.count},
                     {"utilization", row.utilization()},
                     {"operations", row.operations},
                     {"ns_per_operation", row.ns_per_operation()},
                     {"driver_calls", calls},
                     {"driver_time_us", driver_time},
                     {"trace_duration_us", as_us(row.trace_duration)},
                     {"completed", !row.ran_out.has_value()}});
  }
  return array.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace v0
}  // namespace bursar
