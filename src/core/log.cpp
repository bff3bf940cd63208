// SPDX-License-Identifier: Apache-2.0
// The log sink of the process. It is never destroyed: blocks are freed, and failures reported, by
// destructors that run after any static of ours would be gone.
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include <bursar/core/check.hpp>
#include <bursar/core/lock_rank.hpp>
#include <bursar/core/log.hpp>

namespace bursar {
inline namespace v0 {
namespace {

struct SinkSlot {
  RankedMutex<LockRank::log> mutex;
  std::shared_ptr<const LogSink> sink;  // null: the default
};

SinkSlot& sink_slot() {
  static SinkSlot& slot = *new SinkSlot;
  return slot;
}

void log_to_stderr(LogLevel level, std::string_view message) noexcept {
  if (level < LogLevel::warning) return;
  std::fprintf(stderr, "bursar: %s: %.*s\n", level == LogLevel::error ? "error" : "warning",
               static_cast<int>(message.size()), message.data());
}

}  // namespace

void set_log_sink(LogSink sink) {
  auto next = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(sink_slot().mutex);
  sink_slot().sink.swap(next);  // the former sink ends after the lock: it is the user's code
}

void log(LogLevel level, std::string_view message) noexcept {
  BURSAR_CHECK(1, no_lock_held_from(LockRank::registry));
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(sink_slot().mutex);
    sink = sink_slot().sink;
  }
  if (sink) {
    (*sink)(level, message);
  } else {
    log_to_stderr(level, message);
  }
}

}  // namespace v0
}  // namespace bursar
