// SPDX-License-Identifier: Apache-2.0
// Amounts of memory do not wrap around unseen.
#include <bursar/core/bytes.hpp>

#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::literals;

TEST_CASE("a literal is the amount its unit says", "[core][bytes]") {
  CHECK((7_B).count == 7);
  CHECK((1_KiB).count == 1024);
  CHECK((3_MiB).count == 3 * 1024 * 1024);
  CHECK(2_GiB == 2048_MiB);
}

TEST_CASE("dividing bytes by bytes gives a count", "[core][bytes]") {
  CHECK(7_MiB / 2_MiB == 3);
  CHECK(7_MiB / 7 == 1_MiB);
}

TEST_CASE("zero and sums of powers are no power of two", "[core][bytes]") {
  CHECK_FALSE(is_power_of_two(0_B));
  CHECK_FALSE(is_power_of_two(3_MiB));
  CHECK(is_power_of_two(1_B));
  CHECK(is_power_of_two(Bytes{1ull << 63}));
}

TEST_CASE("rounding leaves multiples alone", "[core][bytes]") {
  CHECK(round_up(4_MiB, 2_MiB) == 4_MiB);
  CHECK(round_down(4_MiB, 2_MiB) == 4_MiB);
  CHECK(round_up(0_B, 512_B) == 0_B);
}

TEST_CASE("rounding goes the way its name says", "[core][bytes]") {
  CHECK(round_up(513_B, 512_B) == 1024_B);
  CHECK(round_down(1023_B, 512_B) == 512_B);
}

TEST_CASE("checked_round_up refuses what does not fit", "[core][bytes]") {
  CHECK(checked_round_up(513_B, 512_B) == 1024_B);
  CHECK(checked_round_up(Bytes::max() - 512_B, 512_B) == Bytes::max() - 511_B);
  CHECK_FALSE(checked_round_up(Bytes::max() - 510_B, 512_B).has_value());
  CHECK_FALSE(checked_round_up(Bytes::max(), 2_MiB).has_value());
}

TEST_CASE("checked_add refuses a sum that wraps around", "[core][bytes]") {
  CHECK(checked_add(1_B, 2_B) == 3_B);
  CHECK(checked_add(Bytes::max() - 1_B, 1_B) == Bytes::max());
  CHECK_FALSE(checked_add(Bytes::max(), 1_B).has_value());
}

TEST_CASE("is_aligned accepts multiples only", "[core][bytes]") {
  CHECK(is_aligned(6_MiB, 2_MiB));
  CHECK(is_aligned(0_B, 2_MiB));
  CHECK_FALSE(is_aligned(3_MiB, 2_MiB));
}
