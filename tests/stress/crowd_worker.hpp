// SPDX-License-Identifier: Apache-2.0
// One thread of the Crowd: its streams, its blocks and its random choices.
#pragma once

#include "stress/crowd.hpp"

namespace bursar::test {

class Crowd::Worker {
 public:
  Worker(Crowd& crowd, std::size_t index);

  /// Steps until `end`, or until anybody found something.
  void run(std::chrono::steady_clock::time_point end);
  /// Frees what it holds and waits for its streams. On one thread, when all have ended.
  void finish(std::vector<StreamRef>& named);

 private:
  void step();
  void allocate();
  void free_some(std::size_t count);
  void free_block(const Live& block);
  void free_elsewhere(const Live& block);
  void record();
  void hand_over();
  void take_over();
  void trim();
  void retire();
  void replace_domain();

  std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }
  Duration some_time() { return microseconds(below(400)); }
  Stream& any_stream();
  Live take();

  Crowd& crowd_;
  std::size_t index_;
  std::mt19937 random_;
  std::vector<Stream> own_;
  DomainId domain_{};
  std::vector<Live> live_;
};

}  // namespace bursar::test
