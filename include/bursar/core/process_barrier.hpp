// SPDX-License-Identifier: Apache-2.0
// ProcessBarrier: makes one side of a handshake nearly free at the other side's expense.
//
// Where two threads each write a flag and then read the other's, both need a full barrier. Here the
// frequent side pays for a compiler barrier only, because the rare side asks the kernel to run a
// full barrier on every processor that runs a thread of this process (membarrier(2), Linux 4.14).
#pragma once

#include <atomic>

#include <bursar/core/config.hpp>

namespace bursar {
inline namespace v0 {

/// True when the kernel does it for us, which is asked once. False under the thread sanitizer,
/// which cannot see such an order: then both sides must use sequentially consistent exchanges.
BURSAR_EXPORT bool process_barrier_available() noexcept;

/// Every store that any thread of the process made before is visible, and every load that comes
/// after one here sees what they had stored. Some microseconds. Precondition: it is available.
BURSAR_EXPORT void process_barrier() noexcept;

}  // namespace v0
}  // namespace bursar
