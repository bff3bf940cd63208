// SPDX-License-Identifier: Apache-2.0
// TurnThreads: one thread a trace, of which one at a time works, in the order of a schedule.
//
// The threads are real, since allocators keep caches by thread, and they outlive a pass, since
// thread exit empties those caches. Order is kept by handing a turn on, so that what the work
// touches needs no lock.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <semaphore>
#include <span>
#include <thread>
#include <vector>

#include "schedule.hpp"

namespace bursar {
inline namespace v0 {

class TurnThreads {
 public:
  /// Done for each stretch on its trace's thread; false ends the run. May throw.
  using Work = std::function<bool(const Stretch&)>;

  /// Starts `count` threads, numbered as the traces of the stretches to come.
  TurnThreads(std::size_t count, Work work);
  /// Joins them.
  ~TurnThreads();
  TurnThreads(const TurnThreads&) = delete;
  TurnThreads& operator=(const TurnThreads&) = delete;

  /// Works through `order` and returns when it is done or the work has ended the run; rethrows what
  /// the work threw.
  void run(std::span<const Stretch> order);

 private:
  void serve(std::size_t thread);
  /// Gives the turn to the thread of the stretch now at the front, or back to run().
  void hand_on();

  Work work_;
  std::span<const Stretch> left_;  ///< owned, like all that follows, by whoever has the turn
  std::exception_ptr thrown_;
  bool leaving_ = false;
  std::deque<std::binary_semaphore> turns_;  ///< by thread
  std::binary_semaphore done_{0};
  std::vector<std::thread> threads_;
};

}  // namespace v0
}  // namespace bursar
