// SPDX-License-Identifier: Apache-2.0
// The kernels behind gpu_kernels.hpp. Grid-stride loops, so that any size takes one launch.
#include "gpu_kernels.hpp"

#include <algorithm>
#include <stdexcept>

namespace bursar::test {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kStripeWords = 512 / sizeof(std::uint32_t);

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ std::size_t first_word() { return blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; }
__device__ std::size_t stride() { return std::size_t{gridDim.x} * blockDim.x; }

__global__ void gate(const volatile int* open, std::uint64_t limit_ns) {
  const std::uint64_t end = nanoseconds() + limit_ns;
  while (*open == 0 && nanoseconds() < end) {
  }
}

__global__ void fill(std::uint32_t* memory, std::size_t words, std::uint32_t value) {
  for (std::size_t i = first_word(); i < words; i += stride()) memory[i] = value;
}

__global__ void fill_stripes(std::uint32_t* memory, std::size_t words, std::uint32_t first,
                             std::uint32_t value, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = first_word(); i < words; i += stride()) {
      volatile std::uint32_t* word = memory + i;  // or the rounds after the first are left out
      if ((i / kStripeWords) % 2 == first) *word = value;
    }
  }
}

__global__ void count_mismatches(const std::uint32_t* memory, std::size_t words,
                                 std::uint32_t value, unsigned long long* mismatches) {
  unsigned long long mine = 0;
  for (std::size_t i = first_word(); i < words; i += stride()) mine += memory[i] != value;
  if (mine != 0) atomicAdd(mismatches, mine);
}

unsigned blocks_for(std::size_t words, std::size_t most = 1024) {
  return static_cast<unsigned>(std::clamp<std::size_t>((words + kThreads - 1) / kThreads, 1, most));
}

void check_launch() {
  if (const cudaError_t code = cudaGetLastError(); code != cudaSuccess) {
    throw std::runtime_error(cudaGetErrorString(code));
  }
}

}  // namespace

void load_kernels() {
  const void* const all[] = {
      reinterpret_cast<const void*>(gate), reinterpret_cast<const void*>(fill),
      reinterpret_cast<const void*>(fill_stripes), reinterpret_cast<const void*>(count_mismatches)};
  for (const void* kernel : all) {
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) check_launch();
  }
}

void launch_gate(const volatile int* open, std::uint64_t limit_ns, cudaStream_t stream) {
  gate<<<1, 1, 0, stream>>>(open, limit_ns);
  check_launch();
}

void launch_fill(std::uint32_t* memory, std::size_t words, std::uint32_t value,
                 cudaStream_t stream) {
  fill<<<blocks_for(words), kThreads, 0, stream>>>(memory, words, value);
  check_launch();
}

void launch_fill_stripes(std::uint32_t* memory, std::size_t words, std::uint32_t first,
                         std::uint32_t value, int rounds, cudaStream_t stream) {
  // Few blocks, so that two such kernels run side by side.
  fill_stripes<<<blocks_for(words, 16), kThreads, 0, stream>>>(memory, words, first, value, rounds);
  check_launch();
}

void launch_count_mismatches(const std::uint32_t* memory, std::size_t words, std::uint32_t value,
                             unsigned long long* mismatches, cudaStream_t stream) {
  count_mismatches<<<blocks_for(words), kThreads, 0, stream>>>(memory, words, value, mismatches);
  check_launch();
}

}  // namespace bursar::test
