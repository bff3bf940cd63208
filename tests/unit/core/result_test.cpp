// SPDX-License-Identifier: Apache-2.0
// A result holds a value or an error, never both.
#include <memory>

#include <bursar/core/result.hpp>

#include "support/catch.hpp"

using namespace bursar;

TEST_CASE("a result made from a value holds it", "[core][result]") {
  result<int> answer = 42;
  REQUIRE(answer.ok());
  CHECK(answer.value() == 42);
  *answer += 1;
  CHECK(*answer == 43);
}

TEST_CASE("a result made from an error holds it", "[core][result]") {
  const result<int> answer = error{.kind = ErrorKind::device_oom, .driver_code = 2};
  REQUIRE_FALSE(answer.ok());
  CHECK_FALSE(static_cast<bool>(answer));
  CHECK(answer.failure().kind == ErrorKind::device_oom);
  CHECK(answer.failure().driver_code == 2);
}

TEST_CASE("a result gives its move-only value away", "[core][result]") {
  result<std::unique_ptr<int>> answer = std::make_unique<int>(7);
  REQUIRE(answer.ok());
  const std::unique_ptr<int> taken = std::move(answer).value();
  CHECK(*taken == 7);
}

TEST_CASE("a result of nothing is good until it is given an error", "[core][result]") {
  CHECK(result<void>{}.ok());
  const result<void> refused = error{.kind = ErrorKind::over_budget};
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().kind == ErrorKind::over_budget);
}
