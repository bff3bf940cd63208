// SPDX-License-Identifier: Apache-2.0
// DomainTable: charges that no race can push over a limit.
#include <bursar/allocator/domain_table.hpp>

#include <atomic>
#include <thread>
#include <vector>

#include "unit/allocator/printing.hpp"

namespace bursar::test {

using namespace bursar::literals;

TEST_CASE("the default domain is there from the start, without a limit", "[allocator][domain]") {
  DomainTable domains(2);
  CHECK(domains.count() == 1);
  CHECK(domains.open(DomainId{0}));
  CHECK(domains.name(DomainId{0}) == "default");
  CHECK(domains.charge(DomainId{0}, {}, Bytes{1ull << 60}).ok());
}

TEST_CASE("a charge above the limit is refused with what is free", "[allocator][domain]") {
  DomainTable domains(1);
  const DomainId d = *domains.create("d", 10_MiB);
  REQUIRE(domains.charge(d, {}, 8_MiB).ok());
  const result<void> refused = domains.charge(d, {}, 4_MiB);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().kind == ErrorKind::over_budget);
  CHECK(refused.failure().free == 2_MiB);
  CHECK(refused.failure().limit == 10_MiB);
  CHECK(refused.failure().asked == 4_MiB);
  CHECK(domains.charged(d, {}) == 8_MiB);
  CHECK(domains.charge(d, {}, 2_MiB).ok());
  domains.refund(d, {}, 10_MiB);
  CHECK(domains.charged(d, {}) == 0_B);
}

TEST_CASE("a limit below what is charged leaves nothing free", "[allocator][domain]") {
  DomainTable domains(1);
  const DomainId d = *domains.create("d", 10_MiB);
  REQUIRE(domains.charge(d, {}, 8_MiB).ok());
  domains.set_limit(d, 4_MiB);
  CHECK(domains.charge(d, {}, 1_B).failure().free == 0_B);
}

TEST_CASE("each device has a charge of its own", "[allocator][domain]") {
  DomainTable domains(2);
  const DomainId d = *domains.create("d", 10_MiB);
  REQUIRE(domains.charge(d, DeviceId{0}, 10_MiB).ok());
  CHECK(domains.charge(d, DeviceId{1}, 10_MiB).ok());
}

TEST_CASE("ids are never given out twice, and there is an end to them", "[allocator][domain]") {
  DomainTable domains(1);
  for (std::uint32_t i = 1; i < 65'536; ++i) {
    const result<DomainId> made = domains.create({}, Bytes::max());
    REQUIRE(made.ok());
    REQUIRE(made->value == i);
    domains.close(*made);
  }
  CHECK(domains.create("one more", Bytes::max()).failure().kind == ErrorKind::invalid_argument);
  CHECK_FALSE(domains.known(DomainId{65'536}));
  CHECK_FALSE(domains.open(DomainId{300}));
}

TEST_CASE("threads that charge together never pass the limit", "[allocator][domain][threads]") {
  DomainTable domains(1);
  const DomainId d = *domains.create("d", 10_MiB);  // room for one of them at a time
  std::atomic<int> inside{0};
  std::atomic<int> together{0};
  std::atomic<int> granted{0};
  std::atomic<int> waiting{8};
  const auto charge_and_refund = [&] {
    --waiting;
    while (waiting > 0) std::this_thread::yield();
    for (int i = 0; i < 500'000; ++i) {
      if (!domains.charge(d, {}, 10_MiB)) continue;
      ++granted;
      if (inside.fetch_add(1) != 0 || domains.charged(d, {}) > 10_MiB) ++together;
      inside.fetch_sub(1);
      domains.refund(d, {}, 10_MiB);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) threads.emplace_back(charge_and_refund);
  for (std::thread& thread : threads) thread.join();
  CHECK(together == 0);
  CHECK(granted > 0);
  CHECK(domains.charged(d, {}) == 0_B);
}

TEST_CASE("a doomed large charge never refuses a small one that fits",
          "[allocator][domain][threads]") {
  DomainTable domains(1);
  const DomainId d = *domains.create("d", 10_MiB);
  std::atomic<bool> stop{false};
  std::thread doomed([&] {
    while (!stop) (void)domains.charge(d, {}, 11_MiB);
  });
  int refused = 0;
  for (int i = 0; i < 50'000; ++i) {
    domains.charge(d, {}, 9_MiB) ? domains.refund(d, {}, 9_MiB) : void(++refused);
  }
  stop = true;
  doomed.join();
  CHECK(refused == 0);
}

}  // namespace bursar::test
