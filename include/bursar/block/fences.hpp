// SPDX-License-Identifier: Apache-2.0
// Fences: records and asks events, so that memory freed on one stream becomes everybody's.
//
// The rule that keeps handles from dangling: a fence is recorded only during a call in which the
// caller named the stream. The driver is called without the heap lock, and an event is asked by one
// thread at a time, since sixteen asking together take 15 us each.
#pragma once

#include <atomic>
#include <vector>

#include <bursar/block/event_pool.hpp>
#include <bursar/block/stream_table.hpp>
#include <bursar/core/lock_rank.hpp>
#include <bursar/core/result.hpp>
#include <bursar/driver/stream_ref.hpp>

namespace bursar {
inline namespace v0 {

class BURSAR_EXPORT Fences {
 public:
  Fences(Driver& driver, DeviceId device, StreamTable& streams);
  /// Destroys all events.
  ~Fences();
  Fences(const Fences&) = delete;
  Fences& operator=(const Fences&) = delete;

  /// Fences everything freed so far on `stream`, which the caller of this very call named. Does
  /// nothing when nothing needs one, or while the stream is being captured (the frees join the next
  /// fence). The heap lock is dropped meanwhile. `last`: no work follows, so the stream is retired
  /// and the fence covers what is freed from now on too, also while it is being recorded.
  result<void> record(HeapLock& lock, StreamRef stream, StreamSlot slot, bool last = false);
  /// Asks the fences of one stream, or of all (kAnyStream); returns the slots of streams whose
  /// passed batch has advanced. Returns at once when another thread is asking. The heap lock is
  /// dropped meanwhile.
  std::vector<StreamSlot> poll(HeapLock& lock, StreamSlot only = kAnyStream);
  /// True when a fence is recorded that has not been seen done.
  bool outstanding(const HeapLock& lock) const;

 private:
  /// More fences than this on one stream share their last event.
  static constexpr std::size_t kMostFences = 64;

  bool ask(HeapLock& lock, StreamSlot slot, bool newest);
  DriverCode record_event(StreamRef stream, EventHandle& event);

  Driver& driver_;
  DeviceId device_;
  StreamTable& streams_;
  EventPool events_;
  std::atomic<bool> polling_{false};
};

}  // namespace v0
}  // namespace bursar
