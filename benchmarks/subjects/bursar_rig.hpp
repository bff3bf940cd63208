// SPDX-License-Identifier: Apache-2.0
// BursarRig: a CachingAllocator on streams of its own, called as programs call it.
#pragma once

#include <cstddef>
#include <vector>

#include <bursar/allocator/caching_allocator.hpp>

#include "bench_machine.hpp"

namespace bursar {
inline namespace v0 {

class BursarRig {
 public:
  /// Both calls name the stream.
  class OnStream {
   public:
    OnStream(CachingAllocator& allocator, StreamRef stream) : allocator_(allocator) {
      options_.stream = stream;
    }
    void* allocate(std::size_t bytes) { return allocator_.allocate(bytes, options_); }
    void deallocate(void* block) { allocator_.deallocate(block, options_.stream); }

   private:
    CachingAllocator& allocator_;
    AllocateOptions options_;
  };

  /// Only allocate names it: what PyTorch's allocator is told.
  class AtHome {
   public:
    AtHome(CachingAllocator& allocator, StreamRef stream) : allocator_(allocator) {
      options_.stream = stream;
    }
    void* allocate(std::size_t bytes) { return allocator_.allocate(bytes, options_); }
    void deallocate(void* block) { allocator_.deallocate(block); }

   private:
    CachingAllocator& allocator_;
    AllocateOptions options_;
  };

  /// With the options of BURSAR_CONF. Throws Error.
  BursarRig(BenchMachine& machine, int streams)
      : streams_(machine.device(), streams),
        allocator_(machine.driver(), or_throw(options_from_environment())) {
    for (const StreamHandle stream : streams_.handles()) {
      resolved_.push_back(or_throw(allocator_.stream(stream)));
    }
  }
  /// Precondition: no block is live.
  ~BursarRig() {
    for (const StreamRef stream : resolved_) (void)allocator_.retire_stream(stream);
  }
  BursarRig(const BursarRig&) = delete;
  BursarRig& operator=(const BursarRig&) = delete;

  /// On stream number `stream`, resolved once.
  OnStream subject(int stream) { return {allocator_, resolved_[static_cast<std::size_t>(stream)]}; }
  /// By its raw handle, which each call resolves.
  OnStream raw(int stream) { return {allocator_, handle(stream)}; }
  AtHome raw_home(int stream) { return {allocator_, handle(stream)}; }
  CallMeter* meter() { return &allocator_.driver().meter(); }

 private:
  template <class T>
  static T or_throw(result<T> outcome) {
    if (!outcome) throw Error(outcome.failure());
    return *outcome;
  }
  StreamRef handle(int stream) const {
    return StreamRef(streams_.handles()[static_cast<std::size_t>(stream)]);
  }

  BenchStreams streams_;  // outlive the allocator
  CachingAllocator allocator_;
  std::vector<StreamRef> resolved_;
};

}  // namespace v0
}  // namespace bursar
