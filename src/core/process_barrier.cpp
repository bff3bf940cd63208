// SPDX-License-Identifier: Apache-2.0
// membarrier(2), registered for once.
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bursar/core/check.hpp>
#include <bursar/core/process_barrier.hpp>

namespace bursar {
inline namespace v0 {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kSeen = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kSeen = false;
#else
constexpr bool kSeen = true;
#endif
#else
constexpr bool kSeen = true;
#endif

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool process_barrier_available() noexcept {
  static const bool registered =
      kSeen && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  return registered;
}

void process_barrier() noexcept {
  const bool done = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
  BURSAR_CHECK(0, done);
}

}  // namespace v0
}  // namespace bursar
