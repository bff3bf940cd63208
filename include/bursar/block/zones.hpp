// SPDX-License-Identifier: Apache-2.0
// Zones: the addresses at which a domain's extents are at home, in two parts.
//
// Blocks below a page live in one-page extents of their own, so that a small block that lives long
// pins one page and not a large extent. What is idle serves both: a view takes extents and their
// ends from either zone.
#pragma once

#include <bursar/block/block_map.hpp>

namespace bursar {
inline namespace v0 {

/// Guarded by the device's heap lock.
struct Zones {
  Zones(BlockStore& store, DomainId id, DeviceId device)
      : small(store, id, device), large(store, id, device) {}

  BlockMap small;  ///< blocks below `small_limit`, in one-page extents
  BlockMap large;

  /// The block that holds `address`, or null when neither zone has such an address.
  Block* find(DeviceAddress address) const {
    Block* block = large.find(address);
    return block != nullptr ? block : small.find(address);
  }
};

}  // namespace v0
}  // namespace bursar
