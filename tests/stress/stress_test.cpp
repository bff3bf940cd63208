// SPDX-License-Identifier: Apache-2.0
// Many threads, many streams, little memory.
#include "stress/crowd.hpp"
#include "support/catch.hpp"
#include "support/stress_duration.hpp"

using namespace bursar;
using namespace bursar::test;

TEST_CASE("eight threads on their own and shared streams use memory in order", "[stress]") {
  CrowdOptions options;
  options.duration = stress_duration(std::chrono::milliseconds(4000));
  Crowd crowd(options);
  CHECK(crowd.work() == "");
  const AllocatorStats worked = crowd.stats();
  CHECK(crowd.steps() > 0);
  CHECK(worked.cache_hits > 0);
  CHECK(worked.extents_moved > 0);
  CHECK(worked.out_of_memory > 0);
  CHECK(crowd.finish() == "");
  for (const Violation& violation : crowd.violations()) FAIL(violation.text);
}
