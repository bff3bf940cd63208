// SPDX-License-Identifier: Apache-2.0
// Handles are resolved here, once, and retired before they dangle.
#include "replay_streams.hpp"

#include <algorithm>
#include <string>

#include <bursar/core/log.hpp>

namespace bursar {
inline namespace v0 {

ReplayStreams::ReplayStreams(std::span<const Trace> traces, ReplayDevice& device,
                             ReplayTarget& target)
    : device_(device), target_(target) {
  try {
    for (const Trace& trace : traces) {
      first_.push_back(streams_.size());
      for (std::size_t i = 0; i < trace.stream_count; ++i) {
        streams_.emplace_back(device_.create_stream());
        const result<StreamRef> resolved = target_.resolve(streams_.back().handle);
        if (!resolved) throw Error(resolved.failure());
        streams_.back() = *resolved;
      }
    }
  } catch (...) {
    destroy();
    throw;
  }
}

ReplayStreams::~ReplayStreams() { destroy(); }

std::optional<TraceStream> ReplayStreams::find(StreamId id) const {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [id](const StreamRef& stream) {
    return stream.resolved() && stream.id == id;
  });
  if (found == streams_.end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(found - streams_.begin());
  // The last trace that begins at or before it: a trace without streams begins where the next does.
  const auto after = std::upper_bound(first_.begin(), first_.end(), at);
  const auto trace = static_cast<std::size_t>(after - first_.begin()) - 1;
  return TraceStream{trace, static_cast<std::uint32_t>(at - first_[trace])};
}

void ReplayStreams::destroy() noexcept {
  device_.synchronize();
  for (const StreamRef& stream : streams_) {
    if (const auto retired = target_.retire(stream); stream.resolved() && !retired) {
      log(LogLevel::error, to_string(retired.failure()));
    }
    device_.destroy_stream(stream.handle);
  }
}

}  // namespace v0
}  // namespace bursar
