// SPDX-License-Identifier: Apache-2.0
// BURSAR_CONF: every key, and every way to get it wrong.
#include <bursar/allocator/allocator_options.hpp>

#include <cstdlib>
#include <string>

#include <bursar/core/check.hpp>

#include "unit/allocator/printing.hpp"

namespace bursar::test {

using namespace bursar::literals;

TEST_CASE("every key sets its field", "[allocator][options]") {
  const auto parsed = parse_options(
      "max_extent:64MiB,small_limit:512KiB,growth_divisor:7,extent_share:3,fence_batch:9,"
      "fence_bytes:4MiB,address_factor:2,alias_moves:off,wait_limit:15");
  REQUIRE(parsed.ok());
  CHECK(parsed->max_extent == 64_MiB);
  CHECK(parsed->small_limit == 512_KiB);
  CHECK(parsed->growth_divisor == 7);
  CHECK(parsed->extent_share == 3);
  CHECK(parsed->fence_batch == 9);
  CHECK(parsed->fence_bytes == 4_MiB);
  CHECK(parsed->address_factor == 2);
  CHECK_FALSE(parsed->alias_moves);
  CHECK(parsed->wait_limit == milliseconds(15));
}

TEST_CASE("the keys of stitching set their fields", "[allocator][options]") {
  const auto parsed =
      parse_options("stitch_limit:4MiB,max_views:3,guard:1,wide_guard:2,map_price:7");
  REQUIRE(parsed.ok());
  CHECK(parsed->stitch_limit == 4_MiB);
  CHECK(parsed->max_views == 3);
  CHECK(parsed->guard == 1);
  CHECK(parsed->wide_guard == 2);
  CHECK(parsed->map_price == 7);
}

TEST_CASE("the keys that help to find errors set their fields", "[allocator][options]") {
  CHECK(parse_options("passthrough:on")->passthrough);
  CHECK_FALSE(parse_options("passthrough:on,passthrough:off")->passthrough);
  CHECK(AllocatorOptions{}.scrub == Scrub::never);
  CHECK(parse_options("scrub:always")->scrub == Scrub::always);
  CHECK(parse_options("scrub:cross_domain")->scrub == Scrub::cross_domain);
  CHECK(parse_options("scrub:always,scrub:never")->scrub == Scrub::never);
}

TEST_CASE("redzones need a library that checks itself, and no passthrough",
          "[allocator][options]") {
  const auto parsed = parse_options("redzones:on");
  CHECK(parsed.ok() == (kCheckLevel >= 2));
  if (!parsed) CHECK_THAT(std::string(parsed.failure().message), contains("BURSAR_CHECK_LEVEL"));
  CHECK_FALSE(parse_options("redzones:on,passthrough:on").ok());
}

TEST_CASE("a preset sets the policy and nothing else, and later keys still count",
          "[allocator][options]") {
  AllocatorOptions base;
  base.fence_batch = 5;
  const auto time = parse_options("preset:time", base);
  const auto utilization = parse_options("preset:utilization,growth_divisor:300", base);
  REQUIRE(time.ok());
  REQUIRE(utilization.ok());
  CHECK(time->fence_batch == 5);
  CHECK(time->growth_divisor < base.growth_divisor);
  CHECK(utilization->extent_share > base.extent_share);
  CHECK(utilization->growth_divisor == 300);
  CHECK(parse_options("preset:time,preset:balanced")->growth_divisor == base.growth_divisor);
}

TEST_CASE("an empty text changes nothing", "[allocator][options]") {
  AllocatorOptions base;
  base.fence_batch = 5;
  CHECK(parse_options("", base)->fence_batch == 5);
  CHECK(parse_options("alias_moves:on", base)->fence_batch == 5);
}

TEST_CASE("the last of two values of a key counts", "[allocator][options]") {
  CHECK(parse_options("fence_batch:5,fence_batch:6")->fence_batch == 6);
}

TEST_CASE("a text that is not understood is refused whole", "[allocator][options]") {
  const std::string bad =
      GENERATE(as<std::string>{}, "max_extents:2MiB", "max_extent", "max_extent:", "max_extent:two",
               "max_extent:2MB", "fence_batch:-1", "fence_batch:1.5", "fence_batch:5000000000",
               "alias_moves:yes", "wait_limit:1s", "scrub:on", "passthrough:1", "redzones:yes",
               "preset:fast", ":", ",", "fence_batch:5,,fence_batch:6", "fence_batch: 5",
               "fence_batch:5 ", "Fence_batch:5");
  const auto parsed = parse_options(bad);
  CAPTURE(bad);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.failure().kind == ErrorKind::invalid_argument);
}

TEST_CASE("values that make no sense are refused", "[allocator][options]") {
  const std::string bad = GENERATE(as<std::string>{}, "max_extent:3MiB", "max_extent:0",
                                   "max_extent:2GiB", "growth_divisor:0", "extent_share:0",
                                   "fence_batch:0", "address_factor:0", "address_factor:65");
  const auto parsed = parse_options(bad);
  CAPTURE(bad);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.failure().kind == ErrorKind::invalid_argument);
}

TEST_CASE("a negative wait is refused", "[allocator][options]") {
  AllocatorOptions options;
  options.wait_limit = Duration{-1};
  CHECK_FALSE(check_options(options).ok());
  CHECK(check_options(AllocatorOptions{}).ok());
}

TEST_CASE("the environment is read through the same parser", "[allocator][options]") {
  REQUIRE(setenv("BURSAR_CONF", "fence_batch:11", 1) == 0);
  CHECK(options_from_environment()->fence_batch == 11);
  REQUIRE(setenv("BURSAR_CONF", "nonsense", 1) == 0);
  CHECK_FALSE(options_from_environment().ok());
  REQUIRE(unsetenv("BURSAR_CONF") == 0);
  CHECK(options_from_environment()->fence_batch == AllocatorOptions{}.fence_batch);
}

}  // namespace bursar::test
