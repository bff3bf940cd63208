// SPDX-License-Identifier: Apache-2.0
// Arena: one domain's memory on one device: its zones, its views and its counters.
#pragma once

#include <algorithm>
#include <cstdint>

#include <bursar/block/view_set.hpp>
#include <bursar/block/zones.hpp>

namespace bursar {
inline namespace v0 {

/// Guarded by the device's heap lock.
struct Arena : Zones {
  Arena(BlockStore& store, DomainId id, DeviceId device)
      : Zones(store, id, device), domain(id), view_addresses(store, id, device) {}

  DomainId domain;
  BlockMap view_addresses;  ///< where views lie: moving where one is, else vacant
  ViewSet views;            ///< of extents at home in the zones

  std::uint32_t pins = 0;  ///< requests that use it while they hold no lock

  Bytes requested{};
  Bytes requested_peak{};
  Bytes live_peak{};
  std::uint64_t live_blocks = 0;
  std::uint64_t allocations = 0;
  std::uint64_t deallocations = 0;
  std::uint64_t cache_hits = 0;
  std::uint64_t thread_hits = 0;
  std::uint64_t extents_moved = 0;
  std::uint64_t out_of_memory = 0;
  std::uint64_t damaged_blocks = 0;

  /// Passthrough: where the mapping placed last ends. The next one lies behind it.
  DeviceAddress last_end{};

  /// Nothing but addresses is left.
  bool empty() const {
    const auto vacant = [](const BlockMap& map) {
      return map.bytes(BlockState::vacant) == map.address_space();
    };
    return pins == 0 && live_blocks == 0 && vacant(small) && vacant(large) &&
           vacant(view_addresses);
  }
  Bytes live() const { return small.bytes(BlockState::live) + large.bytes(BlockState::live); }

  void note_allocated(Bytes asked) {
    requested += asked;
    requested_peak = std::max(requested_peak, requested);
    live_peak = std::max(live_peak, live());
    ++live_blocks;
    ++allocations;
  }
  void note_freed(Bytes asked) {
    requested -= asked;
    --live_blocks;
    ++deallocations;
  }
};

}  // namespace v0
}  // namespace bursar
