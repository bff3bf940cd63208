// SPDX-License-Identifier: Apache-2.0
// Random numbers are drawn ahead of what is timed.
#include "workloads.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace bursar {
inline namespace v0 {

std::vector<Replacement> make_replacements(const ChurnPlan& plan) {
  constexpr std::uint32_t kFewest = 1u << 14;
  constexpr double kSmallestLog2 = 9;  // 512 B
  std::mt19937_64 random(plan.live);
  std::uniform_int_distribution<std::uint32_t> victim(0, plan.live - 1);
  std::uniform_real_distribution<double> log2_bytes(kSmallestLog2, std::log2(plan.largest));
  std::vector<Replacement> steps(std::max(kFewest, std::bit_ceil(2 * plan.live)));
  for (Replacement& step : steps) {
    step.victim = victim(random);
    step.bytes = static_cast<std::uint32_t>(std::exp2(log2_bytes(random)));
  }
  return steps;
}

}  // namespace v0
}  // namespace bursar
