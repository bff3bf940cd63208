// SPDX-License-Identifier: Apache-2.0
// A value stands until the next: slices without an event have that of the event before.
#include "timeline.hpp"

#include <algorithm>

#include <bursar/core/check.hpp>

namespace bursar {
inline namespace v0 {

Timeline::Timeline(Duration duration, Bytes first)
    : slice_{duration.ns / static_cast<std::int64_t>(kSlices) + 1}, value_(first) {}

void Timeline::add(Duration time, Bytes value, Bytes highest) {
  const auto slice = static_cast<std::size_t>(time.ns / slice_.ns);
  BURSAR_CHECK(1, slice < kSlices && slice + 1 >= highest_.size());
  while (highest_.size() <= slice) highest_.push_back(value_);
  highest_[slice] = std::max({highest_[slice], value, highest});
  value_ = value;
}

}  // namespace v0
}  // namespace bursar
