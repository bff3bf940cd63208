// SPDX-License-Identifier: Apache-2.0
// The loops that are timed on one thread: pingpong and churn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "subjects/keep.hpp"

namespace bursar {
inline namespace v0 {

/// Allocates and frees one size, again and again.
template <class Subject>
void pingpong(benchmark::State& state, Subject subject, std::size_t bytes) {
  for (auto _ : state) {
    void* block = subject.allocate(bytes);
    keep(block);
    subject.deallocate(block);
  }
}

/// How many blocks are live, and the largest size: at least 512 B, log-uniform.
struct ChurnPlan {
  std::uint32_t live;
  std::uint32_t largest;
};

/// One step of a churn: which block goes, and how large the one is that comes in its place.
struct Replacement {
  std::uint32_t victim;
  std::uint32_t bytes;
};

/// A cycle of them, the same in each run; the number is a power of two, at least 2 x live.
std::vector<Replacement> make_replacements(const ChurnPlan& plan);

/// Blocks of which a random one is replaced at each step. Two cycles are made ahead, so that what
/// is timed finds what it needs in the cache.
template <class Subject>
class Churn {
 public:
  Churn(Subject subject, const ChurnPlan& plan)
      : subject_(subject), steps_(make_replacements(plan)) {
    for (std::uint32_t i = 0; i < plan.live; ++i) {
      blocks_.push_back(subject_.allocate(steps_[i].bytes));
    }
    for (std::size_t i = 0; i < 2 * steps_.size(); ++i) step();
  }
  ~Churn() {
    for (void* block : blocks_) subject_.deallocate(block);
  }
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

  void step() {
    const Replacement& step = steps_[next_++ & (steps_.size() - 1)];
    void*& block = blocks_[step.victim];
    subject_.deallocate(block);
    block = subject_.allocate(step.bytes);
  }

 private:
  Subject subject_;
  std::vector<Replacement> steps_;
  std::vector<void*> blocks_;
  std::size_t next_ = 0;
};

}  // namespace v0
}  // namespace bursar
