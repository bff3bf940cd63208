// SPDX-License-Identifier: Apache-2.0
// Allocators from begin to end: several on one driver, nothing left behind, addresses bounded.
#include <random>
#include <vector>

#include <bursar/allocator/device_heap.hpp>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {
namespace {

/// Leaves an allocator in the middle of everything: live, idle, pending, moved, pinned, spare.
void leave_a_mess(const std::shared_ptr<SimDriver>& driver, DeviceId device) {
  CachingAllocator allocator(driver);
  const StreamHandle a = driver->create_stream(device);
  const StreamHandle b = driver->create_stream(device);
  AllocateOptions options;
  options.stream = a;
  options.device = device;
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(allocator.allocate((2_MiB).count, options));
  REQUIRE(allocator.record_stream(blocks[0], b).ok());
  driver->launch(a, milliseconds(5), {}, device);
  for (std::size_t i = 0; i < 16; i += 2) allocator.deallocate(blocks[i]);
  options.domain = *allocator.create_domain({.name = "other"});
  (void)allocator.allocate(4000, options);
  options.domain = kDefaultDomain;
  (void)allocator.allocate((10_MiB).count, options);
  options.flags = BlockFlags::pinned;
  allocator.deallocate(allocator.allocate((3_MiB).count, options));
  (void)allocator.allocate((3_MiB).count, options);
  CHECK(allocator.stats(device).pending > 0_B);
}

}  // namespace

TEST_CASE("an allocator leaves nothing behind, whatever it holds", "[allocator][contract]") {
  const Shape shape = any_shape();
  const auto driver = std::make_shared<SimDriver>(sim_options(shape, 256_MiB));
  leave_a_mess(driver, DeviceId{shape.devices - 1});
  CHECK(nothing_left(*driver));
}

TEST_CASE("two allocators on one driver know nothing of each other", "[allocator][contract]") {
  const Shape shape = any_shape();
  const auto driver = std::make_shared<SimDriver>(sim_options(shape, 64_MiB));
  CachingAllocator first(driver);
  {
    CachingAllocator second(driver);
    void* block = first.allocate((16_MiB).count);
    void* other = second.allocate((16_MiB).count);
    CHECK_FALSE(second.owns(block));
    CHECK(kind_of(second.try_deallocate(block)) == ErrorKind::invalid_argument);
    CHECK(kind_of(first.try_deallocate(other)) == ErrorKind::invalid_argument);
    CHECK(first.stats().reserved == 16_MiB);
    CHECK(driver->extent_bytes() == 32_MiB);
    CHECK(kind_of(first.try_allocate((40_MiB).count)) == ErrorKind::device_oom);
  }
  CHECK(first.try_allocate((40_MiB).count).ok());
  CHECK(first.validate().ok());
}

TEST_CASE("a million allocations of ever-changing sizes keep the addresses bounded",
          "[allocator][churn]") {
  // The heap itself: no proof of the whole state after each call, which would take minutes.
  SimOptions sim;
  sim.capacity = 256_MiB;
  sim.capability = GENERATE(CapabilityLevel::full, CapabilityLevel::no_vmm);
  SimDriver driver(sim);
  const AllocatorOptions options;
  DomainTable domains(1);
  Bytes largest{};
  {
    DeviceHeap heap(driver, {}, options, domains);
    std::mt19937_64 random(2);
    std::vector<void*> live(6, nullptr);
    for (int i = 0; i < 1'000'000; ++i) {
      void*& block = live[random() % live.size()];
      if (block != nullptr) REQUIRE(heap.deallocate(block, nullptr)->ok());
      const Bytes size{1 + random() % (std::uint64_t{1} << (9 + random() % 16))};
      const result<void*> got = heap.allocate(size, {}, nullptr);
      REQUIRE(got.ok());
      block = *got;
      if (i % 10'000 == 0) largest = std::max(largest, heap.stats({}).address_space);
    }
    CHECK(heap.validate().ok());
    CHECK(heap.stats({}).metadata < 1_MiB);
  }
  // The large zone takes address_factor times the device, the small one once its size. Views, which
  // max_views bounds, take as much as the large zone, once or twice.
  CHECK(largest <= sim.capacity * (3 * options.address_factor + 1));
  CHECK(nothing_left(driver));
}

}  // namespace bursar::test
