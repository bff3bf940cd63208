// SPDX-License-Identifier: Apache-2.0
// AllocatorStats: where every byte is. The parts add up, always:
//
//   requested <= live <= reserved
//   reserved  = live + idle + pending + spare + slack + quarantine     (physical bytes)
#pragma once

#include <cstdint>

#include <bursar/core/bytes.hpp>

namespace bursar {
inline namespace v0 {

struct AllocatorStats {
  Bytes requested{};  ///< bytes asked for, of blocks handed out
  Bytes live{};       ///< bytes of blocks handed out, rounded as they were
  Bytes idle{};       ///< free, reusable now by the stream that freed it or by any
  /// Freed, but a recorded stream may still use it, or its redzones are not compared yet.
  Bytes pending{};
  Bytes spare{};          ///< of extents held that no range uses
  Bytes slack{};          ///< of used extents, but no block can use it now
  Bytes thread_cached{};  ///< of idle: in thread caches, until others need it
  Bytes quarantine{};     ///< of extents whose undo failed: paid for, never reused
  Bytes reserved{};       ///< of all extents held

  /// Since the start or reset_peaks(). What a thread has cached counts as live in the peaks.
  Bytes requested_peak{};
  Bytes live_peak{};
  Bytes reserved_peak{};  ///< of the whole allocator; not kept for a single domain

  std::uint64_t live_blocks = 0;
  std::uint64_t allocations = 0;  ///< successful, in all
  std::uint64_t deallocations = 0;
  std::uint64_t cache_hits = 0;      ///< allocations that made no driver call for memory
  std::uint64_t thread_hits = 0;     ///< of those, served by the calling thread's own cache
  std::uint64_t extents_moved = 0;   ///< idle extents mapped elsewhere instead of creating one
  std::uint64_t out_of_memory = 0;   ///< allocations refused for lack of memory or budget
  std::uint64_t damaged_blocks = 0;  ///< whose redzones were found overwritten
  Bytes largest_idle{};              ///< the largest run of idle bytes one block could take
  Bytes address_space{};             ///< virtual addresses reserved
  Bytes metadata{};                  ///< host bytes of the allocator's own records
};

}  // namespace v0
}  // namespace bursar
