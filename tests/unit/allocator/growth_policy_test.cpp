// SPDX-License-Identifier: Apache-2.0
// GrowthPolicy: when growing is fine, and how large new extents are.
#include <bursar/allocator/growth_policy.hpp>

#include "support/catch.hpp"

namespace bursar::test {

using namespace bursar::literals;

namespace {

constexpr Bytes kPage = 2_MiB;

AllocatorOptions policy_options() {
  AllocatorOptions options;
  options.guard = 10;
  options.wide_guard = 20;
  options.map_price = 100;  // of 1 GiB: 1.024 MiB a mapping
  options.growth_divisor = 64;
  options.extent_share = 8;
  options.max_extent = 32_MiB;
  return options;
}

GrowthState holding(Bytes held, Bytes peak = 1_GiB) {
  GrowthState state;
  state.peak = peak;
  state.held = held;
  return state;
}

}  // namespace

TEST_CASE("a domain may hold a little more than its peak", "[allocator][policy]") {
  const GrowthPolicy policy(policy_options());
  CHECK(policy.within_guard(holding(1_GiB), 10_MiB));
  CHECK_FALSE(policy.within_guard(holding(1_GiB), 11_MiB));
}

TEST_CASE("beyond the guard growing is fine while reuse saves too little for its mappings",
          "[allocator][policy]") {
  const GrowthPolicy policy(policy_options());
  CHECK(policy.not_worth_it(holding(1_GiB), 16_MiB, 4_MiB, 4));
  CHECK_FALSE(policy.not_worth_it(holding(1_GiB), 16_MiB, 5_MiB, 4));
  CHECK_FALSE(policy.not_worth_it(holding(1_GiB), 22_MiB, 4_MiB, 4));  // beyond the wide guard
}

TEST_CASE("the size of new extents follows the peak and the block", "[allocator][policy]") {
  const GrowthPolicy policy(policy_options());
  CHECK(policy.extent_size(holding({}, 1_GiB), 4_MiB, kPage) == 16_MiB);
  CHECK(policy.extent_size(holding({}, 1_GiB), 200_MiB, kPage) == 16_MiB);  // 25 MiB, rounded
  CHECK(policy.extent_size(holding({}, 1_GiB), 256_MiB, kPage) == 32_MiB);
  CHECK(policy.extent_size(holding({}, 100_GiB), 4_MiB, kPage) == 32_MiB);  // max_extent
  CHECK(policy.extent_size(holding({}, 8_MiB), 4_MiB, kPage) == kPage);     // at least a page
}

TEST_CASE("streams that share the memory get smaller extents", "[allocator][policy]") {
  const GrowthPolicy policy(policy_options());
  GrowthState state = holding({}, 1_GiB);
  state.streams = 2;
  CHECK(policy.extent_size(state, 4_MiB, kPage) == kPage);    // 16 MiB / 8
  CHECK(policy.extent_size(state, 256_MiB, kPage) == 8_MiB);  // 32 MiB / 4
}

TEST_CASE("near the end of memory the policy is that of the preset utilization",
          "[allocator][policy]") {
  AllocatorOptions options = policy_options();
  options.max_extent = 128_MiB;
  options.growth_divisor = 1;
  const GrowthPolicy policy(options);
  const AllocatorOptions tight = *preset_options("utilization");
  GrowthState state = holding(700_MiB);
  state.attainable = 1_GiB;
  CHECK(policy.extent_size(state, 4_MiB, kPage) == 128_MiB);
  state.held = 800_MiB;
  CHECK(policy.extent_size(state, 4_MiB, kPage) == 1_GiB / tight.growth_divisor);
}

TEST_CASE("a request for which growing failed takes the smallest extents, whatever is held",
          "[allocator][policy]") {
  const GrowthPolicy policy(policy_options());
  GrowthState state = holding(100_MiB);
  CHECK(policy.within_guard(state, 1_MiB));
  state.exhausted = true;
  CHECK_FALSE(policy.within_guard(state, 1_MiB));
  CHECK(policy.extent_size(state, 256_MiB, kPage) == kPage);
}

TEST_CASE("near the end of memory nothing gets coarser than was asked", "[allocator][policy]") {
  AllocatorOptions options = policy_options();
  options.max_extent = kPage;
  options.growth_divisor = options.extent_share = 100'000;
  options.guard = 0;
  const GrowthPolicy policy(options);
  GrowthState state = holding(64_GiB, 64_GiB);
  state.attainable = 65_GiB;
  CHECK(policy.extent_size(state, 4_GiB, kPage) == kPage);
  CHECK_FALSE(policy.within_guard(state, kPage));
}

TEST_CASE("small blocks borrow where much is idle and a page more would be beyond the guard",
          "[allocator][policy]") {
  AllocatorOptions options = policy_options();
  options.borrow_limit = 1_MiB;
  const GrowthPolicy policy(options);
  CHECK(policy.borrows(holding(1100_MiB), 4_KiB, 128_MiB, kPage));
  CHECK_FALSE(policy.borrows(holding(1100_MiB), 4_KiB, 127_MiB, kPage));
  CHECK_FALSE(policy.borrows(holding(1100_MiB), 1_MiB, 128_MiB, kPage));
  CHECK_FALSE(policy.borrows(holding(1000_MiB), 4_KiB, 128_MiB, kPage));
}

}  // namespace bursar::test
