// SPDX-License-Identifier: Apache-2.0
// ReadStreams: the driver's own streams, on which it reads device memory back.
//
// A copy on any other stream would wait for what a caller has put there, and one on the legacy
// default stream for everybody. These are the only streams that the library ever synchronizes.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <vector>

#include <bursar/core/ids.hpp>
#include <bursar/core/lock_rank.hpp>

#include "entry_points.hpp"

namespace bursar {
inline namespace v0 {

/// Thread-safe.
class ReadStreams {
 public:
  /// `api` must outlive this, and so must the contexts in which read() is called.
  ReadStreams(const EntryPoints& api, std::size_t devices);
  /// Destroys the streams, but not in a forked child or while libcuda is shutting down.
  ~ReadStreams();
  ReadStreams(const ReadStreams&) = delete;
  ReadStreams& operator=(const ReadStreams&) = delete;

  /// Copies and waits. Precondition: a context of `device`, which exists, is current.
  CUresult read(DeviceId device, DeviceAddress address, std::span<std::byte> out) noexcept;

 private:
  CUresult stream_of(DeviceId device, CUstream& out) noexcept;

  const EntryPoints& api_;
  const std::uint32_t fork_generation_;
  RankedMutex<LockRank::driver> mutex_;  ///< held while a stream is made, once a device
  std::vector<CUstream> streams_;        ///< by device; null until it is needed
};

}  // namespace v0
}  // namespace bursar
