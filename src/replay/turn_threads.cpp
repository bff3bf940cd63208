// SPDX-License-Identifier: Apache-2.0
// Each semaphore is released by the one thread that has the turn, so state passes with it.
#include "turn_threads.hpp"

#include <utility>

namespace bursar {
inline namespace v0 {

TurnThreads::TurnThreads(std::size_t count, Work work) : work_(std::move(work)) {
  for (std::size_t i = 0; i < count; ++i) turns_.emplace_back(0);
  threads_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this, i] { serve(i); });
}

TurnThreads::~TurnThreads() {
  leaving_ = true;
  for (auto& turn : turns_) turn.release();
  for (auto& thread : threads_) thread.join();
}

void TurnThreads::run(std::span<const Stretch> order) {
  left_ = order;
  hand_on();
  done_.acquire();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void TurnThreads::serve(std::size_t thread) {
  for (;;) {
    turns_[thread].acquire();
    if (leaving_) return;
    try {
      const bool go_on = work_(left_.front());
      left_ = go_on ? left_.subspan(1) : std::span<const Stretch>{};
    } catch (...) {
      thrown_ = std::current_exception();
      left_ = {};
    }
    hand_on();
  }
}

void TurnThreads::hand_on() {
  if (left_.empty()) {
    done_.release();
  } else {
    turns_[left_.front().trace].release();
  }
}

}  // namespace v0
}  // namespace bursar
