// SPDX-License-Identifier: Apache-2.0
// The atfork handler behind fork_generation.
#include "fork_watch.hpp"

#include <pthread.h>

#include <atomic>

namespace bursar {
inline namespace v0 {
namespace {

std::atomic<std::uint32_t> generation{0};

void count_fork() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

std::uint32_t fork_generation() noexcept {
  static const int armed = pthread_atfork(nullptr, nullptr, count_fork);
  static_cast<void>(armed);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace v0
}  // namespace bursar
