// SPDX-License-Identifier: Apache-2.0
// The table of each thread, the registry of heaps that a thread's end asks, and seizing.
#include <pthread.h>
#include <sched.h>

#include <bursar/block/thread_caches.hpp>
#include <bursar/core/check.hpp>
#include <bursar/core/process_barrier.hpp>

namespace bursar {
inline namespace v0 {
namespace {

/// Which heaps are alive. Never destroyed: threads may end after static destructors have run.
class Registry {
 public:
  static Registry& get() {
    static Registry* const registry = new Registry;  // reachable for ever
    return *registry;
  }

  void enter(ThreadCacheHome& home, std::uint32_t& number, std::uint64_t& serial) {
    const std::lock_guard lock(mutex_);
    number = 0;
    while (number < homes_.size() && homes_[number].home != nullptr) ++number;
    if (number == homes_.size()) homes_.emplace_back();
    serial = ++last_serial_;
    homes_[number] = {&home, serial};
  }
  /// In a forked child another thread may have held the mutex for ever.
  void leave(std::uint32_t number) {
    if (forked_) return;
    const std::lock_guard lock(mutex_);
    homes_[number] = {};
  }
  void thread_ends(std::uint32_t number, std::uint64_t serial, ThreadCache& cache) {
    if (forked_) return;
    const std::lock_guard lock(mutex_);
    if (homes_[number].serial == serial) homes_[number].home->thread_ends(cache);
  }

 private:
  struct Entry {
    ThreadCacheHome* home = nullptr;
    std::uint64_t serial = 0;
  };

  Registry() {
    pthread_atfork(nullptr, nullptr, [] { get().forked_ = true; });
  }

  RankedMutex<LockRank::registry> mutex_;
  std::vector<Entry> homes_;
  std::uint64_t last_serial_ = 0;
  std::atomic<bool> forked_{false};
};

/// A heap's cache of this thread.
struct Link {
  std::uint64_t serial = 0;
  ThreadCache* cache = nullptr;
};

/// The table's memory; its end is the thread's.
struct Table {
  std::vector<Link> links;
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table();
};

/// Read on every call: no wrapper, no destructor. Later thread-local destructors may still free.
struct Mine {
  const Link* links = nullptr;
  std::uint32_t count = 0;
  bool end_has_come = false;
};
// The model costs 16 bytes of what the loader sets aside, and saves a call in a shared library.
[[gnu::tls_model("initial-exec")]] constinit thread_local Mine this_thread;

Table::~Table() {
  this_thread = {.end_has_come = true};
  for (std::uint32_t number = 0; number < links.size(); ++number) {
    const Link& link = links[number];
    if (link.cache != nullptr) {
      Registry::get().thread_ends(number, link.serial, *link.cache);
    }
  }
}

}  // namespace

ThreadCaches::ThreadCaches(ThreadCacheHome& home, bool on)
    : home_(home), on_(on), asymmetric_(on && process_barrier_available()) {
  if (on_) Registry::get().enter(home_, number_, serial_);
}

void ThreadCaches::close() noexcept {
  if (on_) Registry::get().leave(number_);
  on_ = false;
}

ThreadCache* thread_cache_of(std::uint32_t number, std::uint64_t serial) noexcept {
  if (number >= this_thread.count) return nullptr;
  const Link& link = this_thread.links[number];
  return link.serial == serial ? link.cache : nullptr;
}

void ThreadCaches::attach(RankedMutex<LockRank::heap>& mutex) noexcept {
  if (!on_ || this_thread.end_has_come) return;
  static thread_local Table table;
  if (table.links.size() <= number_) table.links.resize(number_ + 1);
  const HeapLock lock(mutex);
  if (unused_.empty()) {
    caches_.push_back(std::make_unique<ThreadCache>(asymmetric_));
    unused_.push_back(caches_.back().get());
  }
  table.links[number_] = {serial_, unused_.back()};
  unused_.pop_back();
  this_thread = {.links = table.links.data(),
                 .count = static_cast<std::uint32_t>(table.links.size())};
}

void ThreadCaches::release(const HeapLock& lock, ThreadCache& cache) noexcept {
  BURSAR_CHECK(1, lock.held());
  BURSAR_CHECK(1, cache.empty());
  unused_.push_back(&cache);
}

bool ThreadCaches::any_held(const HeapLock& lock) const {
  BURSAR_CHECK(1, lock.held());
  for (const std::unique_ptr<ThreadCache>& cache : caches_) {
    if (!cache->empty()) return true;
  }
  return false;
}

Bytes ThreadCaches::metadata(const HeapLock& lock) const {
  BURSAR_CHECK(1, lock.held());
  return Bytes{caches_.size() * (sizeof(ThreadCache) + 2 * sizeof(void*))};
}

ThreadCaches::Seized::Seized(const HeapLock& lock, ThreadCaches& caches)
    : caches_(caches), mine_(caches.mine()) {
  BURSAR_CHECK(1, lock.held());
  bool others = false;
  for_each([&](ThreadCache& cache) {
    if (&cache == mine_) return;
    cache.begin_seizing();
    others = true;
  });
  if (!others) return;
  if (caches_.asymmetric_) process_barrier();
  for_each([&](const ThreadCache& cache) {
    // An owner is busy for some nanoseconds, unless the scheduler takes the processor from it.
    while (&cache != mine_ && cache.busy()) sched_yield();
  });
}

ThreadCaches::Seized::~Seized() {
  for_each([&](ThreadCache& cache) {
    if (&cache != mine_) cache.end_seizing();
  });
}

}  // namespace v0
}  // namespace bursar
