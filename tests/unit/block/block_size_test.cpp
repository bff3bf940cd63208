// SPDX-License-Identifier: Apache-2.0
// block_size: which sizes blocks have.
#include <bursar/block/block_size.hpp>

#include "support/catch.hpp"

namespace bursar::test {

using namespace bursar::literals;

TEST_CASE("small sizes are rounded up to 512 bytes", "[block][size]") {
  CHECK(block_size(1_B) == 512_B);
  CHECK(block_size(512_B) == 512_B);
  CHECK(block_size(513_B) == 1_KiB);
  CHECK(block_size(128_KiB - 1_B) == 128_KiB);
}

TEST_CASE("middle sizes have 128 steps to each doubling", "[block][size]") {
  CHECK(block_size(1_MiB) == 1_MiB);
  CHECK(block_size(1_MiB + 1_B) == 1_MiB + 8_KiB);
  CHECK(block_size(2_MiB + 1_B) == 2_MiB + 16_KiB);
  CHECK(block_size(4_MiB - 1_B) == 4_MiB);
}

TEST_CASE("large sizes are rounded up to 512 bytes", "[block][size]") {
  CHECK(block_size(4_MiB + 1_B) == 4_MiB + 512_B);
  CHECK(block_size(90_MiB + 513_B) == 90_MiB + 1_KiB);
}

TEST_CASE("no size grows by more than a part in 128 beyond the granule", "[block][size]") {
  for (std::uint64_t n = 1; n < (8ull << 20); n += 4093) {
    const Bytes size = block_size(Bytes{n});
    REQUIRE(size.count >= n);
    REQUIRE(size.count - n < 512 + n / 128);
  }
}

}  // namespace bursar::test
