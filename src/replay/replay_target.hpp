// SPDX-License-Identifier: Apache-2.0
// ReplayTarget: an allocator under judgment, reduced to what a trace can ask of it.
//
// Its calls for memory and its reserved bytes are read from a meter at the seam to the driver, so
// that no allocator reports about itself.
#pragma once

#include <optional>

#include <bursar/allocator/snapshot.hpp>
#include <bursar/core/result.hpp>
#include <bursar/driver/call_meter.hpp>
#include <bursar/driver/stream_ref.hpp>

namespace bursar {
inline namespace v0 {

/// One thread at a time; `allocate` and `deallocate` may also run on several at once, but those of
/// `segment_cache`. Streams are resolved once and retired before they are destroyed.
class ReplayTarget {
 public:
  ReplayTarget() = default;
  ReplayTarget(const ReplayTarget&) = delete;
  ReplayTarget& operator=(const ReplayTarget&) = delete;
  /// Gives everything back. Precondition: no work uses its memory any more.
  virtual ~ReplayTarget() = default;

  /// As `--allocator` and the rows name it.
  virtual const char* name() const noexcept = 0;

  virtual result<StreamRef> resolve(StreamHandle stream) noexcept = 0;
  virtual result<void> retire(StreamRef stream) noexcept = 0;

  /// These two are what is timed.
  virtual result<void*> allocate(Bytes size, StreamRef stream) noexcept = 0;
  virtual result<void> deallocate(void* block, StreamRef stream) noexcept = 0;

  /// Called untimed after each allocation and before each pass, for targets whose meter must be
  /// told what the driver holds for them.
  virtual void observe() noexcept {}
  virtual result<void> validate() const { return {}; }
  /// Where everything lies, for targets that can tell.
  virtual std::optional<Snapshot> snapshot() const { return std::nullopt; }
  virtual CallMeter& meter() noexcept = 0;
  /// False where the meter counts calls and bytes, but nobody can tell how long the calls took.
  virtual bool times_driver() const noexcept { return true; }
};

}  // namespace v0
}  // namespace bursar
