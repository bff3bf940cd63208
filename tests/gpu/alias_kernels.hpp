// SPDX-License-Identifier: Apache-2.0
// Kernels that meet over the same bytes: what one of them does to memory that the next one gets,
// and what of it the next one sees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu_kernels.hpp"

namespace bursar::test {

/// What the first kernel does with its memory, as late as it can.
enum class FirstUse { reads, writes };

/// When the first kernel lets the second start.
enum class Release {
  at_once,  ///< in its first instruction
  at_end,   ///< not before it ends
};

/// When the second kernel waits for the first to be complete.
enum class Wait {
  first,  ///< before it touches memory
  late,   ///< after it has written
  never,
};

/// Where the two kernels leave notes, in device memory.
struct Meeting {
  unsigned* started = nullptr;            ///< the number of the newest second kernel that started
  unsigned long long* met = nullptr;      ///< how often a first kernel saw its second one start
  unsigned long long* misread = nullptr;  ///< words that a first kernel read wrong
};

/// load_kernels, for the kernels here.
void load_alias_kernels();

/// Waits until second kernel `number` has started, or a while, and then a little longer; then reads
/// `memory`, where all words should be `value`, or writes `value` there.
void launch_first(const Meeting& meeting, unsigned number, FirstUse use, Release release,
                  std::uint32_t* memory, std::size_t words, std::uint32_t value,
                  cudaStream_t stream);

/// Notes that it has started, and writes `value` to `memory`.
void launch_second(const Meeting& meeting, unsigned number, Wait wait, Launch how,
                   std::uint32_t* memory, std::size_t words, std::uint32_t value,
                   cudaStream_t stream);

/// A programmatic kernel that does nothing, waits for nothing and lets the next one start.
void launch_hasty(cudaStream_t stream);

/// Through which cache a load goes.
enum class Load {
  cached,     ///< ld.global.ca: the first level, as by default
  read_only,  ///< ld.global.nc, the path of __ldg
};

/// launch_fill and launch_count_mismatches with one block for each multiprocessor and a fixed share
/// of the memory for each block, so that a kernel finds in its first-level cache what the one
/// before left there.
void launch_fill_shares(std::uint32_t* memory, std::size_t words, std::uint32_t value, Launch how,
                        cudaStream_t stream);
void launch_count_shares(const std::uint32_t* memory, std::size_t words, std::uint32_t value,
                         Load load, Launch how, unsigned long long* mismatches,
                         cudaStream_t stream);

}  // namespace bursar::test
