// SPDX-License-Identifier: Apache-2.0
// The stand-in must do what the practice it stands for does, or comparing with it says nothing.
#include "support/catch.hpp"

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <bursar/driver/sim_driver.hpp>

#include "replay/segment_cache.hpp"

using namespace bursar;
using namespace bursar::literals;

namespace {

constexpr StreamId kStream{1};
constexpr StreamId kOther{2};

std::shared_ptr<SimDriver> driver_with(Bytes capacity) {
  SimOptions options;
  options.capacity = capacity;
  return std::make_shared<SimDriver>(options);
}

struct Rig {
  explicit Rig(Bytes capacity = 1_GiB) : driver(driver_with(capacity)), cache(driver) {}

  void* allocate(Bytes size, StreamId stream = kStream) {
    const result<void*> block = cache.allocate(size, stream);
    REQUIRE(block);
    REQUIRE(cache.validate());
    return *block;
  }
  void free(void* block) {
    REQUIRE(cache.deallocate(block));
    REQUIRE(cache.validate());
  }
  Bytes reserved() const { return driver->meter().read().reserved; }

  std::shared_ptr<SimDriver> driver;
  SegmentCache cache;
};

}  // namespace

TEST_CASE("segments are 2 MiB, 20 MiB or the block's own size", "[replay][segment_cache]") {
  const auto [size, segment] = GENERATE(table<Bytes, Bytes>({
      {1_B, 2_MiB},
      {1_MiB, 2_MiB},
      {1_MiB + 1_B, 20_MiB},
      {10_MiB - 1_KiB, 20_MiB},
      {10_MiB, 10_MiB},
      {11_MiB + 1_B, 12_MiB},
  }));
  Rig rig;
  rig.allocate(size);
  CHECK(rig.reserved() == segment);
}

TEST_CASE("small blocks share a segment until it is full", "[replay][segment_cache]") {
  Rig rig;
  for (int i = 0; i < 4096; ++i) rig.allocate(1_B);
  CHECK(rig.reserved() == 2_MiB);
  rig.allocate(1_B);
  CHECK(rig.reserved() == 4_MiB);
}

TEST_CASE("a large block keeps a remainder of up to 1 MiB", "[replay][segment_cache]") {
  Rig rig;
  rig.free(rig.allocate(20_MiB));
  SECTION("1 MiB is not split off") {
    rig.allocate(19_MiB);
    rig.allocate(1_MiB + 512_B);
    CHECK(rig.reserved() == 40_MiB);
  }
  SECTION("more is") {
    rig.allocate(18_MiB);
    rig.allocate(2_MiB);
    CHECK(rig.reserved() == 20_MiB);
  }
}

TEST_CASE("the smallest free piece that fits is taken", "[replay][segment_cache]") {
  Rig rig;
  void* large = rig.allocate(40_MiB);
  void* fitting = rig.allocate(12_MiB);
  rig.free(large);
  rig.free(fitting);
  CHECK(rig.allocate(12_MiB) == fitting);
  CHECK(rig.allocate(14_MiB) == large);
}

TEST_CASE("free neighbors are joined at once", "[replay][segment_cache]") {
  Rig rig;
  std::vector<void*> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(rig.allocate(5_MiB));
  CHECK(rig.reserved() == 20_MiB);
  for (int i : {0, 2, 1, 3}) rig.free(parts[static_cast<std::size_t>(i)]);
  rig.allocate(20_MiB);
  CHECK(rig.reserved() == 20_MiB);
}

TEST_CASE("another stream's free pieces are not used", "[replay][segment_cache]") {
  Rig rig;
  rig.free(rig.allocate(4_MiB, kStream));
  rig.allocate(4_MiB, kOther);
  CHECK(rig.reserved() == 40_MiB);
}

TEST_CASE("idle segments go back when the driver has no more", "[replay][segment_cache]") {
  Rig rig(64_MiB);
  void* kept = rig.allocate(12_MiB);
  rig.free(rig.allocate(30_MiB));
  rig.allocate(50_MiB);
  CHECK(rig.reserved() == 62_MiB);
  const result<void*> refused = rig.cache.allocate(4_MiB, kStream);
  REQUIRE_FALSE(refused);
  CHECK(refused.failure().kind == ErrorKind::device_oom);
  CHECK(rig.cache.validate());
  rig.free(kept);
}

TEST_CASE("no bytes are no block, and absurd sizes are refused", "[replay][segment_cache]") {
  Rig rig;
  CHECK(rig.allocate(0_B) == nullptr);
  CHECK(rig.cache.deallocate(nullptr));
  const result<void*> absurd = rig.cache.allocate(Bytes::max(), kStream);
  REQUIRE_FALSE(absurd);
  CHECK(absurd.failure().kind == ErrorKind::device_oom);
  CHECK(rig.driver->meter().read().count(DriverCall::create) == 0);
}

TEST_CASE("a second free of a block is refused", "[replay][segment_cache]") {
  Rig rig;
  void* block = rig.allocate(4_MiB);
  rig.free(block);
  const result<void> again = rig.cache.deallocate(block);
  REQUIRE_FALSE(again);
  CHECK(again.failure().kind == ErrorKind::invalid_argument);
}

TEST_CASE("random work keeps the pieces in order and gives all back", "[replay][segment_cache]") {
  const std::shared_ptr<SimDriver> driver = driver_with(256_MiB);
  {
    SegmentCache cache(driver);
    std::mt19937_64 random(7);
    std::vector<void*> live;
    for (int i = 0; i < 4000; ++i) {
      if (!live.empty() && random() % 2 == 0) {
        std::swap(live[random() % live.size()], live.back());
        REQUIRE(cache.deallocate(live.back()));
        live.pop_back();
      } else {
        const Bytes size{1 + random() % (std::uint64_t{1} << (random() % 25))};
        const result<void*> block = cache.allocate(size, StreamId{random() % 3});
        if (block) live.push_back(*block);
      }
      if (i % 64 == 0) REQUIRE(cache.validate());
    }
    CHECK(driver->extent_bytes() > 0_B);
  }
  CHECK(driver->extent_bytes() == 0_B);
}
