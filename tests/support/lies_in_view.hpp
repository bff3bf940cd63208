// SPDX-License-Identifier: Apache-2.0
// Whether a block was handed out in a view: at addresses that are nobody's home.
#pragma once

#include <algorithm>

#include <bursar/allocator/caching_allocator.hpp>

namespace bursar::test {

/// `block` is live. Takes a snapshot, so ask for some blocks only where there are many.
inline bool lies_in_view(const CachingAllocator& allocator, const void* block) {
  const std::vector<VaRange> homes = allocator.snapshot().ranges;
  const DeviceAddress at = to_address(block);
  return std::none_of(homes.begin(), homes.end(),
                      [&](const VaRange& home) { return home.contains(at); });
}

}  // namespace bursar::test
