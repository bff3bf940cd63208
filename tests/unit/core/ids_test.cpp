// SPDX-License-Identifier: Apache-2.0
// Pages, addresses and ranges convert where the name says so.
#include <bursar/core/ids.hpp>

#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::literals;

TEST_CASE("pages_for counts the last page that is partly used", "[core][ids]") {
  CHECK(pages_for(0_B, 2_MiB).value == 0);
  CHECK(pages_for(1_B, 2_MiB).value == 1);
  CHECK(pages_for(2_MiB, 2_MiB).value == 1);
  CHECK(pages_for(2_MiB + 1_B, 2_MiB).value == 2);
}

TEST_CASE("to_bytes does not overflow 32 bits", "[core][ids]") {
  CHECK(to_bytes(PageCount{1u << 20}, 2_MiB) == Bytes{1ull << 41});
}

TEST_CASE("a range contains its begin and not its end", "[core][ids]") {
  const VaRange range{DeviceAddress{0x1000}, 16_B};
  CHECK(range.contains(DeviceAddress{0x1000}));
  CHECK(range.contains(DeviceAddress{0x100f}));
  CHECK_FALSE(range.contains(range.end()));
  CHECK_FALSE(range.contains(DeviceAddress{0xfff}));
}

TEST_CASE("an address survives the way through a pointer", "[core][ids]") {
  const DeviceAddress address{0x7f00'0000'0200};
  CHECK(to_address(to_pointer(address)) == address);
}

TEST_CASE("kNoStream is none of the streams that the driver counts", "[core][ids]") {
  CHECK(kNoStream > StreamId{1ull << 62});
  CHECK(StreamId{} != kNoStream);
}

TEST_CASE("durations are nanoseconds", "[core][ids]") {
  CHECK(microseconds(3).ns == 3'000);
  CHECK(milliseconds(2) + microseconds(1) == Duration{2'001'000});
}
