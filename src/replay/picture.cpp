// SPDX-License-Identifier: Apache-2.0
// Reserved bytes are read from the same meter as the rows, after each event.
#include "picture.hpp"

#include <algorithm>

#include "schedule.hpp"

namespace bursar {
inline namespace v0 {
namespace {

Duration longest(std::span<const Trace> traces) {
  Duration longest{};
  for (const Trace& trace : traces) longest = std::max(longest, trace.duration());
  return longest;
}

std::uint64_t event_count(std::span<const Trace> traces) {
  std::uint64_t count = 0;
  for (const Trace& trace : traces) count += trace.events.size();
  return count;
}

std::string stream_name(std::span<const Trace> traces, const ReplayStreams& streams, StreamId id) {
  const std::optional<TraceStream> found = streams.find(id);
  if (!found) return "unknown";
  const std::string number = std::to_string(found->stream);
  return traces.size() == 1 ? number : number + " of " + traces[found->trace].name;
}

}  // namespace

RequestedCurve requested_curve(std::span<const Trace> traces) {
  RequestedCurve curve{Timeline(longest(traces))};
  Bytes requested;
  std::uint64_t operation = 0;
  for (const Stretch& stretch : merge_by_time(traces)) {
    const Trace& trace = traces[stretch.trace];
    for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
      const TraceEvent& event = trace.events[i];
      const Bytes size = trace.block_sizes[event.block];
      const bool grows = event.action == TraceAction::allocate;
      requested = grows ? requested + size : requested - size;
      curve.timeline.add(event.time, requested);
      ++operation;
      if (requested <= curve.peak) continue;
      curve.peak = requested;
      curve.peak_operation = operation;
      curve.peak_time = event.time;
    }
  }
  return curve;
}

PictureWatch::PictureWatch(std::span<const Trace> traces, int passes)
    : traces_(traces), passes_(passes), picture_{joined_names(traces),
                                                 event_count(traces),
                                                 longest(traces),
                                                 requested_curve(traces),
                                                 {},
                                                 {}} {}

void PictureWatch::pass_begins(int pass, ReplayTarget& target) {
  if (pass != 1 && pass != passes_) return;
  highest_ = target.meter().read().reserved;
  picture_.reserved.push_back({target.name(), pass, Timeline(picture_.duration, highest_)});
}

void PictureWatch::event_done(const ReplayMoment& moment) {
  if (moment.pass != 1 && moment.pass != passes_) return;
  const MeterReading meter = moment.target.meter().read();
  // What one event took and gave back again counts, where it is more than ever before in the pass.
  const Bytes on_the_way = meter.reserved_peak > highest_ ? meter.reserved_peak : meter.reserved;
  highest_ = std::max(highest_, meter.reserved_peak);
  picture_.reserved.back().timeline.add(moment.time, meter.reserved, on_the_way);
  if (moment.pass != 1 || moment.operations != picture_.requested.peak_operation) return;
  if (const std::optional<Snapshot> snapshot = moment.target.snapshot()) {
    picture_.map = make_address_map(
        *snapshot, [&](StreamId id) { return stream_name(traces_, moment.streams, id); });
  }
}

}  // namespace v0
}  // namespace bursar
