// SPDX-License-Identifier: Apache-2.0
// StreamRef: a stream as named by the caller in one call: its handle and, once resolved, its id.
//
// A stream under capture cannot be resolved: do that before the capture begins. Resolving costs a
// driver call (some 24 ns). A StreamRef made by `CachingAllocator::stream` is resolved once; using
// it after the stream was destroyed is the caller's error, as with any handle. The library itself
// keeps ids only and uses a handle only inside the call that named it.
#pragma once

#include <bursar/driver/driver_types.hpp>

namespace bursar {
inline namespace v0 {

struct StreamRef {
  StreamHandle handle{};
  StreamId id = kNoStream;  ///< kNoStream: not resolved yet

  constexpr StreamRef() = default;
  /// A raw handle, e.g. a CUstream or cudaStream_t; resolved by the call it is given to.
  constexpr StreamRef(StreamHandle h) : handle(h) {}  // NOLINT(google-explicit-constructor)
  constexpr StreamRef(StreamHandle h, StreamId i) : handle(h), id(i) {}

  constexpr bool resolved() const { return id != kNoStream; }
};

}  // namespace v0
}  // namespace bursar
