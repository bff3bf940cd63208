// SPDX-License-Identifier: Apache-2.0
// Small blocks live in pages of their own, and what is idle there serves large ones, and the other
// way round where the policy allows it. How the end of memory changes the policy.
#include <functional>
#include <memory>
#include <vector>

#include <bursar/allocator/device_heap.hpp>

#include "unit/allocator/allocator_fixture.hpp"

namespace bursar::test {
namespace {

/// One-page extents; nothing is grown that idle memory can serve.
AllocatorOptions thrifty() {
  AllocatorOptions options;
  options.growth_divisor = options.extent_share = 1'000'000;
  options.guard = options.wide_guard = 0;
  options.map_price = 0;
  return options;
}

/// The extents of a device at this moment, largest first.
std::vector<Bytes> extent_sizes(const Snapshot& snapshot) {
  std::vector<Bytes> sizes;
  for (const auto& extent : snapshot.extents) sizes.push_back(extent.size);
  std::sort(sizes.rbegin(), sizes.rend());
  return sizes;
}

}  // namespace

TEST_CASE("a block stitched beyond the guard takes idle pages of the small zone",
          "[allocator][zones]") {
  AllocatorFixture f(Shape{}, thrifty());
  std::vector<void*> small;
  for (int i = 0; i < 16; ++i) small.push_back(f.get(1_MiB));
  for (void* block : small) f.free(block);
  const std::uint64_t created = f.calls(DriverCall::create);
  void* block = f.get(16_MiB);
  f.use(f.a, block, 16_MiB, 1, 1);
  CHECK(f.calls(DriverCall::create) == created);
  CHECK(f.stats().reserved == 16_MiB);
  CHECK(f.allocator.validate().ok());
  f.free(block);
  CHECK(f.get(1_MiB) != nullptr);  // and gives them back
  CHECK(f.stats().reserved == 16_MiB);
  CHECK(f.driver->violations().empty());
}

TEST_CASE("within the guard the pages of the small zone are left alone", "[allocator][zones]") {
  AllocatorOptions options = thrifty();
  options.guard = options.wide_guard = 1000;
  AllocatorFixture f(Shape{}, options);
  std::vector<void*> small;
  for (int i = 0; i < 16; ++i) small.push_back(f.get(1_MiB));
  for (void* block : small) f.free(block);
  f.get(16_MiB);
  CHECK(f.stats().reserved == 32_MiB);
}

TEST_CASE("only with a borrow limit a small block lies on a large extent that is idle",
          "[allocator][zones]") {
  AllocatorOptions options = thrifty();
  options.growth_divisor = options.extent_share = 1;  // an extent that cannot be moved under it
  options.borrow_limit = GENERATE(0_B, 512_KiB, 2_MiB);
  AllocatorFixture f(Shape{}, options);
  f.free(f.get(64_MiB));
  void* block = f.get(512_KiB);
  f.use(f.a, block, 512_KiB, 1, 1);
  CHECK(f.stats().reserved == (options.borrow_limit > 512_KiB ? 64_MiB : 66_MiB));
  f.free(block);
  CHECK(f.allocator.validate().ok());
  CHECK(f.driver->violations().empty());
}

TEST_CASE("before a small block is refused it takes idle memory of the large zone",
          "[allocator][zones]") {
  AllocatorOptions options = thrifty();
  options.wait_limit = {};
  AllocatorFixture f(Shape{}, options, 64_MiB);
  std::vector<void*> large;
  for (int i = 0; i < 16; ++i) large.push_back(f.get(3_MiB));  // 48 MiB, in pages
  std::vector<void*> rest;
  while (const result<void*> page = f.ask(2_MiB, f.a)) rest.push_back(*page);
  for (std::size_t i = 0; i < large.size(); i += 2) f.free(large[i]);
  std::vector<void*> small;
  while (const result<void*> block = f.ask(1_MiB, f.a)) small.push_back(*block);
  CHECK(small.size() >= 3 * 8 - 1);
  CHECK(f.stats().reserved == 64_MiB);
  CHECK(f.allocator.validate().ok());
}

TEST_CASE("a small block of any alignment is served before it is refused, at every level",
          "[allocator][zones]") {
  AllocatorOptions options;
  options.growth_divisor = options.extent_share = 1;
  options.wait_limit = {};
  Shape shape;
  shape.level = GENERATE(CapabilityLevel::full, CapabilityLevel::no_vmm);
  AllocatorFixture f(shape, options, 64_MiB);
  f.free(f.get(64_MiB));
  f.get(3_MiB);  // holds the only extent, of which 61 MiB are idle
  AllocateOptions aligned = f.on(f.a);
  aligned.alignment = GENERATE(512_B, 4_KiB);
  const result<void*> block = f.allocator.try_allocate((1_MiB).count, aligned);
  REQUIRE(block.ok());
  CHECK(to_address(*block).value % aligned.alignment.count == 0);
  CHECK(f.stats().reserved == 64_MiB);
}

TEST_CASE("memory that others freed while a request climbed does not keep it from what is there",
          "[allocator][zones]") {
  /// At each create something is freed meanwhile, as by another thread.
  class BusyDriver final : public SimDriver {
   public:
    using SimDriver::SimDriver;
    DriverCode create(DeviceId device, Bytes size, ExtentProperties properties,
                      ExtentHandle& out) noexcept override {
      const DriverCode code = SimDriver::create(device, size, properties, out);
      if (meanwhile) meanwhile();
      return code;
    }
    std::function<void()> meanwhile;
  };
  SimOptions sim;
  sim.capacity = 34_MiB;
  BusyDriver driver(sim);
  AllocatorOptions options;
  options.growth_divisor = options.extent_share = 1;
  options.wait_limit = {};
  DomainTable domains(1);
  DeviceHeap heap(driver, {}, options, domains);  // itself: a call within a call proves no state
  const AllocateOptions on{.stream = StreamRef{driver.create_stream()}};
  std::vector<void*> tiny;
  for (int i = 0; i < 1000; ++i) tiny.push_back(*heap.allocate(512_B, on, nullptr));
  for (int i = 0; i < 3; ++i) REQUIRE(heap.allocate(512_KiB, on, nullptr).ok());
  REQUIRE(heap.deallocate(*heap.allocate(32_MiB, on, nullptr), nullptr)->ok());
  REQUIRE(heap.allocate(3_MiB, on, nullptr).ok());
  std::size_t next = 0;
  driver.meanwhile = [&] {
    if (next < tiny.size()) (void)heap.deallocate(tiny[next], nullptr);
    next += 2;
  };
  CHECK(heap.allocate(1_MiB, on, nullptr).ok());
  CHECK(next < 20);
  driver.meanwhile = nullptr;
}

TEST_CASE("near a domain's limit extents are as small as the preset utilization makes them",
          "[allocator][zones]") {
  AllocatorOptions options;
  options.growth_divisor = 2;
  options.extent_share = 1;
  AllocatorFixture f(Shape{}, options);
  const DomainId tight = f.domain(100_MiB);
  CHECK(f.ask(64_MiB, f.a, tight).ok());
  CHECK(extent_sizes(f.allocator.snapshot(f.device)).front() == 64_MiB);
  CHECK(f.ask(12_MiB, f.a, tight).ok());  // 76 MiB held: beyond three quarters
  const auto before = f.calls(DriverCall::create);
  CHECK(f.ask(16_MiB, f.a, tight).ok());
  CHECK(f.calls(DriverCall::create) - before > 1);
}

TEST_CASE("growing caches find what they freed", "[allocator][zones]") {
  AllocatorFixture f(Shape{}, thrifty());
  constexpr std::size_t kStep = 384;
  std::vector<void*> cache;
  std::size_t size = 1'000'000;
  for (int i = 0; i < 24; ++i) cache.push_back(f.allocator.allocate(size, f.on(f.a)));
  for (int round = 0; round < 10; ++round) {  // each is copied to a slightly longer one
    size += kStep;
    for (void*& block : cache) {
      void* longer = f.allocator.allocate(size, f.on(f.a));
      f.free(block);
      block = longer;
    }
  }
  CHECK(f.stats().reserved <= round_up(Bytes{size} * 26, 2_MiB) + 2_MiB);
}

}  // namespace bursar::test
