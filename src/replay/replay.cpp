// SPDX-License-Identifier: Apache-2.0
// One pass after another over a schedule made once; everything but the two timed calls is kept out
// of the figures.
#include "replay.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "call_timer.hpp"
#include "replay_streams.hpp"
#include "schedule.hpp"
#include "turn_threads.hpp"

namespace bursar {
inline namespace v0 {
namespace {

constexpr std::uint64_t kProgressStep = 4096;

MeterReading since(const MeterReading& before, MeterReading now) {
  for (std::size_t i = 0; i < kDriverCallCount; ++i) {
    now.calls[i] -= before.calls[i];
    now.nanoseconds[i] -= before.nanoseconds[i];
  }
  return now;
}

class Replay {
 public:
  Replay(std::span<const Trace> traces, ReplayDevice& device, ReplayTarget& target,
         const ReplayOptions& options)
      : traces_(traces),
        device_(device),
        target_(target),
        options_(options),
        streams_(traces, device, target),
        order_(merge_by_time(traces)),
        bound_(lower_bound_of(traces, device.gpu_lag())),
        threads_(traces.size(), [this](const Stretch& s) { return replay_stretch(s); }) {
    for (const Trace& trace : traces) {
      held_.emplace_back(trace.block_sizes.size());
      event_count_ += trace.events.size();
    }
  }

  ReplayRow run_pass(int pass) {
    row_ = {};
    row_.pass = pass;
    requested_ = {};
    timer_.reset();
    target_.observe();
    target_.meter().reset_peak();
    const MeterReading before = target_.meter().read();
    device_.start_pass();
    if (options_.watch != nullptr) options_.watch->pass_begins(pass, target_);
    if (!order_.empty()) threads_.run(order_);
    row_.driver = since(before, target_.meter().read());
    row_.driver_timed = target_.times_driver();
    row_.allocator_time = timer_.total();
    describe();
    free_held();
    expect(target_.validate(), "after pass " + std::to_string(pass));
    return row_;
  }

 private:
  /// A block of the trace while it is allocated.
  struct Held {
    void* block = nullptr;
    StreamRef home{};
  };

  bool replay_stretch(const Stretch& stretch) {
    for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
      const TraceEvent& event = traces_[stretch.trace].events[i];
      device_.reach(event.time);
      if (event.action == TraceAction::free) {
        free(stretch.trace, event);
      } else if (!allocate(stretch.trace, event)) {
        return false;
      }
      count_operation(event);
    }
    return true;
  }

  bool allocate(std::size_t trace, const TraceEvent& event) {
    const Bytes size = traces_[trace].block_sizes[event.block];
    const StreamRef stream = streams_.at(trace, event.stream);
    const result<void*> block = timer_.time([&] { return target_.allocate(size, stream); });
    target_.observe();
    if (!block && block.failure().retryable()) {
      row_.ran_out = RanOut{traces_[trace].name, row_.operations + 1, event.line};
      return false;
    }
    if (!block) fail(block.failure(), place(trace, event));
    held_[trace][event.block] = {*block, stream};
    requested_ += size;
    row_.requested_peak = std::max(row_.requested_peak, requested_);
    return true;
  }

  void free(std::size_t trace, const TraceEvent& event) {
    const Bytes size = traces_[trace].block_sizes[event.block];
    const StreamRef stream = streams_.at(trace, event.stream);
    void* block = std::exchange(held_[trace][event.block].block, nullptr);
    if (block != nullptr) device_.use(block, size, stream.handle);
    const auto freed = timer_.time([&] { return target_.deallocate(block, stream); });
    if (!freed) fail(freed.failure(), place(trace, event));
    requested_ -= size;
  }

  void free_held() {
    for (std::size_t trace = 0; trace < traces_.size(); ++trace) {
      for (std::size_t i = 0; i < held_[trace].size(); ++i) {
        Held& held = held_[trace][i];
        if (held.block == nullptr) continue;
        device_.use(held.block, traces_[trace].block_sizes[i], held.home.handle);
        expect(target_.deallocate(std::exchange(held.block, nullptr), held.home), "between passes");
      }
    }
  }

  void count_operation(const TraceEvent& event) {
    ++row_.operations;
    if (options_.watch != nullptr) {
      options_.watch->event_done({row_.pass, row_.operations, event.time, target_, streams_});
    }
    if (!options_.progress || row_.operations % kProgressStep != 0) return;
    const auto passes = static_cast<std::uint64_t>(options_.passes);
    const auto passes_done = static_cast<std::uint64_t>(row_.pass - 1);
    options_.progress(passes_done * event_count_ + row_.operations, passes * event_count_);
  }

  void describe() {
    row_.trace = joined_names(traces_);
    row_.allocator = target_.name();
    row_.device = device_.name();
    row_.bound = bound_;
    for (const Trace& trace : traces_) {
      row_.trace_duration = std::max(row_.trace_duration, trace.duration());
    }
  }

  std::string place(std::size_t trace, const TraceEvent& event) const {
    return "at line " + std::to_string(event.line) + " of " + traces_[trace].name;
  }
  [[noreturn]] void fail(const error& e, const std::string& where) const {
    throw ReplayFault(std::string(target_.name()) + " failed " + where + ": " + to_string(e));
  }
  void expect(const result<void>& outcome, const std::string& where) const {
    if (!outcome) fail(outcome.failure(), where);
  }

  std::span<const Trace> traces_;
  ReplayDevice& device_;
  ReplayTarget& target_;
  const ReplayOptions& options_;
  ReplayStreams streams_;
  std::vector<Stretch> order_;
  LowerBound bound_;
  std::vector<std::vector<Held>> held_;  ///< by trace and block
  std::uint64_t event_count_ = 0;        ///< of all traces
  CallTimer timer_;
  Bytes requested_{};
  ReplayRow row_;
  TurnThreads threads_;  ///< last: they use all of the above
};

}  // namespace

std::vector<ReplayRow> replay(std::span<const Trace> traces, ReplayDevice& device,
                              ReplayTarget& target, const ReplayOptions& options) {
  Replay run(traces, device, target, options);
  std::vector<ReplayRow> rows;
  for (int pass = 1; pass <= options.passes; ++pass) rows.push_back(run.run_pass(pass));
  return rows;
}

}  // namespace v0
}  // namespace bursar
