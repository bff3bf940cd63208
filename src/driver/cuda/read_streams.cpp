// SPDX-License-Identifier: Apache-2.0
// Streams made on first use, and the copies on them.
#include "read_streams.hpp"

#include "fork_watch.hpp"

namespace bursar {
inline namespace v0 {

ReadStreams::ReadStreams(const EntryPoints& api, std::size_t devices)
    : api_(api), fork_generation_(fork_generation()), streams_(devices, nullptr) {}

ReadStreams::~ReadStreams() {
  CUcontext current = nullptr;
  if (fork_generation() != fork_generation_) return;
  if (api_.ctx_get_current(&current) == CUDA_ERROR_DEINITIALIZED) return;
  for (CUstream stream : streams_) {
    if (stream != nullptr) api_.stream_destroy(stream);
  }
}

CUresult ReadStreams::stream_of(DeviceId device, CUstream& out) noexcept {
  const lock_proof lock(mutex_);
  CUstream& stream = streams_[static_cast<std::size_t>(device.value)];
  CUresult code = CUDA_SUCCESS;
  if (stream == nullptr) code = api_.stream_create(&stream, CU_STREAM_NON_BLOCKING);
  out = stream;
  return code;
}

CUresult ReadStreams::read(DeviceId device, DeviceAddress address,
                           std::span<std::byte> out) noexcept {
  CUstream stream = nullptr;
  CUresult code = stream_of(device, stream);
  if (code != CUDA_SUCCESS) return code;
  code = api_.memcpy_dtoh_async(out.data(), static_cast<CUdeviceptr>(address.value), out.size(),
                                stream);
  const CUresult waited = api_.stream_synchronize(stream);
  return code != CUDA_SUCCESS ? code : waited;
}

}  // namespace v0
}  // namespace bursar
