// SPDX-License-Identifier: Apache-2.0
// The kernels behind alias_kernels.hpp.
#include "alias_kernels.hpp"

#include "kernel_parts.hpp"

namespace bursar::test {
namespace {

constexpr unsigned kMeetingBlocks = 16;  // few, so that both kernels are resident at once
constexpr std::uint64_t kPatience = 20'000'000;
constexpr std::uint64_t kNoPatience = 1'000'000;  // of one that lets nobody start before it ends
constexpr std::uint64_t kLinger = 1'000'000;

__device__ bool has_started(const Meeting& meeting, unsigned number) {
  return *static_cast<volatile unsigned*>(meeting.started) == number;
}

__global__ void first(Meeting meeting, unsigned number, FirstUse use, Release release,
                      std::uint32_t* memory, std::size_t words, std::uint32_t value) {
  if (release == Release::at_once) let_next_start();
  const std::uint64_t patience = release == Release::at_once ? kPatience : kNoPatience;
  const std::uint64_t limit = nanoseconds() + patience;
  while (!has_started(meeting, number) && nanoseconds() < limit) {
  }
  if (first_word() == 0 && has_started(meeting, number)) atomicAdd(meeting.met, 1);
  const std::uint64_t end = nanoseconds() + kLinger;
  while (nanoseconds() < end) {
  }
  unsigned long long mine = 0;
  for (std::size_t i = first_word(); i < words; i += stride()) {
    if (use == FirstUse::writes) {
      memory[i] = value;
    } else {
      mine += memory[i] != value;
    }
  }
  if (mine != 0) atomicAdd(meeting.misread, mine);
}

__global__ void second(Meeting meeting, unsigned number, Wait wait, std::uint32_t* memory,
                       std::size_t words, std::uint32_t value) {
  let_next_start();
  if (first_word() == 0) atomicExch(meeting.started, number);
  if (wait == Wait::first) wait_for_previous();
  for (std::size_t i = first_word(); i < words; i += stride()) memory[i] = value;
  if (wait == Wait::late) wait_for_previous();
}

__global__ void hasty() { let_next_start(); }

/// The words of this block: from its first one for this thread to the end of its share.
__device__ std::size_t share_begin(std::size_t words) {
  const std::size_t share = (words + gridDim.x - 1) / gridDim.x;
  return blockIdx.x * share + threadIdx.x;
}
__device__ std::size_t share_end(std::size_t words) {
  const std::size_t share = (words + gridDim.x - 1) / gridDim.x;
  const std::size_t end = (blockIdx.x + 1) * share;
  return end < words ? end : words;
}

__global__ void fill_shares(std::uint32_t* memory, std::size_t words, std::uint32_t value) {
  let_next_start();
  wait_for_previous();
  const std::size_t end = share_end(words);
  for (std::size_t i = share_begin(words); i < end; i += blockDim.x) memory[i] = value;
}

template <Load load>
__device__ std::uint32_t word_at(const std::uint32_t* at) {
  std::uint32_t word;
  if constexpr (load == Load::cached) {
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(word) : "l"(at) : "memory");
  } else {
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(word) : "l"(at) : "memory");
  }
  return word;
}

template <Load load>
__global__ void count_shares(const std::uint32_t* memory, std::size_t words, std::uint32_t value,
                             unsigned long long* mismatches) {
  let_next_start();
  wait_for_previous();
  const std::size_t end = share_end(words);
  unsigned long long wrong = 0;
  for (std::size_t i = share_begin(words); i < end; i += blockDim.x) {
    wrong += word_at<load>(memory + i) != value;
  }
  if (wrong != 0) atomicAdd(mismatches, wrong);
}

unsigned multiprocessors() {
  int count = 0;
  check_launch(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return static_cast<unsigned>(count);
}

}  // namespace

void load_alias_kernels() {
  load_kernel(first);
  load_kernel(second);
  load_kernel(hasty);
  load_kernel(fill_shares);
  load_kernel(count_shares<Load::cached>);
  load_kernel(count_shares<Load::read_only>);
}

void launch_first(const Meeting& meeting, unsigned number, FirstUse use, Release release,
                  std::uint32_t* memory, std::size_t words, std::uint32_t value,
                  cudaStream_t stream) {
  launch(first, kMeetingBlocks, Launch::ordinary, stream, meeting, number, use, release, memory,
         words, value);
}

void launch_second(const Meeting& meeting, unsigned number, Wait wait, Launch how,
                   std::uint32_t* memory, std::size_t words, std::uint32_t value,
                   cudaStream_t stream) {
  launch(second, kMeetingBlocks, how, stream, meeting, number, wait, memory, words, value);
}

void launch_hasty(cudaStream_t stream) { launch(hasty, 1, Launch::programmatic, stream); }

void launch_fill_shares(std::uint32_t* memory, std::size_t words, std::uint32_t value, Launch how,
                        cudaStream_t stream) {
  launch(fill_shares, multiprocessors(), how, stream, memory, words, value);
}

void launch_count_shares(const std::uint32_t* memory, std::size_t words, std::uint32_t value,
                         Load load, Launch how, unsigned long long* mismatches,
                         cudaStream_t stream) {
  const auto kernel =
      load == Load::cached ? count_shares<Load::cached> : count_shares<Load::read_only>;
  launch(kernel, multiprocessors(), how, stream, memory, words, value, mismatches);
}

}  // namespace bursar::test
