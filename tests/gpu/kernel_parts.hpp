// SPDX-License-Identifier: Apache-2.0
// What kernels of several .cu files share: their loops, the device's clock, and launches that may
// begin before the kernel in front has ended (programmatic dependent launch).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "gpu_kernels.hpp"

namespace bursar::test {

inline constexpr unsigned kKernelThreads = 256;

// -- inside kernels --------------------------------------------------------------------------

__device__ inline std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ inline std::size_t first_word() {
  return blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
}
__device__ inline std::size_t stride() { return std::size_t{gridDim.x} * blockDim.x; }

/// Lets the next kernel of the stream start, once all blocks of this one have said so; without
/// effect unless that one is Launch::programmatic.
__device__ inline void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Waits until the kernel before this one is complete, its writes included; at once unless this one
/// is Launch::programmatic.
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// -- launches --------------------------------------------------------------------------------

inline void check_launch(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), unsigned blocks, Launch how, cudaStream_t stream,
            Arguments... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kKernelThreads);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = how == Launch::programmatic ? 1 : 0;
  check_launch(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

template <class... Parameters>
void load_kernel(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes;
  check_launch(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)));
}

}  // namespace bursar::test
