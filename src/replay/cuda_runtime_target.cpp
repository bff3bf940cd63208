// SPDX-License-Identifier: Apache-2.0
// Runtime error codes have the driver's numbers where both exist, so one table judges both.
#include "cuda_runtime_target.hpp"

#include <chrono>
#include <limits>

#include <bursar/physical/driver_error.hpp>

namespace bursar {
inline namespace v0 {
namespace {

template <class Call>
cudaError_t metered(CallMeter& meter, DriverCall kind, Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  const cudaError_t code = call();
  const std::chrono::nanoseconds cost = std::chrono::steady_clock::now() - start;
  meter.add(kind, Duration{cost.count()});
  return code;
}

Bytes free_memory() noexcept {
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  return Bytes{free};
}

cudaStream_t as_cuda(StreamRef stream) { return static_cast<cudaStream_t>(stream.handle.value); }

}  // namespace

error cuda_error(cudaError_t code, DriverCall call, Bytes asked) noexcept {
  cudaGetLastError();
  return driver_error(static_cast<DriverCode>(code), call, DeviceId{}, asked);
}

result<void*> CudaRuntimeTarget::allocate(Bytes size, StreamRef stream) noexcept {
  void* block = nullptr;
  if (size == Bytes{0}) return block;
  const cudaError_t code = metered(meter_, DriverCall::create,
                                   [&] { return allocate_now(&block, size, as_cuda(stream)); });
  if (code != cudaSuccess) return cuda_error(code, DriverCall::create, size);
  return block;
}

result<void> CudaRuntimeTarget::deallocate(void* block, StreamRef stream) noexcept {
  if (block == nullptr) return {};
  const cudaError_t code =
      metered(meter_, DriverCall::release, [&] { return free_now(block, as_cuda(stream)); });
  if (code != cudaSuccess) return cuda_error(code, DriverCall::release);
  return {};
}

void CudaRuntimeTarget::observe() noexcept {
  const Bytes now = held_now();
  if (now > held_) meter_.created(now - held_);
  if (now < held_) meter_.released(held_ - now);
  held_ = now;
}

cudaError_t CudaMallocTarget::allocate_now(void** out, Bytes size, cudaStream_t) noexcept {
  return cudaMalloc(out, size.count);
}

cudaError_t CudaMallocTarget::free_now(void* block, cudaStream_t) noexcept {
  return cudaFree(block);
}

Bytes CudaMallocTarget::held_now() noexcept {
  const Bytes free = free_memory();
  if (!free_at_start_) free_at_start_ = free;
  return free < *free_at_start_ ? *free_at_start_ - free : Bytes{0};
}

CudaAsyncTarget::CudaAsyncTarget() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  cudaError_t code = cudaMemPoolCreate(&pool_, &properties);
  if (code != cudaSuccess) throw Error(cuda_error(code, DriverCall::create));
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  code = cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep);
  if (code == cudaSuccess) return;
  cudaMemPoolDestroy(pool_);
  throw Error(cuda_error(code, DriverCall::create));
}

CudaAsyncTarget::~CudaAsyncTarget() { cudaMemPoolDestroy(pool_); }

cudaError_t CudaAsyncTarget::allocate_now(void** out, Bytes size, cudaStream_t stream) noexcept {
  return cudaMallocFromPoolAsync(out, size.count, pool_, stream);
}

cudaError_t CudaAsyncTarget::free_now(void* block, cudaStream_t stream) noexcept {
  return cudaFreeAsync(block, stream);
}

Bytes CudaAsyncTarget::held_now() noexcept {
  std::uint64_t reserved = 0;
  cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved);
  return Bytes{reserved};
}

}  // namespace v0
}  // namespace bursar
