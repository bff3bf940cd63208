// SPDX-License-Identifier: Apache-2.0
// What CudaDriver does around each driver call: contexts, capture mode, meter, fork, exit.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>

#include <bursar/driver/cuda_driver.hpp>

#include "fake_driver.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;

namespace {

const auto kPrimary0 = reinterpret_cast<CUcontext>(std::uintptr_t{0x1000});
const auto kPrimary1 = reinterpret_cast<CUcontext>(std::uintptr_t{0x1001});
const auto kForeign = reinterpret_cast<CUcontext>(std::uintptr_t{0x9000});
constexpr Bytes kPage{4u << 20};

/// A driver over a fresh fake, whose notes begin after the probe.
std::shared_ptr<Driver> open_over_fake(int devices = 1) {
  fresh_fake().devices = devices;
  auto driver = open_cuda_driver();
  REQUIRE(driver.ok());
  fake().calls.clear();
  return *driver;
}

}  // namespace

TEST_CASE("a call borrows the device's context from a thread that has none", "[driver][cuda]") {
  const auto driver = open_over_fake();
  StreamId id{};
  REQUIRE(driver->stream_id({}, {}, id) == DriverCode::success);
  CHECK(fake().last("cuStreamGetId").current == kPrimary0);
  CHECK(fake().stack.empty());
}

TEST_CASE("a call leaves another current context as it was", "[driver][cuda]") {
  const auto driver = open_over_fake();
  fake().stack = {kForeign};
  EventHandle event{};
  REQUIRE(driver->event_create({}, event) == DriverCode::success);
  CHECK(fake().last("cuEventCreate").current == kPrimary0);
  CHECK(fake().stack == std::vector<CUcontext>{kForeign});
}

TEST_CASE("a call pushes nothing when the right context is current", "[driver][cuda]") {
  const auto driver = open_over_fake();
  fake().stack = {kPrimary0};
  MemoryInfo info{};
  REQUIRE(driver->memory_info({}, info) == DriverCode::success);
  CHECK(fake().count("cuCtxPushCurrent") == 0);
}

TEST_CASE("a call that names no device is content with any current context", "[driver][cuda]") {
  const auto driver = open_over_fake();
  VaRange range{};
  fake().stack = {kForeign};
  REQUIRE(driver->reserve(kPage, {}, range) == DriverCode::success);
  CHECK(fake().last("cuMemAddressReserve").current == kForeign);
  fake().stack.clear();
  REQUIRE(driver->unreserve(range) == DriverCode::success);
  CHECK(fake().last("cuMemAddressFree").current == kPrimary0);
}

TEST_CASE("of several devices only those in use keep a context", "[driver][cuda]") {
  auto driver = open_over_fake(3);
  CHECK(fake().retained == std::vector<int>{0, 0, 0});
  EventHandle event{};
  REQUIRE(driver->event_create(DeviceId{1}, event) == DriverCode::success);
  REQUIRE(driver->event_create(DeviceId{1}, event) == DriverCode::success);
  CHECK(fake().last("cuEventCreate").current == kPrimary1);
  CHECK(fake().retained == std::vector<int>{0, 1, 0});
  driver.reset();
  CHECK(fake().retained == std::vector<int>{0, 0, 0});
}

TEST_CASE("a device that does not exist is refused without a driver call", "[driver][cuda]") {
  const auto driver = open_over_fake();
  ExtentHandle extent{};
  CHECK(driver->create(DeviceId{1}, kPage, {}, extent) == DriverCode::invalid_device);
  CHECK(driver->create(DeviceId{-1}, kPage, {}, extent) == DriverCode::invalid_device);
  CHECK(driver->trim_pools(DeviceId{1}) == DriverCode::invalid_device);
  CHECK(fake().calls.empty());
}

TEST_CASE("calls that could spoil a capture run in relaxed mode", "[driver][cuda]") {
  const auto driver = open_over_fake();
  fake().mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  int dummy = 0;
  DeviceAddress plain{};
  CHECK(driver->event_query(EventHandle{&dummy}) == DriverCode::success);
  CHECK(driver->malloc_plain({}, kPage, plain) == DriverCode::success);
  CHECK(driver->free_plain(plain) == DriverCode::success);
  for (const char* name : {"cuEventQuery", "cuMemAlloc", "cuMemFree"}) {
    CHECK(fake().last(name).mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  }
  CHECK(fake().mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

TEST_CASE("a read waits on a stream of the driver's own, which goes with the driver",
          "[driver][cuda]") {
  auto driver = open_over_fake();
  const int streams = fake().live_streams;
  std::array<std::byte, 4> out{};
  REQUIRE(driver->read({}, DeviceAddress{0x1000}, out) == DriverCode::success);
  REQUIRE(driver->read({}, DeviceAddress{0x1000}, out) == DriverCode::success);
  CHECK(fake().count("cuStreamCreate") == 1);
  CHECK(fake().count("cuStreamSynchronize") == 2);
  for (const char* name : {"cuMemcpyDtoHAsync", "cuStreamSynchronize"}) {
    CHECK(fake().last(name).mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  }
  driver.reset();
  CHECK(fake().live_streams == streams);
}

TEST_CASE("a read that is refused says so", "[driver][cuda]") {
  const auto driver = open_over_fake();
  const char* name = GENERATE("cuStreamCreate", "cuMemcpyDtoHAsync", "cuStreamSynchronize");
  fake().refused[name] = CUDA_ERROR_ILLEGAL_ADDRESS;
  std::array<std::byte, 4> out{};
  CHECK(driver->read({}, DeviceAddress{0x1000}, out) == DriverCode::illegal_address);
}

TEST_CASE("the capture mode is restored after a call that fails", "[driver][cuda]") {
  const auto driver = open_over_fake();
  int dummy = 0;
  fake().refused["cuEventQuery"] = CUDA_ERROR_NOT_READY;
  CHECK(driver->event_query(EventHandle{&dummy}) == DriverCode::not_ready);
  CHECK(fake().mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

TEST_CASE("the legacy default stream counts as capturing while another's capture binds it",
          "[driver][cuda]") {
  const auto driver = open_over_fake();
  bool capturing = true;
  REQUIRE(driver->stream_capturing({}, {}, capturing) == DriverCode::success);
  CHECK_FALSE(capturing);
  fake().refused["cuStreamIsCapturing"] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  REQUIRE(driver->stream_capturing({}, {}, capturing) == DriverCode::success);
  CHECK(capturing);
}

TEST_CASE("the meter counts every call and the bytes of extents that exist", "[driver][cuda]") {
  const auto driver = open_over_fake();
  ExtentHandle extent{};
  fake().refused["cuMemCreate"] = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK(driver->create({}, kPage, {}, extent) == DriverCode::out_of_memory);
  CHECK_FALSE(extent);
  CHECK(driver->meter().read().reserved == Bytes{});
  fake().refused.clear();
  REQUIRE(driver->create({}, kPage * 3, {}, extent) == DriverCode::success);
  CHECK(driver->meter().read().reserved == kPage * 3);

  fake().refused["cuMemRelease"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(driver->release(extent) == DriverCode::invalid_value);
  CHECK(driver->meter().read().reserved == kPage * 3);
  fake().refused.clear();
  REQUIRE(driver->release(extent) == DriverCode::success);

  const MeterReading reading = driver->meter().read();
  CHECK(reading.reserved == Bytes{});
  CHECK(reading.reserved_peak == kPage * 3);
  CHECK(reading.count(DriverCall::create) == 2);
  CHECK(reading.count(DriverCall::release) == 2);
}

TEST_CASE("plain memory is metered as extents are", "[driver][cuda]") {
  const auto driver = open_over_fake();
  DeviceAddress plain{};
  REQUIRE(driver->malloc_plain({}, kPage, plain) == DriverCode::success);
  CHECK(driver->meter().read().reserved == kPage);
  CHECK(driver->meter().read().count(DriverCall::create) == 1);
  REQUIRE(driver->free_plain(plain) == DriverCode::success);
  CHECK(driver->meter().read().reserved == Bytes{});
}

TEST_CASE("an imported extent is not counted: its exporter pays", "[driver][cuda]") {
  const auto driver = open_over_fake();
  ExtentHandle imported{};
  REQUIRE(driver->import_handle({}, 0, kPage, imported) == DriverCode::success);
  REQUIRE(driver->release(imported) == DriverCode::success);
  CHECK(driver->meter().read().reserved == Bytes{});
  CHECK(driver->meter().read().reserved_peak == Bytes{});
}

TEST_CASE("a shareable extent is refused where descriptors do not work", "[driver][cuda]") {
  fresh_fake().refuses_fd = true;
  const auto driver = open_cuda_driver();
  REQUIRE(driver.ok());
  ExtentHandle extent{};
  CHECK((*driver)->create({}, kPage, {.shareable = true}, extent) == DriverCode::not_supported);
  CHECK((*driver)->create({}, kPage, {}, extent) == DriverCode::success);
}

TEST_CASE("access is refused for no device and for more than there can be", "[driver][cuda]") {
  const auto driver = open_over_fake();
  const std::array<DeviceId, 65> many{};
  CHECK(driver->set_access({}, {}) == DriverCode::invalid_value);
  CHECK(driver->set_access({}, many) == DriverCode::invalid_value);
}

TEST_CASE("trim_pools trims both pools and the graphs' memory", "[driver][cuda]") {
  const auto driver = open_over_fake();
  REQUIRE(driver->trim_pools({}) == DriverCode::success);
  CHECK(fake().count("cuMemPoolTrimTo") == 2);
  CHECK(fake().count("cuDeviceGraphMemTrim") == 1);
}

TEST_CASE("in a forked child every call is refused and none reaches the driver", "[driver][cuda]") {
  auto driver = open_over_fake();
  ExtentHandle extent{};
  REQUIRE(driver->create({}, kPage, {}, extent) == DriverCode::success);
  fake().calls.clear();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    VaRange range{};
    bool refused = driver->release(extent) == DriverCode::not_initialized;
    refused &= driver->reserve(kPage, {}, range) == DriverCode::not_initialized;
    refused &= driver->create({}, kPage, {}, extent) == DriverCode::not_initialized;
    driver.reset();
    _exit(refused && fake().calls.empty() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(driver->release(extent) == DriverCode::success);
}

TEST_CASE("after libcuda has shut down calls say so and the destructor makes none",
          "[driver][cuda]") {
  auto driver = open_over_fake();
  fake().refused["cuCtxGetCurrent"] = CUDA_ERROR_DEINITIALIZED;
  EventHandle event{};
  CHECK(driver->event_create({}, event) == DriverCode::deinitialized);
  driver.reset();
  CHECK(fake().count("cuEventCreate") == 0);
  CHECK(fake().count("cuDevicePrimaryCtxRelease") == 0);
}
