// SPDX-License-Identifier: Apache-2.0
// The few kernels the GPU tests need, behind plain functions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace bursar::test {

/// Loads every kernel at once: a launch that loads lazily may wait for a kernel that is running.
void load_kernels();

/// A kernel that runs until `*open` is not 0, and gives up after `limit_ns`.
void launch_gate(const volatile int* open, std::uint64_t limit_ns, cudaStream_t stream);

/// Writes `value` to `words` words at `memory`.
void launch_fill(std::uint32_t* memory, std::size_t words, std::uint32_t value,
                 cudaStream_t stream);

/// Writes `value` to every other piece of 512 bytes, from piece `first` (0 or 1), `rounds` times.
void launch_fill_stripes(std::uint32_t* memory, std::size_t words, std::uint32_t first,
                         std::uint32_t value, int rounds, cudaStream_t stream);

/// Adds to `*mismatches` the number of words at `memory` that are not `value`.
void launch_count_mismatches(const std::uint32_t* memory, std::size_t words, std::uint32_t value,
                             unsigned long long* mismatches, cudaStream_t stream);

}  // namespace bursar::test
