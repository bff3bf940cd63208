// SPDX-License-Identifier: Apache-2.0
// Extents, mappings and addresses on a real device, and what the design relies on about them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;

namespace {

Bytes page() { return gpu_driver()->device_info({}).granularity; }

constexpr const char* kNoAliases = "this device maps an extent at one address only";

}  // namespace

TEST_CASE("an extent is created, mapped, written, read and given back",
          "[driver][cuda][gpu][memcheck]") {
  const auto driver = gpu_driver();
  const Bytes held_before = driver->meter().read().reserved;
  const Bytes size = page() * 3;
  {
    const Stream stream;
    MismatchCounter mismatches;
    MappedExtent extent(size);
    const VaRange range = extent.map();
    CHECK(driver->meter().read().reserved == held_before + size);
    CHECK(driver->memset({}, range.begin, 0x5a, size, stream.handle()) == DriverCode::success);
    mismatches.expect(to_pointer(range.begin), size, 0x5a5a5a5a, stream);
    fill(to_pointer(range.begin), size, 42, stream);
    mismatches.expect(to_pointer(range.begin), size, 42, stream);
    CHECK(mismatches.total() == 0);
  }
  CHECK(driver->meter().read().reserved == held_before);
}

TEST_CASE("a read gives the bytes and waits for nobody's work", "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  const Stream writer;
  const Stream busy;
  Gate gate;
  MappedExtent extent(page());
  const VaRange range = extent.map();
  check(driver->memset({}, range.begin, 0x5a, page(), writer.handle()));
  writer.synchronize();
  gate.hold(busy);
  std::array<std::byte, 100> out{};
  CHECK(driver->read({}, range.begin + Bytes{1000}, out) == DriverCode::success);
  CHECK(busy.busy());
  gate.open();
  CHECK(std::all_of(out.begin(), out.end(), [](std::byte b) { return b == std::byte{0x5a}; }));
}

TEST_CASE("an extent is mapped whole or not at all", "[driver][cuda][gpu][memcheck]") {
  const auto driver = gpu_driver();
  const DeviceId device{};
  MappedExtent extent(page() * 2);
  const VaRange range = extent.map();
  const VaRange half{range.begin, page()};
  CHECK(driver->unmap(half) == DriverCode::invalid_value);
  CHECK(driver->set_access(half, {&device, 1}) == DriverCode::invalid_value);

  VaRange elsewhere{};
  check(driver->reserve(page() * 2, {}, elsewhere));
  CHECK(driver->map({elsewhere.begin, page()}, extent.handle()) == DriverCode::not_supported);
  CHECK(driver->unreserve(elsewhere) == DriverCode::success);
}

TEST_CASE("a refused creation leaves no trace", "[driver][cuda][gpu][memcheck]") {
  const auto driver = gpu_driver();
  const Bytes held_before = driver->meter().read().reserved;
  const Bytes absurd = round_up(driver->device_info({}).total * 2, page());
  ExtentHandle extent{};
  CHECK(driver->create({}, absurd, {}, extent) == DriverCode::out_of_memory);
  CHECK_FALSE(extent);
  CHECK(driver->meter().read().reserved == held_before);
}

TEST_CASE("plain memory comes and goes", "[driver][cuda][gpu][memcheck]") {
  const auto driver = gpu_driver();
  const Stream stream;
  MismatchCounter mismatches;
  DeviceAddress address{};
  REQUIRE(driver->malloc_plain({}, page(), address) == DriverCode::success);
  fill(to_pointer(address), page(), 7, stream);
  mismatches.expect(to_pointer(address), page(), 7, stream);
  CHECK(mismatches.total() == 0);
  CHECK(driver->free_plain(address) == DriverCode::success);
}

TEST_CASE("one extent at two addresses is one memory", "[driver][cuda][gpu][memcheck]") {
  if (!has_aliases()) SKIP_TEST(kNoAliases);
  const Stream stream;
  MismatchCounter mismatches;
  MappedExtent extent(page());
  const VaRange one = extent.map();
  const VaRange other = extent.map();
  CHECK(one.begin != other.begin);
  for (std::uint32_t value = 1; value <= 100; ++value) {
    fill(to_pointer(value % 2 == 0 ? one.begin : other.begin), page(), value, stream);
    mismatches.expect(to_pointer(value % 2 == 0 ? other.begin : one.begin), page(), value, stream);
  }
  CHECK(mismatches.total() == 0);
}

TEST_CASE("disjoint pieces of 512 bytes through two addresses do not disturb each other",
          "[driver][cuda][gpu]") {
  if (!has_aliases()) SKIP_TEST(kNoAliases);
  constexpr std::uint32_t kValues[] = {0x11111111, 0x22222222};
  const Bytes size = page();
  const std::size_t words = size.count / sizeof(std::uint32_t);
  const Stream streams[2];
  Gate gate;
  MismatchCounter mismatches;
  MappedExtent extent(size);
  const VaRange ranges[] = {extent.map(), extent.map()};

  // Both streams wait for the gate, so that their kernels run at the same time.
  cudaEvent_t opened = nullptr;
  const Stream gated;
  check(cudaEventCreateWithFlags(&opened, cudaEventDisableTiming));
  gate.hold(gated);
  check(cudaEventRecord(opened, gated.raw()));
  for (std::uint32_t i = 0; i < 2; ++i) {
    check(cudaStreamWaitEvent(streams[i].raw(), opened, 0));
    launch_fill_stripes(static_cast<std::uint32_t*>(to_pointer(ranges[i].begin)), words, i,
                        kValues[i], 200, streams[i].raw());
  }
  gate.open();
  check(cudaDeviceSynchronize());
  check(cudaEventDestroy(opened));

  for (const VaRange range : ranges) {
    for (std::size_t offset = 0; offset < size.count; offset += 512) {
      mismatches.expect(to_pointer(range.begin + Bytes{offset}), Bytes{512},
                        kValues[(offset / 512) % 2], streams[0]);
    }
  }
  CHECK(mismatches.total() == 0);
}

TEST_CASE("an extent moves to a new address while its old work is still queued",
          "[driver][cuda][gpu]") {
  if (!has_aliases()) SKIP_TEST(kNoAliases);
  const Stream stream;
  Gate gate;
  MismatchCounter mismatches;
  MappedExtent extent(page());
  const VaRange old_place = extent.map();
  gate.hold(stream);
  fill(to_pointer(old_place.begin), page(), 1, stream);
  mismatches.expect(to_pointer(old_place.begin), page(), 1, stream);
  const VaRange new_place = extent.map();
  CHECK(stream.busy());
  mismatches.expect(to_pointer(new_place.begin), page(), 1, stream);
  fill(to_pointer(new_place.begin), page(), 2, stream);
  mismatches.expect(to_pointer(new_place.begin), page(), 2, stream);
  gate.open();
  CHECK(mismatches.total() == 0);
  extent.unmap(old_place);
}

TEST_CASE("unmap waits for a running kernel exactly when the device info says so",
          "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  const Stream stream;
  Gate gate;
  MappedExtent extent(page());
  const VaRange range = extent.map();
  gate.hold(stream);
  const Duration begin = driver->now();
  extent.unmap(range);
  const Duration took = driver->now() - begin;
  const bool waited = !stream.busy();
  gate.open();
  std::printf("unmap beside a running kernel: %.1f us, %s\n", static_cast<double>(took.ns) / 1e3,
              waited ? "waited" : "did not wait");
  CHECK(waited == driver->device_info({}).unmap_waits);
}

TEST_CASE("memory for growth is had beside a running kernel", "[driver][cuda][gpu]") {
  const Stream stream;
  Gate gate;
  gate.hold(stream);
  {
    MappedExtent extent(page());
    extent.map();
    CHECK(stream.busy());
    gate.open();
  }
}

TEST_CASE("an exported extent comes back as the same memory", "[driver][cuda][gpu][memcheck]") {
  const auto driver = gpu_driver();
  if (!driver->device_info({}).shareable_fd) SKIP_TEST("extents cannot be exported here");
  const Stream stream;
  MismatchCounter mismatches;
  MappedExtent exported(page(), {.shareable = true});
  const VaRange ours = exported.map();
  fill(to_pointer(ours.begin), page(), 0xfeed, stream);
  stream.synchronize();

  int fd = -1;
  ExtentHandle handle{};
  REQUIRE(driver->export_handle(exported.handle(), fd) == DriverCode::success);
  const Bytes held_before = driver->meter().read().reserved;
  REQUIRE(driver->import_handle({}, fd, page(), handle) == DriverCode::success);
  CHECK(close(fd) == 0);
  {
    MappedExtent imported(handle, page());
    mismatches.expect(to_pointer(imported.map().begin), page(), 0xfeed, stream);
    CHECK(mismatches.total() == 0);
    CHECK(driver->meter().read().reserved == held_before);
  }
  CHECK(driver->meter().read().reserved == held_before);
}

TEST_CASE("an extent that is not shareable is not exported", "[driver][cuda][gpu][memcheck]") {
  MappedExtent extent(page());
  int fd = -1;
  CHECK(gpu_driver()->export_handle(extent.handle(), fd) != DriverCode::success);
  CHECK(fd == -1);
}

TEST_CASE("trim_pools gives back what the driver's pools hold unused", "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  const Stream stream;
  cudaMemPool_t pool = nullptr;
  std::uint64_t keep = ~std::uint64_t{0};
  check(cudaDeviceGetDefaultMemPool(&pool, 0));
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  void* block = nullptr;
  check(cudaMallocAsync(&block, page().count * 32, stream.raw()));
  check(cudaFreeAsync(block, stream.raw()));
  stream.synchronize();
  std::uint64_t reserved = 0;
  check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  REQUIRE(reserved > 0);
  CHECK(driver->trim_pools({}) == DriverCode::success);
  check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  CHECK(reserved == 0);
}
