// SPDX-License-Identifier: Apache-2.0
// What a caller may say about one allocation.
#pragma once

#include <cstdint>

#include <bursar/core/bytes.hpp>
#include <bursar/core/ids.hpp>
#include <bursar/driver/stream_ref.hpp>

namespace bursar {
inline namespace v0 {

/// Properties of a block, combined with `|`.
enum class BlockFlags : std::uint8_t {
  none = 0,
  /// One extent of its own that is never moved, aliased or trimmed while the block lives: for NCCL,
  /// RDMA and other registrations, which look at the first extent only.
  pinned = 1,
  /// A fresh extent of its own that can be exported to another process; the block is at its begin.
  /// What it holds beyond the request is cleared, in stream order.
  shareable = 2,
};
constexpr BlockFlags operator|(BlockFlags a, BlockFlags b) {
  return static_cast<BlockFlags>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool has(BlockFlags flags, BlockFlags flag) {
  return (static_cast<std::uint8_t>(flags) & static_cast<std::uint8_t>(flag)) != 0;
}

inline constexpr DomainId kDefaultDomain{0};

struct AllocateOptions {
  StreamRef stream{};                ///< the home stream; the legacy default stream when not given
  DomainId domain = kDefaultDomain;  ///< who pays
  DeviceId device{};                 ///< which device's memory
  /// A power of two, at most 1 GiB; less than 512 counts as 512, in passthrough mode less than 16
  /// as 16.
  Bytes alignment{1};
  BlockFlags flags = BlockFlags::none;
};

}  // namespace v0
}  // namespace bursar
