// SPDX-License-Identifier: Apache-2.0
// Catch2, whichever of its two generations is installed: 2.13 (Debian 12) or 3.x (Ubuntu 24.04).
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace bursar::test {

/// Matches strings that hold `part`; the two generations name this differently.
inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

/// Counts test cases that could not run here; with any, and no failure, the program exits with 4,
/// which ctest shows as skipped.
void note_skipped() noexcept;

}  // namespace bursar::test

// SKIP_TEST(reason): leaves the test case, visibly. For a machine that lacks something, such as a
// GPU; never for a failure. Only in the test case's own body.
#define SKIP_TEST(reason)              \
  do {                                 \
    WARN("skipped: " << (reason));     \
    SUCCEED("counts as an assertion"); \
    ::bursar::test::note_skipped();    \
    return;                            \
  } while (false)
