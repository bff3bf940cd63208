// SPDX-License-Identifier: Apache-2.0
// StreamTable: what the allocator knows of each stream: its id, never its handle.
//
// Frees on a stream are numbered in *batches*. A fence (an event recorded during a call that names
// the stream) covers every free of its batch and of all earlier ones, so one event serves any
// number of blocks, and asking whether a block's old work is done is comparing two numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include <bursar/block/block.hpp>
#include <bursar/core/ids.hpp>
#include <bursar/driver/driver_types.hpp>

namespace bursar {
inline namespace v0 {

/// An event recorded on a stream, and the batch that has passed when it is done.
struct Fence {
  EventHandle event{};
  std::uint64_t batch = 0;
  bool asked = false;  ///< a thread is asking it at this moment
};

struct StreamState {
  StreamId id = kNoStream;
  Bytes live{};                    ///< of blocks whose home it is
  std::uint64_t open_batch = 1;    ///< the batch that frees join now
  std::uint64_t passed_batch = 0;  ///< work of this batch and earlier ones is done
  std::uint32_t unfenced = 0;      ///< frees since the last fence
  Bytes unfenced_bytes{};          ///< and their bytes
  std::uint32_t pins = 0;          ///< threads that use the slot while they hold no lock
  bool fence_wanted = false;       ///< somebody waits for the open batch: fence at the next call
  bool retired = false;            ///< the caller is about to destroy it
  bool kept = false;               ///< thread caches may serve its calls
  std::deque<Fence> fences;        ///< recorded and not seen done, in order of batch
  std::vector<Block*> waiting;     ///< pending blocks that this stream's work still uses
};

/// Not thread-safe: guarded by the device's heap lock.
class StreamTable {
 public:
  StreamTable() { states_.push_back(nullptr); }  // slot 0 is kAnyStream

  /// The stream's slot, made when the stream is new.
  StreamSlot slot_of(StreamId id) {
    if (const auto found = slots_.find(id.value); found != slots_.end()) return found->second;
    const StreamSlot slot = unused_slot();
    states_[slot] = std::make_unique<StreamState>();
    states_[slot]->id = id;
    slots_.emplace(id.value, slot);
    return slot;
  }
  /// The slot, or kAnyStream when the stream is not known.
  StreamSlot find(StreamId id) const {
    const auto found = slots_.find(id.value);
    return found == slots_.end() ? kAnyStream : found->second;
  }
  /// Precondition: slot is in use and not kAnyStream.
  StreamState& at(StreamSlot slot) { return *states_[slot]; }
  const StreamState& at(StreamSlot slot) const { return *states_[slot]; }

  /// One more free on the stream: the point that must pass before others may have the memory.
  FencePoint note_free(StreamSlot slot, Bytes size) {
    StreamState& state = at(slot);
    if (state.retired) return {slot, state.open_batch - 1};  // nothing can follow its last fence
    ++state.unfenced;
    state.unfenced_bytes += size;
    return {slot, state.open_batch};
  }
  bool passed(FencePoint point) const {
    return point.slot == kAnyStream || at(point.slot).passed_batch >= point.batch;
  }

  /// `point`, or everybody's once it has passed and there is somebody else.
  FencePoint settled(FencePoint point) const {
    return count() > 1 && passed(point) ? FencePoint{} : point;
  }

  /// How many streams of equal weight would share live memory as these do: the inverse of
  /// Simpson's index of concentration. 1 where one stream has it all.
  double effective_streams() const {
    double sum = 0;
    double squares = 0;
    for (const std::unique_ptr<StreamState>& state : states_) {
      if (state == nullptr) continue;
      const auto live = static_cast<double>(state->live.count);
      sum += live;
      squares += live * live;
    }
    return squares > 0 ? sum * sum / squares : 1;
  }

  /// Streams known.
  std::size_t count() const { return slots_.size(); }
  /// Slots are below this.
  StreamSlot end_slot() const { return static_cast<StreamSlot>(states_.size()); }
  bool in_use(StreamSlot slot) const { return slot < states_.size() && states_[slot] != nullptr; }

  /// Forgets the streams that nothing refers to: `used[slot]` says which blocks do.
  void sweep(const std::vector<bool>& used) {
    for (StreamSlot slot = 1; slot < states_.size(); ++slot) {
      const StreamState* state = states_[slot].get();
      if (state == nullptr || used[slot] || state->pins != 0) continue;
      if (!state->fences.empty() || !state->waiting.empty()) continue;
      slots_.erase(state->id.value);
      states_[slot].reset();
    }
  }

  Bytes metadata() const {
    return Bytes{states_.size() * (sizeof(StreamState) + sizeof(void*) + 32)};
  }

 private:
  StreamSlot unused_slot() {
    for (StreamSlot slot = 1; slot < states_.size(); ++slot) {
      if (states_[slot] == nullptr) return slot;
    }
    states_.push_back(nullptr);
    return static_cast<StreamSlot>(states_.size() - 1);
  }

  std::vector<std::unique_ptr<StreamState>> states_;
  std::unordered_map<std::uint64_t, StreamSlot> slots_;
};

}  // namespace v0
}  // namespace bursar
