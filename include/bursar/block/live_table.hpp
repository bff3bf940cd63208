// SPDX-License-Identifier: Apache-2.0
// LiveTable: from a pointer that a caller got to its live block, in O(1).
//
// Open addressing with linear probing and no tombstones: a removal closes the gap. At most three
// quarters full, 16 bytes an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <bursar/block/block.hpp>

namespace bursar {
inline namespace v0 {

/// Not thread-safe: guarded by the device's heap lock.
class LiveTable {
 public:
  LiveTable() : entries_(64) {}

  void insert(Block* block) {
    if ((count_ + 1) * 4 > entries_.size() * 3) grow();
    place({block->data(), block});
    ++count_;
  }

  /// The live block whose data begins at `address`, or null.
  Block* find(DeviceAddress address) const {
    for (std::size_t i = home(address);; i = next(i)) {
      if (entries_[i].block == nullptr) return nullptr;
      if (entries_[i].address == address) return entries_[i].block;
    }
  }

  /// Precondition: a block whose data begins at `address` is here.
  void erase(DeviceAddress address) {
    std::size_t gap = home(address);
    while (entries_[gap].address != address) gap = next(gap);
    for (std::size_t i = next(gap); entries_[i].block != nullptr; i = next(i)) {
      // An entry may move back to the gap if its home does not lie between gap and itself.
      const std::size_t from_home = (i - home(entries_[i].address)) & (entries_.size() - 1);
      const std::size_t from_gap = (i - gap) & (entries_.size() - 1);
      if (from_home >= from_gap) {
        entries_[gap] = entries_[i];
        gap = i;
      }
    }
    entries_[gap] = {};
    --count_;
  }

  /// Calls visit(const Block&) for each, in no order.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const Entry& entry : entries_) {
      if (entry.block != nullptr) visit(*entry.block);
    }
  }

  std::size_t size() const { return count_; }
  Bytes metadata() const { return Bytes{entries_.capacity() * sizeof(Entry)}; }

 private:
  struct Entry {
    DeviceAddress address{};
    Block* block = nullptr;
  };

  std::size_t home(DeviceAddress address) const {
    const std::uint64_t x = (address.value >> 9) * 0x9E3779B97F4A7C15ull;
    return static_cast<std::size_t>(x >> 20) & (entries_.size() - 1);
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (entries_.size() - 1); }
  void place(Entry entry) {
    std::size_t i = home(entry.address);
    while (entries_[i].block != nullptr) i = next(i);
    entries_[i] = entry;
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.block != nullptr) place(entry);
    }
  }

  std::vector<Entry> entries_;
  std::size_t count_ = 0;
};

}  // namespace v0
}  // namespace bursar
