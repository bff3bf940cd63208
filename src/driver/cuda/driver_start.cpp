// SPDX-License-Identifier: Apache-2.0
// The first calls to a freshly loaded driver.
#include "driver_start.hpp"

namespace bursar {
inline namespace v0 {
namespace {

error cannot_start(CUresult code) {
  const auto make = [code](ErrorKind kind, const char* message) {
    return error{.kind = kind, .driver_code = static_cast<int>(code), .message = message};
  };
  switch (code) {
    case CUDA_ERROR_NO_DEVICE:
      return make(ErrorKind::not_supported, "the NVIDIA driver sees no CUDA device");
    case CUDA_ERROR_NOT_INITIALIZED:
      return make(ErrorKind::forked, "CUDA was in use before this process was forked");
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return make(ErrorKind::not_supported,
                  "libcuda.so.1 and the kernel's NVIDIA driver differ: restart after an update");
    default: return make(ErrorKind::driver_fault, "the NVIDIA driver refuses to start (cuInit)");
  }
}

}  // namespace

result<std::vector<CUdevice>> start_driver(const EntryPoints& api) {
  std::vector<CUdevice> devices;
  int count = 0;
  CUresult code = api.init(0);
  if (code == CUDA_SUCCESS) code = api.device_get_count(&count);
  if (code == CUDA_SUCCESS && count == 0) code = CUDA_ERROR_NO_DEVICE;
  for (int i = 0; code == CUDA_SUCCESS && i < count; ++i) {
    code = api.device_get(&devices.emplace_back(), i);
  }
  if (code != CUDA_SUCCESS) return cannot_start(code);
  return devices;
}

}  // namespace v0
}  // namespace bursar
