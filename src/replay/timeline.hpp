// SPDX-License-Identifier: Apache-2.0
// Timeline: how an amount went over a trace's time, in a bounded number of figures.
//
// Time is cut into slices of equal length, and each keeps the highest value that stood in it. So a
// peak is never lost, however short, and the highest slice is the peak to the byte.
#pragma once

#include <cstddef>
#include <vector>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>

namespace bursar {
inline namespace v0 {

class Timeline {
 public:
  static constexpr std::size_t kSlices = 1000;  ///< at most

  /// `first` stands from time 0 on. Times up to `duration` can be added.
  explicit Timeline(Duration duration, Bytes first = {});

  /// At `time` the value became `value`, and was `highest` on the way. Precondition: `time` is not
  /// before that of the last call.
  void add(Duration time, Bytes value, Bytes highest);
  void add(Duration time, Bytes value) { add(time, value, value); }

  Duration slice_length() const { return slice_; }
  /// The highest value in each slice, up to the one of the last time added.
  const std::vector<Bytes>& highest() const { return highest_; }

 private:
  Duration slice_;
  Bytes value_;  ///< now
  std::vector<Bytes> highest_;
};

}  // namespace v0
}  // namespace bursar
