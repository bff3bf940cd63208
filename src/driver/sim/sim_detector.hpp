// SPDX-License-Identifier: Apache-2.0
// SimDetector: finds memory that two blocks use unordered, and memory that goes while it is used.
//
// It follows the order that CUDA promises and no other: work runs after earlier work of its stream,
// after events its stream was told to wait for, and after everything the host had seen complete
// when it launched it (synchronization, an event query that said yes). That the virtual clock shows
// work to be over is no order: a faster or slower device would tell another time. The host counts
// as one observer, for once any thread has seen work complete, it is complete.
//
// Uses are kept per physical byte, so that mappings of one extent at several addresses are one.
// Used under the driver's lock.
#pragma once

#include <string>
#include <vector>

#include <bursar/driver/sim_driver.hpp>

#include "sim_access_history.hpp"

namespace bursar {
inline namespace v0 {

class SimDetector {
 public:
  // -- who runs what -------------------------------------------------------------------------
  SimAgent add_stream(DeviceId device, StreamId id);
  /// The stream takes no more work; its agent is used again once the host has seen all of it.
  void retire_stream(SimAgent agent);
  /// What an event recorded now stands for.
  SimClock snapshot(SimAgent agent) const { return agents_[agent].clock; }
  void wait(SimAgent agent, const SimClock& event) { agents_[agent].clock.join(event); }
  void host_sees(const SimClock& event) { host_.join(event); }
  void host_sees_stream(SimAgent agent) { host_.join(agents_[agent].clock); }
  void host_sees_device(DeviceId device);

  // -- what it touches -----------------------------------------------------------------------
  /// New work of a stream begins; access() then says what it touches.
  void begin_work(SimAgent agent);
  /// A generation number for an access that belongs to no block.
  std::uint64_t anonymous_generation() { return --next_anonymous_; }
  /// The current work touches `bytes` of the extent with that history, on behalf of `generation`.
  void access(SimAccessHistory& history, SimSpan bytes, std::uint64_t generation,
              std::uint64_t extent);
  SimEpoch current_work() const { return work_; }
  StreamId current_stream() const { return agents_[work_.agent].id; }

  // -- what goes away ------------------------------------------------------------------------
  void check_unmap(const SimLastUses& uses, VaRange range);
  void check_release(const SimLastUses& uses, std::uint64_t extent);

  /// Keeps the first kMaxViolations.
  void report(Violation::Kind kind, std::string text);
  const std::vector<Violation>& violations() const { return violations_; }

  static constexpr std::size_t kMaxViolations = 1000;

 private:
  struct Agent {
    DeviceId device;
    StreamId id;
    SimClock clock;           ///< all work so far and what it came after
    std::uint64_t epoch = 0;  ///< the newest work's
  };

  std::vector<Agent> agents_;
  std::vector<SimAgent> retired_;
  SimClock host_;
  SimEpoch work_;    ///< the current work
  SimClock before_;  ///< what it runs after, beside all that the host has seen
  std::uint64_t next_anonymous_ = ~std::uint64_t{0};
  std::vector<Violation> violations_;
};

/// "[0x..., 0x...)".
std::string sim_range_text(std::uint64_t begin, std::uint64_t end);
/// "block 7", or "a memset or read" for an anonymous generation.
std::string sim_work_text(std::uint64_t generation);

}  // namespace v0
}  // namespace bursar
