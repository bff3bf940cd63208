// SPDX-License-Identifier: Apache-2.0
// BlockStore: where Block records live. Slabs that are never given back, and a list of unused ones,
// so that splitting and merging never go to the host's allocator in the steady state.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <bursar/block/block.hpp>

namespace bursar {
inline namespace v0 {

/// Not thread-safe: guarded by the device's heap lock.
class BlockStore {
 public:
  Block* make() {
    if (unused_ == nullptr) grow();
    Block* block = unused_;
    unused_ = block->next;
    block->next = nullptr;
    return block;
  }
  void drop(Block* block) {
    *block = Block{};
    block->next = unused_;
    unused_ = block;
  }
  Bytes metadata() const { return Bytes{slabs_.size() * kSlab * sizeof(Block)}; }

 private:
  static constexpr std::size_t kSlab = 256;

  void grow() {
    slabs_.push_back(std::make_unique<Block[]>(kSlab));
    for (std::size_t i = 0; i < kSlab; ++i) {
      slabs_.back()[i].next = unused_;
      unused_ = &slabs_.back()[i];
    }
  }

  std::vector<std::unique_ptr<Block[]>> slabs_;
  Block* unused_ = nullptr;
};

}  // namespace v0
}  // namespace bursar
