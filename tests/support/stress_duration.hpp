// SPDX-License-Identifier: Apache-2.0
// How long a test that could go on for ever does go on: BURSAR_STRESS_SECONDS, else its own choice.
#pragma once

#include <chrono>
#include <cstdlib>

namespace bursar::test {

inline std::chrono::milliseconds stress_duration(std::chrono::milliseconds otherwise) {
  const char* seconds = std::getenv("BURSAR_STRESS_SECONDS");
  return seconds == nullptr ? otherwise : std::chrono::seconds(std::atoi(seconds));
}

}  // namespace bursar::test
