// SPDX-License-Identifier: Apache-2.0
// ReplayPicture: what the page of a report shows of one replay beside its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "address_map.hpp"
#include "replay_watch.hpp"
#include "timeline.hpp"
#include "trace.hpp"

namespace bursar {
inline namespace v0 {

/// What the traces ask for, known before any allocator has seen them.
struct RequestedCurve {
  Timeline timeline;
  Bytes peak{};
  std::uint64_t peak_operation = 0;  ///< the first to reach it, from 1, over all traces; 0: none
  Duration peak_time{};
};

/// The curve of `traces` replayed together.
RequestedCurve requested_curve(std::span<const Trace> traces);

struct ReservedCurve {
  std::string allocator;
  int pass = 1;
  Timeline timeline;
};

struct ReplayPicture {
  std::string trace;  ///< as the rows name it
  std::uint64_t events = 0;
  Duration duration{};
  RequestedCurve requested;
  std::vector<ReservedCurve> reserved;  ///< by allocator: the first pass and the last
  std::optional<AddressMap> map;        ///< at the requested peak of the first pass
};

/// Takes the picture of one replay, allocator after allocator. The map comes from the target that
/// has snapshots. It is taken once, right after the event that reaches the requested peak: which
/// one that is, the traces say.
class PictureWatch final : public ReplayWatch {
 public:
  PictureWatch(std::span<const Trace> traces, int passes);

  void pass_begins(int pass, ReplayTarget& target) override;
  void event_done(const ReplayMoment& moment) override;

  const ReplayPicture& picture() const { return picture_; }

 private:
  std::span<const Trace> traces_;
  int passes_;
  Bytes highest_{};  ///< reserved in this pass so far
  ReplayPicture picture_;
};

}  // namespace v0
}  // namespace bursar
