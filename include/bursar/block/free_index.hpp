// SPDX-License-Identifier: Apache-2.0
// FreeIndex: a set of blocks that finds the one at the lowest address that is large enough.
//
// Lowest address first keeps the high addresses free, and that is where idle extents come from:
// simulation found it best or equal among the usual rules. The index is a treap over the blocks
// themselves (no allocation), ordered by address, each node knowing the largest size below it; a
// node's priority is a hash of its address, so the shape depends on nothing but the contents.
// All operations take O(log n) expected time.
#pragma once

#include <algorithm>
#include <cstdint>

#include <bursar/block/block.hpp>
#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

/// Not thread-safe. A block is in at most one index, and its begin and size do not change there.
class FreeIndex {
 public:
  bool empty() const { return root_ == nullptr; }
  Bytes largest() const { return Bytes{root_ == nullptr ? 0 : root_->subtree_max}; }

  void insert(Block* block) {
    block->left = block->right = nullptr;
    block->subtree_max = block->size.count;
    insert(root_, block);
  }

  void erase(Block* block) {
    BURSAR_CHECK(2, contains(block));
    erase(root_, block);
    block->left = block->right = nullptr;
  }

  /// The block at the lowest address with at least `size` bytes, or null.
  Block* lowest_fit(Bytes size) const {
    Block* node = root_;
    if (node == nullptr || node->subtree_max < size.count) return nullptr;
    for (;;) {
      if (node->left != nullptr && node->left->subtree_max >= size.count) {
        node = node->left;
      } else if (node->size >= size) {
        return node;
      } else {
        node = node->right;
      }
    }
  }

  /// Calls visit(Block*) in ascending order of address until it returns false.
  /// The visitor must not change the index. Blocks smaller than `least` are passed over.
  template <class Visitor>
  void ascend(Bytes least, Visitor&& visit) const {
    walk<true>(root_, least.count, visit);
  }
  /// The same in descending order.
  template <class Visitor>
  void descend(Bytes least, Visitor&& visit) const {
    walk<false>(root_, least.count, visit);
  }

  bool contains(const Block* block) const {
    const Block* node = root_;
    while (node != nullptr && node != block) {
      node = block->begin < node->begin ? node->left : node->right;
    }
    return node != nullptr;
  }

  /// Order, heap property and maxima hold.
  bool validate() const { return valid(root_, nullptr, nullptr); }

 private:
  static std::uint64_t priority(const Block* block) {
    std::uint64_t x = block->begin.value * 0x9E3779B97F4A7C15ull;
    return x ^ (x >> 32);
  }
  static void update(Block* node) {
    std::uint64_t most = node->size.count;
    if (node->left != nullptr) most = std::max(most, node->left->subtree_max);
    if (node->right != nullptr) most = std::max(most, node->right->subtree_max);
    node->subtree_max = most;
  }
  static void split(Block* node, DeviceAddress at, Block*& low, Block*& high) {
    if (node == nullptr) {
      low = high = nullptr;
    } else if (node->begin < at) {
      low = node;
      split(node->right, at, node->right, high);
      update(node);
    } else {
      high = node;
      split(node->left, at, low, node->left);
      update(node);
    }
  }
  static Block* merge(Block* low, Block* high) {
    if (low == nullptr) return high;
    if (high == nullptr) return low;
    Block* top = priority(low) > priority(high) ? low : high;
    if (top == low) {
      low->right = merge(low->right, high);
    } else {
      high->left = merge(low, high->left);
    }
    update(top);
    return top;
  }
  static void insert(Block*& node, Block* block) {
    if (node == nullptr) {
      node = block;
      return;
    }
    if (priority(block) > priority(node)) {
      split(node, block->begin, block->left, block->right);
      node = block;
    } else {
      insert(block->begin < node->begin ? node->left : node->right, block);
    }
    update(node);
  }
  static void erase(Block*& node, const Block* block) {
    if (node == block) {
      node = merge(node->left, node->right);
      return;
    }
    erase(block->begin < node->begin ? node->left : node->right, block);
    update(node);
  }
  template <bool Ascending, class Visitor>
  static bool walk(Block* node, std::uint64_t least, Visitor& visit) {
    if (node == nullptr || node->subtree_max < least) return true;
    Block* const first = Ascending ? node->left : node->right;
    Block* const last = Ascending ? node->right : node->left;
    if (!walk<Ascending>(first, least, visit)) return false;
    if (node->size.count >= least && !visit(node)) return false;
    return walk<Ascending>(last, least, visit);
  }
  static bool valid(const Block* node, const Block* low, const Block* high) {
    if (node == nullptr) return true;
    if (low != nullptr && !(low->end() <= node->begin)) return false;
    if (high != nullptr && !(node->end() <= high->begin)) return false;
    std::uint64_t most = node->size.count;
    for (const Block* child : {node->left, node->right}) {
      if (child == nullptr) continue;
      if (priority(child) > priority(node)) return false;
      most = std::max(most, child->subtree_max);
    }
    return most == node->subtree_max && valid(node->left, low, node) &&
           valid(node->right, node, high);
  }

  Block* root_ = nullptr;
};

}  // namespace v0
}  // namespace bursar
