// SPDX-License-Identifier: Apache-2.0
// fork_generation: tells a forked child from the process that opened the driver.
//
// After fork the parent's CUDA state is void in the child, yet objects made before it live on
// there. A number that the fork itself raises is cheaper to compare than asking for the process id.
#pragma once

#include <cstdint>

namespace bursar {
inline namespace v0 {

/// Raised by one in a forked child. The first call in a process arms it.
std::uint32_t fork_generation() noexcept;

}  // namespace v0
}  // namespace bursar
