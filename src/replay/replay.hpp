// SPDX-License-Identifier: Apache-2.0
// replay: the events of one or several traces, given to an allocator and measured.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "replay_device.hpp"
#include "replay_row.hpp"
#include "replay_watch.hpp"
#include "trace.hpp"

namespace bursar {
inline namespace v0 {

struct ReplayOptions {
  int passes = 1;
  /// Told now and then how many of all events are done; on any thread, one at a time.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  ReplayWatch* watch = nullptr;  ///< may be null
};

/// The allocator or the device failed in a way that is not want of memory; what() says where.
class ReplayFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Replays `traces` into `target`, each on a thread and streams of its own, merged by their time
/// (at one time the earlier trace goes first): no event begins before all earlier ones are done.
/// One row a pass. A pass that runs out of memory ends there and says so in its row. Between passes
/// every block still live is freed, untimed, and whatever the allocator keeps is kept.
/// Throws ReplayFault; Error when streams cannot be made.
/// Precondition: `target` was made by `device` and is used for nothing else meanwhile.
std::vector<ReplayRow> replay(std::span<const Trace> traces, ReplayDevice& device,
                              ReplayTarget& target, const ReplayOptions& options = {});

}  // namespace v0
}  // namespace bursar
