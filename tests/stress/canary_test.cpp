// SPDX-License-Identifier: Apache-2.0
// A byte canary on real memory: blocks filled with their number, churned through moves, aliases,
// trims and injected faults on four streams, and verified when they are freed.
#include "fuzz/world.hpp"
#include "stress/crowd.hpp"
#include "support/catch.hpp"

using namespace bursar::test;

TEST_CASE("no byte of a live block changes while its neighbors move", "[stress][canary]") {
  constexpr std::uint32_t kSeeds = 40;
  constexpr std::size_t kSteps = 2500;
  constexpr std::uint8_t kFullAndBacked = 4;
  const auto end = std::chrono::steady_clock::now() + stress_duration(std::chrono::seconds(0));
  for (std::uint32_t seed = 1; seed <= kSeeds || std::chrono::steady_clock::now() < end; ++seed) {
    std::vector<std::uint8_t> bytes = random_bytes(seed, kSteps);
    bytes[0] = kFullAndBacked;
    const std::optional<Finding> finding = run_program(bytes);
    INFO("seed " << seed << (finding ? ", " + finding->text : ""));
    CHECK_FALSE(finding);
  }
}
