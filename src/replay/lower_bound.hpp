// SPDX-License-Identifier: Apache-2.0
// LowerBound: how little memory any allocator could hold that serves given traces.
//
// What it is to be compared with is not always the requested peak. A program that runs ahead of its
// GPU frees blocks that kernels still use. The block's own stream may have the bytes at once, since
// it orders its work; another stream may not before those kernels have ended. So bytes that lived
// on a stream within the GPU's lag are still that stream's, and the lives of several streams add up
// though they do not overlap. An allocator can hold less only by waiting.
#pragma once

#include <span>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>

#include "trace.hpp"

namespace bursar {
inline namespace v0 {

struct LowerBound {
  Duration gpu_lag{};      ///< how much later than its free a block's last kernel ends
  Bytes requested_peak{};  ///< most bytes asked for and not freed
  Bytes least_reserved{};  ///< that any allocator holds at some time that never waits for the GPU
  double utilization() const {  ///< the best there is; 1 where nothing is asked for
    if (least_reserved == Bytes{0}) return 1.0;
    return static_cast<double>(requested_peak.count) / static_cast<double>(least_reserved.count);
  }
};

/// The bound of `traces` replayed together: over all times, the greatest sum over streams of the
/// most bytes that lived on the stream and may still be in use. Time is trace time alone; driver
/// time, during which a GPU catches up, is left out. Without lag the bound is the requested peak.
///
/// Streams that free each other's blocks count as one, which only lowers the bound. Pages and
/// rounding are not counted either.
LowerBound lower_bound_of(std::span<const Trace> traces, Duration gpu_lag);

}  // namespace v0
}  // namespace bursar
