// SPDX-License-Identifier: Apache-2.0
// Extent: one piece of physical memory, as the driver made it.
//
// The driver maps an extent whole or not at all, so its size is decided once, at creation, and it
// is the unit in which memory is paid for, moved and given back. An extent holds blocks of one
// domain only, which is what makes "the sum of charges" and "the memory that exists" one figure.
#pragma once

#include <cstddef>
#include <cstdint>

#include <bursar/driver/driver_types.hpp>

namespace bursar {
inline namespace v0 {

enum class ExtentState : std::uint8_t {
  spare,        ///< held, mapped nowhere: ready for the next growth
  mapped,       ///< under blocks, at `mapped_at`
  quarantined,  ///< an undo failed: paid for, never reused, retried
};

struct Extent {
  std::uint64_t id = 0;  ///< unique in the pool's life
  ExtentHandle handle{};
  Bytes size{};
  PageCount pages{};
  DomainId domain{};  ///< who pays
  ExtentState state = ExtentState::spare;
  bool dedicated = false;          ///< of a dedicated block: released when that is freed
  bool unclean = true;             ///< may hold what another domain wrote (see Scrub)
  DeviceAddress mapped_at{};       ///< where its blocks live; 0: nowhere
  std::uint32_t old_mappings = 0;  ///< earlier addresses not yet taken away (see OldMapping)
  std::size_t index = 0;           ///< place in the pool's list
};

}  // namespace v0
}  // namespace bursar
