// SPDX-License-Identifier: Apache-2.0
// The log goes where the program says, and never under a lock.
#include <memory>
#include <string>
#include <vector>

#include <bursar/core/lock_rank.hpp>
#include <bursar/core/log.hpp>

#include "support/catch.hpp"
#include "support/dies.hpp"

using namespace bursar;

namespace {

/// Restores the default sink, so that no test hears another's lines.
struct DefaultSinkAfter {
  ~DefaultSinkAfter() { set_log_sink({}); }
};

}  // namespace

TEST_CASE("a sink gets every line with its level", "[core][log]") {
  const DefaultSinkAfter restore;
  std::vector<std::pair<LogLevel, std::string>> lines;
  set_log_sink([&](LogLevel level, std::string_view line) { lines.emplace_back(level, line); });
  log(LogLevel::debug, "first");
  log(LogLevel::error, "second");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == std::pair(LogLevel::debug, std::string("first")));
  CHECK(lines[1] == std::pair(LogLevel::error, std::string("second")));
}

TEST_CASE("a sink that was replaced hears nothing and is let go", "[core][log]") {
  const DefaultSinkAfter restore;
  const auto heard = std::make_shared<int>(0);
  set_log_sink([heard](LogLevel, std::string_view) { ++*heard; });
  set_log_sink([](LogLevel, std::string_view) {});
  log(LogLevel::error, "to the second");
  CHECK(*heard == 0);
  CHECK(heard.use_count() == 1);
}

TEST_CASE("a sink may itself log and install another sink", "[core][log]") {
  const DefaultSinkAfter restore;
  int heard = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    set_log_sink([&](LogLevel, std::string_view) { ++heard; });
    log(LogLevel::info, "from within");
  });
  log(LogLevel::info, "first");
  CHECK(heard == 1);
}

#if BURSAR_CHECK_LEVEL >= 1
TEST_CASE("logging under a lock of the library is a death", "[core][log]") {
  CHECK(test::dies([] {
    RankedMutex<LockRank::heap> heap;
    const HeapLock lock(heap);
    log(LogLevel::error, "the sink might call the allocator");
  }));
}
#endif
