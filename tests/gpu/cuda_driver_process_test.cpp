// SPDX-License-Identifier: Apache-2.0
// Threads without a context, contexts of others, forked children, the runtime's last error: what
// the rest of a process may do around the library.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;

namespace {

/// A function of the libcuda that is already loaded, by its exported name.
template <class Function>
Function find(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(dlsym(library, name));
}

CUcontext current_context() {
  CUcontext context = nullptr;
  find<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent")(&context);
  return context;
}

/// One call of every kind that needs a context, and of those that perhaps do.
void exercise(Driver& driver) {
  const Bytes page = driver.device_info({}).granularity;
  const DeviceId device{};
  MemoryInfo info{};
  StreamId id{};
  EventHandle event{};
  ExtentHandle extent{};
  VaRange range{};
  DeviceAddress plain{};
  CHECK(driver.memory_info(device, info) == DriverCode::success);
  CHECK(driver.stream_id(device, {}, id) == DriverCode::success);
  CHECK(driver.reserve(page, {}, range) == DriverCode::success);
  CHECK(driver.create(device, page, {}, extent) == DriverCode::success);
  CHECK(driver.map(range, extent) == DriverCode::success);
  CHECK(driver.set_access(range, {&device, 1}) == DriverCode::success);
  CHECK(driver.memset(device, range.begin, 1, page, {}) == DriverCode::success);
  CHECK(driver.event_create(device, event) == DriverCode::success);
  CHECK(driver.event_record(device, event, {}) == DriverCode::success);
  DriverCode state = DriverCode::not_ready;
  while (state == DriverCode::not_ready) state = driver.event_query(event);
  CHECK(state == DriverCode::success);
  CHECK(driver.event_destroy(event) == DriverCode::success);
  CHECK(driver.unmap(range) == DriverCode::success);
  CHECK(driver.release(extent) == DriverCode::success);
  CHECK(driver.unreserve(range) == DriverCode::success);
  CHECK(driver.malloc_plain(device, page, plain) == DriverCode::success);
  CHECK(driver.free_plain(plain) == DriverCode::success);
}

}  // namespace

TEST_CASE("every call works from a thread without a context, and leaves it so",
          "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  std::thread([&] {
    CHECK(current_context() == nullptr);
    exercise(*driver);
    CHECK(current_context() == nullptr);
  }).join();
}

TEST_CASE("every call works while another context is current, and leaves it current",
          "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  std::thread([&] {
    CUcontext other = nullptr;
    CHECK(find<PFN_cuCtxCreate_v3020>("cuCtxCreate_v2")(&other, 0, 0) == CUDA_SUCCESS);
    exercise(*driver);
    CHECK(current_context() == other);
    CHECK(find<PFN_cuCtxDestroy_v4000>("cuCtxDestroy_v2")(other) == CUDA_SUCCESS);
  }).join();
}

TEST_CASE("the runtime's last error is left as found", "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  const Bytes absurd = driver->device_info({}).total * 2;
  ExtentHandle extent{};
  REQUIRE(cudaGetLastError() == cudaSuccess);
  CHECK(driver->create({}, absurd, {}, extent) != DriverCode::success);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  REQUIRE(cudaSetDevice(9999) == cudaErrorInvalidDevice);
  exercise(*driver);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
}

TEST_CASE("a forked child's calls are refused and the parent's go on", "[driver][cuda][gpu]") {
  const auto driver = gpu_driver();
  const Bytes page = driver->device_info({}).granularity;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ExtentHandle extent{};
    _exit(driver->create({}, page, {}, extent) == DriverCode::not_initialized ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  exercise(*driver);
}

TEST_CASE("the probe's findings, for the record", "[driver][cuda][gpu][facts]") {
  const auto driver = gpu_driver();
  int version = 0;
  check(cudaDriverGetVersion(&version));
  std::printf("driver: CUDA %d.%d\n", version / 1000, version % 1000 / 10);
  for (int i = 0; i < driver->device_count(); ++i) {
    const DeviceInfo& info = driver->device_info(DeviceId{i});
    std::printf("device %d: %s, %llu MiB, page %llu KiB, level %s, descriptors %s, RDMA %s\n", i,
                info.name.c_str(), static_cast<unsigned long long>(info.total.count >> 20),
                static_cast<unsigned long long>(info.granularity.count >> 10),
                to_string(info.capability), info.shareable_fd ? "yes" : "no",
                info.gpu_direct_rdma ? "yes" : "no");
    CHECK(is_power_of_two(info.granularity));
    CHECK(info.total > Bytes{0});
  }
}
