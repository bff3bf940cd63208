// SPDX-License-Identifier: Apache-2.0
// The main function of every test program, compiled once.
#define CATCH_CONFIG_RUNNER  // read by Catch2 2.x only
#include "support/catch.hpp"

namespace {
constexpr int kSkipped = 4;  // SKIP_RETURN_CODE in BursarTest.cmake
int skipped_count = 0;
}  // namespace

void bursar::test::note_skipped() noexcept { ++skipped_count; }

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  if (failed != 0) return failed == kSkipped ? 1 : failed;
  return skipped_count > 0 ? kSkipped : 0;
}
