// SPDX-License-Identifier: Apache-2.0
// Block: a run of addresses with one state. The blocks of a range cover it without a gap.
//
// A block freed on a stream carries that stream's *slot* (its place in the StreamTable) and the
// *batch* of frees it belongs to. Work that used it is done once the stream's batch has passed.
// Slot 0 (`kAnyStream`) means done for everybody.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <bursar/block/block_state.hpp>
#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>

namespace bursar {
inline namespace v0 {

class AddressRange;
class BlockMap;
class ThreadCache;
struct Block;
struct Extent;
struct View;

/// A stream's place in the StreamTable.
using StreamSlot = std::uint32_t;
inline constexpr StreamSlot kAnyStream = 0;

/// A point in a stream's order: everything freed on `slot` up to `batch`.
struct FencePoint {
  StreamSlot slot = kAnyStream;
  std::uint64_t batch = 0;
};

/// What a block in a view stands on.
struct ViewLease {
  View* view = nullptr;
  std::vector<Block*> parts;  ///< home intervals, in order of the view's addresses
};

struct Block {
  DeviceAddress begin{};
  Bytes size{};
  Block* prev = nullptr;  ///< neighbors by address, in the same range
  Block* next = nullptr;
  AddressRange* range = nullptr;
  BlockMap* map = nullptr;

  // While idle or vacant: place in the free index.
  Block* left = nullptr;
  Block* right = nullptr;
  std::uint64_t subtree_max = 0;

  // While live or pending: what was asked, and streams whose work uses it too.
  Bytes requested{};
  std::unique_ptr<std::vector<FencePoint>> recorded;
  ThreadCache* keeper = nullptr;  ///< whose owner may keep it when it frees it, or has

  // A block in a view leases home intervals, its parts, each of which names it as its owner.
  std::unique_ptr<ViewLease> lease;
  Block* owner = nullptr;  ///< of a live home interval that a block in a view leases

  FencePoint freed;  ///< live: slot is the home stream's. Otherwise when its old work is done
  BlockState state = BlockState::vacant;
  bool dedicated = false;  ///< pinned, shareable or passthrough: an extent of its own

  // While live or pending, of blocks that help to find errors.
  bool zoned = false;       ///< its redzones are filled
  std::uint32_t front = 0;  ///< bytes before those that the caller got

  DeviceAddress end() const { return begin + size; }
  VaRange where() const { return {begin, size}; }
  /// What the caller got: the begin of almost every block.
  DeviceAddress data() const { return begin + Bytes{front}; }
};

}  // namespace v0
}  // namespace bursar
