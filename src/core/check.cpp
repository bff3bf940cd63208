// SPDX-License-Identifier: Apache-2.0
// What a failed assertion does: one line to stderr, then the end. Nothing here may allocate or log,
// since the broken state may be the allocator's or the log's own.
#include <cstdio>
#include <cstdlib>

#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

void check_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "bursar: check failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace v0
}  // namespace bursar
