// SPDX-License-Identifier: Apache-2.0
// The few kernels the GPU tests need, behind plain functions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace bursar::test {

/// How a kernel follows the one before it in its stream.
enum class Launch {
  ordinary,
  /// It may start early: programmatic dependent launch, compute capability 9.0 and newer. The
  /// kernels of launch_fill and launch_count_mismatches let it, and themselves touch memory only
  /// after the one before them is complete.
  programmatic,
};

/// Loads every kernel at once: a launch that loads lazily may wait for a kernel that is running.
void load_kernels();

/// A kernel that runs until `*open` is not 0, and gives up after `limit_ns`.
void launch_gate(const volatile int* open, std::uint64_t limit_ns, cudaStream_t stream);

/// A kernel that runs for `ns` nanoseconds.
void launch_spin(std::uint64_t ns, cudaStream_t stream);

/// Writes `value` to `words` words at `memory`.
void launch_fill(std::uint32_t* memory, std::size_t words, std::uint32_t value, cudaStream_t stream,
                 Launch how = Launch::ordinary);

/// Writes `value` to every other piece of 512 bytes, from piece `first` (0 or 1), `rounds` times.
void launch_fill_stripes(std::uint32_t* memory, std::size_t words, std::uint32_t first,
                         std::uint32_t value, int rounds, cudaStream_t stream);

/// Adds to `*mismatches` the number of words at `memory` that are not `value`.
void launch_count_mismatches(const std::uint32_t* memory, std::size_t words, std::uint32_t value,
                             unsigned long long* mismatches, cudaStream_t stream,
                             Launch how = Launch::ordinary);

/// A persistent kernel of one block that again and again writes a new value to all of `memory` and
/// reads it back, adds the number of its rounds to `*rounds`, and ends as launch_gate's.
void launch_patrol(std::uint32_t* memory, std::size_t words, const volatile int* end,
                   std::uint64_t limit_ns, unsigned long long* rounds,
                   unsigned long long* mismatches, cudaStream_t stream);

}  // namespace bursar::test
