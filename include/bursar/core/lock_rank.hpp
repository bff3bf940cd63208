// SPDX-License-Identifier: Apache-2.0
// Every mutex of the library in the order in which they may be taken; the proof of holding one.
//
// A thread may take a mutex only while every mutex it holds has a smaller rank. From check level 1
// the order is checked at each lock, so a deadlock is found by the first test that could have met
// it, not by the one run in a million that does. Functions that need a lock take a `lock_proof`.
// No driver call happens under any lock but `LockRank::vmm` and those that lie inside the driver.
#pragma once

#include <cstdint>
#include <mutex>

#include <bursar/core/config.hpp>

namespace bursar {
inline namespace v0 {

enum class LockRank : std::uint8_t {
  registry = 10,    ///< an allocator's list of devices and domains
  vmm = 20,         ///< a device's virtual-memory calls: held across driver calls
  heap = 30,        ///< a device's blocks, extents and free indexes: never across a driver call
  event_pool = 40,  ///< a device's unused events
  driver = 50,      ///< inside a driver implementation
  detector = 60,    ///< inside the simulated device's detector
  log = 70,         ///< the log sink
};

/// Records that the calling thread takes / drops a lock; aborts when the order is broken.
BURSAR_EXPORT void lock_rank_acquired(LockRank rank) noexcept;
BURSAR_EXPORT void lock_rank_released(LockRank rank) noexcept;
/// True when the calling thread holds no lock of the library of rank `rank` or above.
/// At check level 0 always true.
BURSAR_EXPORT bool no_lock_held_from(LockRank rank) noexcept;

/// A mutex that knows its place in the order. Never recursive.
template <LockRank Rank>
class RankedMutex {
 public:
  void lock() {
#if BURSAR_CHECK_LEVEL >= 1
    lock_rank_acquired(Rank);
#endif
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
#if BURSAR_CHECK_LEVEL >= 1
    lock_rank_released(Rank);
#endif
  }

 private:
  std::mutex mutex_;
};

/// Proof that the lock of rank `Rank` is held: made only by locking. Can be dropped for a while
/// with unlock() and taken again with lock().
template <LockRank Rank>
class [[nodiscard]] lock_proof {
 public:
  explicit lock_proof(RankedMutex<Rank>& mutex) : lock_(mutex) {}
  void unlock() { lock_.unlock(); }
  void lock() { lock_.lock(); }
  bool held() const { return lock_.owns_lock(); }

 private:
  std::unique_lock<RankedMutex<Rank>> lock_;
};

using HeapLock = lock_proof<LockRank::heap>;
using VmmLock = lock_proof<LockRank::vmm>;

}  // namespace v0
}  // namespace bursar
