// SPDX-License-Identifier: Apache-2.0
// CudaRuntimeTarget: cudaMalloc and cudaMallocAsync, called as a program calls them.
//
// They do not pass our seam to the driver, so their meter is kept here: each call counts as create
// or release with the time it took, and what the driver holds for them is asked of the driver
// itself after each allocation, outside the time measured: from cudaMalloc's side what free memory
// has gone down by, from the pool's side the pool's own figure.
#pragma once

#include <optional>

#include <cuda_runtime_api.h>

#include "replay_target.hpp"

namespace bursar {
inline namespace v0 {

class CudaRuntimeTarget : public ReplayTarget {
 public:
  result<StreamRef> resolve(StreamHandle stream) noexcept final { return StreamRef(stream); }
  result<void> retire(StreamRef) noexcept final { return {}; }
  result<void*> allocate(Bytes size, StreamRef stream) noexcept final;
  result<void> deallocate(void* block, StreamRef stream) noexcept final;
  void observe() noexcept final;
  CallMeter& meter() noexcept final { return meter_; }

 protected:
  virtual cudaError_t allocate_now(void** out, Bytes size, cudaStream_t stream) noexcept = 0;
  virtual cudaError_t free_now(void* block, cudaStream_t stream) noexcept = 0;
  /// What the driver holds for this target now.
  virtual Bytes held_now() noexcept = 0;

 private:
  CallMeter meter_;
  Bytes held_{};  ///< as the meter knows it
};

/// cudaMalloc and cudaFree. Free memory is the whole GPU's: another program beside spoils it.
class CudaMallocTarget final : public CudaRuntimeTarget {
 public:
  const char* name() const noexcept override { return "cuda_malloc"; }

 protected:
  cudaError_t allocate_now(void** out, Bytes size, cudaStream_t stream) noexcept override;
  cudaError_t free_now(void* block, cudaStream_t stream) noexcept override;
  Bytes held_now() noexcept override;

 private:
  std::optional<Bytes> free_at_start_;  ///< when first observed
};

/// cudaMallocAsync and cudaFreeAsync on a pool of its own that gives nothing back.
class CudaAsyncTarget final : public CudaRuntimeTarget {
 public:
  /// Throws Error.
  CudaAsyncTarget();
  ~CudaAsyncTarget() override;
  const char* name() const noexcept override { return "cuda_async"; }

 protected:
  cudaError_t allocate_now(void** out, Bytes size, cudaStream_t stream) noexcept override;
  cudaError_t free_now(void* block, cudaStream_t stream) noexcept override;
  Bytes held_now() noexcept override;

 private:
  cudaMemPool_t pool_ = nullptr;
};

/// The error for what a runtime call returned; the runtime's last-error state is cleared.
error cuda_error(cudaError_t code, DriverCall call, Bytes asked = {}) noexcept;

}  // namespace v0
}  // namespace bursar
