// SPDX-License-Identifier: Apache-2.0
// TorchPeer: PyTorch's caching allocator through a table of C functions.
//
// It is built into a module of its own (torch_peer.cpp), which the command loads when it runs. So
// neither side's C++ runtime choices bind the other, and a machine without PyTorch runs the same
// command.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bursar {
inline namespace v0 {

enum class TorchOutcome : int { done, out_of_memory, failed };

/// Of device 0, by the allocator's own statistics.
struct TorchMemory {
  std::uint64_t reserved;          ///< bytes: reserved_bytes.all.current
  std::uint64_t reserved_highest;  ///< since the last call: reserved_bytes.all.peak
  std::uint64_t device_allocs;     ///< calls that took memory from the driver, since the start
  std::uint64_t device_frees;      ///< and that gave memory back
};

/// One thread at a time, but `allocate` and `deallocate`, which any may call. There is one
/// allocator a process, so only one user at a time.
struct TorchPeer {
  /// Empties the cache and chooses segments or expandable segments for what follows.
  /// Precondition: no block is live.
  TorchOutcome (*start)(bool expandable);
  /// On the stream (a cudaStream_t), which a block belongs to until it is freed.
  TorchOutcome (*allocate)(void** out, std::size_t bytes, void* stream);
  TorchOutcome (*deallocate)(void* block);
  TorchOutcome (*memory)(TorchMemory* out);
  /// Gives all cached memory back to the driver.
  TorchOutcome (*stop)();
  /// What the last `failed` on this thread meant; valid until its next call.
  const char* (*message)();
};

inline constexpr const char* kTorchPeerSymbol = "bursar_torch_peer";

}  // namespace v0
}  // namespace bursar
