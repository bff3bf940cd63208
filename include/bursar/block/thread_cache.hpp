// SPDX-License-Identifier: Apache-2.0
// ThreadCache: what one thread has freed of one heap, for its own next requests: no lock.
//
// A block in a cache is live to its heap. The cache holds at most one block of each key (exact
// size, stream, domain), found by direct mapping, so it is small and looks in one place. For
// frees it remembers the blocks that it has handed out or seen handed out: pointer to block, again
// by direct mapping; a pointer that it does not remember takes the way with the lock.
//
// One thread, the owner, calls enter() ... leave() around take() and put(). Any other function is
// called under the heap lock: by the owner, or by a thread that has *seized* the cache, so that it
// also works on caches of threads that sleep. Where the kernel offers process_barrier() the owner
// pays for no atomic read-modify-write.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>

namespace bursar {
inline namespace v0 {

/// Which requests a cached block may serve.
struct CacheKey {
  Bytes requested{};
  StreamId stream = kNoStream;
  DomainId domain{};
  friend constexpr bool operator==(const CacheKey&, const CacheKey&) = default;
};

class ThreadCache {
 public:
  /// No larger block is cached, and no more bytes in all.
  static constexpr Bytes kMostBlock{1ull << 20};
  static constexpr Bytes kMostHeld{2ull << 20};

  /// Where the block of a key is kept. A bin with a key counts as full for the bytes in all, so
  /// that taking and putting need not count.
  struct alignas(64) Bin {
    std::atomic<std::uint64_t> address{0};  ///< of the cached block; 0: none
    std::uint64_t token = 0;                ///< its place, and how many keys it has had
    CacheKey key;
    Bytes size{};            ///< of its blocks
    std::uint64_t hits = 0;  ///< not yet counted by the heap
  };

  explicit ThreadCache(bool asymmetric) : asymmetric_(asymmetric) {
    for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i].token = i;
  }
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  /// The owner begins; false when somebody has seized the cache.
  bool enter() {
    if (asymmetric_) [[likely]] {
      busy_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      busy_.exchange(true, std::memory_order_seq_cst);
    }
    if (!seized_.load(std::memory_order_seq_cst)) [[likely]]
      return true;
    leave();
    return false;
  }
  void leave() { busy_.store(false, std::memory_order_release); }

  /// A cached block for the key, remembered for its free; null where there is none.
  void* take(const CacheKey& key) {
    Bin& bin = bin_of(key);
    const std::uint64_t address = bin.address.load(std::memory_order_relaxed);
    if (address == 0 || bin.key != key) return nullptr;
    bin.address.store(0, std::memory_order_relaxed);
    ++bin.hits;
    remember(DeviceAddress{address}, bin);
    return to_pointer(DeviceAddress{address});
  }

  /// Keeps a block that is remembered and whose bin is empty and has its key still; false: it is
  /// not kept. `stream`: which one the caller named, kNoStream for none.
  bool put(const void* pointer, StreamId stream) {
    const std::uint64_t address = to_address(pointer).value;
    Entry& entry = entry_of(address);
    if (entry.address.load(std::memory_order_relaxed) != address) return false;
    Bin& bin = bins_[entry.token & (bins_.size() - 1)];
    if (bin.token != entry.token) return false;
    if (bin.address.load(std::memory_order_relaxed) != 0) return false;
    if (stream != kNoStream && stream != bin.key.stream) return false;
    entry.address.store(0, std::memory_order_relaxed);
    bin.address.store(address, std::memory_order_relaxed);
    touched_ |= std::uint64_t{1} << (entry.token & (bins_.size() - 1));
    return true;
  }
  /// True when put() would look further than at its own memory of the pointer. For the owner, who
  /// need not enter.
  bool remembers(const void* pointer) {
    const std::uint64_t address = to_address(pointer).value;
    return entry_of(address).address.load(std::memory_order_relaxed) == address;
  }

  // -- under the heap lock ----------------------------------------------------------------------

  /// Owner: its next free of the block at that address may go into the bin, which has its key.
  void remember(DeviceAddress block, const Bin& bin) {
    Entry& entry = entry_of(block.value);
    entry.token = bin.token;
    entry.address.store(block.value, std::memory_order_relaxed);
  }
  /// The next free of the block takes the lock. Needs no seizing: an owner that frees it at this
  /// very moment frees what somebody else is freeing.
  void forget(DeviceAddress block) {
    std::uint64_t address = block.value;
    entry_of(address).address.compare_exchange_strong(address, 0, std::memory_order_relaxed);
  }
  /// Owner, or seized.
  void forget_all() {
    for (Entry& entry : entries_) entry.address.store(0, std::memory_order_relaxed);
  }
  /// True while the block is in the cache. Needs no seizing where the program orders its calls.
  bool holds(DeviceAddress block, const CacheKey& key) {
    return bin_of(key).address.load(std::memory_order_relaxed) == block.value;
  }
  Bin& bin_of(const CacheKey& key) { return bins_[hash(key) >> (64 - kBinBits)]; }
  /// Owner, or seized: gives an empty bin, whose hits are counted, to another key. What is
  /// remembered of the former key no longer counts. False where that would be too many bytes.
  bool rekey(Bin& bin, const CacheKey& key, Bytes size) {
    if (keyed_ - bin.size + size > kMostHeld) return false;
    keyed_ = keyed_ - bin.size + size;
    bin.key = key;
    bin.size = size;
    bin.token += bins_.size();
    return true;
  }
  /// Owner, or seized.
  template <class Visitor>
  void for_each_bin(Visitor&& visit) {
    for (Bin& bin : bins_) visit(bin);
  }
  /// Owner, or seized: visits the bins that may hold a block, which `visit` is to empty.
  template <class Visitor>
  void empty_bins(Visitor&& visit) {
    for (; touched_ != 0; touched_ &= touched_ - 1) {
      visit(bins_[static_cast<std::size_t>(std::countr_zero(touched_))]);
    }
  }
  /// Owner, or seized: calls visit(address) for each remembered block.
  template <class Visitor>
  void for_each_remembered(Visitor&& visit) const {
    for (const Entry& entry : entries_) {
      const DeviceAddress address{entry.address.load(std::memory_order_relaxed)};
      if (address != DeviceAddress{}) visit(address);
    }
  }
  /// Exact for the owner and where it is seized.
  bool empty() const {
    return std::all_of(bins_.begin(), bins_.end(), [](const Bin& bin) {
      return bin.address.load(std::memory_order_relaxed) == 0;
    });
  }
  /// Owner, or seized: bytes of all bins that have a key.
  Bytes keyed() const { return keyed_; }

  // -- seizing, under the heap lock: begin, process_barrier() where asymmetric, wait until not busy
  // -
  void begin_seizing() { seized_.exchange(true, std::memory_order_seq_cst); }
  bool busy() const { return busy_.load(std::memory_order_seq_cst); }
  void end_seizing() { seized_.store(false, std::memory_order_release); }

 private:
  static constexpr int kBinBits = 6;  // a bit each in `touched_`
  static constexpr int kEntryBits = 8;
  static constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15ull;

  struct Entry {
    std::atomic<std::uint64_t> address{0};  ///< 0: none
    std::uint64_t token = 0;                ///< of the bin, when it had the block's key
  };

  static std::uint64_t hash(const CacheKey& key) {
    return (key.requested.count ^ (key.stream.value << 40) ^
            (std::uint64_t{key.domain.value} << 52)) *
           kMix;
  }
  Entry& entry_of(std::uint64_t address) {
    return entries_[((address >> 9) * kMix) >> (64 - kEntryBits)];
  }

  std::atomic<bool> busy_{false};
  std::atomic<bool> seized_{false};
  const bool asymmetric_;
  Bytes keyed_{};
  std::uint64_t touched_ = 0;  ///< bins that were put into since they were emptied
  std::array<Bin, 1u << kBinBits> bins_;
  std::array<Entry, 1u << kEntryBits> entries_;
};

}  // namespace v0
}  // namespace bursar
