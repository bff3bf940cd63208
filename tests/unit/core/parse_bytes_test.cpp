// SPDX-License-Identifier: Apache-2.0
// Sizes that people write are read exactly or not at all.
#include <bursar/core/parse_bytes.hpp>

#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::literals;

TEST_CASE("parse_bytes reads each unit", "[core][parse_bytes]") {
  CHECK(parse_bytes("1000") == 1000_B);
  CHECK(parse_bytes("1000B") == 1000_B);
  CHECK(parse_bytes("64KiB") == 64_KiB);
  CHECK(parse_bytes("512MiB") == 512_MiB);
  CHECK(parse_bytes("24GiB") == 24_GiB);
  CHECK(parse_bytes("2TiB") == 2048_GiB);
  CHECK(parse_bytes("0") == 0_B);
}

TEST_CASE("parse_bytes refuses what it would have to guess", "[core][parse_bytes]") {
  for (const char* text : {"", "GiB", "1.5GiB", "2gb", "2 GiB", " 7", "7 ", "-1", "+1", "1GiBx"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_bytes(text).has_value());
  }
}

TEST_CASE("parse_bytes refuses amounts beyond 64 bits", "[core][parse_bytes]") {
  CHECK(parse_bytes("18446744073709551615") == Bytes::max());
  CHECK(parse_bytes("16777215TiB").has_value());
  CHECK_FALSE(parse_bytes("16777216TiB").has_value());
  CHECK_FALSE(parse_bytes("18446744073709551616").has_value());
}
