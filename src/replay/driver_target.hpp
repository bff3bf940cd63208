// SPDX-License-Identifier: Apache-2.0
// The targets that work on a Driver, wherever that is: Bursar's own allocator and the stand-in.
#pragma once

#include <memory>
#include <optional>

#include <bursar/driver/driver.hpp>

#include "replay_target.hpp"

namespace bursar {
inline namespace v0 {

/// CachingAllocator with the options of BURSAR_CONF; `limit` bounds what it may hold. Throws Error.
std::unique_ptr<ReplayTarget> make_bursar_target(std::shared_ptr<Driver> driver,
                                                 std::optional<Bytes> limit = std::nullopt);

/// SegmentCache.
std::unique_ptr<ReplayTarget> make_segment_cache_target(std::shared_ptr<Driver> driver);

}  // namespace v0
}  // namespace bursar
