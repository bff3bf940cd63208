// SPDX-License-Identifier: Apache-2.0
// From log lines to a trace: pointers become blocks, and what could not be replayed is refused.
#include "trace.hpp"

#include <filesystem>
#include <limits>
#include <unordered_map>

#include "log_line.hpp"
#include "text_file.hpp"
#include "trace_clock.hpp"

namespace bursar {
inline namespace v0 {
namespace {

class TraceBuilder {
 public:
  void add(const LogLine& line, std::uint32_t line_number) {
    const Duration time = clock_.read(line.time);
    switch (line.action) {
      case LogAction::allocate: return allocate(line, time, line_number);
      case LogAction::free: return free(line, time, line_number);
      case LogAction::allocate_failure: ++trace_.failures; return;
    }
  }

  Trace finish(std::string name) {
    trace_.name = std::move(name);
    trace_.stream_count = streams_.size();
    return std::move(trace_);
  }

 private:
  void allocate(const LogLine& line, Duration time, std::uint32_t line_number) {
    if (!line.pointer) {
      if (line.size == Bytes{0}) return;
      throw LogLineError("allocation of " + std::to_string(line.size.count) + " bytes at null");
    }
    const auto block = static_cast<std::uint32_t>(trace_.block_sizes.size());
    if (!live_.emplace(*line.pointer, block).second) {
      throw LogLineError("pointer " + std::string(line.pointer_text) + " is allocated already");
    }
    trace_.block_sizes.push_back(line.size);
    trace_.events.push_back({time, block, stream(line), line_number, TraceAction::allocate});
  }

  void free(const LogLine& line, Duration time, std::uint32_t line_number) {
    if (!line.pointer) return;
    const auto found = live_.find(*line.pointer);
    if (found == live_.end()) {
      throw LogLineError("free of unknown pointer " + std::string(line.pointer_text));
    }
    trace_.events.push_back({time, found->second, stream(line), line_number, TraceAction::free});
    live_.erase(found);
  }

  std::uint32_t stream(const LogLine& line) {
    const auto next = static_cast<std::uint32_t>(streams_.size());
    return streams_.emplace(line.stream, next).first->second;
  }

  Trace trace_;
  TraceClock clock_;
  std::unordered_map<std::uint64_t, std::uint32_t> live_;     ///< pointer -> block
  std::unordered_map<std::uint64_t, std::uint32_t> streams_;  ///< number in the log -> index
};

void expect_header(TextFile& file) {
  std::string_view line;
  if (file.next(line) && line == kLogHeader) return;
  throw TraceError(file.path(), 1, "expected the header " + std::string(kLogHeader));
}

}  // namespace

TraceError::TraceError(const std::string& file, std::uint64_t line, const std::string& reason)
    : std::runtime_error(file + ":" + std::to_string(line) + ": " + reason) {}

Trace read_trace(const std::string& path) {
  constexpr std::uint64_t kMostLines = std::numeric_limits<std::uint32_t>::max();
  TextFile file(path);
  expect_header(file);
  TraceBuilder builder;
  std::string_view line;
  while (file.next(line)) {
    try {
      if (file.line_number() > kMostLines) throw LogLineError("too many lines");
      builder.add(parse_log_line(line), static_cast<std::uint32_t>(file.line_number()));
    } catch (const LogLineError& e) {
      throw TraceError(path, file.line_number(), e.what());
    }
  }
  return builder.finish(std::filesystem::path(path).filename().string());
}

std::string joined_names(std::span<const Trace> traces) {
  std::string names;
  for (const Trace& trace : traces) names += (names.empty() ? "" : "+") + trace.name;
  return names;
}

}  // namespace v0
}  // namespace bursar
