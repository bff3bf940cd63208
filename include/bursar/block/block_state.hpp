// SPDX-License-Identifier: Apache-2.0
// BlockState: what a run of addresses is to the allocator.
#pragma once

#include <cstddef>
#include <cstdint>

#include <bursar/core/config.hpp>

namespace bursar {
inline namespace v0 {

enum class BlockState : std::uint8_t {
  live,     ///< handed out
  idle,     ///< backed by memory, free
  pending,  ///< backed, freed, maybe still used by the GPU
  moving,   ///< set aside: a driver operation is under way, or an old mapping still stands
  vacant,   ///< addresses without memory
};
inline constexpr std::size_t kBlockStateCount = 5;

/// "live", "idle", "pending", "moving", "vacant".
constexpr const char* to_string(BlockState state) {
  constexpr const char* names[kBlockStateCount] = {"live", "idle", "pending", "moving", "vacant"};
  return names[static_cast<std::size_t>(state)];
}

}  // namespace v0
}  // namespace bursar
