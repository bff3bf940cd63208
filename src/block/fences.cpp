// SPDX-License-Identifier: Apache-2.0
// Recording and asking fences.
#include <bursar/block/fences.hpp>

#include <algorithm>

#include <bursar/core/check.hpp>
#include <bursar/physical/driver_error.hpp>

namespace bursar {
inline namespace v0 {

Fences::Fences(Driver& driver, DeviceId device, StreamTable& streams)
    : driver_(driver), device_(device), streams_(streams), events_(driver, device) {}

Fences::~Fences() {
  for (StreamSlot slot = 1; slot < streams_.end_slot(); ++slot) {
    if (!streams_.in_use(slot)) continue;
    for (const Fence& fence : streams_.at(slot).fences) events_.give_back(fence.event);
    streams_.at(slot).fences.clear();
  }
}

DriverCode Fences::record_event(StreamRef stream, EventHandle& event) {
  bool capturing = false;
  DriverCode code = driver_.stream_capturing(device_, stream.handle, capturing);
  if (code != DriverCode::success) return code;
  if (capturing) return DriverCode::not_ready;
  if (!event) code = events_.take(event);
  if (code != DriverCode::success) return code;
  return driver_.event_record(device_, event, stream.handle);
}

result<void> Fences::record(HeapLock& lock, StreamRef stream, StreamSlot slot, bool last) {
  StreamState& state = streams_.at(slot);
  if (state.retired || (state.unfenced == 0 && !state.fence_wanted)) return {};
  // The batch ends before the event is recorded: frees that come meanwhile join the next one, and
  // the event covers at least the frees before.
  const std::uint64_t batch = state.open_batch++;
  const std::uint32_t frees = state.unfenced;
  const Bytes bytes = state.unfenced_bytes;
  bool wanted = state.fence_wanted;
  state.unfenced = 0;
  state.unfenced_bytes = {};
  state.fence_wanted = false;
  state.retired = last;
  ++state.pins;
  EventHandle event{};
  if (state.fences.size() >= kMostFences && !state.fences.back().asked) {
    event = state.fences.back().event;
    state.fences.pop_back();
    wanted = true;  // if this record fails, that batch needs the next one
  }

  lock.unlock();
  const DriverCode code = record_event(stream, event);
  lock.lock();

  --state.pins;
  if (code != DriverCode::success) {  // the next fence will cover this batch too
    if (last) state.retired = false;
    state.unfenced += frees;
    state.unfenced_bytes += bytes;
    state.fence_wanted = state.fence_wanted || wanted;
    if (event) events_.give_back(event);
    if (code == DriverCode::not_ready) return {};
    return driver_error(code, DriverCall::event_record, device_);
  }
  // Whoever records, an event covers all batches up to its own; keep the list in order.
  auto place = state.fences.end();
  while (place != state.fences.begin() && std::prev(place)->batch > batch) --place;
  state.fences.insert(place, Fence{event, batch, false});
  return {};
}

/// Asks the newest or the oldest fence of a stream; true when it has passed.
bool Fences::ask(HeapLock& lock, StreamSlot slot, bool newest) {
  if (!streams_.in_use(slot) || streams_.at(slot).fences.empty()) return false;
  Fence& fence = newest ? streams_.at(slot).fences.back() : streams_.at(slot).fences.front();
  fence.asked = true;  // keeps record() from taking its event for another fence
  const Fence copy = fence;
  lock.unlock();
  const DriverCode code = driver_.event_query(copy.event);
  lock.lock();
  // Only the thread that asks takes fences away, so this one is still there, unless earlier batches
  // were put before it meanwhile: those have passed as well.
  StreamState& state = streams_.at(slot);
  for (Fence& known : state.fences) known.asked = known.asked && known.batch != copy.batch;
  if (code != DriverCode::success) return false;  // not yet, or a fault: stays unavailable
  state.passed_batch = std::max(state.passed_batch, copy.batch);
  while (!state.fences.empty() && state.fences.front().batch <= copy.batch) {
    events_.give_back(state.fences.front().event);
    state.fences.pop_front();
  }
  return true;
}

std::vector<StreamSlot> Fences::poll(HeapLock& lock, StreamSlot only) {
  std::vector<StreamSlot> advanced;
  if (polling_.exchange(true, std::memory_order_acquire)) return advanced;
  const StreamSlot first = only == kAnyStream ? StreamSlot{1} : only;
  for (StreamSlot slot = first; slot < streams_.end_slot(); ++slot) {
    bool moved = ask(lock, slot, true);  // most often all have passed: one question
    if (!moved) {
      while (ask(lock, slot, false)) moved = true;
    }
    if (moved) advanced.push_back(slot);
    if (only != kAnyStream) break;
  }
  polling_.store(false, std::memory_order_release);
  return advanced;
}

bool Fences::outstanding(const HeapLock& lock) const {
  BURSAR_CHECK(1, lock.held());
  for (StreamSlot slot = 1; slot < streams_.end_slot(); ++slot) {
    if (streams_.in_use(slot) && !streams_.at(slot).fences.empty()) return true;
  }
  return false;
}

}  // namespace v0
}  // namespace bursar
