// SPDX-License-Identifier: Apache-2.0
// HeldMemory: how large each extent is and whose, because the driver's release does not say.
//
// An entry is taken out before the driver releases its key and put back when the driver refuses:
// the driver may give the same handle or address to another thread the moment it is free.
#pragma once

#include <cstdint>
#include <map>
#include <new>
#include <utility>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>
#include <bursar/core/lock_rank.hpp>

namespace bursar {
inline namespace v0 {

/// Thread-safe. Taking out and putting back allocate nothing.
class HeldMemory {
 public:
  struct Piece {
    Bytes size;
    DeviceId device;
  };
  using Entry = std::map<std::uint64_t, Piece>::node_type;

  /// False when the host has no memory for the entry.
  bool add(std::uint64_t key, Piece piece) noexcept try {
    const lock_proof lock(mutex_);
    return pieces_.emplace(key, piece).second;
  } catch (const std::bad_alloc&) {
    return false;
  }
  /// The entry of `key`; an empty one for what was never added (an imported extent).
  Entry take(std::uint64_t key) noexcept {
    const lock_proof lock(mutex_);
    return pieces_.extract(key);
  }
  void put_back(Entry entry) noexcept {
    const lock_proof lock(mutex_);
    pieces_.insert(std::move(entry));
  }

 private:
  RankedMutex<LockRank::driver> mutex_;
  std::map<std::uint64_t, Piece> pieces_;
};

}  // namespace v0
}  // namespace bursar
