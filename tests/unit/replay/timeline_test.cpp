// SPDX-License-Identifier: Apache-2.0
// A curve in a bounded number of slices.
#include "support/catch.hpp"

#include <algorithm>

#include "replay/timeline.hpp"

using namespace bursar;
using namespace bursar::literals;

TEST_CASE("a timeline keeps the highest value of each slice", "[replay][timeline]") {
  Timeline timeline(microseconds(999));
  CHECK(timeline.slice_length() == microseconds(1));
  timeline.add(Duration{0}, 5_B);
  timeline.add(Duration{300}, 9_B);
  timeline.add(Duration{600}, 2_B);
  timeline.add(Duration{1500}, 1_B);
  CHECK(timeline.highest() == std::vector<Bytes>{9_B, 2_B});
}

TEST_CASE("a value stands until the next one", "[replay][timeline]") {
  Timeline timeline(microseconds(999), 7_B);
  timeline.add(Duration{2500}, 3_B);
  timeline.add(Duration{5000}, 4_B);
  CHECK(timeline.highest() == std::vector<Bytes>{7_B, 7_B, 7_B, 3_B, 3_B, 4_B});
}

TEST_CASE("what was highest on the way counts, and does not stand", "[replay][timeline]") {
  Timeline timeline(microseconds(999));
  timeline.add(Duration{0}, 2_B, 8_B);
  timeline.add(Duration{2000}, 2_B);
  CHECK(timeline.highest() == std::vector<Bytes>{8_B, 2_B, 2_B});
}

TEST_CASE("however long a trace is, its slices are bounded and reach its end",
          "[replay][timeline]") {
  const std::int64_t duration =
      GENERATE(values<std::int64_t>({0, 1, 999, 1000, 1001, 123'456'789, 4'000'000'000'000'000}));
  INFO(duration);
  Timeline timeline(Duration{duration});
  for (std::int64_t i = 0; i <= 5000; ++i) {
    timeline.add(Duration{duration / 5000 * i}, Bytes{static_cast<std::uint64_t>(i)});
  }
  timeline.add(Duration{duration}, 1_B);
  const std::vector<Bytes>& highest = timeline.highest();
  CHECK(highest.size() <= Timeline::kSlices);
  CHECK(Duration{timeline.slice_length().ns * static_cast<std::int64_t>(highest.size())} >
        Duration{duration});
  CHECK(*std::max_element(highest.begin(), highest.end()) == 5000_B);
}
