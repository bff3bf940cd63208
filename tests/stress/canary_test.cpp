// SPDX-License-Identifier: Apache-2.0
// Byte canaries on real memory: blocks filled with their number, churned through moves, aliases and
// trims on many streams, and verified when they are freed; with injected faults, and with threads.
#include <cstdio>

#include "fuzz/world.hpp"
#include "stress/crowd.hpp"
#include "support/catch.hpp"
#include "support/stress_duration.hpp"

using namespace bursar;
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

TEST_CASE("no byte of a live block changes under eight threads", "[stress][canary]") {
  CrowdOptions options;
  options.backed = true;
  options.seed = 2;
  options.duration = stress_duration(std::chrono::milliseconds(3000));
  Crowd crowd(options);
  CHECK(crowd.work() == "");
  const AllocatorStats worked = crowd.stats();
  std::printf(
      "canary: %llu blocks, %llu MiB, %llu extents moved, %llu of %llu large blocks in views\n",
      static_cast<unsigned long long>(crowd.blocks()),
      static_cast<unsigned long long>(crowd.bytes() >> 20),
      static_cast<unsigned long long>(worked.extents_moved),
      static_cast<unsigned long long>(crowd.in_views()),
      static_cast<unsigned long long>(crowd.looked_at()));
  CHECK(crowd.blocks() > 0);
  CHECK(worked.extents_moved > 0);
  CHECK(crowd.in_views() > 0);
  CHECK(crowd.finish() == "");
  for (const Violation& violation : crowd.violations()) FAIL(violation.text);
}
