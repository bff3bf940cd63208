// SPDX-License-Identifier: Apache-2.0
// Virtual time of streams, events and captures.
#include "sim_streams.hpp"

#include <algorithm>

#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {
namespace {

constexpr std::uintptr_t kFirstStream = 0x5000'0000;
constexpr std::uintptr_t kFirstEvent = 0x6000'0000;
constexpr std::uintptr_t kStep = 16;  // handles look like pointers to something

constexpr std::uintptr_t kLegacy = 1;     // CU_STREAM_LEGACY; null means the same
constexpr std::uintptr_t kPerThread = 2;  // CU_STREAM_PER_THREAD

std::uintptr_t number(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle); }

void* handle_of(std::uintptr_t first, std::size_t slot) {
  return reinterpret_cast<void*>(first + slot * kStep);
}

/// The slot a handle names; a huge number for what is no handle.
std::size_t slot_of(std::uintptr_t first, const void* handle) {
  const std::uintptr_t n = number(handle);
  return n >= first && n % kStep == 0 ? (n - first) / kStep : ~std::size_t{0};
}

/// Unlike the system's thread ids never given twice, so that a new thread gets a new stream.
std::uint64_t this_thread_serial() {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t serial = next.fetch_add(1, std::memory_order_relaxed);
  return serial;
}

}  // namespace

SimStreams::SimStreams(int devices, SimDetector* detector)
    : detector_(detector),
      legacy_(std::make_unique<SimStream[]>(static_cast<std::size_t>(devices))),
      device_end_(static_cast<std::size_t>(devices)) {
  for (DeviceId device{0}; device.value < devices; ++device.value) {
    begin(legacy_[index(device)], device);
  }
}

SimStreams::~SimStreams() {
  for (std::atomic<Chunk*>& chunk : chunks_) delete chunk.load();
}

void SimStreams::begin(SimStream& stream, DeviceId device) {
  const StreamId id{next_id_++};
  stream.device = device;
  stream.end = Duration{};
  stream.spoiled = false;
  stream.agent = detector_ != nullptr ? detector_->add_stream(device, id) : 0;
  stream.id.store(id.value, std::memory_order_release);
}

StreamHandle SimStreams::create(DeviceId device) {
  std::size_t slot = slots_;
  if (free_slots_.empty()) {
    BURSAR_CHECK(1, slots_ < kChunk * kChunks);
    std::atomic<Chunk*>& chunk = chunks_[slots_ / kChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      chunk.store(new Chunk, std::memory_order_release);
    }
    ++slots_;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  begin((*chunks_[slot / kChunk].load())[slot % kChunk], device);
  return StreamHandle{handle_of(kFirstStream, slot)};
}

bool SimStreams::destroy(StreamHandle handle) {
  const std::size_t slot = slot_of(kFirstStream, handle.value);
  SimStream* stream = slot < slots_ ? find_unlocked({}, handle) : nullptr;
  if (stream == nullptr) return false;
  end_capture(*stream);
  if (detector_ != nullptr) detector_->retire_stream(stream->agent);
  stream->id.store(0, std::memory_order_release);
  free_slots_.push_back(slot);
  return true;
}

SimStream* SimStreams::find(DeviceId device, StreamHandle handle) {
  if (number(handle.value) != kPerThread) return find_unlocked(device, handle);
  const auto [it, made] = per_thread_.try_emplace({this_thread_serial(), device.value});
  if (made) begin(it->second, device);
  return &it->second;
}

SimStream* SimStreams::find_unlocked(DeviceId device, StreamHandle handle) const noexcept {
  if (number(handle.value) <= kLegacy) return &legacy_[index(device)];
  const std::size_t slot = slot_of(kFirstStream, handle.value);
  if (slot >= kChunk * kChunks) return nullptr;
  Chunk* chunk = chunks_[slot / kChunk].load(std::memory_order_acquire);
  if (chunk == nullptr) return nullptr;
  SimStream& stream = (*chunk)[slot % kChunk];
  return stream.id.load(std::memory_order_acquire) != 0 ? &stream : nullptr;
}

SimStream& SimStreams::reader(DeviceId device) {
  const auto [it, made] = readers_.try_emplace(device.value);
  if (made) begin(it->second, device);
  return it->second;
}

void SimStreams::extend(SimStream& stream, Duration end) {
  stream.end = std::max(stream.end, end);
  Duration& device_end = device_end_[index(stream.device)];
  device_end = std::max(device_end, end);
}

void SimStreams::begin_capture(SimStream& stream) {
  if (stream.capturing.exchange(true)) return;
  stream.spoiled = false;
  capturing_.push_back(&stream);
}

bool SimStreams::end_capture(SimStream& stream) {
  if (!stream.capturing.exchange(false)) return false;
  std::erase(capturing_, &stream);
  return !stream.spoiled;
}

EventHandle SimStreams::create_event(DeviceId device) {
  std::size_t slot = events_.size();
  if (free_events_.empty()) {
    events_.emplace_back();
  } else {
    slot = free_events_.back();
    free_events_.pop_back();
  }
  events_[slot] = SimEvent{true, false, device, {}, {}};
  return EventHandle{handle_of(kFirstEvent, slot)};
}

bool SimStreams::destroy_event(EventHandle handle) {
  SimEvent* event = find_event(handle);
  if (event == nullptr) return false;
  event->alive = false;
  free_events_.push_back(slot_of(kFirstEvent, handle.value));
  return true;
}

SimEvent* SimStreams::find_event(EventHandle handle) {
  const std::size_t slot = slot_of(kFirstEvent, handle.value);
  return slot < events_.size() && events_[slot].alive ? &events_[slot] : nullptr;
}

}  // namespace v0
}  // namespace bursar
