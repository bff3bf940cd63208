// SPDX-License-Identifier: Apache-2.0
// CallTimer: real time of many short calls, one by one, without what looking at the clock costs.
//
// A cached allocation takes about as long as reading the clock does. So the cost of two readings
// with nothing between them is measured first and taken off every interval.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include <bursar/core/ids.hpp>

namespace bursar {
inline namespace v0 {

class CallTimer {
 public:
  using Clock = std::chrono::steady_clock;

  CallTimer() {
    std::array<Clock::duration, 101> readings;
    for (auto& reading : readings) {
      const auto start = Clock::now();
      reading = Clock::now() - start;
    }
    const auto middle = readings.begin() + readings.size() / 2;
    std::nth_element(readings.begin(), middle, readings.end());
    reading_cost_ = *middle;
  }

  /// Calls `call` and adds the time it took.
  template <class Call>
  auto time(Call&& call) {
    const auto start = Clock::now();
    auto outcome = std::forward<Call>(call)();
    total_ += Clock::now() - start - reading_cost_;
    return outcome;
  }

  Duration total() const {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(total_).count();
    return Duration{std::max<std::int64_t>(ns, 0)};
  }
  void reset() { total_ = Clock::duration::zero(); }

 private:
  Clock::duration reading_cost_{};
  Clock::duration total_{};
};

}  // namespace v0
}  // namespace bursar
