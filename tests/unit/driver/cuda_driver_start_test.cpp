// SPDX-License-Identifier: Apache-2.0
// How open_cuda_driver answers on machines that cannot run CUDA, and what it learns on those that
// can, shown with a pretended libcuda.so.1.
#include <cstdlib>
#include <string>

#include <bursar/driver/cuda_driver.hpp>

#include "fake_driver.hpp"
#include "support/catch.hpp"

using namespace bursar;
using namespace bursar::test;

namespace {
using Setting = void (*)(FakeCuda&);
}

TEST_CASE("open_cuda_driver names a driver that is too old", "[driver][cuda]") {
  fresh_fake().version = 12030;
  const auto driver = open_cuda_driver();
  REQUIRE_FALSE(driver.ok());
  CHECK(driver.failure().kind == ErrorKind::not_supported);
  CHECK(holds(driver.failure().message, "older than CUDA 12.4"));
  CHECK(fake().count("cuInit") == 0);
}

TEST_CASE("open_cuda_driver names the entry point that is missing", "[driver][cuda]") {
  for (const char* name : {"cuInit", "cuMemMap", "cuMemcpyDtoHAsync"}) {
    fresh_fake().missing = name;
    const auto driver = open_cuda_driver();
    REQUIRE_FALSE(driver.ok());
    CHECK(driver.failure().kind == ErrorKind::not_supported);
    CHECK(holds(driver.failure().message, std::string("has no ") + name + ":"));
  }
}

TEST_CASE("open_cuda_driver says that there is no device", "[driver][cuda]") {
  const Setting no_device = GENERATE(
      as<Setting>(), [](FakeCuda& cuda) { cuda.refused["cuInit"] = CUDA_ERROR_NO_DEVICE; },
      [](FakeCuda& cuda) { cuda.devices = 0; });
  no_device(fresh_fake());
  const auto driver = open_cuda_driver();
  REQUIRE_FALSE(driver.ok());
  CHECK(driver.failure().kind == ErrorKind::not_supported);
  CHECK(holds(driver.failure().message, "no CUDA device"));
}

TEST_CASE("open_cuda_driver tells a forked process from a broken driver", "[driver][cuda]") {
  fresh_fake().refused["cuInit"] = CUDA_ERROR_NOT_INITIALIZED;
  CHECK(open_cuda_driver().failure().kind == ErrorKind::forked);
  fresh_fake().refused["cuInit"] = CUDA_ERROR_UNKNOWN;
  const auto broken = open_cuda_driver();
  CHECK(broken.failure().kind == ErrorKind::driver_fault);
  CHECK(broken.failure().driver_code == CUDA_ERROR_UNKNOWN);
}

TEST_CASE("open_cuda_driver fails when every device refuses a context", "[driver][cuda]") {
  fresh_fake().refused["cuDevicePrimaryCtxRetain"] = CUDA_ERROR_OUT_OF_MEMORY;
  const auto driver = open_cuda_driver();
  REQUIRE_FALSE(driver.ok());
  CHECK(driver.failure().kind == ErrorKind::device_oom);
  CHECK(driver.failure().driver_code == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("open_cuda_driver says that there is no libcuda", "[driver][cuda]") {
  // A process of its own, whose search path leads to an empty file of that name first.
  const std::string command = std::string("LD_LIBRARY_PATH='" EMPTY_LIBCUDA_DIR "' '") +
                              own_path() + "' '[.without_libcuda]'";
  CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("open_cuda_driver without libcuda, in a process of its own", "[.without_libcuda]") {
  const auto driver = open_cuda_driver();
  REQUIRE_FALSE(driver.ok());
  CHECK(driver.failure().kind == ErrorKind::not_supported);
  CHECK(holds(driver.failure().message, "libcuda.so.1 cannot be loaded"));
}

TEST_CASE("the probe finds everything on a capable device", "[driver][cuda][probe]") {
  fresh_fake();
  const auto driver = open_cuda_driver();
  REQUIRE(driver.ok());
  REQUIRE((*driver)->device_count() == 1);
  const DeviceInfo& info = (*driver)->device_info({});
  CHECK(info.name == "Pretended GPU");
  CHECK(info.uuid[0] == 0x40);
  CHECK(info.total == Bytes{1u << 30});
  CHECK(info.capability == CapabilityLevel::full);
  CHECK(info.shareable_fd);
  CHECK(info.gpu_direct_rdma);
  // The larger of what shareable and other extents need, since both are counted in it.
  CHECK(info.granularity == Bytes{4u << 20});
}

TEST_CASE("the probe leaves out what the device promises and does not keep",
          "[driver][cuda][probe]") {
  FakeCuda& cuda = fresh_fake();
  cuda.refuses_rdma = GENERATE(false, true);
  cuda.refuses_fd = GENERATE(false, true);
  const auto driver = open_cuda_driver();
  REQUIRE(driver.ok());
  const DeviceInfo& info = (*driver)->device_info({});
  CHECK(info.capability == CapabilityLevel::full);
  CHECK(info.shareable_fd == !cuda.refuses_fd);
  CHECK(info.gpu_direct_rdma == !cuda.refuses_rdma);
}

TEST_CASE("the probe grades a device without aliases", "[driver][cuda][probe]") {
  fresh_fake().aliases = false;
  const auto driver = open_cuda_driver();
  REQUIRE(driver.ok());
  CHECK((*driver)->device_info({}).capability == CapabilityLevel::no_aliases);
}

TEST_CASE("the probe grades a device without virtual memory management", "[driver][cuda][probe]") {
  const Setting lacking = GENERATE(
      as<Setting>(),
      [](FakeCuda& cuda) {
        cuda.attributes[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 0;
      },
      [](FakeCuda& cuda) { cuda.refused["cuMemMap"] = CUDA_ERROR_NOT_SUPPORTED; },
      [](FakeCuda& cuda) { cuda.refused["cuMemSetAccess"] = CUDA_ERROR_NOT_SUPPORTED; });
  lacking(fresh_fake());
  const auto driver = open_cuda_driver();
  REQUIRE(driver.ok());
  const DeviceInfo& info = (*driver)->device_info({});
  CHECK(info.capability == CapabilityLevel::no_vmm);
  CHECK_FALSE(info.shareable_fd);
  CHECK_FALSE(info.gpu_direct_rdma);
  CHECK(info.granularity == Bytes{2u << 20});
}

TEST_CASE("the probe leaves nothing behind", "[driver][cuda][probe]") {
  FakeCuda& cuda = fresh_fake();
  const char* refused = GENERATE(as<const char*>(), "", "cuMemCreate", "cuMemMap", "cuMemSetAccess",
                                 "cuMemImportFromShareableHandle", "cuStreamCreate");
  cuda.refused[refused] = CUDA_ERROR_NOT_SUPPORTED;
  REQUIRE(open_cuda_driver().ok());
  CHECK(cuda.live_extents == 0);
  CHECK(cuda.live_mappings == 0);
  CHECK(cuda.count("cuMemAddressReserve") == cuda.count("cuMemAddressFree"));
  CHECK(cuda.live_streams == 0);
  CHECK(cuda.stack.empty());
  CHECK(cuda.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}
