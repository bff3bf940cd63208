// SPDX-License-Identifier: Apache-2.0
// A sliding maximum for each stream. All windows have one length and events come by time, so what
// leaves the windows leaves in the order of the events: one queue knows what is next, and after the
// merge each event costs amortized constant time.
#include "lower_bound.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <numeric>
#include <vector>

#include "schedule.hpp"

namespace bursar {
inline namespace v0 {
namespace {

/// Families of streams. A block that is freed on another stream than it was allocated on serves
/// both in stream order, one before and one after, so bytes pass between them at once.
class StreamFamilies {
 public:
  explicit StreamFamilies(std::span<const Trace> traces) {
    for (const Trace& trace : traces) {
      first_.push_back(parents_.size());
      parents_.resize(parents_.size() + trace.stream_count);
    }
    std::iota(parents_.begin(), parents_.end(), std::size_t{0});
    for (std::size_t i = 0; i < traces.size(); ++i) join_streams(i, traces[i]);
  }

  std::size_t count() const { return parents_.size(); }  ///< at most
  std::size_t of(std::size_t trace, std::uint32_t stream) {
    std::size_t at = first_[trace] + stream;
    while (parents_[at] != at) at = parents_[at] = parents_[parents_[at]];
    return at;
  }

 private:
  void join_streams(std::size_t index, const Trace& trace) {
    std::vector<std::uint32_t> homes(trace.block_sizes.size());
    for (const TraceEvent& event : trace.events) {
      std::uint32_t& home = homes[event.block];
      if (event.action == TraceAction::allocate) {
        home = event.stream;
      } else if (home != event.stream) {
        parents_[of(index, home)] = of(index, event.stream);
      }
    }
  }

  std::vector<std::size_t> first_;    ///< by trace: index of its first stream
  std::vector<std::size_t> parents_;  ///< a family is named by the one that is its own parent
};

/// The live bytes of one family, and the most of them that may still be in use.
class SlidingLevel {
 public:
  Bytes highest() const { return past_.empty() ? live_ : std::max(live_, past_.front().bytes); }
  void allocate(Bytes size) { live_ += size; }
  /// What lived before this free counts until `until`, never less than at the free before.
  void free(Bytes size, Duration until) {
    while (!past_.empty() && past_.back().bytes <= live_) past_.pop_back();
    past_.push_back({live_, until});
    live_ -= size;
  }
  void forget(Duration now) {
    while (!past_.empty() && past_.front().until <= now) past_.pop_front();
  }

 private:
  struct Past {
    Bytes bytes;
    Duration until;
  };
  Bytes live_{};
  std::deque<Past> past_;  ///< ever later, ever fewer bytes
};

class Bound {
 public:
  Bound(std::span<const Trace> traces, Duration gpu_lag)
      : families_(traces), levels_(families_.count()) {
    bound_.gpu_lag = gpu_lag;
  }

  void add(std::size_t trace, const TraceEvent& event, Bytes size) {
    for (; !ends_.empty() && ends_.front().until <= event.time; ends_.pop_front()) {
      change(ends_.front().family, [&](SlidingLevel& level) { level.forget(event.time); });
    }
    const std::size_t family = families_.of(trace, event.stream);
    if (event.action == TraceAction::free) {
      const Duration until = event.time + bound_.gpu_lag;
      change(family, [&](SlidingLevel& level) { level.free(size, until); });
      ends_.push_back({until, family});
      requested_ -= size;
      return;
    }
    change(family, [&](SlidingLevel& level) { level.allocate(size); });
    requested_ += size;
    bound_.requested_peak = std::max(bound_.requested_peak, requested_);
    bound_.least_reserved = std::max(bound_.least_reserved, held_);
  }

  const LowerBound& result() const { return bound_; }

 private:
  struct End {
    Duration until;
    std::size_t family;
  };

  template <class Change>
  void change(std::size_t family, Change&& how) {
    held_ -= levels_[family].highest();
    how(levels_[family]);
    held_ += levels_[family].highest();
  }

  StreamFamilies families_;
  std::vector<SlidingLevel> levels_;  ///< by family
  std::deque<End> ends_;              ///< when past levels end, by time
  Bytes held_{};                      ///< sum of the highest of all levels
  Bytes requested_{};
  LowerBound bound_;
};

}  // namespace

LowerBound lower_bound_of(std::span<const Trace> traces, Duration gpu_lag) {
  Bound bound(traces, gpu_lag);
  for (const Stretch& stretch : merge_by_time(traces)) {
    const Trace& trace = traces[stretch.trace];
    for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
      bound.add(stretch.trace, trace.events[i], trace.block_sizes[trace.events[i].block]);
    }
  }
  return bound.result();
}

}  // namespace v0
}  // namespace bursar
