// SPDX-License-Identifier: Apache-2.0
// SimStreams: streams, events and the virtual time their work takes.
//
// A stream is a time at which all its work will be over; an event is such a time, noted. Handles
// come back at once after a destroy, as CUDA's do, ids never. Looking up a stream's id or whether
// it captures takes no lock; everything else is used under the driver's.
//
// Each device has a legacy default stream and one per-thread default stream for each thread. The
// legacy stream's implicit waiting for other streams is not modeled: programs that rely on it see
// less order here than on a GPU.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "sim_detector.hpp"

namespace bursar {
inline namespace v0 {

struct SimStream {
  std::atomic<std::uint64_t> id{0};  ///< 0: destroyed
  std::atomic<bool> capturing{false};
  bool spoiled = false;  ///< the capture under way is
  DeviceId device;
  Duration end;  ///< when all its work is over
  SimAgent agent = 0;
};

struct SimEvent {
  bool alive = false;
  bool recorded = false;
  DeviceId device;
  Duration done;
  SimClock clock;
};

class SimStreams {
 public:
  /// `detector`, which may be null, learns of every stream.
  SimStreams(int devices, SimDetector* detector);
  ~SimStreams();

  StreamHandle create(DeviceId device);
  /// False when `handle` names no stream that create() made.
  bool destroy(StreamHandle handle);
  /// The stream behind a handle; null for a destroyed or unknown one. A per-thread default stream
  /// is made when it is first named. Precondition: `device` exists.
  SimStream* find(DeviceId device, StreamHandle handle);
  /// The same without the lock, and null for per-thread default streams too.
  SimStream* find_unlocked(DeviceId device, StreamHandle handle) const noexcept;

  /// The driver's own stream on the device, which no handle names.
  SimStream& reader(DeviceId device);

  /// Work, or waiting, that ends at `end`.
  void extend(SimStream& stream, Duration end);
  /// When all work of the device is over, that of destroyed streams included.
  Duration device_end(DeviceId device) const { return device_end_[index(device)]; }

  void begin_capture(SimStream& stream);
  /// False when the capture was spoiled, or none was under way.
  bool end_capture(SimStream& stream);
  /// Every capture under way.
  const std::vector<SimStream*>& captures() const { return capturing_; }

  EventHandle create_event(DeviceId device);
  /// False for a destroyed or unknown one.
  bool destroy_event(EventHandle handle);
  /// Null for a destroyed or unknown one.
  SimEvent* find_event(EventHandle handle);
  std::size_t event_count() const { return events_.size() - free_events_.size(); }

 private:
  static constexpr std::size_t kChunk = 256;
  static constexpr std::size_t kChunks = 1024;
  using Chunk = std::array<SimStream, kChunk>;

  static std::size_t index(DeviceId device) { return static_cast<std::size_t>(device.value); }
  void begin(SimStream& stream, DeviceId device);

  SimDetector* detector_;
  std::uint64_t next_id_ = 1;
  std::unique_ptr<SimStream[]> legacy_;                                     ///< by device
  std::map<std::pair<std::uint64_t, std::int32_t>, SimStream> per_thread_;  ///< by thread, device
  std::map<std::int32_t, SimStream> readers_;                               ///< by device
  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
  std::size_t slots_ = 0;
  std::vector<std::size_t> free_slots_;
  std::vector<SimStream*> capturing_;
  std::vector<Duration> device_end_;
  std::vector<SimEvent> events_;
  std::vector<std::size_t> free_events_;
};

}  // namespace v0
}  // namespace bursar
