// SPDX-License-Identifier: Apache-2.0
// ReplayStreams: the streams of one replay, one for each stream of each trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "replay_device.hpp"
#include "trace.hpp"

namespace bursar {
inline namespace v0 {

/// Which stream of which trace.
struct TraceStream {
  std::size_t trace = 0;
  std::uint32_t stream = 0;
};

class ReplayStreams {
 public:
  /// Throws Error.
  ReplayStreams(std::span<const Trace> traces, ReplayDevice& device, ReplayTarget& target);
  /// Waits for the device, then retires and destroys the streams.
  ~ReplayStreams();
  ReplayStreams(const ReplayStreams&) = delete;
  ReplayStreams& operator=(const ReplayStreams&) = delete;

  StreamRef at(std::size_t trace, std::uint32_t stream) const {
    return streams_[first_[trace] + stream];
  }
  /// Nothing for an id that is none of them, or where the target resolves no ids.
  std::optional<TraceStream> find(StreamId id) const;

 private:
  void destroy() noexcept;

  ReplayDevice& device_;
  ReplayTarget& target_;
  std::vector<StreamRef> streams_;
  std::vector<std::size_t> first_;  ///< by trace: index of its first stream
};

}  // namespace v0
}  // namespace bursar
