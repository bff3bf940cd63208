// SPDX-License-Identifier: Apache-2.0
// The endless half of the fuzzer: libFuzzer's entry.
#include <cstdio>
#include <cstdlib>

#include "fuzz/world.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const auto finding = bursar::test::run_program({data, size})) {
    std::fprintf(stderr, "%s: %s\n", to_string(finding->by), finding->text.c_str());
    std::abort();
  }
  return 0;
}
