// SPDX-License-Identifier: Apache-2.0
// PeerRig: another allocator on the same GPU, reached through its replay target.
//
// That costs a virtual call a side, and cuda_async the metering of the replay (some 50 ns a side):
// little beside what these allocators take.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "bench_machine.hpp"

namespace bursar {
inline namespace v0 {

class PeerRig {
 public:
  class Subject {
   public:
    Subject(ReplayTarget& target, StreamRef stream) : target_(target), stream_(stream) {}
    void* allocate(std::size_t bytes) {
      const result<void*> block = target_.allocate(Bytes{bytes}, stream_);
      if (!block) throw Error(block.failure());
      return *block;
    }
    void deallocate(void* block) {
      if (const result<void> done = target_.deallocate(block, stream_); !done) {
        throw Error(done.failure());
      }
    }

   private:
    ReplayTarget& target_;
    StreamRef stream_;
  };

  /// Throws Error.
  PeerRig(BenchMachine& machine, std::string_view allocator, int streams)
      : streams_(machine.device(), streams), target_(machine.device().make_target(allocator)) {
    for (const StreamHandle stream : streams_.handles()) {
      const result<StreamRef> resolved = target_->resolve(stream);
      if (!resolved) throw Error(resolved.failure());
      resolved_.push_back(*resolved);
    }
  }
  /// Precondition: no block is live.
  ~PeerRig() {
    for (const StreamRef stream : resolved_) (void)target_->retire(stream);
  }
  PeerRig(const PeerRig&) = delete;
  PeerRig& operator=(const PeerRig&) = delete;

  Subject subject(int stream) { return {*target_, resolved_[static_cast<std::size_t>(stream)]}; }
  CallMeter* meter() const { return nullptr; }

 private:
  BenchStreams streams_;  // outlive the target
  std::unique_ptr<ReplayTarget> target_;
  std::vector<StreamRef> resolved_;
};

}  // namespace v0
}  // namespace bursar
