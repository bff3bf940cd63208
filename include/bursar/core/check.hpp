// SPDX-License-Identifier: Apache-2.0
// Assertions in grades. A failed one is a bug of the library, so it stops the program at once:
// going on would hand out memory twice.
#pragma once

#include <bursar/core/config.hpp>

namespace bursar {
inline namespace v0 {

/// Prints expression and place to stderr and aborts. Never returns.
[[noreturn]] BURSAR_EXPORT void check_failed(const char* expression, const char* file,
                                             int line) noexcept;

inline constexpr int kCheckLevel = BURSAR_CHECK_LEVEL;

}  // namespace v0
}  // namespace bursar

// BURSAR_CHECK(level, condition): aborts when `condition` is false and BURSAR_CHECK_LEVEL is at
// least `level`; otherwise the condition is not evaluated. No effect on the ABI.
#define BURSAR_CHECK(level, condition)                                          \
  do {                                                                          \
    if constexpr (::bursar::kCheckLevel >= (level)) {                           \
      if (!(condition)) ::bursar::check_failed(#condition, __FILE__, __LINE__); \
    }                                                                           \
  } while (false)
