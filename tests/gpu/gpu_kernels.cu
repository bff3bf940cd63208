// SPDX-License-Identifier: Apache-2.0
// The kernels behind gpu_kernels.hpp. Grid-stride loops, so that any size takes one launch.
#include "gpu_kernels.hpp"

#include <algorithm>

#include "kernel_parts.hpp"

namespace bursar::test {
namespace {

constexpr std::size_t kStripeWords = 512 / sizeof(std::uint32_t);

__global__ void gate(const volatile int* open, std::uint64_t limit_ns) {
  const std::uint64_t end = nanoseconds() + limit_ns;
  while (*open == 0 && nanoseconds() < end) {
  }
}

__global__ void spin(std::uint64_t ns) {
  const std::uint64_t end = nanoseconds() + ns;
  while (nanoseconds() < end) {
  }
}

__global__ void fill(std::uint32_t* memory, std::size_t words, std::uint32_t value) {
  let_next_start();
  wait_for_previous();
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
  let_next_start();
  wait_for_previous();
  unsigned long long mine = 0;
  for (std::size_t i = first_word(); i < words; i += stride()) mine += memory[i] != value;
  if (mine != 0) atomicAdd(mismatches, mine);
}

__global__ void patrol(std::uint32_t* memory, std::size_t words, const volatile int* end,
                       std::uint64_t limit_ns, unsigned long long* rounds,
                       unsigned long long* mismatches) {
  const std::uint64_t limit = nanoseconds() + limit_ns;
  unsigned long long mine = 0;
  std::uint32_t round = 0;
  volatile std::uint32_t* own = memory;
  while (*end == 0 && nanoseconds() < limit) {
    ++round;
    for (std::size_t i = threadIdx.x; i < words; i += blockDim.x) own[i] = round;
    __threadfence();
    for (std::size_t i = threadIdx.x; i < words; i += blockDim.x) mine += own[i] != round;
  }
  if (mine != 0) atomicAdd(mismatches, mine);
  if (threadIdx.x == 0) atomicAdd(rounds, round);
}

unsigned blocks_for(std::size_t words, std::size_t most = 1024) {
  return static_cast<unsigned>(
      std::clamp<std::size_t>((words + kKernelThreads - 1) / kKernelThreads, 1, most));
}

}  // namespace

void load_kernels() {
  load_kernel(gate);
  load_kernel(spin);
  load_kernel(fill);
  load_kernel(fill_stripes);
  load_kernel(count_mismatches);
  load_kernel(patrol);
}

void launch_gate(const volatile int* open, std::uint64_t limit_ns, cudaStream_t stream) {
  gate<<<1, 1, 0, stream>>>(open, limit_ns);
  check_launch(cudaGetLastError());
}

void launch_spin(std::uint64_t ns, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(ns);
  check_launch(cudaGetLastError());
}

void launch_fill(std::uint32_t* memory, std::size_t words, std::uint32_t value, cudaStream_t stream,
                 Launch how) {
  launch(fill, blocks_for(words), how, stream, memory, words, value);
}

void launch_fill_stripes(std::uint32_t* memory, std::size_t words, std::uint32_t first,
                         std::uint32_t value, int rounds, cudaStream_t stream) {
  // Few blocks, so that two such kernels run side by side.
  launch(fill_stripes, blocks_for(words, 16), Launch::ordinary, stream, memory, words, first, value,
         rounds);
}

void launch_count_mismatches(const std::uint32_t* memory, std::size_t words, std::uint32_t value,
                             unsigned long long* mismatches, cudaStream_t stream, Launch how) {
  launch(count_mismatches, blocks_for(words), how, stream, memory, words, value, mismatches);
}

void launch_patrol(std::uint32_t* memory, std::size_t words, const volatile int* end,
                   std::uint64_t limit_ns, unsigned long long* rounds,
                   unsigned long long* mismatches, cudaStream_t stream) {
  launch(patrol, 1, Launch::ordinary, stream, memory, words, end, limit_ns, rounds, mismatches);
}

}  // namespace bursar::test
