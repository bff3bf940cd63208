// SPDX-License-Identifier: Apache-2.0
// ThreadCaches: the caches of all threads that use one heap, and each thread's own among them.
//
// A thread finds its own by the heap's number in a table of its own. When the thread ends, the heap
// gets what its cache holds and lends the cache to the next new thread; when the heap ends, threads
// that still have it in their tables find that out by asking whose it is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <bursar/block/thread_cache.hpp>
#include <bursar/core/lock_rank.hpp>

namespace bursar {
inline namespace v0 {

/// Gets back what a thread that ends has cached.
class ThreadCacheHome {
 public:
  /// Called in the thread that ends. `cache` is to be given to ThreadCaches::release.
  virtual void thread_ends(ThreadCache& cache) noexcept = 0;

 protected:
  ~ThreadCacheHome() = default;
};

/// The calling thread's cache of the heap with that number and serial, or null.
BURSAR_EXPORT ThreadCache* thread_cache_of(std::uint32_t number, std::uint64_t serial) noexcept;

class BURSAR_EXPORT ThreadCaches {
 public:
  /// Off: no thread gets a cache.
  ThreadCaches(ThreadCacheHome& home, bool on);
  ~ThreadCaches() { close(); }
  ThreadCaches(const ThreadCaches&) = delete;
  ThreadCaches& operator=(const ThreadCaches&) = delete;

  /// No thread's end reaches the home any more: before the home's end begins.
  void close() noexcept;
  /// The calling thread's cache, or null where it has none.
  ThreadCache* mine() const noexcept { return thread_cache_of(number_, serial_); }
  bool on() const { return on_; }
  /// Gives the calling thread a cache, where it can have one. Precondition: mine() is null, and no
  /// lock is held.
  void attach(RankedMutex<LockRank::heap>& mutex) noexcept;
  /// Takes an emptied cache back from a thread that ends.
  void release(const HeapLock& lock, ThreadCache& cache) noexcept;

  /// True while a cache may hold a block.
  bool any_held(const HeapLock& lock) const;
  Bytes metadata(const HeapLock& lock) const;

  /// While it lives, no owner touches its cache. Under the heap lock all the time.
  class Seized {
   public:
    Seized(const HeapLock& lock, ThreadCaches& caches);
    ~Seized();
    Seized(const Seized&) = delete;
    Seized& operator=(const Seized&) = delete;

    template <class Visitor>
    void for_each(Visitor&& visit) const {
      for (const std::unique_ptr<ThreadCache>& cache : caches_.caches_) visit(*cache);
    }

   private:
    ThreadCaches& caches_;
    ThreadCache* mine_;
  };

 private:
  ThreadCacheHome& home_;
  bool on_;
  bool asymmetric_;
  std::uint32_t number_ = 0;  ///< place in the threads' tables, used again after its end
  std::uint64_t serial_ = 0;  ///< never used again
  std::vector<std::unique_ptr<ThreadCache>> caches_;  // under the heap lock
  std::vector<ThreadCache*> unused_;
};

}  // namespace v0
}  // namespace bursar
